"""The loop around every method: known optima, every ending, no recompilation, single precision."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import optimize

import jaxpriv as jp
from jaxpriv.searches.factors import LowRankFactor
from jaxpriv.searches.methods import root_mean_square
from jaxpriv.searches.projections import Ball, Box, NonNegative, Simplex, TraceBudget
from jaxpriv.searches.result import SearchResult
from jaxpriv.searches.verb import search


M = 8
RNG = np.random.default_rng(11)
ROOT = RNG.standard_normal((M, M))
HESSIAN = jnp.asarray(ROOT @ ROOT.T + 0.05 * np.eye(M))
LINEAR = jnp.asarray(RNG.standard_normal(M))
START = jnp.full(M, 0.1)


def quadratic(x, hessian=HESSIAN, linear=LINEAR):
    return 0.5 * x @ hessian @ x - linear @ x + 20.0


def reference(bounds=None, constraints=()):
    found = optimize.minimize(
        lambda x: float(quadratic(x)),
        np.full(M, 0.1),
        jac=lambda x: np.asarray(HESSIAN @ x - LINEAR),
        bounds=bounds,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.success
    return found.fun


_SGD = optax.sgd(0.01)
PROBLEMS = {
    "free": (None, lambda: 20.0 - 0.5 * LINEAR @ np.linalg.solve(HESSIAN, LINEAR)),
    "box": (Box(-0.2, 0.3), lambda: reference([(-0.2, 0.3)] * M)),
    "simplex": (Simplex(), lambda: reference([(0, None)] * M, {"type": "eq", "fun": lambda x: np.sum(x) - 1})),
    "ball": (Ball(0.5), lambda: reference(None, {"type": "ineq", "fun": lambda x: 0.25 - x @ x})),
}


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [
        ("ball", "lbfgs"),
        slow("ball", "momentum"),
        slow("box", "lbfgs"),
        slow("free", "lbfgs"),
        slow("simplex", "lbfgs"),
        slow("free", "momentum"),
        slow("box", "momentum"),
        slow("simplex", "momentum"),
    ],
)
def test_known_optima(name, optimizer):
    projection, best = PROBLEMS[name]
    found = search(quadratic, START, projection, optimizer=optimizer, tolerance=1e-7, max_steps=4000)
    assert found.result is SearchResult.stationary, found
    # A projected gradient of 1e-7 leaves a quadratically smaller error in the value; SLSQP stops near 1e-9.
    np.testing.assert_allclose(found.value, best(), rtol=1e-8)
    if projection is not None:
        np.testing.assert_allclose(projection(found.mechanism), found.mechanism, atol=1e-14)


@pytest.mark.parametrize(
    ("optimizer", "accuracy"),
    [
        slow("adam", 1e-5),
        slow("subgradient", 2e-2),
        slow(optax.sgd(0.01, momentum=0.9, nesterov=True), 1e-5),
        slow(optax.lbfgs(), 1e-6),
    ],
)
def test_other_methods_come_near(optimizer, accuracy):
    projection, best = PROBLEMS["ball"]
    found = search(quadratic, START, projection, optimizer=optimizer, max_steps=1500)
    assert best() * (1 - 1e-9) <= found.value <= best() * (1 + accuracy), found
    assert np.linalg.norm(found.mechanism) <= 0.5 * (1 + 1e-12)


def test_history_progress_and_stopping_by_the_caller():
    seen = []

    def progress(report):
        seen.append(report)
        return len(seen) == 3

    found = search(quadratic, START, check_every=5, max_steps=30, progress=progress, tolerance=1e-12)
    assert found.result is SearchResult.stopped and found.steps == 15 and [one.step for one in seen] == [5, 10, 15]
    assert found.history.shape == (30,) and np.all(np.isfinite(found.history[:15]))
    assert np.all(np.isnan(found.history[15:]))
    assert seen[-1].best == found.value == min(float(quadratic(START)), np.min(found.history[:15]))
    assert all(one.lower_bound == -np.inf and one.gap == np.inf for one in seen)
    assert seen[-1].stationarity == found.stationarity and "progress callback" in str(found)


def test_a_certificate_ends_the_search():
    best = float(PROBLEMS["free"][1]())
    calls = []

    def certificate(x):
        calls.append(float(quadratic(x)))
        return calls[-1], best - 1e-3 * (calls[-1] - best)

    found = search(quadratic, START, check_every=5, certificate=certificate, tolerance=1e-4)
    assert found.result is SearchResult.certified
    assert found.gap <= 1e-4 and found.lower_bound <= best <= found.value == min(calls)
    # An upper bound below the lower bound would be a contradiction; the gap is then zero, not negative.
    start = search(quadratic, START, check_every=5, certificate=lambda x: (1.0, 2.0))
    assert start.steps == 0 and start.gap == 0.0 and start.result is SearchResult.certified


def test_step_limit_and_stall():
    short = search(quadratic, START, check_every=5, max_steps=3)
    assert short.result is SearchResult.max_steps and short.steps == 3
    # A kink that the method sits on: no projected gradient falls, no step helps.
    kinked = search(lambda x: 1.0 + jnp.sum(jnp.abs(x - 1.0)), jnp.array([1.7, -2.0]))
    assert kinked.result is SearchResult.stalled
    assert kinked.value <= 1.0 + 1e-6


def test_a_loss_that_stops_being_finite():
    def edge(x):
        return jnp.where(x[0] < 0.5, jnp.nan, x[0])

    found = search(edge, jnp.array([1.0]), optimizer=optax.sgd(0.3))
    assert found.result is SearchResult.not_finite
    np.testing.assert_allclose(found.value, 0.7)
    assert "stopped being finite" in str(found)
    with pytest.raises(jp.InputError, match="the loss is nan at the start"):
        search(edge, jnp.array([0.1]))
    with pytest.raises(jp.InputError, match="gradient is not finite"):
        search(lambda x: jnp.sum(jnp.sqrt(x)), jnp.zeros(2))


@pytest.mark.parametrize("optimizer", ["lbfgs", slow("adam")])
def test_new_values_are_not_compiled_again(optimizer):
    traces = []

    def loss(x, hessian, linear):
        traces.append(1)
        return quadratic(x, hessian, linear)

    counts = []
    for scale in (1.0, 2.0, 3.0):
        before = len(traces)
        search(
            loss,
            scale * START,
            Ball(scale),
            args=(scale * HESSIAN, LINEAR),
            optimizer=optimizer,
            max_steps=int(20 * scale),
            learning_rate=0.01 * scale if optimizer == "adam" else None,
            tolerance=1e-7 * scale,
        )
        counts.append(len(traces) - before)
    # Once for the check of the loss's shape, which compiles nothing.
    assert counts[0] > 1 and counts[1:] == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["lbfgs", "momentum", "adam"])
def test_single_precision(optimizer):
    hessian, linear = HESSIAN.astype(jnp.float32), LINEAR.astype(jnp.float32)
    best = float(PROBLEMS["ball"][1]())
    found = search(
        quadratic, START.astype(jnp.float32), Ball(0.5), args=(hessian, linear), optimizer=optimizer, tolerance=1e-4
    )
    assert found.mechanism.dtype == jnp.float32
    # Sixty roundings of 2^-24; Adam stops where the loss has stopped falling.
    np.testing.assert_allclose(found.value, best, rtol=60 * 2.0**-24 if optimizer != "adam" else 1e-5)


@pytest.mark.slow
def test_only_the_free_part_moves():
    class Two(eqx.Module):
        first: jax.Array
        second: np.ndarray
        words: str = eqx.field(static=True, default="kept")

    def loss(two):
        return 1.0 + jnp.sum(two.first**2) + jnp.sum(two.second**2)

    start = Two(jnp.ones(2), np.ones(2))
    one = search(loss, start, free=lambda two: two.second, optimizer=_SGD)
    np.testing.assert_array_equal(one.mechanism.first, 1.0)
    np.testing.assert_allclose(one.mechanism.second, 0.0, atol=1e-2)
    assert one.mechanism.words == "kept"
    # A floor is no parameter unless it is said to be one.
    target = jnp.diag(jnp.array([1.0, 2.0]))
    for noise in (LowRankFactor(np.eye(2), 0.1), jp.GaussianMechanism(np.eye(2), 0.5, 0.1)):
        near = search(lambda noise: 1.0 + jnp.sum((noise.covariance - target) ** 2), noise, optimizer=_SGD)
        np.testing.assert_allclose(near.value, 1.0, rtol=1e-8)
        floor = near.mechanism.floor_variance if isinstance(noise, LowRankFactor) else near.mechanism.floor_sd
        assert float(floor) in (0.1, 0.5)


def test_root_mean_square():
    assert float(root_mean_square({"a": jnp.array([3.0, 4.0]), "b": jnp.zeros(2)})) == 2.5
    assert float(root_mean_square(jnp.zeros(3))) == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_steps": 0}, "max_steps is 0"),
        ({"check_every": 0.5}, "check_every is 0.5"),
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"optimizer": "newton"}, "optimizer is 'newton'"),
        ({"learning_rate": 0.1}, "learning_rate belongs to"),
        ({"constraint": [3]}, "constraint 0 is a int"),
        ({"constraint": [NonNegative(), Ball(1.0)]}, "more than one projection"),
        ({"loss": lambda x: x}, "expected one real number"),
        ({"mechanism": {"number": 3}}, "no array of real numbers"),
    ],
)
def test_wrong_arguments(options, message):
    arguments = {"loss": quadratic, "mechanism": jnp.zeros(M)} | options
    with pytest.raises(jp.InputError, match=message):
        search(**arguments)
    with pytest.raises(jp.InfeasibleError):
        search(lambda noise: jnp.trace(noise.covariance), LowRankFactor(np.eye(2), 1.0), TraceBudget(1.5))


def test_the_line_search_steps_back_from_where_the_loss_is_not_finite():
    found = search(lambda x: -jnp.sum(jnp.log(x)) + jnp.sum(x), jnp.array([5.0, 0.01]))
    assert found.result is SearchResult.stationary
    np.testing.assert_allclose(found.mechanism, 1.0, atol=1e-5)
