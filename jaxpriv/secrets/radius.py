"""The separation of two hypotheses, checked."""

from __future__ import annotations

import math

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.shapes import Scalar


def checked_radius(radius: Scalar) -> np.ndarray:
    """`radius` as a float64 scalar array (a leaf, so that a new radius is not a new program)."""
    if isinstance(radius, np.ndarray) and radius.ndim == 0:
        radius = float(radius)
    if isinstance(radius, (int, float, np.floating)) and radius > 0 and math.isfinite(radius):
        return np.asarray(radius, dtype=np.float64)
    raise InputError(f"radius is {radius!r}; expected a positive distance in the unit of the trace.")
