"""What the rest of the library asks of a prior."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Float


@runtime_checkable
class Prior(Protocol):
    """A Gaussian belief about a trace of `size` coordinates, with any mean."""

    @property
    def covariance(self) -> Float[Array | np.ndarray, "n n"]: ...

    @property
    def size(self) -> int: ...
