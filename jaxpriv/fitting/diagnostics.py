"""How well a fitted prior predicts what it did not see: leave-one-out and hidden windows, in closed form.

With P = K⁻¹ − K⁻¹F(FᵀK⁻¹F)⁻¹FᵀK⁻¹ and r = Py, predicting the points B from all the others, with the unknown mean
accounted for, has error y_B − ŷ_B = P_BB⁻¹ r_B and error covariance P_BB⁻¹ (the block form of the leave-one-out
formulas of Dubrule, Mathematical Geology 1983). Leave-one-out hardly tells kernels apart on densely sampled traces,
where a neighbour is always near; a hidden window does, and a private secret is a hidden window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import norm

from jaxpriv.errors import InputError
from jaxpriv.fitting.checks import checked_trace, noise_bound
from jaxpriv.fitting.fit import Fit, covariance_of, fit_coordinate
from jaxpriv.fitting.likelihood import MEANS


_HOST_LIMIT = 5000
_LEFT_OVER = 10  # points that must remain outside a hidden window


class Prediction(NamedTuple):
    """Prediction errors (k,) and their standard deviations (k,) at `indices` (k,), in the value unit."""

    indices: np.ndarray
    errors: np.ndarray
    sds: np.ndarray

    @property
    def z(self) -> np.ndarray:
        """Errors in standard deviations (k,)."""
        return self.errors / self.sds

    @property
    def log_score(self) -> float:
        """Mean logarithmic score of the points, each by its own marginal: nats, values in their own unit."""
        return float(np.mean(norm.logpdf(self.errors, scale=self.sds)))

    @property
    def rms(self) -> float:
        """Root mean square error, in the value unit."""
        return float(np.sqrt(np.mean(np.square(self.errors))))

    def cover(self, level: float) -> float:
        """Share of the points within the central interval of probability `level`."""
        return float(np.mean(np.abs(self.z) <= norm.ppf(0.5 + 0.5 * level)))

    @property
    def deciles(self) -> np.ndarray:
        """Share of the probability integral transforms in each tenth of [0, 1], (10,); 0.1 each if calibrated."""
        counts, _ = np.histogram(norm.cdf(self.z), bins=10, range=(0.0, 1.0))
        return counts / self.z.size


@dataclass(frozen=True)
class HiddenWindow:
    """One hidden window: its first and last time, the prediction inside it, and the fit that was used (refitted
    without the window, unless that was not asked for)."""

    start: float
    end: float
    prediction: Prediction
    fit: Fit


def leave_one_out(fit: Fit, times: np.ndarray, values: np.ndarray) -> Prediction:
    """Predict each point of one coordinate from all the others, with the parameters of `fit`.

    times (n,), values (n,) in the units of the fit. Raises InputError on bad arrays, on more than 5,000 points, and
    where the covariance is singular to working precision.
    """
    times, values = _one_coordinate(times, values)
    precision, weighted = _precision(fit, times, values)
    variance = 1.0 / np.diagonal(precision)
    return Prediction(np.arange(times.size), weighted * variance, np.sqrt(variance))


def hidden_window(
    fit: Fit, times: np.ndarray, values: np.ndarray, *, centre: float, width: float, refit: bool = True
) -> HiddenWindow:
    """Predict the points within `width`/2 of the time `centre` from all the others.

    By default the kernel is fitted again without them; `refit=False` keeps the parameters of `fit`, and so does a trace
    that does not move outside the window. Raises InputError when the window is empty or leaves fewer than 10 points.
    """
    times, values = _one_coordinate(times, values)
    slack = 1e-9 * (times[-1] - times[0])
    inside = np.abs(times - centre) <= 0.5 * width + slack
    if not np.any(inside) or np.sum(~inside) < _LEFT_OVER:
        raise InputError(
            f"a window of {width:g} around {centre:g} hides {int(np.sum(inside))} of {times.size} points; "
            f"it must hide at least one and leave {_LEFT_OVER}."
        )
    used = _refitted(fit, times[~inside], values[~inside]) if refit else fit
    precision, weighted = _precision(used, times, values)
    indices = np.flatnonzero(inside)
    covariance = np.linalg.inv(precision[np.ix_(indices, indices)])
    prediction = Prediction(indices, covariance @ weighted[indices], np.sqrt(np.diagonal(covariance)))
    return HiddenWindow(float(times[indices[0]]), float(times[indices[-1]]), prediction, used)


def hidden_windows(
    fit: Fit,
    times: np.ndarray,
    values: np.ndarray,
    *,
    width: float | None = None,
    positions: int = 3,
    refit: bool = True,
) -> list[HiddenWindow]:
    """`hidden_window` at `positions` fixes evenly spread over the trace; `width` (time unit) is a fifth by default.

    Spread over the fixes and not over the time: a window that falls into a gap would hide nothing.

    Choose the width of what a design hides: its secrets plus the correlation length of the noise on either side.
    """
    times, values = _one_coordinate(times, values)
    if positions < 1:
        raise InputError(f"positions must be at least 1; got {positions}.")
    duration = float(times[-1] - times[0])
    wide = 0.2 * duration if width is None else width
    if not 0.0 < wide < duration:
        raise InputError(f"width must be between 0 and the duration {duration:g}; got {wide:g}.")
    centres = times[(np.arange(1, positions + 1) * times.size) // (positions + 1)]
    return [hidden_window(fit, times, values, centre=float(c), width=wide, refit=refit) for c in centres]


def pooled(windows: list[HiddenWindow]) -> Prediction:
    """The predictions of several windows as one."""
    parts = [window.prediction for window in windows]
    return Prediction(*(np.concatenate([getattr(part, name) for part in parts]) for name in Prediction._fields))


def _refitted(fit: Fit, times: np.ndarray, values: np.ndarray) -> Fit:
    settings = fit.settings
    sd = float(np.std(values))
    if sd <= noise_bound(sd, settings.noise_floor, settings.quantum) or sd <= 1e-12 * float(np.max(np.abs(values))):
        return fit
    return fit_coordinate(times, values, replace(settings, confidence=None))


def _one_coordinate(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    times, values = checked_trace(times, values)
    if values.ndim != 1:
        raise InputError(f"values has shape {values.shape}; give one coordinate at a time, as ({times.size},).")
    if times.size > _HOST_LIMIT:
        raise InputError(f"the trace has {times.size} points; these diagnostics are dense, at most {_HOST_LIMIT}.")
    return times, values


def _precision(fit: Fit, times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P (n, n) and Py (n,)."""
    covariance = covariance_of(fit, times)
    columns = np.stack([np.ones(times.size), times - np.mean(times)], axis=1)[:, : MEANS[fit.settings.mean]]
    columns = columns / np.linalg.norm(columns, axis=0)
    scale = np.mean(np.diagonal(covariance))
    try:
        factor = cho_factor(covariance / scale, lower=True)
    except np.linalg.LinAlgError as error:
        raise InputError(
            f"the covariance of the fitted {fit.family!r} is singular to working precision at these {times.size} "
            "times; use a larger noise_sd."
        ) from error
    inverse = cho_solve(factor, np.eye(times.size))
    if columns.shape[1]:
        solved = cho_solve(factor, columns)
        inverse = inverse - solved @ np.linalg.solve(columns.T @ solved, solved.T)
    inverse = 0.5 * (inverse + inverse.T) / scale
    centred = values - np.mean(values) if columns.shape[1] else values  # P removes the mean; less rounding this way
    return inverse, inverse @ centred
