"""A kernel evaluated on the host in double precision, and how far its float64 values may be from the true ones."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from tinygp.kernels import Kernel

from jaxpriv.errors import InputError
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


def require_ordinary_variance(variance: float) -> None:
    """Raise InputError for a variance whose square, or that of its rounding, leaves the range of float64."""
    if not 1e-100 <= variance <= 1e100:
        raise InputError(
            f"the variance of the kernel is {variance:.3g}; give the trace in a unit in which it is between 1e-100 and "
            "1e100."
        )


def rounding_of(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """A bound of the error of each of a stationary kernel's values (n,) at lags that are exact.

    Trusted, not proven: a few units in the last place of exp and of its argument. An error of the argument x of exp(−x)
    moves the value by |x| exp(−x).
    """
    size = np.abs(values)
    top = float(np.max(size, initial=0.0))
    safe = np.maximum(size, max(1e-200 * top, 5e-324))
    return _RELATIVE * size * (1.0 + np.log(np.maximum(top / safe, 1.0)))


def rounding_at(kernel: Kernel, lags: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """A bound of the error of a stationary kernel's values at rounded `lags` (n,), that of the lags included.

    Trusted, not proven: besides `rounding_of`, what the values move by when the lags do, by 2 and by 4 units in the
    last place to either side. That covers arguments that the kernel rounds for itself, such as those of a sine far out.
    """
    values = kernel_values(kernel, np.zeros(1), lags)[0]
    moved = np.zeros(lags.shape)
    for units in (2.0, 4.0):
        for side in (-1.0, 1.0):
            there = kernel_values(kernel, np.zeros(1), lags * (1.0 + side * units * 2.0**-52))[0]
            moved = np.maximum(moved, np.abs(there - values))
    return rounding_of(values) + moved
