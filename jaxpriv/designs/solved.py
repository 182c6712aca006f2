"""What a solver of many floors returns, whatever its method: a proposal, and duals that bound what others can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np


class Solved(NamedTuple):
    """Noise L Lᵀ + η I in the units of the trace, unverified.

    Attributes:
        factor: L, (n, q).
        duals: one (n, k_j) for each floor, then for each fixed one, up to a common factor.
        cost: tr(W G) that it is meant to have; the budget itself in a budget problem.
        gap: relative, as the solver knows it.
        steps: taken.
        scale: of the targets; infinite where a budget does not pay for the fixed floors.
    """

    factor: np.ndarray
    duals: Sequence[np.ndarray]
    cost: float
    gap: float
    steps: int
    scale: float


@runtime_checkable
class Solver(Protocol):
    """One way to solve a `FloorProblem`. `method` and `reason` are for `Design.stats`."""

    method: str
    reason: str

    def at_targets(self, scale: float, floor_sd: float, shading: float, tolerance: float | None = None) -> Solved:
        """The least noise at the targets times `scale`, each met with a margin of the relative `shading`."""
        ...

    def at_budget(self, budget: float, floor_sd: float, shading: float) -> Solved:
        """The least scale of the targets within a budget, the floor's cost included."""
        ...
