"""Additive Gaussian noise with covariance L Lᵀ + floor_sd² I."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from jaxpriv.errors import InputError
from jaxpriv.mechanisms.data_resolution import refuse_coarse_data
from jaxpriv.mechanisms.grid_release import Release, SimulatedRelease, release


jax.tree_util.register_dataclass(SimulatedRelease, data_fields=["values"], meta_fields=["exponent"])


class GaussianMechanism(eqx.Module):
    """Publish X + L ξ + floor_sd ζ with ξ and ζ standard normal.

    Args:
        factor: L, (n, q), in the unit of the trace. q = 0 is allowed: the noise is then floor_sd² I.
        floor_sd: standard deviation of the independent part, in the unit of the trace, at least 0. With 0 the noise
            leaves n − q directions of the trace exact, and `release` refuses.
        resolution: step to which the traces are recorded that it is meant for, in the unit of the trace; 0 declares
            that they are not quantised.

    Arrays are kept as they are given (a NumPy float64 factor stays one whatever the global precision).

    Raises:
        InputError: wrong shape, values that are not finite, or a negative floor.
    """

    factor: Float[Array | np.ndarray, "n q"]
    floor_sd: Float[Array | np.ndarray, ""]
    resolution: Float[Array | np.ndarray, ""]

    def __init__(self, factor: Float[Array | np.ndarray, "n q"], floor_sd: float = 0.0, resolution: float = 0.0):
        if not hasattr(factor, "ndim"):
            factor = np.asarray(factor, dtype=np.float64)
        if factor.ndim != 2 or factor.shape[0] == 0:
            raise InputError(f"factor has shape {factor.shape}; expected (n, q) with n at least 1.")
        if isinstance(factor, np.ndarray) and not np.all(np.isfinite(factor)):
            raise InputError("factor holds values that are not finite.")
        if isinstance(floor_sd, (int, float)) and not (floor_sd >= 0.0 and np.isfinite(floor_sd)):
            raise InputError(f"floor_sd is {floor_sd}; expected a finite standard deviation of at least 0.")
        if isinstance(resolution, (int, float)) and not (resolution >= 0.0 and np.isfinite(resolution)):
            raise InputError(f"resolution is {resolution}; expected a finite step of at least 0.")
        self.factor = factor
        self.resolution = (
            np.asarray(resolution, dtype=np.float64) if isinstance(resolution, (int, float)) else resolution
        )
        self.floor_sd = np.asarray(floor_sd, dtype=np.float64) if isinstance(floor_sd, (int, float)) else floor_sd

    @property
    def size(self) -> int:
        """n, the number of coordinates of the trace."""
        return self.factor.shape[0]

    @property
    def covariance(self) -> Float[Array | np.ndarray, "n n"]:
        """G = L Lᵀ + floor_sd² I, (n, n), assembled on demand."""
        on_host = isinstance(self.factor, np.ndarray) and not isinstance(self.floor_sd, jax.Array)
        xp = np if on_host else jnp
        with jax.default_matmul_precision("highest"):
            low_rank = self.factor @ self.factor.T
        return low_rank + xp.asarray(self.floor_sd**2, low_rank.dtype) * xp.eye(self.size, dtype=low_rank.dtype)

    def release(self, x: Float[ArrayLike, " n"], *, resolution: float | None = None) -> Release:
        """Publish a trace: exact arithmetic, the operating system's randomness, integers on a public grid.

        Args:
            x: the trace, (n,), at most double precision.
            resolution: step to which the trace was recorded, a public fact about the instrument, in its unit; the
                default is the one the mechanism was made for. The floor must be at least twice that.

        Raises:
            InputError: a floor of 0 or below twice the resolution, a trace whose values lie on a coarser step than the
                declared one, or one that cannot be released; messages about the trace are constant texts without any
                of its values.
        """
        step = float(self.resolution) if resolution is None else resolution
        if step > 0.0:
            refuse_coarse_data(np.asarray(x), step)
        return release(x, np.asarray(self.factor), float(self.floor_sd), resolution=step)

    def simulate(self, key: Array, x: Float[Array | np.ndarray, "*batch n"]) -> SimulatedRelease:
        """Noisy traces reproducible from `key`, for studies: not private, and accepted nowhere a release is.

        Floating-point noise from a seeded generator is not private: an output can prove an input impossible, and a
        seed can be searched for. Works under jit, vmap and grad, in the dtype of the caller; the traces are the
        `values` of what is returned.
        """
        x = jnp.asarray(x)
        if x.ndim == 0 or x.shape[-1] != self.size:
            raise InputError(f"x has shape {x.shape}; expected (..., {self.size}).")
        dtype = jnp.result_type(x, self.factor, float)
        low_rank, independent = jax.random.split(key)
        xi = jax.random.normal(low_rank, (*x.shape[:-1], self.factor.shape[1]), dtype)
        zeta = jax.random.normal(independent, x.shape, dtype)
        with jax.default_matmul_precision("highest"):
            noise = xi @ jnp.asarray(self.factor, dtype).T + jnp.asarray(self.floor_sd, dtype) * zeta
        return SimulatedRelease(x + noise)


def noise_covariance(noise: GaussianMechanism | Float[Array | np.ndarray, "n n"]) -> Float[Array | np.ndarray, "n n"]:
    """The covariance of `noise`, which is a mechanism or the matrix itself."""
    return noise.covariance if isinstance(noise, GaussianMechanism) else noise
