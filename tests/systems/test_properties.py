"""What must hold for every system: orders, monotonicity, bounds that are never above, derivatives, failures."""

from __future__ import annotations

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_are, solve_discrete_lyapunov

import jaxpriv as jp
from jaxpriv.priors.state_space import LinearSystem
from jaxpriv.systems.bounds import filter_covariance_bound, filter_logdet_bound, ratio_bound
from jaxpriv.systems.kalman import finite_horizon, steady_state
from jaxpriv.systems.leakage import (
    information_rate,
    single_output_information,
    state_information,
    state_leakage,
    trajectory_information,
    trajectory_leakage,
)
from jaxpriv.systems.ranks import history_rank
from jaxpriv.systems.scalar_noise import filter_noise, output_noise, smoother_noise


def draw(n, m, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    A *= rng.uniform(0.3, 0.97) / np.max(np.abs(np.linalg.eigvals(A)))
    root, other = rng.standard_normal((n, n)), rng.standard_normal((m, m))
    noise = 10 ** rng.uniform(-1, 1) * (other @ other.T + 0.1 * np.eye(m))
    return LinearSystem(A, root @ root.T + 0.05 * np.eye(n), rng.standard_normal((m, n))), 0.5 * (noise + noise.T)


def batch(n, m, count):
    drawn = [draw(n, m, seed) for seed in range(count)]
    return jax.tree.map(lambda *arrays: np.stack(arrays), *drawn)


def smallest(matrix):
    return np.min(np.linalg.eigvalsh(matrix))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 2)])
def test_bounds_are_never_above_and_orders_hold(n, m):
    systems, noises = batch(n, m, 60)

    @jax.jit
    @jax.vmap
    def everything(system, noise):
        information = 2.0 * single_output_information(system, noise)
        ratio = ratio_bound(information)
        bounds = [filter_covariance_bound(system, ratio, using) for using in ("one step", "state", "output")]
        logs = filter_logdet_bound(system, information, sharp=False), filter_logdet_bound(system, information)
        return bounds, logs, steady_state(system, noise), system.stationary

    bounds, logs, found, stationary = jax.tree.map(np.asarray, everything(systems, noises))
    for i in range(60):
        A, C = systems.A[i], systems.C[i]
        exact = solve_discrete_are(A.T, C.T, systems.Q[i], noises[i])
        filtered = np.linalg.inv(np.linalg.inv(exact) + C.T @ np.linalg.solve(noises[i], C))
        scale = 1e-9 * np.max(np.abs(stationary[i]))  # rounding of the inverses above
        assert smallest(filtered - bounds[2][i]) > -scale
        for weaker, stronger in pairwise(bounds):
            assert smallest(stronger[i] - weaker[i]) > -scale
        logdet = np.linalg.slogdet(filtered)[1]
        assert logs[0][i] <= logs[1][i] + 1e-12 and logs[1][i] <= logdet + 1e-9
        if n == 1:
            assert bounds[2][i] == pytest.approx(filtered, rel=1e-9) and bounds[1][i] == pytest.approx(
                filtered, rel=1e-9
            )
        # 0 ⪯ P_s ⪯ P ⪯ Γ ⪯ Σ and P ⪯ P⁻
        output = C @ stationary[i] @ C.T + noises[i]
        cross = stationary[i] @ C.T
        static = stationary[i] - cross @ np.linalg.solve(output, cross.T)
        chain = [found.smoothed[i], found.filtered[i], static, stationary[i]]
        assert smallest(chain[0]) > -scale
        for less, more in pairwise(chain):
            assert smallest(more - less) > -scale
        assert smallest(found.predicted[i] - found.filtered[i]) > -scale


def test_inequality_noise_has_the_smaller_ratio():
    system, _ = draw(3, 2, 5)
    budget = 1.3
    noise = np.asarray(system.signal) / np.expm1(budget / 2)
    filtered = np.asarray(jax.jit(steady_state)(system, noise).filtered)
    bound = jax.jit(filter_covariance_bound)
    general, tighter = (np.asarray(bound(system, ratio)) for ratio in (ratio_bound(budget), ratio_bound(budget, 2)))
    assert smallest(filtered - tighter) > -1e-10 and smallest(tighter - general) > -1e-10
    # All ratios of that noise are equal to the bound, which is then attained.
    assert np.allclose(tighter, filtered, atol=1e-10)


def test_bound_with_a_singular_disturbance():
    system = LinearSystem([[0.95, 0.3], [0.0, 0.8]], np.diag([0.0, 0.2]), [[1.0, 0.0]])
    noise = np.array([[0.5]])
    budget = 2.0 * single_output_information(system, noise)
    assert float(filter_logdet_bound(system, budget)) == -np.inf
    filtered = np.asarray(steady_state(system, noise).filtered)
    for using in ("one step", "state", "output"):
        bound = np.asarray(filter_covariance_bound(system, ratio_bound(budget), using))
        assert np.all(np.isfinite(bound)) and smallest(filtered - bound) > -1e-12


