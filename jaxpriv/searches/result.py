"""What a search returns."""

from __future__ import annotations

import enum
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import numpy as np


Mechanism = TypeVar("Mechanism")


class SearchResult(enum.Enum):
    """How a search ended; the value is the message."""

    certified = "the gap between the achieved value and the lower bound is within the tolerance"
    stationary = (
        "the projected gradient is within the tolerance: a stationary point, which is the optimum only if the problem "
        "is convex"
    )
    stalled = "the loss has stopped falling before the tolerance was reached; the best mechanism met is returned"
    max_steps = "the step limit was reached before the tolerance; the best mechanism met is returned"
    not_finite = (
        "the loss or its gradient stopped being finite; the best mechanism met before is returned. Try a smaller step, "
        "or a set that keeps the mechanism away from there"
    )
    constraints_violated = "no mechanism was met that violates the constraints by no more than the tolerance"
    stopped = "the progress callback asked to stop; the best mechanism met is returned"


class Progress(NamedTuple):
    """What a progress callback sees at a check. Values are in the unit of the loss.

    Attributes:
        step: steps taken.
        value: loss of the current mechanism.
        best: least loss met.
        lower_bound: largest certified one, −inf without a certificate.
        gap: (achieved − lower_bound)/|achieved|, inf without a certificate.
        stationarity: ‖projected gradient‖ ‖x‖ / |loss|: relative fall promised for a move of the point's own size.
        temperature: of the smoothed maximum, relative to the loss; 0 without.
    """

    step: int
    value: float
    best: float
    lower_bound: float
    gap: float
    stationarity: float
    temperature: float


class Search(eqx.Module, Generic[Mechanism]):
    """The best mechanism met, and what is known about it. Nothing here is a privacy claim: `certify` makes those.

    Attributes:
        mechanism: the best one met (least loss; least achieved value where there is a certificate).
        value: its loss, or the value that the certificate achieved.
        lower_bound: the largest lower bound that the certificate gave; −inf without one.
        gap: (value − lower_bound)/|value|; inf without a certificate.
        stationarity: relative projected gradient where the search ended (`Progress.stationarity`).
        residual: largest violation max(0, g) of the constraints; 0 without any.
        result: how it ended.
        steps: number of steps taken.
        history: loss after each step, (max_steps,), NaN where there was none.
        stats: the method and its counts.
    """

    mechanism: Mechanism
    value: float
    lower_bound: float
    gap: float
    stationarity: float
    residual: float
    result: SearchResult = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    history: np.ndarray
    stats: dict[str, Any] = eqx.field(static=True)

    def __str__(self) -> str:
        bound = f", lower bound {self.lower_bound:.6g} (gap {self.gap:.1e})" if np.isfinite(self.lower_bound) else ""
        residual = f", constraints violated by {self.residual:.1e}" if self.residual > 0.0 else ""
        return (
            f"loss {self.value:.6g}{bound}{residual} after {self.steps} steps, projected gradient "
            f"{self.stationarity:.1e}; {self.stats['method']}: {self.result.value}"
        )
