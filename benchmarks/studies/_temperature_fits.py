"""Daily kernels for temperatures, fitted by restricted likelihood, and how well they predict what was hidden."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

import numpy as np

import jaxpriv as jp
from jaxpriv.fitting.diagnostics import HiddenWindow, hidden_window, leave_one_out
from jaxpriv.fitting.families import FAMILIES, Family
from jaxpriv.priors import kernels


DAY = 24.0
UNITS = ("sd", "h")


def _sum(sd, length, matern_sd, matern_length, period):
    return kernels.periodic(period, length, sd) + kernels.matern32(matern_length, matern_sd)


def _decaying_sum(sd, length, decay, matern_sd, matern_length, period):
    daily = kernels.periodic(period, length, sd) * kernels.rbf(decay)
    return daily + kernels.matern52(matern_length, matern_sd)


# Two sums that are not among the library's families.
_OWN = (
    Family(
        "periodic_plus_matern32",
        ("sd", "periodic_lengthscale", "matern_sd", "matern_lengthscale"),
        ("periodic_lengthscale", "matern_lengthscale"),
        _sum,
        periodic=True,
    ),
    Family(
        "periodic_rbf_matern52",
        ("sd", "periodic_lengthscale", "decay", "matern_sd", "matern_lengthscale"),
        ("periodic_lengthscale", "decay", "matern_lengthscale"),
        _decaying_sum,
        periodic=True,
    ),
)
KERNELS = {
    "PER": "periodic",
    "RBF": "rbf",
    "M3/2": "matern32",
    "PER × RBF": "periodic_rbf",
    "PER × M1/2": "periodic_matern12",
    "PER + M3/2": "periodic_plus_matern32",
    "PER × RBF + M3/2": "periodic_rbf_matern32",
    "PER × RBF + M5/2": "periodic_rbf_matern52",
}


@contextmanager
def own_families() -> Iterator[None]:
    """The two sums can be fitted by name inside this block."""
    FAMILIES.update({family.name: family for family in _OWN})
    try:
        yield
    finally:
        for family in _OWN:
            FAMILIES.pop(family.name)


@dataclass
class Scores:
    """One kernel on several windows, in units of each window's standard deviation.

    `logliks`, `leave_one_out` (mean log scores) and `fits` one a window; `gaps` the hidden windows by their hours.
    """

    logliks: list[float] = field(default_factory=list)
    leave_one_out: list[float] = field(default_factory=list)
    gaps: dict[int, list[HiddenWindow]] = field(default_factory=dict)
    fits: list[jp.Fit] = field(default_factory=list)


def standardised(values: np.ndarray) -> np.ndarray:
    return (values - np.mean(values)) / np.std(values)


def fitted(values: np.ndarray, kernel: str, confidence: float | None = None) -> jp.Fit:
    """One kernel, by its name in `KERNELS`, fitted to hourly standardised values (n,); period 24 h, constant mean."""
    name = KERNELS[kernel]
    period = DAY if FAMILIES[name].periodic else None
    times = np.arange(float(len(values)))
    return cast(jp.Fit, jp.fit(times, values, kernel=name, period=period, units=UNITS, confidence=confidence))


def scored(windows: list[np.ndarray], kernel: str, hours: tuple[int, ...], refit: bool) -> Scores:
    """Fit a kernel to each window (n,), and hide so many hours around a quarter, the middle and three quarters of it.

    One stretch at a time; with `refit` the kernel is fitted again without it, otherwise it has seen it.
    """
    found = Scores()
    for window in windows:
        values, times = standardised(window), np.arange(float(len(window)))
        fit = fitted(values, kernel)
        found.fits.append(fit)
        found.logliks.append(fit.loglik)
        found.leave_one_out.append(leave_one_out(fit, times, values).log_score)
        for count in hours:
            for quarter in (1, 2, 3):
                centre = len(values) * quarter / 4 - 0.5
                hidden = hidden_window(fit, times, values, centre=centre, width=count - 1.0, refit=refit)
                found.gaps.setdefault(count, []).append(hidden)
    return found
