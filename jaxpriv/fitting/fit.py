"""Priors from data: the restricted-likelihood fit of a kernel family to each coordinate of a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from tinygp.kernels import Kernel

from jaxpriv.errors import InputError
from jaxpriv.fitting.checks import (
    check_options,
    checked_bounds,
    checked_starts,
    checked_trace,
    limits,
    noise_bound,
    refuse_unfit,
)
from jaxpriv.fitting.families import (
    NOISE,
    Family,
    default_bounds,
    default_starts,
    family_named,
    unit_power,
    unit_text,
    white_noise_level,
)
from jaxpriv.fitting.likelihood import MEANS, compiled_covariance, on_host, pad_trace
from jaxpriv.fitting.optimum import Objective, maximise, nugget_lower_limit
from jaxpriv.priors.process import ProcessPrior


_START_SD = 100.0  # sd of an integrated process's unknown start, in standard deviations of the trace


@dataclass(frozen=True)
class Settings:
    """How a coordinate is fitted; `bounds` and `starts` are in the units of the data, None meaning the defaults."""

    kernel: str
    mean: str = "constant"
    period: float | None = None
    units: tuple[str, str] = ("m", "s")
    noise_floor: float | None = 0.03
    quantum: float = 0.0
    bounds: Mapping[str, tuple[float, float]] | None = None
    starts: Sequence[Mapping[str, float]] | None = None
    confidence: float | None = 0.95


@dataclass(frozen=True)
class Fit:
    """A kernel fitted to one coordinate by restricted maximum likelihood.

    `parameters` are standard deviations in the value unit, length and time scales in the time unit
    (periodic_lengthscale and alpha are pure numbers), noise_sd last. `noise_sd_lower` is the nugget's one-sided lower
    confidence limit by profile likelihood: its lower bound if that is not excluded, None if not asked for. `loglik` is
    ℓ in nats for the data in their own units, comparable only between kernels with the same `mean`. `start_logliks`
    holds ℓ reached from each start, NaN where the start failed. `bound_hits` says in words which parameters ended on a
    bound: for noise_sd it is then an upper limit that was found, for a length scale only `q` is identified. `n`,
    `duration` and `value_sd` describe the trace; the trace itself is not kept.
    """

    settings: Settings
    parameters: Mapping[str, float]
    noise_sd_lower: float | None
    loglik: float
    start_logliks: tuple[float, ...]
    bound_hits: tuple[str, ...]
    converged: bool
    n: int
    duration: float
    value_sd: float

    @property
    def family(self) -> str:
        """The kernel family's name."""
        return self.settings.kernel

    @property
    def noise_sd(self) -> float:
        """The nugget's standard deviation, in the value unit."""
        return self.parameters[NOISE]

    @property
    def sd(self) -> float:
        """The process's standard deviation, in the value unit. Raises InputError for a kernel that has none."""
        return self._parameter("sd")

    @property
    def lengthscale(self) -> float:
        """The length scale, in the time unit. Raises InputError for a kernel that has none of that name."""
        return self._parameter("lengthscale")

    @property
    def q(self) -> float | None:
        """The driving noise level (m s^{−3/2} for Matérn-3/2), identified even where sd and lengthscale are not."""
        return white_noise_level(self.family, self.parameters)

    @property
    def spread(self) -> float:
        """Difference between the best and the worst ℓ over the starts that did not fail, in nats."""
        return float(np.nanmax(self.start_logliks) - np.nanmin(self.start_logliks))

    @property
    def failed_starts(self) -> int:
        """Number of starts at which the likelihood could not be computed."""
        return int(np.sum(np.isnan(self.start_logliks)))

    @property
    def kernel(self) -> Kernel:
        """The fitted kernel, without the nugget; an integrated process starts at time 0 with a large variance."""
        return self.kernel_from(0.0)

    def kernel_from(self, origin: float) -> Kernel:
        """The fitted kernel; `origin` is where an integrated process starts (its start has a large variance)."""
        return kernel_of(self.family, self.parameters, self.settings.period, origin, _START_SD * self.value_sd)

    def prior(self, times: np.ndarray, noise_sd: float | None = None) -> ProcessPrior:
        """The fitted process at `times` (n,), with the fitted nugget unless another `noise_sd` is given."""
        return ProcessPrior(
            self.kernel_from(float(np.min(times))), times, noise_sd=self.noise_sd if noise_sd is None else noise_sd
        )

    def with_parameters(self, changes: Mapping[str, float]) -> Fit:
        """The same fit with some parameters replaced (the log-likelihood is then no longer theirs)."""
        unknown = [name for name in changes if name not in self.parameters]
        if unknown:
            raise InputError(f"{self.family!r} has no parameter {unknown[0]!r}; it has {', '.join(self.parameters)}.")
        return replace(self, parameters={**self.parameters, **changes})

    def _parameter(self, name: str) -> float:
        if name not in self.parameters:
            raise InputError(f"{self.family!r} has no parameter {name!r}; it has {', '.join(self.parameters)}.")
        return self.parameters[name]


