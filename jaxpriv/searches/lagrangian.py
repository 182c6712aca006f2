"""Smooth constraints g(m) ≤ 0 by the augmented Lagrangian."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from jaxpriv.searches.driver import Certificate, minimise
from jaxpriv.searches.methods import AbstractMethod
from jaxpriv.searches.problem import Problem
from jaxpriv.searches.result import Progress, Search, SearchResult
from jaxpriv.searches.smoothing import Cooling
from jaxpriv.shapes import Scalar


_ROUNDS = 40
_GROWTH, _SHRINK = 5.0, 0.25


class Penalised(eqx.Module):
    """f(m) + Σ (max(0, λ + ρ g(m))² − λ²)/(2ρ), the augmented Lagrangian of f subject to g ≤ 0.

    Powell, Hestenes and Rockafellar's function in the safeguarded form of Birgin and Martínez, Practical Augmented
    Lagrangian Methods (SIAM, 2014), chapter 4.
    """

    loss: Callable[..., Any]
    constraints: tuple[Callable[..., Any], ...]
    multipliers: Float[Array, " m"]
    penalty: Float[Array, ""]

    def excess(self, mechanism: Any, *args: Any) -> Float[Array, " m"]:
        """g, one value after the other."""
        return jnp.concatenate([jnp.ravel(jnp.asarray(one(mechanism, *args))) for one in self.constraints])

    def _added(self, mechanism: Any, *args: Any) -> Float[Array, ""]:
        pushed = jnp.maximum(0.0, self.multipliers + self.penalty * self.excess(mechanism, *args))
        return jnp.sum(pushed**2 - self.multipliers**2) / (2.0 * self.penalty)

    def __call__(self, mechanism: Any, *args: Any) -> Float[Array, ""]:
        return self.loss(mechanism, *args) + self._added(mechanism, *args)

    def smoothed(self, mechanism: Any, *args: Any, temperature: Scalar) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The same for a loss that has a smoothed version."""
        smooth, exact = self.loss.smoothed(mechanism, *args, temperature=temperature)  # pyright: ignore
        added = self._added(mechanism, *args)
        return smooth + added, exact + added


@eqx.filter_jit
def _values(problem: Problem, penalised: Penalised, params: PyTree) -> tuple[Array, Array]:
    mechanism = problem.mechanism(params)
    return jnp.asarray(penalised.loss(mechanism, *problem.args)), penalised.excess(mechanism, *problem.args)


def minimise_constrained(
    problem: Problem,
    constraints: tuple[Callable[..., Any], ...],
    method: AbstractMethod,
    params: PyTree,
    *,
    max_steps: int,
    tolerance: float,
    check_every: int,
    cooling: Cooling | None,
    certificate: Certificate | None,
    progress: Callable[[Progress], Any] | None,
) -> Search:
    """`minimise` subject to smooth constraints, by a sequence of penalised problems.

    Each round minimises the penalised loss, then updates the multipliers, λ ← max(0, λ + ρ g), and raises ρ where the
    violation has not fallen by a factor of four. The mechanism returned is the one of least loss among those that
    violate no constraint by more than `tolerance`, in the unit of g; where there is none, the one that violates least.
    """
    moving = jax.tree.map(lambda leaf: leaf is not None, params, is_leaf=lambda leaf: leaf is None)
    params = problem.project(params)
    count = jax.eval_shape(
        lambda m: Penalised(problem.loss, constraints, jnp.zeros(1), jnp.ones(())).excess(m, *problem.args),
        problem.mechanism(params),
    ).shape[0]
    penalised = Penalised(problem.loss, constraints, jnp.zeros(count), jnp.ones(()))
    value, excess = _values(problem, penalised, params)
    penalty = 10.0 * max(abs(float(value)), 1.0 if float(value) == 0.0 else 0.0)
    if not math.isfinite(penalty):
        penalty = 10.0  # the driver refuses the start
    multipliers = np.zeros(count)
    violation = math.inf
    history = np.full(max_steps, np.nan)
    taken, rounds, level = 0, 0, 1e-2
    kept: tuple[float, float, PyTree] | None = None
    lower, outcome = -math.inf, SearchResult.max_steps
    last: Search | None = None

    while True:
        penalised = Penalised(problem.loss, constraints, jnp.asarray(multipliers), jnp.asarray(penalty))
        inner = Problem(penalised, problem.args, problem.frozen, problem.projection)
        last = minimise(
            inner,
            method,
            params,
            max_steps=max_steps - taken,
            tolerance=max(level, tolerance),
            check_every=check_every,
            cooling=cooling,
            progress=None if progress is None else _shifted(progress, taken),
        )
        history[taken : taken + last.steps] = last.history[: last.steps]
        taken, rounds = taken + last.steps, rounds + 1
        params, _ = eqx.partition(last.mechanism, moving)
        value, excess = (np.asarray(one, dtype=np.float64) for one in _values(problem, penalised, params))
        residual = float(max(0.0, np.max(excess)))
        kept = _better(kept, (float(value), residual, params), tolerance)
        gap = math.inf
        if certificate is not None and residual <= tolerance:
            achieved, bound = certificate(problem.mechanism(params))
            lower = max(lower, bound)
            gap = (achieved - lower) / abs(achieved) if achieved else math.inf
        complementary = float(np.max(np.abs(np.maximum(excess, -multipliers / penalty))))
        settled = last.result in (SearchResult.stationary, SearchResult.stalled)
        if last.result in (SearchResult.stopped, SearchResult.not_finite):
            outcome = last.result
        elif gap <= tolerance:
            outcome = SearchResult.certified
        elif complementary <= tolerance and level <= tolerance and settled:
            outcome = last.result
        elif taken >= max_steps:
            outcome = SearchResult.max_steps
        elif rounds >= _ROUNDS:
            outcome = SearchResult.stalled
        else:
            multipliers = np.maximum(0.0, multipliers + penalty * excess)
            if complementary > _SHRINK * violation:
                penalty *= _GROWTH
            violation, level = complementary, max(tolerance, 0.1 * level)
            continue
        break

    value, residual, params = kept
    if residual > tolerance and outcome not in (SearchResult.stopped, SearchResult.not_finite):
        outcome = SearchResult.constraints_violated
    stats = last.stats | {"rounds": rounds, "penalty": penalty, "multipliers": multipliers.tolist(), "steps": taken}
    return Search(
        mechanism=problem.mechanism(params),
        value=value,
        lower_bound=lower,
        gap=max(0.0, value - lower) / abs(value) if value and math.isfinite(lower) else math.inf,
        stationarity=last.stationarity,
        residual=residual,
        result=outcome,
        steps=taken,
        history=history,
        stats=stats,
    )


def _better(kept: Any, new: tuple[float, float, PyTree], tolerance: float) -> tuple[float, float, PyTree]:
    if kept is None:
        return new
    if max(kept[1], new[1]) <= tolerance:
        return min(kept, new, key=lambda one: one[0])
    return min(kept, new, key=lambda one: one[1])


def _shifted(progress: Callable[[Progress], Any], taken: int) -> Callable[[Progress], Any]:
    return lambda report: progress(report._replace(step=report.step + taken))
