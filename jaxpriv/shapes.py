"""Names for the shapes that recur in signatures."""

from __future__ import annotations

import numpy as np
from jaxtyping import Array, Float


Scalar = float | Float[Array | np.ndarray, ""]
"""One real number: a Python float, or an array without dimensions (traced or not)."""