def kernel_of(
    kernel: str, parameters: Mapping[str, float], period: float | None, origin: float, start_sd: float
) -> Kernel:
    """The tinygp kernel of a family at given parameters (nugget ignored)."""
    family = family_named(kernel)
    arguments = [parameters[name] for name in family.parameters]
    if not family.stationary:
        return family.build(*arguments, origin, start_sd)
    return family.build(*arguments, period) if family.periodic else family.build(*arguments)


def covariance_of(fit: Fit, times: np.ndarray) -> np.ndarray:
    """Covariance (n, n) of the fitted process with its nugget at times (n,), in squared value units.

    An integrated process is taken from times[0] without the variance of its start, as inside the likelihood.
    """
    family = family_named(fit.family)
    shifted = times - times[0]
    with on_host():
        trace = pad_trace(shifted, np.zeros_like(shifted), "zero", fit.settings.period)
        vector = np.array([fit.parameters[name] for name in family.all_parameters])
        return np.asarray(compiled_covariance(vector, trace, family=family))[: times.size, : times.size]


def fit(
    times: np.ndarray,
    values: np.ndarray,
    *,
    kernel: str = "matern32",
    mean: str = "constant",
    period: float | None = None,
    starts: Sequence[Mapping[str, float]] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    units: tuple[str, str] = ("m", "s"),
    noise_floor: float | None = None,
    min_sd: float | None = None,
    quantum: float = 0.0,
    confidence: float | None = 0.95,
) -> Fit | list[Fit]:
    """Fit a Gaussian-process prior to a trace by restricted maximum likelihood, each coordinate by itself.

    times (n,) increasing, in the time unit; values (n,) or (n, d), in the value unit: a Fit, or a list of d of them.
    `kernel` is one of matern12, matern32 (default), matern52, rbf, rq, iou (integrated Ornstein–Uhlenbeck), damped_iou,
    and with a fixed `period` periodic, periodic_rbf, periodic_matern12, periodic_rbf_matern32. `mean` is "constant"
    (default) or "linear", estimated, or "zero" (the values as they are). `bounds` and `starts` give parameters by name
    in the units of the data; equal bounds fix a parameter. `units` name the value and time units: positions in "m" or
    "km" have a smallest nugget of 0.03 m and are refused at a standard deviation of 0.5 m or less, other values have a
    smallest nugget of 0.001 of their standard deviation; `noise_floor` and `min_sd` override both, `quantum` is the
    step to which the values are rounded. `confidence` is that of the nugget's lower limit (None: not computed).

    Computed in double precision, in standard units, so that a change of units changes nothing but the units; the O(n)
    quasiseparable likelihood is used for the Matérn and integrated families above 64 points. Raises InputError if the
    trace cannot carry a fit (fewer than 20 points, too still, not finite, unsorted, duplicate times) or every start
    fails. A prior fitted to the trace that it will protect is an estimate of what an adversary knows, not a guarantee.
    """
    family = family_named(kernel)
    checked, array = checked_trace(times, values)
    floor, smallest = limits(units, noise_floor, min_sd)
    check_options(family, mean, period, checked.size)
    if confidence is not None and not 0.5 < confidence < 1.0:
        raise InputError(f"confidence must be between 0.5 and 1; got {confidence}.")
    settings = Settings(
        kernel,
        mean,
        period,
        units,
        floor,
        quantum,
        checked_bounds(family, bounds),
        checked_starts(family, starts),
        confidence,
    )
    columns = array[:, None] if array.ndim == 1 else array
    for j in range(columns.shape[1]):
        name = "values" if array.ndim == 1 else f"coordinate {j} of values"
        lowest = noise_bound(float(np.std(columns[:, j])), floor, quantum)
        refuse_unfit(columns[:, j], name, smallest, lowest, units[0])
    fits = [fit_coordinate(checked, columns[:, j], settings) for j in range(columns.shape[1])]
    return fits[0] if array.ndim == 1 else fits


