"""The loop around every first-order method: compiled blocks of steps, and checks between them on the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxpriv.errors import InputError
from jaxpriv.searches.methods import AbstractMethod
from jaxpriv.searches.problem import Evaluation, Problem, norm, select
from jaxpriv.searches.result import Progress, Search, SearchResult
from jaxpriv.searches.smoothing import Cooling


Certificate = Callable[[Any], tuple[float, float]]
_PATIENCE = 4  # checks without progress


class State(eqx.Module):
    """Everything that changes from step to step.

    Attributes:
        here: the current point; never one that is not finite.
        memory: the method's own state.
        best: the arrays of the point with the least loss, and `least`, that loss.
        loss_unit, point_unit: a thousandth of the sizes of loss and point at the start; of 1 where they are zero.
        step: steps taken.
        finite: False once a step led to a loss or gradient that is not finite.
        alive: False once the method cannot go on.
        stationarity: ‖projected gradient‖ ‖x‖ / |loss|.
    """

    here: Evaluation
    memory: PyTree
    best: PyTree
    least: Float[Array, ""]
    loss_unit: Float[Array, ""]
    point_unit: Float[Array, ""]
    step: Int[Array, ""]
    finite: Bool[Array, ""]
    alive: Bool[Array, ""]
    stationarity: Float[Array, ""]


@eqx.filter_jit
def init(problem: Problem, method: AbstractMethod, params: PyTree) -> State:
    """The state at the nearest point of the set."""
    here = problem.evaluate(problem.project(params))
    loss_unit, point_unit = _unit(jnp.abs(here.objective)), _unit(norm(here.params))
    return State(
        here,
        method.init(problem, here),
        here.params,
        here.value,
        loss_unit,
        point_unit,
        jnp.zeros((), int),
        here.finite,
        jnp.array(True),
        _stationarity(here, loss_unit, point_unit),
    )


def _unit(size: Float[Array, ""]) -> Float[Array, ""]:
    return 1e-3 * jnp.where(size > 0.0, size, 1.0)


def _stationarity(here: Evaluation, loss_unit: Float[Array, ""], point_unit: Float[Array, ""]) -> Float[Array, ""]:
    # A loss or a point that comes to lie near zero is no longer measured by itself.
    size = jnp.maximum(norm(here.params), point_unit)
    return norm(here.slope) * size / jnp.maximum(jnp.abs(here.objective), loss_unit)


@eqx.filter_jit
def advance(
    problem: Problem, method: AbstractMethod, state: State, steps: Int[Array, ""], level: Float[Array, ""], length: int
) -> tuple[State, Float[Array, " length"]]:
    """At most `steps` ≤ `length` steps, until the projected gradient is below `level`; and the loss after each."""

    def going(carry):
        state, _, count = carry
        return (count < steps) & state.finite & state.alive & (state.stationarity > level)

    def body(carry):
        state, losses, count = carry
        there, memory, alive = method.step(problem, state.here, state.memory)
        finite = there.finite
        better = finite & (there.value < state.least)
        here = select(finite, there, state.here)
        following = State(
            here,
            memory,
            select(better, there.params, state.best),
            jnp.where(better, there.value, state.least),
            state.loss_unit,
            state.point_unit,
            state.step + 1,
            state.finite & finite,
            alive,
            _stationarity(here, state.loss_unit, state.point_unit),
        )
        return following, losses.at[count].set(there.value), count + 1

    empty = jnp.full((length,), jnp.nan, state.here.value.dtype)
    state, losses, _ = jax.lax.while_loop(going, body, (state, empty, jnp.zeros_like(steps)))
    return state, losses


def restart(problem: Problem, method: AbstractMethod, state: State) -> State:
    """The same point for a problem that has changed (another temperature): the method starts afresh."""
    fresh = init(problem, method, state.here.params)
    kept = (state.best, state.least, state.step)
    return eqx.tree_at(lambda one: (one.best, one.least, one.step), fresh, kept)


def minimise(
    problem: Problem,
    method: AbstractMethod,
    params: PyTree,
    *,
    max_steps: int = 2000,
    tolerance: float = 1e-6,
    check_every: int = 50,
    cooling: Cooling | None = None,
    certificate: Certificate | None = None,
    progress: Callable[[Progress], Any] | None = None,
) -> Search:
    """Run a method from a start until a certificate, a stationary point, a stall or the step limit.

    Args:
        problem: the loss and the set.
        method: see `jaxpriv.searches.methods` and `jaxpriv.searches.quasi_newton`.
        params: the arrays of the start that move.
        max_steps: largest number of steps.
        tolerance: relative gap that counts as optimal; without a certificate, relative projected gradient.
        check_every: steps between two checks; the steps between are one compiled loop.
        cooling: temperatures of a loss that has a method `smoothed`.
        certificate: mechanism → (achieved, lower bound) of the quantity minimised, called at every check.
        progress: called at every check; a true answer stops the search.

    Raises:
        InputError: the loss or its gradient is not finite at the start.
    """
    problem = _at_temperature(problem, cooling, jnp.asarray(1.0))
    state = init(problem, method, params)
    if not bool(state.finite):
        raise InputError(
            f"the loss is {float(state.here.value):g} at the start and its gradient is "
            f"{'finite' if math.isfinite(float(norm(state.here.gradient))) else 'not finite'}: start from a mechanism "
            "with a finite loss (more noise, or a noise floor)."
        )
    ledger = _Ledger(certificate, tolerance)
    ledger.look(problem, state)
    warmth = cooling.start if cooling is not None else 0.0
    coldest = 0.0 if cooling is None else (cooling.stop if cooling.stop is not None else 0.1 * tolerance)
    if cooling is not None:
        problem = _at_temperature(problem, cooling, warmth * abs(float(state.least)))
        state = restart(problem, method, state)
    level = tolerance if certificate is None else 1e-2 * tolerance
    history = np.full(max_steps, np.nan)
    outcome: SearchResult | None = SearchResult.certified if ledger.closed else None
    checks = 0
    while outcome is None:
        taken = int(state.step)
        steps = min(check_every, max_steps - taken)
        wanted = max(level, 0.1 * warmth) if warmth > coldest else level
        state, losses = advance(problem, method, state, jnp.asarray(steps), jnp.asarray(wanted), check_every)
        now, checks = int(state.step), checks + 1
        history[taken:now] = np.asarray(losses)[: now - taken]
        ledger.look(problem, state)
        report = ledger.report(state, warmth)
        cold = warmth <= coldest
        if progress is not None and progress(report):
            outcome = SearchResult.stopped
        elif ledger.closed:
            outcome = SearchResult.certified
        elif not bool(state.finite):
            outcome = SearchResult.not_finite
        elif cold and report.stationarity <= level:
            outcome = SearchResult.stationary
        elif now >= max_steps:
            outcome = SearchResult.max_steps
        elif cold and (ledger.idle >= _PATIENCE or not bool(state.alive)):
            outcome = SearchResult.stalled
        elif cooling is not None and not cold:
            warmth = max(coldest, cooling.factor * warmth)
            problem = _at_temperature(problem, cooling, warmth * abs(ledger.best))
            state = restart(problem, method, state)
            ledger.idle = 0
    stats = {"method": type(method).__name__, "checks": checks, "steps": int(state.step)}
    return ledger.search(problem, state, outcome, history, stats)


def _at_temperature(problem: Problem, cooling: Cooling | None, temperature: Any) -> Problem:
    if cooling is None:
        return problem
    positive = max(float(temperature), float(np.finfo(np.float32).tiny))
    return Problem(problem.loss, problem.args, problem.frozen, problem.projection, jnp.asarray(positive))


class _Ledger:
    """The best achieved value and the largest lower bound over all checks."""

    def __init__(self, certificate: Certificate | None, tolerance: float):
        self.certificate, self.tolerance = certificate, tolerance
        self.achieved, self.lower, self.best = math.inf, -math.inf, math.inf
        self.params: PyTree = None
        self.idle = 0

    def look(self, problem: Problem, state: State) -> None:
        before = (self.achieved, self.lower, self.best)
        self.best = float(state.least)
        if self.certificate is None:
            self.achieved, self.params = self.best, state.best
        else:
            achieved, lower = (float(value) for value in self.certificate(problem.mechanism(state.best)))
            if achieved < self.achieved or self.params is None:
                self.achieved, self.params = achieved, state.best
            self.lower = max(self.lower, lower) if not math.isnan(lower) else self.lower
        moved = [abs(new - old) for new, old in zip((self.achieved, self.lower, self.best), before, strict=True)
                 if math.isfinite(new)]  # fmt: skip
        fell = max(moved, default=0.0) > 0.1 * self.tolerance * abs(self.best)
        self.idle = 0 if fell else self.idle + 1

    @property
    def gap(self) -> float:
        if not math.isfinite(self.lower) or not math.isfinite(self.achieved):
            return math.inf
        return max(0.0, self.achieved - self.lower) / max(abs(self.achieved), np.finfo(float).tiny)

    @property
    def closed(self) -> bool:
        return self.gap <= self.tolerance

    def report(self, state: State, warmth: float) -> Progress:
        return Progress(
            int(state.step),
            float(state.here.value),
            self.best,
            self.lower,
            self.gap,
            float(state.stationarity),
            warmth,
        )

    def search(
        self, problem: Problem, state: State, outcome: SearchResult, history: np.ndarray, stats: dict[str, Any]
    ) -> Search:
        return Search(
            mechanism=problem.mechanism(self.params),
            value=self.achieved,
            lower_bound=self.lower,
            gap=self.gap,
            stationarity=float(state.stationarity),
            residual=0.0,
            result=outcome,
            steps=int(state.step),
            history=history,
            stats=stats,
        )
