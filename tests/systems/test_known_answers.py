"""Known answers: covariances, leakage over time, lower bounds and scalar designs."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy.stats import chi2

from jaxpriv.pml.profile import information_budget
from jaxpriv.priors.state_space import LinearSystem
from jaxpriv.systems.bounds import filter_covariance_bound, filter_logdet_bound, ratio_bound
from jaxpriv.systems.kalman import finite_horizon, steady_state
from jaxpriv.systems.leakage import (
    information_rate,
    single_output_information,
    state_information,
    state_leakage,
    trajectory_leakage,
)
from jaxpriv.systems.scalar_noise import filter_noise, output_noise, smoother_noise


KNOWN = json.loads((Path(__file__).parents[1] / "known_answers" / "linear_systems.json").read_text())
TWO, ZONES = KNOWN["two_states"], KNOWN["zones"]
SYSTEM = LinearSystem(TWO["A"], TWO["Q"], TWO["C"])
NOISE = np.array(TWO["noise"])
# 13 printed digits, and a relative error of the solvers below 1e-13.
CLOSE = {"rtol": 1e-11, "atol": 1e-12}


def test_covariances_of_two_states():
    assert np.allclose(SYSTEM.stationary, TWO["stationary"], **CLOSE)
    found = jax.jit(steady_state)(SYSTEM, NOISE)
    assert np.allclose(found.predicted, TWO["predicted"], **CLOSE)
    assert np.allclose(found.filtered, TWO["filtered"], **CLOSE)


@jax.jit
def of_two_states(noise):
    return {
        "budget": 2 * single_output_information(SYSTEM, noise),
        "twice_history_information": 2 * state_information(SYSTEM, noise, "filter"),
        "output_epsilon": state_leakage(SYSTEM, noise, TWO["delta"], "output"),
        "history_epsilon": state_leakage(SYSTEM, noise, TWO["delta"], "filter"),
        "information_rate": information_rate(SYSTEM, noise),
        "after 81 outputs": 2 * state_information(SYSTEM, noise, "filter", steps=81),
    }


def test_leakage_of_two_states():
    for name, found in of_two_states(NOISE).items():
        # 81 outputs are as good as an endless history.
        expected = TWO["twice_history_information" if name == "after 81 outputs" else name]
        assert float(found) == pytest.approx(expected, rel=1e-10), name


@jax.jit
def bounds_of_two_states(budget):
    ratio = ratio_bound(budget)
    matrices = {
        f"{using.replace(' ', '_')}_bound": filter_covariance_bound(SYSTEM, ratio, using)
        for using in ("output", "state", "one step")
    }
    return matrices, filter_logdet_bound(SYSTEM, budget, sharp=False), filter_logdet_bound(SYSTEM, budget)


def test_lower_bounds_of_two_states():
    matrices, plain, sharp = bounds_of_two_states(TWO["budget"])
    assert float(plain) == pytest.approx(TWO["logdet_bound"], rel=1e-11)
    assert float(sharp) == pytest.approx(TWO["sharp_logdet_bound"], rel=1e-11)
    for name, found in matrices.items():
        assert np.allclose(found, TWO[name], **CLOSE), name
    assert np.linalg.slogdet(matrices["state_bound"])[1] == pytest.approx(TWO["state_bound_logdet"], rel=1e-11)
    assert np.linalg.slogdet(matrices["output_bound"])[1] == pytest.approx(TWO["filtered_logdet"], rel=1e-10)


def zones():
    a, b, q = (np.array(ZONES[name]) for name in "abq")
    return a, b * b * q


@jax.jit
@jax.vmap
def zone_leakage(a, Q, noise):
    system = LinearSystem(a[None, None], Q[None, None])
    return {name: state_leakage(system, noise[None, None], 0.05, name) for name in ("output", "filter", "smoother")}


def test_zones():
    a, Q = zones()
    budget = information_budget(ZONES["epsilon"], ZONES["delta"], 1)
    static, causal, safe = (np.asarray(f(a, Q, budget)) for f in (output_noise, filter_noise, smoother_noise))
    assert np.allclose(Q / (1 - a * a), ZONES["stationary"], **CLOSE)
    assert np.allclose(static, ZONES["output_noise"], **CLOSE)
    assert np.allclose(causal, ZONES["filter_noise"], **CLOSE)
    assert np.allclose(safe, ZONES["smoother_noise"], **CLOSE)
    assert np.sum(static) / 16 == pytest.approx(ZONES["output_error"], rel=1e-11)
    assert np.sum(causal) / 16 == pytest.approx(ZONES["filter_error"], rel=1e-11)
    assert np.sum(safe) / 16 == pytest.approx(ZONES["smoother_error"], rel=1e-10)
    of_static, of_causal, of_safe = (zone_leakage(a, Q, noise) for noise in (static, causal, safe))
    assert np.allclose(of_static["output"], 3.0, **CLOSE)
    assert np.allclose(of_static["filter"], ZONES["filter_epsilon"], **CLOSE)
    assert np.allclose(of_static["smoother"], ZONES["smoother_epsilon"], atol=6e-9)
    assert np.allclose(of_causal["filter"], 3.0, **CLOSE)
    assert np.allclose(of_causal["smoother"], ZONES["smoother_epsilon_of_filter_noise"], atol=6e-9)
    assert np.allclose(of_safe["smoother"], 3.0, **CLOSE)


def test_trajectory_of_the_first_zone():
    a, Q = zones()
    system = LinearSystem([[a[0]]], [[Q[0]]])
    noise = np.array([[ZONES["output_noise"][0]]])
    for steps, expected in ZONES["trajectory_epsilon"].items():
        found = float(jax.jit(lambda n, t=int(steps): trajectory_leakage(system, n, t, ZONES["delta"]))(noise))
        assert found == pytest.approx(expected, abs=6e-6 if len(str(expected)) > 4 else 1e-11)


def batch_posterior(a_system, noise, steps, time):
    """Cov(x_time | all outputs) by conditioning the joint covariance, without any recursion."""
    A, C = np.asarray(a_system.A), np.asarray(a_system.C)
    stationary = np.asarray(a_system.stationary)
    lags = [np.linalg.matrix_power(A, d) @ stationary for d in range(steps)]
    blocks = [[lags[i - j] if i >= j else lags[j - i].T for j in range(steps)] for i in range(steps)]
    states = np.block(blocks)
    seen = np.kron(np.eye(steps), C)
    outputs = seen @ states @ seen.T + np.kron(np.eye(steps), noise)
    n = len(A)
    cross = (states @ seen.T)[time * n : time * n + n]
    return stationary - cross @ np.linalg.solve(outputs, cross.T)


@pytest.mark.parametrize("singular", [False, True])
def test_batch_conditioning_agrees(singular):
    Q = np.outer([0.3, 1.0], [0.3, 1.0]) if singular else np.array(TWO["Q"])
    system = LinearSystem([[0.9, 0.4], [0.0, 0.5]], Q, [[1.0, 0.2]])
    noise = np.array([[0.7]])
    horizon = jax.jit(finite_horizon, static_argnums=2)(system, noise, 60)
    for time in (0, 7, 59):
        assert np.allclose(horizon.smoothed[time], batch_posterior(system, noise, 60, time), atol=1e-12)
        early = batch_posterior(system, noise, time + 1, time)
        assert np.allclose(horizon.filtered[time], early, atol=1e-12)
    steady = jax.jit(steady_state)(system, noise)
    # 0.9^60 squared is 3e-6, and the outputs make the error shrink faster than the state forgets.
    assert np.allclose(horizon.smoothed[30], steady.smoothed, atol=1e-9)
    assert np.allclose(horizon.predicted[59], steady.predicted, atol=1e-9)


def test_smoother_by_the_reversed_filter():
    found = jax.jit(steady_state)(SYSTEM, NOISE)
    stationary = np.asarray(SYSTEM.stationary)
    back = stationary @ np.asarray(SYSTEM.A).T @ np.linalg.inv(stationary)
    reverse = LinearSystem(back, stationary - back @ stationary @ back.T, SYSTEM.C)
    behind = np.asarray(jax.jit(steady_state)(reverse, NOISE).predicted)
    inverse = np.linalg.inv(found.filtered) + np.linalg.inv(behind) - np.linalg.inv(stationary)
    assert np.allclose(found.smoothed, np.linalg.inv(inverse), atol=1e-13)


def test_rank_that_is_too_small_breaks_the_promise():
    # One output of two states: observability rank 1, but the history's cross-covariance has rank 2.
    system = LinearSystem(np.diag([0.9, 0.5]), [[0.3, 0.2], [0.2, 0.3]], [[1.0, 0.0]])
    noise = np.array([[0.5]])
    wrong, information = jax.jit(
        lambda one: (state_leakage(system, one, 0.05, "filter", rank=1), state_information(system, one, "filter"))
    )(noise)
    # The probability that the true leakage, I + χ²₂/2, exceeds the ε computed with rank 1.
    assert chi2.sf(2 * float(wrong - information), 2) == pytest.approx(0.1465, abs=5e-5)
