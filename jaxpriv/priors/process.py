"""A Gaussian-process prior seen at the times of a trace."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from tinygp.kernels import Kernel

from jaxpriv.errors import InputError


class ProcessPrior(eqx.Module):
    """X_i = f(t_i) + e_i with f a Gaussian process of any mean and e_i independent with standard deviation noise_sd.

    Args:
        kernel: a tinygp kernel (see `jaxpriv.kernels`), in squared units of the trace.
        times: (n,), in the kernel's unit of time; any order, any spacing. Equal times are allowed and perfectly
            correlated but for the noise.
        noise_sd: standard deviation of what is independent from fix to fix, in the unit of the trace. It is part of
            the recorded positions, and the recorded positions are what a `Secret` protects.

    Raises:
        InputError: a kernel that is none, times that are empty, not one-dimensional or not finite, a negative noise.
    """

    kernel: Kernel
    times: Float[Array | np.ndarray, " n"]
    noise_sd: Float[Array | np.ndarray, ""]

    def __init__(self, kernel: Kernel, times: Float[Array | np.ndarray, " n"], noise_sd: float = 0.0):
        if not isinstance(kernel, Kernel):
            raise InputError(
                f"kernel is a {type(kernel).__name__}; expected a tinygp kernel such as kernels.matern32(60.0)."
            )
        if not hasattr(times, "ndim"):
            times = np.asarray(times, dtype=np.float64)
        if times.ndim != 1 or times.shape[0] == 0:
            raise InputError(f"times has shape {times.shape}; expected (n,) with n at least 1.")
        if isinstance(times, np.ndarray) and not np.all(np.isfinite(times)):
            raise InputError(f"times is not finite at position {int(np.argmin(np.isfinite(times)))}.")
        if isinstance(noise_sd, (int, float)) and not (noise_sd >= 0.0 and np.isfinite(noise_sd)):
            raise InputError(f"noise_sd is {noise_sd}; expected a finite standard deviation of at least 0.")
        self.kernel = kernel
        self.times = times
        self.noise_sd = np.asarray(noise_sd, dtype=np.float64) if isinstance(noise_sd, (int, float)) else noise_sd

    @property
    def size(self) -> int:
        """n, the number of fixes."""
        return self.times.shape[0]

    @property
    def nugget(self) -> Float[Array | np.ndarray, ""]:
        """Variance of the independent part, noise_sd², in squared units of the trace."""
        return self.noise_sd**2

    @property
    def covariance(self) -> Float[Array, "n n"]:
        """Σ, (n, n): the kernel at the times plus noise_sd² on the diagonal."""
        kernel, times, noise_sd = _arrays((self.kernel, self.times, self.noise_sd))
        return _covariance(kernel, times, noise_sd)

    def joint_at(self, time: float) -> tuple[Float[Array, "n 1"], Float[Array, "1 1"]]:
        """Covariance of the fixes with the process at `time`, (n, 1), and its own variance, (1, 1).

        The process f is meant, without the noise of a fix.
        """
        kernel, times, when = _arrays((self.kernel, self.times, np.atleast_1d(np.asarray(time, dtype=np.float64))))
        return _cross(kernel, times, when), _cross(kernel, when, when)


def _arrays(tree: Any) -> Any:
    """Every number of `tree` as an array of the precision in force, so that a new value is not a new program."""
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf) if isinstance(leaf, (float, int, np.ndarray, np.generic)) else leaf, tree
    )


@eqx.filter_jit
def _covariance(kernel: Kernel, times: Float[Array, " n"], noise_sd: Float[Array, ""]) -> Float[Array, "n n"]:
    matrix = kernel(times, times)
    # One triangle decides, so that the matrix is symmetric to the last bit.
    matrix = jnp.tril(matrix) + jnp.tril(matrix, -1).T
    return matrix + noise_sd**2 * jnp.eye(times.shape[0], dtype=matrix.dtype)


@eqx.filter_jit
def _cross(kernel: Kernel, first: Float[Array, " n"], second: Float[Array, " m"]) -> Float[Array, "n m"]:
    return kernel(first, second)
