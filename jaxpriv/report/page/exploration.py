"""What the explorer shows: for each ε of a ladder what a release would say, and a simulated example."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.report.page.details import ReleaseDetails
from jaxpriv.report.record import Report


@dataclass(frozen=True)
class Rung:
    """One ε. `spread` (n,) is how far each point is moved, root mean square over all axes with the grid."""

    report: Report
    details: ReleaseDetails = field(repr=False)
    spread: np.ndarray = field(repr=False)

    @property
    def epsilon(self) -> float:
        """The ε that was asked for, in nats."""
        asked = self.report.epsilon_asked
        return self.report.epsilon if asked is None else asked


@dataclass(frozen=True)
class Exploration:
    """Rungs in order of ε, the one where the page starts, what was left out, and what is not promised at any.

    Raises `InputError` for no rung, for values of ε that do not increase, and for rungs of different traces.
    """

    rungs: tuple[Rung, ...]
    start: int
    left_out: tuple[str, ...]
    limits: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.rungs or not 0 <= self.start < len(self.rungs):
            raise InputError("an exploration needs at least one epsilon, and one to start from")
        if np.any(np.diff([rung.epsilon for rung in self.rungs]) <= 0):
            raise InputError("the values of epsilon must increase")
        first = self.rungs[0].details
        for rung in self.rungs:
            same = rung.details.axes == first.axes and np.array_equal(rung.details.time_us, first.time_us)
            if not same or len(rung.details.secrets) != len(first.secrets) or len(rung.spread) != len(first.time_us):
                raise InputError("the values of epsilon must be of one trace and the same secrets")
