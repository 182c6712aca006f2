"""A secret that is not among the released numbers, known through its covariance with them."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.priors.gaussian import GaussianPrior
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.radius import checked_radius
from jaxpriv.shapes import Scalar


class ExternalSecret(eqx.Module):
    """A Gaussian quantity T, given by Cov(Y, T) with what is released and by Cov(T).

    Args:
        cross: Cov(Y, T), (m, k).
        variance: Cov(T), (k, k), symmetric.
        radius: the largest separation of two hypotheses at one time, in the unit of T.
        n_times: the number of distinct times that T's coordinates belong to.

    Raises:
        InputError: shapes that do not fit, values that are not finite.
    """

    cross: Float[Array | np.ndarray, "m k"]
    variance: Float[Array | np.ndarray, "k k"]
    radius: Float[Array | np.ndarray, ""]
    n_times: int = eqx.field(static=True)

    def __init__(self, cross: Any, variance: Any, radius: Scalar, n_times: int = 1):
        cross, variance = (a if hasattr(a, "ndim") else np.asarray(a, dtype=np.float64) for a in (cross, variance))
        if cross.ndim != 2 or 0 in cross.shape or variance.shape != (cross.shape[1], cross.shape[1]):
            raise InputError(
                f"cross and variance have shapes {cross.shape} and {variance.shape}; expected (m, k) and (k, k)."
            )
        for name, array in (("cross", cross), ("variance", variance)):
            if isinstance(array, np.ndarray) and not np.all(np.isfinite(array)):
                raise InputError(f"{name} holds values that are not finite.")
        if n_times < 1 or cross.shape[1] % n_times:
            raise InputError(f"{cross.shape[1]} coordinates do not divide into {n_times} times.")
        self.cross, self.variance = cross, variance
        self.radius = checked_radius(radius)
        self.n_times = n_times

    @property
    def size(self) -> int:
        """k, the number of coordinates."""
        return self.cross.shape[1]

    def joint(self, prior: Prior) -> tuple[Float[Array | np.ndarray, "m k"], Float[Array | np.ndarray, "k k"]]:
        """Cov(Y, T) and Cov(T), as given."""
        if self.cross.shape[0] != prior.size:
            raise InputError(f"cross has {self.cross.shape[0]} rows for {prior.size} released numbers.")
        return self.cross, self.variance


def linear_query(prior: Prior, secret: Any, query: Any) -> tuple[GaussianPrior, ExternalSecret]:
    """The prior and the secret of a release that publishes Y = Q X and nothing else of the trace.

    Args:
        prior: of the trace X, n coordinates.
        secret: about X.
        query: Q, (m, n).

    Returns:
        The prior Q Σ Qᵀ of Y and the secret seen from Y, for `design`, `certify` and the losses. The least noise for
        Y is (Q F Qᵀ)₊ with F the secret's floor; proof in docs/design.md.

    Raises:
        InputError: a query of the wrong shape.
    """
    on_host = isinstance(query, (list, tuple, np.ndarray))
    query = np.asarray(query, dtype=np.float64) if on_host else jnp.asarray(query)
    if query.ndim != 2 or query.shape[1] != prior.size or query.shape[0] == 0:
        raise InputError(f"query has shape {query.shape}; expected (m, {prior.size}).")
    cross, variance = secret.joint(prior)
    with jax.default_matmul_precision("highest"):
        released = query @ prior.covariance @ query.T
        released_cross = query @ cross
    return (
        GaussianPrior(0.5 * (released + released.T)),
        ExternalSecret(released_cross, variance, secret.radius, secret.n_times),
    )
