"""A population prior: what other people's traces say, as a mixture of fitted parameter vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from jaxpriv.errors import InputError
from jaxpriv.fitting.checks import checked_trace
from jaxpriv.fitting.families import NOISE, family_named
from jaxpriv.fitting.fit import Fit, covariance_of, fit
from jaxpriv.fitting.likelihood import MEANS
from jaxpriv.precision import host_array
from jaxpriv.priors.process import ProcessPrior


_CENTRED = ("matern12", "matern32", "matern52", "rbf", "rq", "damped_iou", "iou")


@dataclass(frozen=True)
class Spread:
    """Standard deviations of a parameter's natural logarithm: over all vectors, within groups, and between group means.

    `within` and `between` are None when no group, or only one, has several vectors.
    """

    median: float
    total: float
    within: float | None
    between: float | None


@dataclass(frozen=True)
class Population:
    """Fits of many coordinates of many traces, with the group (the person) that each came from.

    `fits` are of one or more kernel families, all with the same units and mean; `groups` one hashable name each, in
    the same order. `skipped` counts the traces that could not be fitted, by reason.
    """

    fits: tuple[Fit, ...]
    groups: tuple[str, ...]
    skipped: Mapping[str, int]

    def __post_init__(self) -> None:
        if not self.fits:
            raise InputError(f"a population needs at least one fit; every trace was refused: {dict(self.skipped)}.")
        if len(self.groups) != len(self.fits):
            raise InputError(f"{len(self.groups)} groups for {len(self.fits)} fits.")
        if len({(one.settings.units, one.settings.mean, one.settings.period) for one in self.fits}) > 1:
            raise InputError("the fits of a population must share their units, mean and period.")

    @property
    def families(self) -> tuple[str, ...]:
        """Kernel families present, in order of first appearance."""
        return tuple(dict.fromkeys(one.family for one in self.fits))

    def of_family(self, kernel: str) -> list[Fit]:
        """The fits of one family. Raises InputError if there are none."""
        found = [one for one in self.fits if one.family == kernel]
        if not found:
            raise InputError(f"the population has no fit of {kernel!r}; it has {', '.join(self.families)}.")
        return found

    def spread(self, kernel: str) -> dict[str, Spread]:
        """Median and log-spread of each parameter of a family, and of q where the family has one."""
        fits = self.of_family(kernel)
        groups = [group for one, group in zip(self.fits, self.groups, strict=True) if one.family == kernel]
        columns = {name: [one.parameters[name] for one in fits] for name in family_named(kernel).all_parameters}
        levels = [one.q for one in fits]
        if all(level is not None for level in levels):
            columns["q"] = [float(level) for level in levels if level is not None]
        return {name: _spread(np.log(np.array(column)), groups) for name, column in columns.items()}

    def centre(self, kernel: str, times: np.ndarray, values: np.ndarray) -> Fit:
        """One fit in the middle of the population, scaled to a trace: times (n,), values (n,) of one coordinate.

        Length scales, and the nugget's share of the standard deviation, are the population's medians (of logarithms);
        the standard deviation is profiled on the trace in closed form. Never pool standard deviations in metres over
        traces: the fastest one decides. Raises InputError for periodic families.
        """
        if kernel not in _CENTRED:
            raise InputError(f"kernel {kernel!r} has no population centre; use the mixture.")
        times, values = checked_trace(times, values)
        if values.ndim != 1:
            raise InputError(f"values has shape {values.shape}; give one coordinate at a time.")
        fits = self.of_family(kernel)
        amplitude = family_named(kernel).parameters[0]
        ratios = {
            name: [one.parameters[name] / (one.parameters[amplitude] if name == NOISE else 1.0) for one in fits]
            for name in family_named(kernel).all_parameters
            if name != amplitude
        }
        shape = {name: float(np.exp(np.median(np.log(ratio)))) for name, ratio in ratios.items()}
        unit = Fit(
            fits[0].settings, {amplitude: 1.0, **shape}, None, float("nan"), (), (), True, times.size,
            float(times[-1] - times[0]), float(np.std(values)),
        )  # fmt: skip
        sd = _profiled_sd(unit, times, values)
        scaled = {amplitude: sd, **{name: value * (sd if name == NOISE else 1.0) for name, value in shape.items()}}
        scaled[NOISE] = max(scaled[NOISE], fits[0].settings.noise_floor or 0.0)
        centre = replace(unit, parameters=scaled)
        loglik = _loglik(centre, times, values, None)
        return replace(centre, loglik=loglik, start_logliks=(loglik,))

    def weights(self, times: np.ndarray, seen: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """Weight of each fit (in the order of `fits`), proportional to the likelihood of what is seen; they sum to 1.

        times (n,), seen (n,): one coordinate, published with Gaussian noise of covariance `noise` (n, n), in squared
        value units, or clear where that is None. Restricted likelihood with the population's mean.
        """
        times, seen = checked_trace(times, seen)
        if seen.ndim != 1:
            raise InputError(f"seen has shape {seen.shape}; give one coordinate at a time.")
        if noise is not None:
            noise = host_array(noise, "noise", 2)
            if noise.shape != (times.size, times.size):
                raise InputError(f"noise has shape {noise.shape}; expected ({times.size}, {times.size}).")
        logs = np.array([_loglik(one, times, seen, noise) for one in self.fits])
        if not np.any(np.isfinite(logs)):
            raise InputError("no member of the population gives what is seen a positive likelihood: check the units.")
        weights = np.exp(logs - np.max(logs))
        return weights / np.sum(weights)

    def priors(self, times: np.ndarray) -> list[ProcessPrior]:
        """Every member of the mixture at `times` (n,), in the order of `fits`."""
        return [one.prior(times) for one in self.fits]


def fit_population(
    traces: Sequence[tuple[np.ndarray, np.ndarray]],
    *,
    groups: Sequence[str] | None = None,
    kernels: Sequence[str] = ("matern32", "matern52"),
    **options,
) -> Population:
    """Fit each kernel to each coordinate of many traces, (times (n,), values (n,) or (n, d)) each.

    `groups` names the person of each trace; balance them yourself (one trace a person a draw), or the person with the
    most traces becomes the population. Coordinates that cannot be fitted are skipped and counted by reason; bound hits
    are kept. `options` go to `fit`. Raises InputError on arguments that are wrong for every trace, and if nothing
    could be fitted.
    """
    names = [str(i) for i in range(len(traces))] if groups is None else [str(group) for group in groups]
    if len(names) != len(traces):
        raise InputError(f"{len(names)} groups for {len(traces)} traces.")
    options = {"confidence": None, **options}
    fits: list[Fit] = []
    members: list[str] = []
    skipped: Counter[str] = Counter()
    for (times, values), group in zip(traces, names, strict=True):
        array = np.asarray(values)
        columns = [array] if array.ndim < 2 else [array[:, j] for j in range(array.shape[1])]
        for column in columns:
            try:
                found = [fit(times, column, kernel=kernel, **options) for kernel in kernels]
            except InputError as error:
                skipped[_reason(str(error))] += 1
                continue
            fits.extend(one for one in found if isinstance(one, Fit))
            members.extend([group] * len(found))
    return Population(tuple(fits), tuple(members), dict(skipped))


def _reason(message: str) -> str:
    """What a refusal is about, without the numbers of one trace."""
    for mark, reason in (
        ("points; a prior needs", "fewer than 20 points"),
        ("too still", "too still"),
        ("does not vary", "no variation"),
        ("times holds", "times not increasing"),
        ("not finite", "values not finite"),
        ("starting points", "likelihood failed"),
        ("nothing but noise", "too still"),
    ):
        if mark in message:
            return reason
    raise InputError(message)


def _spread(logs: np.ndarray, groups: Sequence[str]) -> Spread:
    total = float(np.std(logs, ddof=1)) if logs.size > 1 else 0.0
    parts = [logs[[i for i, other in enumerate(groups) if other == group]] for group in dict.fromkeys(groups)]
    freedom = logs.size - len(parts)
    within = between = None
    if freedom > 0 and len(parts) > 1:
        within = float(np.sqrt(sum(np.sum((part - np.mean(part)) ** 2) for part in parts) / freedom))
        between = float(np.std([np.mean(part) for part in parts], ddof=1))
    return Spread(float(np.exp(np.median(logs))), total, within, between)


def _quadratic(
    covariance: np.ndarray, times: np.ndarray, values: np.ndarray, mean: str
) -> tuple[float, float, int] | None:
    """yᵀPy, log|K| + log|FᵀK⁻¹F| − log|FᵀF|, n − p; None where the covariance is not positive definite."""
    columns = np.stack([np.ones(times.size), times - np.mean(times)], axis=1)[:, : MEANS[mean]]
    columns = columns / np.linalg.norm(columns, axis=0)
    try:
        factor = cho_factor(covariance, lower=True)
    except np.linalg.LinAlgError:
        return None
    solved = cho_solve(factor, np.column_stack([values, columns]))
    square = float(values @ solved[:, 0])
    logs = 2.0 * float(np.sum(np.log(np.diagonal(factor[0]))))
    if columns.shape[1]:
        gram = columns.T @ solved[:, 1:]
        square -= float((columns.T @ solved[:, 0]) @ np.linalg.solve(gram, columns.T @ solved[:, 0]))
        logs += float(np.linalg.slogdet(gram)[1] - np.linalg.slogdet(columns.T @ columns)[1])
    return square, logs, times.size - columns.shape[1]


def _loglik(fit: Fit, times: np.ndarray, seen: np.ndarray, noise: np.ndarray | None) -> float:
    covariance = covariance_of(fit, times) + (0.0 if noise is None else noise)
    centred = seen if fit.settings.mean == "zero" else seen - np.mean(seen)
    parts = _quadratic(covariance, times, centred, fit.settings.mean)
    if parts is None:
        return -np.inf
    square, logs, freedom = parts
    return -0.5 * (square + logs + freedom * float(np.log(2.0 * np.pi)))


def _profiled_sd(unit: Fit, times: np.ndarray, values: np.ndarray) -> float:
    """σ that maximises ℓ for the covariance σ²K₁: σ² = yᵀP₁y/(n − p)."""
    centred = values if unit.settings.mean == "zero" else values - np.mean(values)
    parts = _quadratic(covariance_of(unit, times), times, centred, unit.settings.mean)
    if parts is None or not parts[0] > 0.0:
        raise InputError("the values do not vary, or the population's kernel is singular at these times.")
    return float(np.sqrt(parts[0] / parts[2]))