def test_more_noise_never_leaks_more():
    system, noise = draw(3, 2, 11)
    rng = np.random.default_rng(3)
    names = ("output", "filter", "smoother")
    leakage = jax.jit(lambda one: jnp.stack([state_information(system, one, name) for name in names]))
    for _ in range(20):
        column = rng.standard_normal((2, 1))
        more = noise + column @ column.T
        assert np.all(leakage(more) <= leakage(noise) + 1e-12)
        noise = more


def test_information_is_counted_once_by_the_chain_rule():
    system, noise = draw(2, 1, 4)
    steps = 12
    whole = jax.jit(trajectory_information, static_argnums=2)
    # I(x_0 … x_{T−1}; y) = ½ log det(I + Θ⁻¹ Cov(Cx)) of the stacked outputs.
    lags = [np.linalg.matrix_power(system.A, d) @ np.asarray(system.stationary) for d in range(steps)]
    stacked = np.array([[(system.C @ lags[abs(i - j)] @ system.C.T)[0, 0] for j in range(steps)] for i in range(steps)])
    expected = 0.5 * np.linalg.slogdet(np.eye(steps) + stacked / noise[0, 0])[1]
    assert float(whole(system, noise, steps)) == pytest.approx(expected, rel=1e-12)
    # The last of 60 outputs adds what each adds in the steady state.
    last = np.asarray(jax.jit(finite_horizon, static_argnums=2)(system, noise, 60).predicted[-1])
    added = 0.5 * np.log1p((system.C @ last @ system.C.T)[0, 0] / noise[0, 0])
    assert added == pytest.approx(float(jax.jit(information_rate)(system, noise)), rel=1e-9)


SCALAR = {
    "filter": lambda t, s: state_information(s, t, "filter"),
    "smoother": lambda t, s: state_information(s, t, "smoother"),
    "leakage": lambda t, s: state_leakage(s, t, 0.05),
    "horizon": lambda t, s: state_information(s, t, "smoother", steps=5),
    "trajectory": lambda t, s: trajectory_leakage(s, t, 4, 0.05),
    "rate": lambda t, s: information_rate(s, t),
    "output": lambda t, s: single_output_information(s, t),
    "bound": lambda t, s: jnp.sum(filter_covariance_bound(s, 0.7 + t[0, 0])),
    "state bound": lambda t, s: jnp.sum(filter_covariance_bound(s, t[0, 0], "state")),
    "logdet": lambda t, s: filter_logdet_bound(s, t[0, 0]),
    "covariances": lambda t, s: jnp.sum(jnp.stack(jax.tree.leaves(finite_horizon(s, t, 3))) ** 2),
}


# Each name costs about three seconds of compilation; the fast suite takes those that reach every rule.
@pytest.mark.parametrize(
    "names",
    [("leakage", "logdet"), pytest.param(tuple(SCALAR), marks=pytest.mark.slow)],
    ids=["few", "all"],
)
def test_gradients_batches_and_no_recompilation(names):
    system, noise = draw(2, 1, 2)
    count = 0

    def function(noise, A, Q):
        nonlocal count
        count += 1
        return jnp.stack([f(noise, LinearSystem(A, Q, jnp.asarray(system.C))) for f in map(SCALAR.get, names)])

    rng = np.random.default_rng(0)
    arguments = (noise, system.A, system.Q)
    directions = [rng.standard_normal(one.shape) for one in arguments]
    directions[2] = directions[2] + directions[2].T
    both = jax.jit(lambda *a: jax.jvp(function, a, tuple(directions)))
    found = [both(*(a + s * d for a, d in zip(arguments, directions, strict=True))) for s in (1e-6, -1e-6, 0.0)]
    assert count == 1
    ends, forward = [values for values, _ in found], found[2][1]
    for name, slope, up, down in zip(names, forward, *ends[:2], strict=True):
        # Central differences with step 1e-6: about 1e-9 of values of order 1.
        assert float(slope) == pytest.approx(float((up - down) / 2e-6), rel=1e-5, abs=1e-7), name
    weights = rng.standard_normal(len(names))
    gradient = jax.jit(jax.grad(lambda *a: weights @ function(*a), argnums=(0, 1, 2)))(*arguments)
    backward = sum(float(jnp.sum(g * d)) for g, d in zip(gradient, directions, strict=True))
    assert backward == pytest.approx(float(weights @ forward), rel=1e-10)
    if len(names) == 2:
        return  # batches of the fast suite: the four zones
    many = jax.jit(jax.vmap(lambda scale: function(scale * noise, *arguments[1:])))(jnp.array([1.0, 3.0]))
    assert np.allclose(many[0], ends[2], rtol=1e-11)


