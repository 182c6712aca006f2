"""The misfit report of a fit: what a reader should know before believing the prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.fitting.diagnostics import HiddenWindow, Prediction, hidden_windows, leave_one_out, pooled
from jaxpriv.fitting.families import family_named, unit_text
from jaxpriv.fitting.fit import Fit, fit_coordinate


ALTERNATIVES = ("matern12", "matern32", "matern52", "iou")
_LEAST_COVER = 0.80
_LEAST_GAIN = -3.0
_LEAST_SHORTFALL = 0.5


@dataclass(frozen=True)
class Misfit:
    """Diagnostics of one fit, and `flags`: one sentence for each thing that is wrong.

    `gain` is ℓ of the fit minus ℓ of each alternative kernel fitted to the same data, in nats (negative: the
    alternative is better); `loo` the leave-one-out prediction and `windows` the hidden windows, each refitted without
    itself. The loss of a design under the best alternative, alternatives[best], is the last check: it needs the design.
    """

    fit: Fit
    gain: Mapping[str, float]
    alternatives: Mapping[str, Fit]
    loo: Prediction
    windows: Sequence[HiddenWindow]
    flags: tuple[str, ...]

    @property
    def hidden(self) -> Prediction:
        """The hidden windows' predictions, pooled."""
        return pooled(list(self.windows))

    @property
    def best(self) -> str:
        """The kernel with the largest ℓ among the fit's own and the alternatives."""
        if not self.gain or min(self.gain.values()) >= 0.0:
            return self.fit.family
        return min(self.gain, key=lambda name: self.gain[name])

    @property
    def largest_z(self) -> float:
        """Largest leave-one-out error in standard deviations."""
        return float(np.max(np.abs(self.loo.z)))


def misfit(
    fit: Fit,
    times: np.ndarray,
    values: np.ndarray,
    *,
    alternatives: Sequence[str] = ALTERNATIVES,
    positions: int = 3,
    width: float | None = None,
) -> Misfit:
    """Diagnose `fit` on the coordinate it was fitted to: times (n,), values (n,).

    Refits the kernel without each of `positions` hidden windows of `width` (time unit; a fifth of the trace by
    default) and fits each alternative kernel to the whole. Flags: hidden-window 95 % cover below 80 %, an alternative
    more than 3 nats better, a length scale longer than the trace, parameters on a bound, failed or disagreeing starts,
    an optimum that did not converge. Leave-one-out is reported and flags nothing: it passes for kernels that miss a
    hidden minute by a hundred metres.
    """
    windows = hidden_windows(fit, times, values, width=width, positions=positions)
    loo = leave_one_out(fit, times, values)
    times, values = np.asarray(times, dtype=np.float64), np.asarray(values, dtype=np.float64)
    others: dict[str, Fit] = {}
    for name in alternatives:
        family = family_named(name)
        if family.periodic:
            raise InputError(f"alternative {name!r} is periodic; compare it by fitting it yourself.")
        if name == fit.family or (not family.stationary and fit.settings.mean == "zero"):
            continue
        settings = replace(fit.settings, kernel=name, period=None, bounds=None, starts=None, confidence=None)
        others[name] = fit_coordinate(times, values, settings)
    gain = {name: fit.loglik - other.loglik for name, other in others.items()}
    flags = tuple(_flags(fit, gain, pooled(windows)))
    return Misfit(fit, gain, others, loo, tuple(windows), flags)


def _flags(fit: Fit, gain: Mapping[str, float], hidden: Prediction) -> list[str]:
    flags = []
    cover = hidden.cover(0.95)
    if cover < _LEAST_COVER:
        flags.append(
            f"the 95 % intervals of {fit.family} cover {cover:.0%} of the hidden points: "
            "it claims to know more than it does."
        )
    for name, value in gain.items():
        if value < _LEAST_GAIN:
            flags.append(f"{name} explains the data better than {fit.family} by {-value:.1f} nats.")
    family = family_named(fit.family)
    for name in family.scales:
        if unit_text(name, ("", "t")) == "t" and fit.parameters[name] > fit.duration:
            flags.append(
                f"{name} = {fit.parameters[name]:.4g} {fit.settings.units[1]} exceeds the trace's "
                f"{fit.duration:.4g} {fit.settings.units[1]}: "
                f"only the noise level q is identified, not {name} by itself."
            )
    flags.extend(f"{hit}." for hit in fit.bound_hits)
    if fit.family == "rbf" and fit.settings.units[0] in ("m", "km"):
        flags.append("rbf is far too smooth for recorded positions; the default is matern32.")
    if fit.failed_starts:
        flags.append(f"{fit.failed_starts} of {len(fit.start_logliks)} starts failed.")
    if fit.spread > _LEAST_SHORTFALL:
        flags.append(f"the starts end in different optima, up to {fit.spread:.2f} nats apart.")
    if not fit.converged:
        flags.append("the optimiser stopped before the gradient vanished.")
    return flags
