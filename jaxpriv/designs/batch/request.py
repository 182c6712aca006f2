"""What is asked of every trace of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxpriv.designs.request import FLOOR_SHARE


@dataclass(frozen=True)
class BatchRequest:
    """What is asked of every trace: `kind` "epsilon" or "budget", and the options of `design`."""

    kind: str
    order: float
    floor_sd: float | None
    resolution: float
    tolerance: float

    def floors(self, cost: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """The floor's standard deviation (m,) when the noise costs about `cost` (m,)."""
        if self.floor_sd is not None:
            return np.full(len(sizes), self.floor_sd)
        return np.maximum(2.0 * self.resolution, np.sqrt(FLOOR_SHARE * np.maximum(cost, 0.0) / sizes))