@pytest.mark.slow
def test_scalar_designs_are_differentiable_and_ordered():
    a, Q = np.linspace(-0.98, 0.98, 41), np.full(41, 0.7)
    for budget in (1e-3, 0.5, 2.0, 12.0):
        least, causal, safe = (np.asarray(f(a, Q, budget)) for f in (output_noise, filter_noise, smoother_noise))
        assert np.all(least <= causal * (1 + 1e-12)) and np.all(causal <= safe * (1 + 1e-12))
        white = np.abs(a) < 1e-12  # independent states: nothing but the output itself speaks of them
        assert np.allclose(safe[white], least[white], rtol=1e-12)
    point = np.array([(0.6, 0.4, 1.1, 2.0), (0.95, 0.4, 0.2, 1.0), (0.0, 1.0, 1.0, 1.0), (1.0, 1.0, -0.1, 1.0)]).T
    for function in (output_noise, filter_noise, smoother_noise):
        gradient = jax.jit(jax.vmap(jax.grad(function, argnums=(0, 1, 2, 3))))(*point)
        for i, one in enumerate(gradient):
            shift = 1e-6 * np.eye(4)[:, [i]]
            ends = function(*(point + shift)), function(*(point - shift))
            assert np.allclose(one[:3], (ends[0] - ends[1])[:3] / 2e-6, rtol=1e-6, atol=1e-8)
        # The last one asks for what no noise can give.
        assert float(function(*point[:, 3])) == np.inf and np.all(np.isfinite([one[3] for one in gradient]))
        assert float(function(0.5, 1.0, -0.1)) == np.inf and float(function(1.0, 1.0, 1.0)) == np.inf


def test_scaling_by_the_output_gain():
    for function in (output_noise, filter_noise, smoother_noise):
        assert float(function(0.8, 0.5, 1.0, 3.0)) == pytest.approx(9.0 * float(function(0.8, 0.5, 1.0)), rel=1e-14)


def test_nothing_left_means_infinite():
    names = ("output", "filter", "smoother")

    @jax.jit
    def leakage(A, Q, noise):
        return jnp.stack([state_leakage(LinearSystem(A, Q), noise, 0.05, name) for name in names])

    A, one = np.array([[0.5, 0.2], [0.0, 0.6]]), np.eye(2)
    assert np.all(np.isfinite(leakage(A, one, one)))
    assert np.all(leakage(A, one, np.diag([1.0, 0.0])) == np.inf)
    assert np.all(leakage(1.1 * one, one, one) == np.inf)
    # The second state never moves: its covariance is singular, and what is said about it has no bound here.
    assert np.all(leakage(0.5 * one, np.diag([1.0, 0.0]), one)[1:] == np.inf)


def test_ranks():
    assert history_rank(LinearSystem(np.diag([0.9, 0.5]), [[0.3, 0.2], [0.2, 0.3]], [[1.0, 0.0]])) == 2
    stationary, A = np.array([[1.0, 0.6], [0.6, 1.0]]), np.diag([0.9, 0.5])
    system = LinearSystem(A, stationary - A @ stationary @ A.T, [[1.0, -0.6]])
    # Observable, and yet the past says nothing about one direction; the future does.
    assert history_rank(system) == 1 and history_rank(system, "smoother") == 2
    assert history_rank(LinearSystem(np.diag([0.9, 0.5]), np.eye(2)), steps=1) == 2
    assert solve_discrete_lyapunov(A, system.Q) == pytest.approx(stationary)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s, t: state_information(s, t, "spy"), "expected output, filter or smoother"),
        (lambda s, t: state_information(s, t, steps=4, time=4), "outside the horizon of 4"),
        (lambda s, t: state_leakage(s, t, 0.05, rank=3), "rank is 3"),
        (lambda s, t: state_leakage(s, t, 0.05, "output", rank=2), "from 1 to 1"),
        (lambda s, t: steady_state(s, np.eye(2)), r"expected \(1, 1\)"),
        (lambda s, t: finite_horizon(s, t, 0), "at least 1"),
        (lambda s, t: filter_covariance_bound(s, 1.0, "best"), "one step"),
        (lambda s, t: history_rank(s, "output"), "filter or smoother"),
        (lambda s, t: history_rank(LinearSystem([[1.0]], [[1.0]])), "not stable"),
    ],
)
def test_bad_arguments(call, words):
    with pytest.raises(jp.InputError, match=words):
        call(*draw(2, 1, 2))