def fit_coordinate(times: np.ndarray, values: np.ndarray, settings: Settings) -> Fit:
    """Fit one coordinate, already checked. Raises InputError if every start fails."""
    family = family_named(settings.kernel)
    sd, duration = float(np.std(values)), float(times[-1] - times[0])
    unit = np.array([sd**value * duration**time for value, time in map(unit_power, family.all_parameters)])
    low, high = _log_bounds(family, settings, times, sd, duration, unit)
    floor = float(np.exp(low[-1]))
    defaults = default_starts(family, floor, None if settings.period is None else settings.period / duration)
    starts = defaults if settings.starts is None else [_standard(start, family, unit) for start in settings.starts]
    vectors = [np.log([start.get(name, defaults[0][name]) for name in family.all_parameters]) for start in starts]
    centred = values if settings.mean == "zero" else values - np.mean(values)
    scaled_period = None if settings.period is None else settings.period / duration
    with on_host():
        trace = pad_trace((times - times[0]) / duration, centred / sd, settings.mean, scaled_period)
        objective = Objective(family, trace)
        best = maximise(objective, vectors, low, high)
        if best is None:
            raise InputError(
                f"the likelihood of {family.name!r} could not be computed from any of {len(vectors)} starting points: "
                "the covariance is singular to working precision. Raise noise_floor, or use matern32."
            )
        lower = None
        if settings.confidence is not None:
            limit = nugget_lower_limit(objective, best, low, high, settings.confidence)
            lower = float(np.exp(limit) * unit[-1])
    parameters, hits = _read(family, settings.units, best.point, low, high, unit)
    shift = (times.size - MEANS[settings.mean]) * np.log(sd)
    return Fit(
        settings,
        parameters,
        lower,
        float(best.loglik - shift),
        tuple(float(value) for value in best.start_logliks - shift),
        hits,
        best.converged,
        times.size,
        duration,
        sd,
    )


def _standard(start: Mapping[str, float], family: Family, unit: np.ndarray) -> dict[str, float]:
    return {name: start[name] / unit[i] for i, name in enumerate(family.all_parameters) if name in start}


def _log_bounds(
    family: Family, settings: Settings, times: np.ndarray, sd: float, duration: float, unit: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    step = float(np.median(np.diff(times))) / duration
    ranges = default_bounds(family, step, noise_bound(sd, settings.noise_floor, settings.quantum) / sd)
    pairs = np.array([ranges[name] for name in family.all_parameters])
    for i, name in enumerate(family.all_parameters):
        if settings.bounds and name in settings.bounds:
            pairs[i] = np.array(settings.bounds[name]) / unit[i]
    return np.log(pairs[:, 0]), np.log(pairs[:, 1])


def _read(
    family: Family, units: tuple[str, str], point: np.ndarray, low: np.ndarray, high: np.ndarray, unit: np.ndarray
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Parameters in the units of the data, and the bounds that they ended on, in words."""
    values = np.exp(point) * unit
    hits = []
    for i, name in enumerate(family.all_parameters):
        if high[i] - low[i] <= 1e-9:
            continue  # fixed by the caller
        for end, side in ((low[i], "lower"), (high[i], "upper")):
            if abs(point[i] - end) <= 1e-6:
                values[i] = np.exp(end) * unit[i]
                text = unit_text(name, units)
                hits.append(f"{name} at its {side} bound {values[i]:.4g}{' ' + text if text else ''}")
    return {name: float(values[i]) for i, name in enumerate(family.all_parameters)}, tuple(hits)
