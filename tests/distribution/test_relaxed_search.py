"""Relaxed outputs by the entropic first-order method: against the linear program, its dual, and its own gradients."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from jaxpriv.channels.levels import geo_level
from jaxpriv.distribution.relaxed_search import dual_bound, projected, searched_outputs
from jaxpriv.distribution.sinkhorn import entropic_coupling
from jaxpriv.distribution.targets import relaxed_outputs
from jaxpriv.errors import InputError


GROUPS = np.array([[0.3, 0.3, 0.2, 0.1, 0.1, 0.0], [0, 0.1, 0.2, 0.4, 0.2, 0.1], [0.1, 0.1, 0.1, 0.1, 0.2, 0.4]])
SIX = np.abs(np.arange(6.0)[:, None] - np.arange(6.0))
WEIGHTS = np.array([0.4, 0.35, 0.25])


@pytest.mark.parametrize(
    ("epsilon", "value"),
    [(0.25, 0.6764420253), (0.5, 0.5421121306), (1.0, 0.2704622280), (2.0, 0.0358638501), (4.0, 0.0048536443)],
)
def test_against_the_linear_program(epsilon, value):
    found = searched_outputs(GROUPS, SIX, epsilon, 0.05, WEIGHTS)
    # An entropic channel at a twentieth of a step; the linear program's values have ten digits.
    assert value - 1e-10 <= found.cost <= 1.01 * value
    assert 0.95 * value <= found.lower_bound <= value + 1e-10
    assert found.epsilon <= epsilon
    ratios = np.log(found.outputs[:, None] / found.outputs[None])
    assert np.max(ratios) <= found.epsilon
    for law, channel, output in zip(GROUPS, found.channels, found.outputs, strict=True):
        np.testing.assert_allclose(law @ np.exp(channel.log_matrix), output, atol=1e-14)
        # The exponential mechanism with a base measure: the mixture with a constant channel keeps its level.
        assert float(geo_level(channel, SIX)) <= 2.0 / 0.05 * (1 + 1e-9)


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_two_opposite_points(share):
    # min(p, 1 − p, 1/(1 + e^ε)): randomised response, or one group joins the other.
    found = searched_outputs(np.eye(2), 1.0 - np.eye(2), 1.0, 0.02, [share, 1.0 - share])
    assert found.cost == pytest.approx(min(share, 1.0 / (1.0 + math.e)), rel=2e-3)


def test_other_outputs_than_inputs():
    rng = np.random.default_rng(1)
    laws, cost = rng.dirichlet(np.ones(5), size=2), rng.uniform(size=(5, 3))
    found, exact = searched_outputs(laws, cost, 0.7, 0.005), relaxed_outputs(laws, cost, 0.7)
    assert found.outputs.shape == (2, 3)
    assert exact.cost - 1e-9 <= found.cost <= 1.02 * exact.cost
    assert found.lower_bound <= exact.cost


def test_double_precision_whatever_the_setting():
    with jax.enable_x64(False):
        found = searched_outputs(GROUPS, SIX, 0.5, 0.05, WEIGHTS)
    assert found.channels[0].log_matrix.dtype == np.float64
    assert 0.5421121306 - 1e-10 <= found.cost <= 1.01 * 0.5421121306 and found.epsilon <= 0.5


def test_projection_is_the_nearest():
    rng = np.random.default_rng(2)
    project = jax.jit(projected)
    for count in [2, 3, 4] * 6:
        log_q, share = rng.normal(size=(count, 1)) * 2.0, rng.dirichlet(np.ones(count))
        epsilon = float(rng.uniform(0.0, 2.0))
        found = np.asarray(project(log_q, share, epsilon))[:, 0]
        assert np.max(found) - np.min(found) <= epsilon + 1e-12

        def value(log_nu, log_q=log_q[:, 0], share=share):
            return float(np.sum(share * (np.exp(log_nu) * (log_nu - log_q) - np.exp(log_nu) + np.exp(log_q))))

        best = optimize.minimize_scalar(
            lambda u, e=epsilon, q=log_q[:, 0], v=value: v(np.clip(q, u, u + e)), bounds=(-8.0, 8.0), method="bounded"
        )
        # The scalar search ends at 1e-5 in the variable, and the value is flat there.
        assert value(found) <= best.fun + 1e-9
        for _ in range(20):
            other = rng.normal() + rng.uniform(0.0, epsilon, size=count)
            assert value(found) <= value(other) + 1e-12


def test_any_potentials_give_a_bound():
    rng = np.random.default_rng(3)
    for epsilon in (0.3, 1.0):
        best = relaxed_outputs(GROUPS, SIX, epsilon, WEIGHTS).cost
        for _ in range(100):
            potentials = rng.normal(size=(3, 6)) * 10.0 ** rng.uniform(-2, 1)
            # HiGHS is right to 1e-7 of the largest distance.
            assert dual_bound(potentials, GROUPS, SIX, WEIGHTS, epsilon) <= best + 5e-7


def test_no_feasible_direction_lowers_the_entropic_value():
    epsilon, scale = 0.5, 0.4
    found = searched_outputs(GROUPS, SIX, epsilon, scale, WEIGHTS, steps=1000)

    def objective(outputs):
        values = jax.vmap(lambda law, output: entropic_coupling(SIX, law, output, scale, tolerance=1e-9).value)(
            jnp.asarray(GROUPS), outputs
        )
        return jnp.sum(WEIGHTS * values)

    slopes = np.asarray(jax.jit(jax.grad(objective))(jnp.asarray(found.outputs)))
    rng = np.random.default_rng(4)
    others = [relaxed_outputs(GROUPS, SIX, epsilon, WEIGHTS).outputs, np.tile(WEIGHTS @ GROUPS, (3, 1))]
    for _ in range(50):
        base = rng.dirichlet(np.ones(6))
        tilted = base * np.exp(rng.uniform(-epsilon / 4, epsilon / 4, size=(3, 6)))
        others.append(tilted / tilted.sum(axis=1, keepdims=True))
    others += [np.tile(np.eye(6)[k], (3, 1)) for k in range(6)]
    for other in others:
        # First-order steps converge at a rate of 1/steps where an output dies out.
        assert np.sum(slopes * (other - found.outputs)) >= -1e-4
    start = np.tile(WEIGHTS @ GROUPS, (3, 1))
    assert float(objective(jnp.asarray(found.outputs))) < float(objective(jnp.asarray(start))) - 0.01


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"scale": 0.0}, "scale"),
        ({"scale": np.inf}, "scale"),
        ({"steps": 0}, "steps"),
        ({"weights": [1.0, 0.0, 0.0]}, "weight"),
        ({"weights": [0.5, 0.5]}, "shape"),
        ({"groups": GROUPS[:, :5]}, "sums|shape"),
        ({"distance": -SIX}, "negative"),
    ],
)
def test_wrong_arguments(changes, message):
    arguments = {"groups": GROUPS, "distance": SIX, "epsilon": 0.5, "scale": 0.1} | changes
    with pytest.raises(InputError, match=message):
        searched_outputs(**arguments)
