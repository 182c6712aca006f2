"""Requirements beside the secrets of a design, as positive semidefinite floors of fixed height."""

from __future__ import annotations

import math
from typing import Literal

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.floors.leakage import check_leakage_target, information_allowed
from jaxpriv.losses.renyi import check_order
from jaxpriv.secrets.linear import LinearSecret
from jaxpriv.secrets.secret import Secret


Moving = Literal["trace", "point", "every point"]


def _positive(value: float, name: str) -> float:
    if not (isinstance(value, (int, float, np.floating)) and value > 0 and math.isfinite(value)):
        raise InputError(f"{name} is {value!r}; expected a positive, finite number.")
    return float(value)


class GeoIndistinguishability(eqx.Module):
    """Rényi loss at most `epsilon` between any two traces that differ as `moving` says, whatever the prior.

    * "trace": by at most `radius` in Euclidean norm over the whole trace; noise of variance λ r²/(2ε) everywhere.
    * "point": at one time by at most `radius`, the others known; G ⪰ λ r²/(2ε) e eᵀ for each time.
    * "every point": at every time at once, by at most `radius` each; N times the variance of "trace".

    Gaussian noise and the Rényi order λ; the classical definition of Andrés et al. (CCS 2013) is for independent noise
    on one point. Derived here; proof in docs/design.md.

    Args:
        radius: in the unit of the trace.
        epsilon: nats at order `order`.
        dims: coordinates at a time.
    """

    radius: float = eqx.field(static=True)
    epsilon: float = eqx.field(static=True)
    order: float = eqx.field(static=True)
    moving: Moving = eqx.field(static=True)
    dims: int = eqx.field(static=True)

    def __init__(
        self, radius: float, epsilon: float, order: float = 2.0, moving: Moving = "trace", dims: int = 1
    ) -> None:
        check_order(order, above=1.0)
        if moving not in ("trace", "point", "every point"):
            raise InputError(f"moving is {moving!r}; expected 'trace', 'point' or 'every point'.")
        self.radius, self.epsilon = _positive(radius, "radius"), _positive(epsilon, "epsilon")
        self.order, self.moving, self.dims = float(order), moving, int(dims)

    @property
    def variance(self) -> float:
        """λ r²/(2ε), rounded up, in squared units."""
        return self.order * self.radius**2 / (2.0 * self.epsilon) * (1.0 + 2.0**-50)

    def floor_sd(self, size: int) -> float:
        """Standard deviation of the independent noise that every coordinate needs; 0 when `moving` is "point"."""
        if size % self.dims:
            raise InputError(f"a trace of {size} coordinates does not divide into times of {self.dims}.")
        if self.moving == "point":
            return 0.0
        share = size // self.dims if self.moving == "every point" else 1
        return math.sqrt(share * self.variance) * (1.0 + 2.0**-50)

    def ellipsoids(self, size: int) -> list[tuple[np.ndarray, float]]:
        """Pairs (E, μ²), E (size, q), with Eᵀ G⁻¹ E ⪯ μ² I for each; none where `floor_sd` says it all."""
        if self.moving != "point":
            return []
        identity = np.eye(size)
        squared = 1.0 / (self.variance * (1.0 + 2.0**-50))
        return [(identity[:, start : start + self.dims], squared) for start in range(0, size, self.dims)]


