"""A kernel evaluated on the host in double precision, and how far its float64 values may be from the true ones."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from tinygp.kernels import Kernel

from jaxpriv.precision import double_precision


_RELATIVE = 2.0**-50


@eqx.filter_jit
def _matrix(kernel, first, second):
    return kernel(first, second)


def kernel_values(
    kernel: Kernel, first: Float[np.ndarray, " n"], second: Float[np.ndarray, " m"]
) -> Float[np.ndarray, "n m"]:
    """k(s, t) for times s (n,) and t (m,), (n, m), float64 whatever the global flag."""
    with double_precision():
        arrays = jax.tree.map(
            lambda leaf: jnp.asarray(leaf) if isinstance(leaf, (float, int, np.ndarray, np.generic)) else leaf, kernel
        )
        return np.array(_matrix(arrays, jnp.asarray(first), jnp.asarray(second)))


def rounding_of(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """A bound of the error of each of a stationary kernel's values at the lags 0, h, 2h, …, (n,).

    Trusted, not proven: a few units in the last place of exp and of its argument. An error of the argument x of exp(−x)
    moves the value by |x| exp(−x), and an error of u in the lag by the slope there, which the neighbours show.
    """
    size = np.abs(values)
    top = float(np.max(size, initial=0.0))
    safe = np.maximum(size, 1e-300 * max(top, 1e-300))
    bound = size * (1.0 + np.log(np.maximum(top / safe, 1.0)))
    if values.size > 2:
        slope = np.zeros_like(size)
        slope[1:-1] = np.abs(values[2:] - values[:-2]) / 2.0
        slope[-1] = abs(values[-1] - values[-2])
        bound = bound + np.arange(values.size) * slope
    return _RELATIVE * bound
