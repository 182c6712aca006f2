"""Channels of nearly least loss by a first-order method, on maps where the exact program has too many constraints."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jaxpriv.channels.channel_design import ChannelDesign, finished, within_limits
from jaxpriv.channels.inference import Guesses
from jaxpriv.channels.lower_bound import least_reduced_costs, sum_of_minima
from jaxpriv.channels.mixtures import best_mixture
from jaxpriv.channels.primal_dual import Iterate, advance, start, step_ratio
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.problem import ChannelProblem, channel_problem
from jaxpriv.channels.program_blocks import Layout, build_program, from_columns, multipliers, to_columns
from jaxpriv.channels.repair import envelope, inner_limits, remapped, top_up
from jaxpriv.errors import InputError
from jaxpriv.precision import double_precision


# Up to this many inputs every pair is a constraint; beyond, the edges of a spanner.
_ALL_PAIRS, _STRETCH = 64, 1.02
# Beyond this many inputs, pairs farther than so many nats from an output are left to the repair.
_MANY, _HORIZON = 256, 9.0
# First ratio of dual to primal steps, relative to the scale of the cost; it adapts now and then, within limits:
# far travel of the multipliers asks for a larger ratio, at which the lower bound lags behind.
_RATIO, _LEAST_RATIO, _LARGEST_RATIO = 0.3, 0.1, 1.0
# Columns of an iterate that reach this probability are mixed.
_RARE = 1e-6
# Iterations between looks at the residual.
_CHUNK = 50
# Double precision until the multipliers take this many bytes, single precision beyond.
_DOUBLE_BYTES = 64e6


class Progress(NamedTuple):
    """Passed to `callback` at each check: iterations so far, seconds, and the best certified bounds."""

    steps: int
    seconds: float
    quality_loss: float
    lower_bound: float


def gradient_channel(
    prior: DiscretePrior,
    epsilon: float | Sequence[float],
    *,
    sets: Sequence[Sequence[int]] | None = None,
    min_error: float = 0.0,
    outputs: Float[np.ndarray, "m 2"] | None = None,
    loss: Float[np.ndarray, "n m"] | None = None,
    guesses: Guesses = None,
    adversary_prior: Float[np.ndarray, " n"] | None = None,
    stretch: float | None = None,
    tolerance: float = 1e-3,
    max_steps: int = 20_000,
    max_seconds: float | None = None,
    drop: float = 1e-9,
    initial: Float[np.ndarray, "n m"] | None = None,
    dtype: type | np.dtype | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
) -> ChannelDesign:
    """The channel of nearly least expected loss within its limits, with a certified lower bound on that loss.

    Arguments up to `adversary_prior` are those of `optimal_channel`. Beyond 64 inputs the iteration looks at the edges
    of a spanner only (`stretch`, 1.02 unless given), and beyond 256 inputs at those within 9 nats of an output: a
    relaxation, so its dual bound holds for the full problem, while the channel is repaired against every pair.

    Args:
        tolerance: stop when (loss − lower bound)/loss is below it.
        max_steps: stop there all the same; the gap reached is reported.
        max_seconds: likewise, by the wall clock.
        drop: outputs that no input uses with more than this probability are merged into others.
        initial: a channel matrix to start from; else the better, after remapping, of the exponential mechanism and the
            mechanism K ∝ e^{−c(x, z)} whose columns meet the limits tightly.
        dtype: of the iterates; float64 for small problems, float32 for large ones unless given. The returned channel,
            its audit and its bound are always computed in float64 on the host.
        callback: called at each check; a true answer stops.

    Raises:
        InputError, UnattainableError: as `optimal_channel`; a wrong initial channel, tolerance or step limit.
    """
    began = time.perf_counter()
    problem = channel_problem(
        prior,
        epsilon,
        sets=sets,
        min_error=min_error,
        outputs=outputs,
        loss=loss,
        guesses=guesses,
        adversary_prior=adversary_prior,
        stretch=_STRETCH if stretch is None and sets is None and prior.size > _ALL_PAIRS else stretch,
    )
    if not (np.isfinite(tolerance) and tolerance > 0.0 and max_steps >= 1):
        raise InputError(f"tolerance is {tolerance} and max_steps {max_steps}; both must be positive.")
    first = starting_matrix(problem) if initial is None else _checked_initial(problem, initial)
    size = 16.0 * len(problem.limits.pairs) * problem.cost.shape[1]
    kind = np.dtype(dtype) if dtype is not None else np.dtype(np.float64 if size <= _DOUBLE_BYTES else np.float32)
    with double_precision():
        best = _iterate(problem, first, kind, tolerance, max_steps, max_seconds, drop, began, callback)
    reached = (best.loss - best.bound) <= tolerance * best.loss
    return finished(
        problem,
        best.matrix,
        asked=problem.limits,
        lower_bound=max(0.0, best.bound) if np.min(problem.cost) >= 0.0 else best.bound,
        moved=best.moved,
        drop=drop,
        method="primal-dual hybrid gradient",
        status="tolerance reached" if reached else "step or time limit",
        seconds=time.perf_counter() - began,
        steps=best.steps,
    )


def starting_matrix(problem: ChannelProblem) -> Float[np.ndarray, "n m"]:
    """A channel within the limits to start from, (n, m), remapped to the outputs where it costs least.

    The candidates are the exponential mechanism, rows ∝ e^{−c(x, y)/2}, and the columns e^{−c(x, y)} w_y, as tight as
    the limits allow, with w = Φ⁻¹1 clipped at zero (the tight-constraints mechanism of Chatzikokolakis et al. where w
    is positive), topped up to a channel.
    """
    allowed = problem.limits.allowed
    half = np.exp(-0.5 * allowed)
    candidates = [half / np.sum(half, axis=1, keepdims=True)]
    full = np.exp(-allowed)
    try:
        weights = np.maximum(np.linalg.solve(full, np.ones(len(full))), 0.0)
    except np.linalg.LinAlgError:
        weights = np.ones(len(full))
    if np.all(np.isfinite(weights)) and np.all(full @ weights > 0.0):
        candidates.append(top_up(full * weights, allowed, np.zeros_like(full))[0])
    renamed = [remapped(matrix, problem.cost) for matrix in candidates]
    losses = [float(np.sum(problem.cost * matrix)) for matrix in renamed]
    return renamed[int(np.argmin(losses))]


class _Best(NamedTuple):
    matrix: np.ndarray
    loss: float
    moved: float
    bound: float
    steps: int
    # Columns within the limits to mix channels of (n, k); empty where channels are not mixed.
    pool: np.ndarray

    def better(self, problem: ChannelProblem, matrix: np.ndarray, drop: float) -> _Best:
        """The cheaper of this and a matrix, repaired."""
        repaired, moved = within_limits(problem, matrix, drop)
        loss = float(np.sum(problem.cost * repaired))
        return self._replace(matrix=repaired, loss=loss, moved=moved) if loss < self.loss else self


def _iterate(problem, first, kind, tolerance, max_steps, max_seconds, drop, began, callback) -> _Best:
    program, layout = build_program(problem, kind, _HORIZON if len(first) > _MANY else None)
    norm = jnp.asarray(layout.norm, kind)
    scale = float(np.linalg.norm(problem.cost)) / np.sqrt(len(first)) or 1.0
    ratio = jnp.asarray(_RATIO * scale, kind)
    current = start(program, to_columns(layout, first))
    earlier, since = current, 0
    mixed = len(first) > _MANY and problem.errors is None
    pool = np.exp(-inner_limits(problem.limits.allowed)) if mixed else np.zeros((len(first), 0))
    best = _Best(first, np.inf, 0.0, -np.inf, 0, pool).better(problem, first, drop)
    steps, seen, check = 0, 0, (16 if mixed else 4) * _CHUNK
    while steps < max_steps:
        current, plain, report = advance(program, current, ratio, norm, steps=_CHUNK)
        steps += _CHUNK
        late = max_seconds is not None and time.perf_counter() - began > max_seconds
        close = best.loss - float(report.lower_bound) <= tolerance * best.loss and steps >= 1.05 * seen
        if steps >= check or late or steps >= max_steps or close:
            seen, check = steps, int(np.ceil((1.8 if mixed else 1.4) * steps))
            best = _checked(problem, layout, plain, drop, best, steps)
            told = None
            if callback is not None:
                told = callback(Progress(steps, time.perf_counter() - began, best.loss, best.bound))
            if told or late or best.loss - best.bound <= tolerance * best.loss:
                break
        if steps >= 2 * since + 4 * _CHUNK:
            ratio = jnp.clip(
                step_ratio(program, plain, earlier, ratio), _LEAST_RATIO * scale, _LARGEST_RATIO * scale
            ).astype(kind)
            earlier, since = plain, steps
    return best._replace(steps=steps)


def _checked(problem: ChannelProblem, layout: Layout, plain: Iterate, drop: float, best: _Best, steps: int) -> _Best:
    lowest = np.full(len(problem.cost), np.inf)
    for prices in multipliers(layout, plain.limits, plain.tails, plain.errors):
        found = least_reduced_costs(
            problem.cost[:, prices.columns],
            prices.pairs,
            prices.levels,
            prices.limits,
            problem.errors,
            prices.errors,
            prices.tails,
        )
        lowest = np.minimum(lowest, found)
    best = best._replace(bound=max(best.bound, sum_of_minima(lowest)), steps=steps)
    matrix = from_columns(layout, plain.matrix)
    if best.pool.shape[1] == 0:
        return best.better(problem, matrix, drop)
    # On large maps the iterate's tails are far from done when its shape near the outputs is: raised to the limits, its
    # columns are good ones all the same, and the linear program of their weights has n rows.
    columns = envelope(remapped(matrix, problem.cost), inner_limits(problem.limits.allowed))
    mixture = best_mixture(
        np.concatenate([best.pool, columns[:, np.max(columns, axis=0) > _RARE]], axis=1), problem.cost
    )
    if mixture is None:
        return best.better(problem, matrix, drop)
    return best.better(problem, remapped(mixture.matrix, problem.cost), drop)._replace(pool=mixture.columns)


def _checked_initial(problem: ChannelProblem, initial: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
    matrix = np.asarray(initial, dtype=np.float64)
    if matrix.shape != problem.cost.shape or not np.all(np.isfinite(matrix)) or np.any(matrix < 0.0):
        raise InputError(f"the initial channel has shape {matrix.shape}; expected {problem.cost.shape}, non-negative.")
    if np.any(np.abs(np.sum(matrix, axis=1) - 1.0) > 1e-6):
        raise InputError("the rows of the initial channel do not sum to 1.")
    return matrix