class SensitivityEllipsoid(eqx.Module):
    """Differential privacy of a trace that can change by any vector of the ellipsoid {E u : ‖u‖ ≤ 1}.

    Exactly μ-Gaussian differential privacy, and with it Rényi loss λ μ²/2 for every order λ and μ²/2-zero-concentrated
    differential privacy; the floor is E Eᵀ/μ². Give one of mu, rho (zCDP) and epsilon (nats, at order `order`).

    Args:
        shape: E, (n, q), in the unit of the trace.
    """

    shape: Float[Array | np.ndarray, "n q"]
    mu: float = eqx.field(static=True)

    def __init__(
        self,
        shape: Float[np.ndarray, "n q"],
        *,
        mu: float | None = None,
        rho: float | None = None,
        epsilon: float | None = None,
        order: float = 2.0,
    ) -> None:
        shape = np.asarray(shape, dtype=np.float64)
        if shape.ndim != 2 or 0 in shape.shape or not np.all(np.isfinite(shape)):
            raise InputError(f"shape must be a finite (n, q) matrix; it has shape {shape.shape}.")
        if sum(value is not None for value in (mu, rho, epsilon)) != 1:
            raise InputError("give exactly one of mu, rho and epsilon.")
        check_order(order, above=1.0)
        if rho is not None:
            mu = math.sqrt(2.0 * _positive(rho, "rho"))
        elif epsilon is not None:
            mu = math.sqrt(2.0 * _positive(epsilon, "epsilon") / order)
        self.shape, self.mu = shape, _positive(mu, "mu")  # type: ignore[arg-type]

    def ellipsoids(self, size: int) -> list[tuple[np.ndarray, float]]:
        """The pair (E, μ²), μ² rounded down, with Eᵀ G⁻¹ E ⪯ μ² I required."""
        if self.shape.shape[0] != size:
            raise InputError(f"shape has {self.shape.shape[0]} rows for a trace of {size} coordinates.")
        return [(np.asarray(self.shape), self.mu**2 * (1.0 - 2.0**-50))]


class SideInformation(eqx.Module):
    """A secret protected also against an adversary who knows the fixes at the positions `known` exactly.

    Args:
        secret: with its radius.
        known: positions in the unrolled trace, none of them the secret's.
        epsilon: nats at order `order`, for this adversary.
    """

    secret: Secret | LinearSecret
    known: tuple[int, ...] = eqx.field(static=True)
    epsilon: float = eqx.field(static=True)
    order: float = eqx.field(static=True)

    def __init__(
        self, secret: Secret | LinearSecret, known: list[int] | tuple[int, ...], epsilon: float, order: float = 2.0
    ) -> None:
        check_order(order, above=1.0)
        self.secret = secret
        self.known = Secret(known, 1.0).indices
        if isinstance(secret, Secret) and set(self.known) & set(secret.indices):
            raise InputError("a position of the secret cannot be among the known ones.")
        self.epsilon, self.order = _positive(epsilon, "epsilon"), float(order)


class SecretLeakage(eqx.Module):
    """Pointwise maximal leakage of a secret at most `epsilon`, except with probability `delta` over the output.

    For one number of variance v exactly the loss (e^τ − 1)/v, τ = 2ε − q₁(δ); for several numbers the matrix inequality
    of Theorem 3.6 of Liu, Kawano and Cao (arXiv:2511.10771), which suffices: Cov(T | release) ⪰ κ Cov(T). Both are
    floors under each prior. Derived here; proof in docs/leakage_designs.md. δ is an average over the prior, and holds
    for each secret by itself.

    Args:
        secret: its radius plays no part.
        epsilon: nats; above half the χ² quantile of as many degrees as the secret has numbers.

    Raises:
        InputError: ε or δ out of range.
        InfeasibleError: ε is not above half the quantile.
    """

    secret: Secret | LinearSecret
    epsilon: float = eqx.field(static=True)
    delta: float = eqx.field(static=True)
    rank: int = eqx.field(static=True)

    def __init__(self, secret: Secret | LinearSecret, *, epsilon: float, delta: float) -> None:
        self.secret, self.rank = secret, int(secret.size)
        self.epsilon, self.delta = check_leakage_target(epsilon, delta)
        information_allowed(self.epsilon, self.delta, self.rank)

    @property
    def ratio(self) -> float:
        """1/κ − 1, rounded down: the largest eigenvalue that Cov(T)^½ M Cov(T)^½ may have."""
        allowed = information_allowed(self.epsilon, self.delta, self.rank)
        return math.expm1(allowed / self.rank) * (1.0 - 2.0**-48)


Requirement = GeoIndistinguishability | SensitivityEllipsoid | SideInformation | SecretLeakage
