"""Families of stationary priors, with proven bounds of every covariance in a box of their parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.priors import kernels
from jaxpriv.priors.process import ProcessPrior
from jaxpriv.shapes import Scalar


Kernel = Literal["rbf", "matern12", "matern32", "matern52", "periodic"]
KERNELS: tuple[Kernel, ...] = ("rbf", "matern12", "matern32", "matern52", "periodic")
PARAMETERS = ("lengthscale", "sd", "noise_sd")

# Of a correlation evaluated in float64, absolute: a few roundings of an argument a cost a few u a exp(-a) < u.
_EVALUATION = 2.0**-48
_WIDEN = 1.0 + 2.0**-48


class Enclosure(NamedTuple):
    """Arrays between which every covariance of a box lies, up to an overall scale of at least 1.

    For every θ of the box there are c ≥ 1 and Σ' with Σ(θ) = c Σ', lower ⪯ Σ' ⪯ upper and Σ'_ii ≤ variances_i. (A
    prior of larger overall scale loses no more: with H unchanged and C multiplied, Hᵀ(cC + G)⁻¹H ⪯ Hᵀ(C + G)⁻¹H.)
    All in squared units of the trace.
    """

    lower: Float[np.ndarray, "n n"]
    upper: Float[np.ndarray, "n n"]
    variances: Float[np.ndarray, " n"]


@runtime_checkable
class Enclosed(Protocol):
    """A family that can bound its covariances over a box given by the lower and the upper end of each parameter."""

    def enclosure(self, low: Mapping[str, float], high: Mapping[str, float]) -> Enclosure: ...


class StationaryFamily(eqx.Module):
    """The priors sd² k(τ/lengthscale) + noise_sd² [i = j] at given times, as a function of their parameters.

    Call it with `lengthscale` and optionally `sd` and `noise_sd` (traced values too) for a `ProcessPrior`.

    Args:
        kernel: "rbf", "matern12", "matern32", "matern52" or "periodic".
        times: (n,), in the unit of the length scale.
        sd: used where the call does not give it; in the unit of the trace.
        noise_sd: likewise.
        period: of the periodic kernel, in the unit of the times; its length scale has no unit.

    Raises:
        InputError: an unknown kernel, a period where none belongs or the reverse, bad times.
    """

    times: Float[np.ndarray, " n"]
    sd: Float[Array | np.ndarray, ""]
    noise_sd: Float[Array | np.ndarray, ""]
    period: Float[Array | np.ndarray, ""] | None
    kernel: Kernel = eqx.field(static=True)

    def __init__(
        self,
        kernel: Kernel,
        times: Float[Array | np.ndarray, " n"],
        *,
        sd: float = 1.0,
        noise_sd: float = 0.0,
        period: float | None = None,
    ):
        if kernel not in KERNELS:
            raise InputError(f"kernel is {kernel!r}; expected one of {', '.join(KERNELS)}.")
        if (period is not None) != (kernel == "periodic"):
            raise InputError("period belongs to the periodic kernel, and that one needs it.")
        for name, value, least in (("sd", sd, True), ("noise_sd", noise_sd, False), ("period", period or 1.0, True)):
            if not (math.isfinite(value) and (value > 0.0 if least else value >= 0.0)):
                raise InputError(
                    f"{name} is {value}; expected a finite number {'above' if least else 'of at least'} 0."
                )
        self.times = np.asarray(times, dtype=np.float64)
        self.sd, self.noise_sd = np.asarray(float(sd)), np.asarray(float(noise_sd))
        self.period = None if period is None else np.asarray(float(period))
        self.kernel = kernel
        self(lengthscale=1.0)

    def __call__(self, lengthscale: Scalar, sd: Scalar | None = None, noise_sd: Scalar | None = None) -> ProcessPrior:
        """The prior of these parameters; differentiable in them."""
        scale = self.sd if sd is None else sd
        noise = self.noise_sd if noise_sd is None else noise_sd
        if self.period is not None:
            kernel = kernels.periodic(self.period, lengthscale, scale)  # pyright: ignore[reportArgumentType]
        else:
            kernel = getattr(kernels, self.kernel)(lengthscale, scale)
        return ProcessPrior(kernel, self.times, noise)  # pyright: ignore[reportArgumentType]

    def enclosure(self, low: Mapping[str, float], high: Mapping[str, float]) -> Enclosure:
        """Bounds of every covariance with parameters between `low` and `high`.

        For l in [l1, l2]: (l1/l2) k_{l2} ⪯ k_l ⪯ (l2/l1) k_{l1}, whenever the spectral density of the kernel falls
        with frequency, since that of k_l is l S(lω); for the periodic kernel the factor is exp(1/l1² − 1/l2²) instead,
        from its Fourier coefficients e^{−z} I_j(z), z = 1/l². A range of sd is one of the noise after division by the
        scale. Derived here; proof in docs/robust_designs.md. The evaluation of the kernel is allowed an absolute error
        of 2⁻⁴⁸ of its variance. Raises InputError for parameters that the family does not have.
        """
        unknown = sorted(set(low) - set(PARAMETERS))
        if unknown:
            raise InputError(f"{unknown[0]!r} is no parameter of a StationaryFamily; it has {', '.join(PARAMETERS)}.")
        fixed = {"sd": float(self.sd), "noise_sd": float(self.noise_sd)}
        first, last = {**fixed, **low}, {**fixed, **high}
        if "lengthscale" not in first:
            raise InputError("the region gives no bounds for the lengthscale.")
        l1, l2 = float(first["lengthscale"]), float(last["lengthscale"])
        share = self._share(l1, l2) / _WIDEN
        power = first["sd"] ** 2
        noise_low = (first["noise_sd"] * first["sd"] / last["sd"]) ** 2 / _WIDEN
        noise_high = last["noise_sd"] ** 2 * _WIDEN
        size = self.times.shape[0]
        error = size * power * self._error(l1)
        eye = np.eye(size)
        lower = power * share * self.correlation(l2) + (noise_low - error) * eye
        upper = power / share * self.correlation(l1) + (noise_high + error / share) * eye
        return Enclosure(lower, upper, np.full(size, (power + noise_high) * _WIDEN))

    def correlation(self, lengthscale: float) -> Float[np.ndarray, "n n"]:
        """k(|t_i − t_j|/l) on the host in float64."""
        lag = np.abs(self.times[:, None] - self.times)
        if self.period is not None:
            return np.exp(-2.0 * (np.sin(np.pi * lag / float(self.period)) / lengthscale) ** 2)
        scaled = lag / lengthscale
        if self.kernel == "rbf":
            return np.exp(-0.5 * scaled**2)
        order = {"matern12": 1.0, "matern32": 3.0, "matern52": 5.0}[self.kernel]
        a = np.sqrt(order) * scaled
        polynomial = {1.0: np.ones_like(a), 3.0: 1.0 + a, 5.0: 1.0 + a + a**2 / 3.0}[order]
        return polynomial * np.exp(-a)

    def _share(self, l1: float, l2: float) -> float:
        """What is left of k_{l2} below every k_l with l1 ≤ l ≤ l2."""
        if self.period is None:
            return l1 / l2
        return math.exp(-(1.0 / l1**2 - 1.0 / l2**2))

    def _error(self, lengthscale: float) -> float:
        """Absolute error of one evaluated correlation."""
        if self.period is None:
            return _EVALUATION
        turns = float(np.ptp(self.times)) / float(self.period)
        return _EVALUATION * (1.0 + (1.0 + math.pi * turns) * 8.0 / lengthscale**2)
