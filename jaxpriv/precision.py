"""Double precision where a privacy claim is made, without touching anybody's settings."""

from __future__ import annotations

from contextlib import AbstractContextManager

import jax
import numpy as np
from jax.core import Tracer

from jaxpriv.errors import InputError


def double_precision() -> AbstractContextManager[None]:
    """Context in which JAX computes in float64, whatever the global flag says; the flag itself is left alone."""
    return jax.enable_x64(True)


def host_array(value: object, name: str, ndim: int | tuple[int, ...]) -> np.ndarray:
    """`value` as a finite float64 NumPy array of `ndim` dimensions (one of them, if a tuple is given).

    Smaller floats are cast exactly. Raises InputError naming `name`.
    """
    if isinstance(value, Tracer):
        raise InputError(
            f"{name} is a traced JAX value: this verb runs on the host, outside jit, grad and vmap. "
            "Inside them use the differentiable functions (least_trace, least_loss, cip_loss)."
        )
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not an array of real numbers.") from error
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if array.ndim not in allowed:
        expected = " or ".join(str(d) for d in allowed)
        raise InputError(f"{name} has shape {array.shape}; expected {expected} dimension(s).")
    if array.size == 0:
        raise InputError(f"{name} is empty.")
    if not np.all(np.isfinite(array)):
        raise InputError(f"{name} holds values that are not finite.")
    return array
