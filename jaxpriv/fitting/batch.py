"""Priors for many traces at once: the restricted-likelihood fits of `fit`, batched over the traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from jaxpriv.errors import InputError, JaxprivError
from jaxpriv.fitting.batch_likelihood import FAMILIES, BatchTraces
from jaxpriv.fitting.batch_optimum import BatchOptimum, best_start, hessian, minimise
from jaxpriv.fitting.checks import check_options, checked_trace, limits, noise_bound, refuse_unfit
from jaxpriv.fitting.families import default_bounds, family_named, unit_power
from jaxpriv.fitting.fit import Fit, Settings, _read as read_parameters
from jaxpriv.fitting.likelihood import MEANS, on_host


_BUCKETS = (32, 64, 128, 256)
_ROWS = 1024  # traces at a time
# The likelihood may have several maxima: the best start of each of these groups is followed.
_LENGTHS = ((1 / 40, 1 / 20), (1 / 8, 1 / 4), (1 / 2, 2.0))
_NOISES = (0.02, 0.15)
_SPREADS = (0.5, 1.5)
_LIMIT_STEPS = 24
_GRADIENT, _PROFILE_GRADIENT = 1e-6, 1e-3  # nats for each factor e


@dataclass(frozen=True)
class _Coordinate:
    """One coordinate of one trace: its standardised values and bounds (logarithms, standard units)."""

    times: np.ndarray
    values: np.ndarray
    sd: float
    duration: float
    low: np.ndarray
    high: np.ndarray


def fit_batch(
    times: Sequence[np.ndarray],
    values: Sequence[np.ndarray],
    *,
    kernel: str = "matern32",
    mean: str = "constant",
    units: tuple[str, str] = ("m", "s"),
    noise_floor: float | None = None,
    min_sd: float | None = None,
    quantum: float = 0.0,
    confidence: float | None = 0.95,
) -> list[Any]:
    """`fit` for every trace: a `Fit` (a list of d for values (n, d)), or the `InputError` that says why there is none.

    times and values are sequences of arrays, one pair for each trace, of any lengths; the arguments and the bounds are
    those of `fit`, and so is the optimum, to about 1e-5 in the logarithm of every parameter that the data determine
    (where the likelihood has several maxima, both look from several starts and either may find the higher one).
    `kernel` is matern12, matern32 or matern52: their likelihoods are evaluated for all traces together by the Kalman
    filter of their state spaces. A coordinate that `fit` would refuse (too few points, too still, unsorted times) is an
    exception in the list instead, which `design_batch` takes as the trace's reason; the other traces go on.

    Raises InputError for arguments that are wrong for all traces.
    """
    if kernel not in FAMILIES:
        raise InputError(f"fit_batch fits {', '.join(FAMILIES)}; for {kernel!r} call fit for each trace.")
    if len(times) != len(values):
        raise InputError(f"there are {len(times)} arrays of times and {len(values)} of values; expected one each.")
    if confidence is not None and not 0.5 < confidence < 1.0:
        raise InputError(f"confidence must be between 0.5 and 1; got {confidence}.")
    floor, smallest = limits(units, noise_floor, min_sd)
    noise_bound(1.0, floor, quantum)
    settings = Settings(kernel, mean, None, units, floor, quantum, {}, None, confidence)
    check_options(family_named(kernel), mean, None, 0)
    results: list[Any] = []
    waiting: list[tuple[int, int | None, _Coordinate]] = []
    for i, (own_times, own_values) in enumerate(zip(times, values, strict=True)):
        try:
            checked, array = checked_trace(own_times, own_values)
        except JaxprivError as error:
            results.append(error)
            continue
        columns = array[:, None] if array.ndim == 1 else array
        results.append(None if array.ndim == 1 else [None] * columns.shape[1])
        for j in range(columns.shape[1]):
            name = "values" if array.ndim == 1 else f"coordinate {j} of values"
            axis = None if array.ndim == 1 else j
            try:
                lowest = noise_bound(float(np.std(columns[:, j])), floor, quantum)
                refuse_unfit(columns[:, j], name, smallest, lowest, units[0])
                waiting.append((i, axis, _coordinate(checked, columns[:, j], settings)))
            except JaxprivError as error:
                _put(results, i, axis, error)
    for bucket, members in _bucketed(waiting):
        for fitted, (i, axis, _) in zip(_fitted([one for *_, one in members], bucket, settings), members, strict=True):
            _put(results, i, axis, fitted)
    return results


def _put(results: list[Any], i: int, axis: int | None, value: Any) -> None:
    if axis is None:
        results[i] = value
    else:
        results[i][axis] = value


def _coordinate(times: np.ndarray, values: np.ndarray, settings: Settings) -> _Coordinate:
    family = family_named(settings.kernel)
    sd, duration = float(np.std(values)), float(times[-1] - times[0])
    centred = values if settings.mean == "zero" else values - np.mean(values)
    step = float(np.median(np.diff(times))) / duration
    ranges = default_bounds(family, step, noise_bound(sd, settings.noise_floor, settings.quantum) / sd)
    pairs = np.log(np.array([ranges[name] for name in family.all_parameters]))
    return _Coordinate((times - times[0]) / duration, centred / sd, sd, duration, pairs[:, 0], pairs[:, 1])


def _bucketed(waiting: list[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Chunks of coordinates of one padded length."""
    groups: dict[int, list[Any]] = {}
    for item in waiting:
        n = item[2].times.size
        bucket = next((size for size in _BUCKETS if n <= size), -(-n // 256) * 256)
        groups.setdefault(bucket, []).append(item)
    for bucket, members in sorted(groups.items()):
        for start in range(0, len(members), _ROWS):
            yield bucket, members[start : start + _ROWS]


def _traces(members: Sequence[_Coordinate], bucket: int, mean: str, rows: int) -> BatchTraces:
    p = MEANS[mean]
    gaps, present = np.zeros((bucket, rows)), np.zeros((bucket, rows))
    columns, log_gram, freedom = np.zeros((bucket, 3, rows)), np.zeros(rows), np.zeros(rows)
    for k in range(rows):
        one = members[k if k < len(members) else 0]
        n = one.times.size
        gaps[1:n, k] = np.diff(one.times)
        present[:n, k] = 1.0
        columns[:n, 0, k] = one.values
        means = np.stack([np.ones(n), one.times - np.mean(one.times)], axis=1)[:, :p]
        columns[:n, 1 : 1 + p, k] = means
        log_gram[k] = float(np.sum(np.log(np.sum(means * means, axis=0)))) if p else 0.0
        freedom[k] = n - p
    return BatchTraces(gaps, present, columns, freedom, log_gram)


def _fitted(members: Sequence[_Coordinate], bucket: int, settings: Settings) -> list[Fit | InputError]:
    count = len(members)
    rows = min(_ROWS, max(8, 1 << (count - 1).bit_length()))
    traces = _traces(members, bucket, settings.mean, rows)
    spread = [members[k if k < count else 0] for k in range(rows)]
    low, high = np.stack([one.low for one in spread], axis=1), np.stack([one.high for one in spread], axis=1)
    with on_host():
        found = []
        for lengths in _LENGTHS:
            grid = np.log([[s, length, e] for length in lengths for e in _NOISES for s in _SPREADS])
            starts = np.repeat(grid.T[:, :, None], rows, axis=2)
            begin, _ = best_start(starts, low, high, traces, settings.kernel)
            bent = hessian(begin, traces, settings.kernel)
            optimum = minimise(begin, low, high, traces, bent, _GRADIENT, settings.kernel)
            found.append(BatchOptimum(*map(np.asarray, optimum)))
        best = _best_of(found)
        lower = None
        if settings.confidence is not None:
            lower = _nugget_limits(best, low, high, traces, settings.kernel, settings.confidence)
    return [_fit(members[k], k, best, lower, settings) for k in range(count)]


def _best_of(found: Sequence[BatchOptimum]) -> BatchOptimum:
    """For each trace the optimum of the largest likelihood; one that did not converge counts last."""
    values = np.stack([np.where(np.isfinite(one.value), one.value, np.inf) for one in found])
    rank = np.where(np.stack([np.asarray(one.converged) for one in found]), values, values + 1e6)
    which = np.argmin(rank, axis=0)
    picked = (
        np.take_along_axis(np.stack(parts), which.reshape(1, *[1] * (parts[0].ndim - 1), -1), axis=0)[0]
        for parts in zip(*[map(np.asarray, one) for one in found], strict=True)
    )
    return BatchOptimum(*picked)


def _fit(
    one: _Coordinate, k: int, best: BatchOptimum, lower: np.ndarray | None, settings: Settings
) -> Fit | InputError:
    family = family_named(settings.kernel)
    value = float(np.asarray(best.value)[k])
    if not np.isfinite(value):
        return InputError(f"the likelihood of {family.name!r} could not be computed: raise noise_floor.")
    unit = np.array([one.sd**a * one.duration**b for a, b in map(unit_power, family.all_parameters)])
    point = np.asarray(best.point)[:, k]
    parameters, hits = read_parameters(family, settings.units, point, one.low, one.high, unit)
    loglik = -value - (one.times.size - MEANS[settings.mean]) * float(np.log(one.sd))
    limit = None if lower is None else float(np.exp(lower[k]) * unit[-1])
    converged = bool(np.asarray(best.converged)[k])
    return Fit(settings, parameters, limit, loglik, (loglik,), hits, converged, one.times.size, one.duration, one.sd)


def _nugget_limits(
    best: BatchOptimum, low: np.ndarray, high: np.ndarray, traces: BatchTraces, family: str, confidence: float
) -> np.ndarray:
    """`nugget_lower_limit` of every trace, (m,): the lower bound where that is not excluded, else a bracketed root.

    r = √(2(ℓ̂ − ℓ_p)) is nearly linear in log noise_sd; the limit is where it reaches the normal quantile.
    """
    z = float(norm.ppf(confidence))
    floor, top = low[2], np.asarray(best.point)[2]

    def profile(at: np.ndarray, last: BatchOptimum) -> tuple[np.ndarray, BatchOptimum]:
        fixed_low, fixed_high, begin = low.copy(), high.copy(), np.array(last.point)
        fixed_low[2] = fixed_high[2] = begin[2] = at
        found = minimise(begin, fixed_low, fixed_high, traces, last.bent, _PROFILE_GRADIENT, family)
        drop = np.asarray(found.value) - np.asarray(best.value)
        return np.sqrt(2.0 * np.maximum(np.where(np.isfinite(drop), drop, 0.0), 0.0)), found

    at_floor, last = profile(floor, best)
    excluded = (at_floor > z) & (top > floor)
    if not np.any(excluded):
        return floor.copy()
    below, above = floor.copy(), np.where(excluded, top, floor)
    r_below, r_above = at_floor.copy(), np.zeros_like(top)
    for count in range(_LIMIT_STEPS):
        wide = above - below > 1e-4
        if not np.any(wide & excluded):
            break
        share = np.clip((r_below - z) / np.maximum(r_below - r_above, 1e-12), 0.05, 0.95)
        if count % 2:  # the secant stays on one side of a bent profile: every other step halves the bracket
            share = np.full_like(share, 0.5)
        # Where it is done the profile is not taken again: the last point is its optimum already.
        here = np.where(excluded & wide, below + share * (above - below), np.asarray(last.point)[2])
        reached, last = profile(here, last)
        over = reached > z
        near = np.abs(reached - z) <= 1e-3
        below, r_below = np.where(over | near, here, below), np.where(over | near, reached, r_below)
        above, r_above = np.where(~over | near, here, above), np.where(~over | near, reached, r_above)
    return np.where(excluded, below, floor)
