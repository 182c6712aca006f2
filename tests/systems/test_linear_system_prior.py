"""The outputs of a linear system as a prior: its covariance, and that every design takes it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.priors.linear_system import LinearSystemPrior
from jaxpriv.priors.protocol import Prior


A, Q = np.array([[0.9, 0.2], [0.0, 0.7]]), np.array([[0.5, 0.1], [0.1, 0.3]])
STEPS = 6


def unrolled(A, Q, start, steps):
    """Cov of (x_0, …, x_{T−1}) from the map that makes them of x_0 and the disturbances."""
    n = len(A)
    maps = np.zeros((steps * n, steps * n))
    for i in range(steps):
        for j in range(i + 1):
            maps[i * n : i * n + n, j * n : j * n + n] = np.linalg.matrix_power(A, i - j)
    disturbance = np.kron(np.eye(steps), Q)
    disturbance[:n, :n] = start
    return maps @ disturbance @ maps.T


ONE, TWO = np.array([[1.0, 0.0]]), np.array([[1.0, 0.3], [0.0, 2.0]])
GIVEN = np.array([[0.4, 0.1], [0.1, 0.2]])


@pytest.mark.parametrize(
    ("C", "initial"),
    [
        (ONE, None),
        (TWO, GIVEN),
        pytest.param(ONE, GIVEN, marks=pytest.mark.slow),
        pytest.param(TWO, None, marks=pytest.mark.slow),
    ],
    ids=["one, stationary", "two, given", "one, given", "two, stationary"],
)
def test_covariance_and_state_secrets(C, initial):
    prior = LinearSystemPrior(A, Q, C, steps=STEPS, initial=initial, noise_sd=0.1)
    start = np.asarray(prior.stationary) if initial is None else initial
    states = unrolled(A, Q, start, STEPS)
    outputs = np.kron(np.eye(STEPS), C)
    expected = outputs @ states @ outputs.T + 0.01 * np.eye(STEPS * len(C))
    covariance = np.asarray(prior.covariance)
    assert isinstance(prior, Prior) and prior.size == len(expected) and prior.dims == len(C)
    assert np.array_equal(covariance, covariance.T)
    assert np.allclose(covariance, expected, rtol=0, atol=1e-14 * np.max(expected) * 10)
    for time in (0, 3, STEPS - 1):
        secret = prior.state_secret(time, 1.0, [[1.0, -1.0]])
        row = np.zeros((1, 2 * STEPS))
        row[0, 2 * time : 2 * time + 2] = 1.0, -1.0
        assert np.allclose(secret.cross, outputs @ states @ row.T, atol=1e-14)
        assert np.allclose(secret.variance, row @ states @ row.T, atol=1e-14)


def test_unstable_with_a_given_start_is_a_random_walk():
    prior = LinearSystemPrior([[1.0]], [[0.5]], steps=4, initial=[[2.0]])
    time = np.arange(4)
    assert np.allclose(prior.covariance, 2.0 + 0.5 * np.minimum(time[:, None], time), atol=1e-14)


PRIOR = LinearSystemPrior(A, Q, np.eye(2), steps=5, noise_sd=0.05)
SECRET = jp.Secret.at_times([2], 1.0, dims=2)


def test_designs_take_it():
    same = jp.GaussianPrior(np.asarray(PRIOR.covariance))
    ours, theirs = jp.design(PRIOR, SECRET, epsilon=0.5), jp.design(same, SECRET, epsilon=0.5)
    assert ours.epsilon <= 0.5 and ours.cost == theirs.cost


@pytest.mark.slow
def test_every_design_takes_it():
    displacement = np.zeros(10)
    displacement[[0, 8]] = 1.0, -1.0
    one = jp.design(PRIOR, SECRET, epsilon=0.5)
    assert jp.design(PRIOR, jp.LinearSecret(displacement, 1.0), epsilon=0.5).epsilon <= 0.5
    several = jp.design(PRIOR, [SECRET, jp.Secret.at_times([4], 1.0, dims=2)], epsilon=0.5)
    every = jp.design(PRIOR, jp.EveryPoint(1.0, dims=2), epsilon=0.5)
    assert several.epsilon <= 0.5 and every.epsilon <= 0.5 and one.cost <= several.cost <= every.cost
    assert jp.design(PRIOR, SECRET, epsilon=0.5, structure="block").cost >= one.cost
    pair = jp.design([PRIOR, jp.GaussianPrior(2.0 * np.asarray(PRIOR.covariance))], SECRET, epsilon=0.5)
    assert pair.epsilon <= 0.5 and pair.cost >= one.cost


def test_state_that_is_not_measured_is_protected():
    # Position is published, velocity is the secret.
    prior = LinearSystemPrior(A, Q, [[1.0, 0.0]], steps=5)
    secret = prior.state_secret(2, radius=1.0, directions=[[0.0, 1.0]])
    design = jp.design(prior, secret, epsilon=0.02)
    assert 0.0 < design.epsilon <= 0.02 and design.cost > 0.0
    assert design.epsilon == pytest.approx(float(jp.cip_loss(prior, secret, design.mechanism)), rel=1e-6)


def test_gradient_in_the_dynamics():
    secret = jp.Secret([2], 1.0)

    @jax.jit
    def cost(a):
        return jp.least_trace(LinearSystemPrior(a * jnp.eye(1), jnp.eye(1), steps=5), secret, 0.7)

    value = (cost(0.6 + 1e-6) - cost(0.6 - 1e-6)) / 2e-6
    assert float(jax.jit(jax.grad(cost))(0.6)) == pytest.approx(float(value), rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (([[1.01]], [[1.0]]), {}, "spectral radius is 1.01"),
        (([[0.5, 0.1]], [[1.0]]), {}, "square"),
        (([[0.5]], [[-1.0]]), {}, "smallest eigenvalue is -1"),
        (([[0.5]], [[np.nan]]), {}, "not finite"),
        ((0.5 * np.eye(2), [[1.0, 0.2], [0.0, 1.0]]), {}, "not symmetric"),
        (([[0.5]], [[1.0]], [[1.0, 1.0]]), {}, "one column for each state"),
        (([[0.5]], [[1.0]]), {"steps": 0}, "at least 1"),
        (([[0.5]], [[1.0]]), {"noise_sd": -1.0}, "noise_sd"),
        (([[0.5]], [[1.0]]), {"initial": np.eye(2)}, "initial has shape"),
        (("half", [[1.0]]), {}, "not an array"),
    ],
)
def test_bad_input(arguments, options, words):
    with pytest.raises(jp.InputError, match=words):
        LinearSystemPrior(*arguments, **{"steps": 3, **options})


def test_bad_state_secret():
    prior = LinearSystemPrior([[0.5]], [[1.0]], steps=3)
    with pytest.raises(jp.InputError, match="outside the trace of 3"):
        prior.state_secret(3, 1.0)
    with pytest.raises(jp.InputError, match="directions has shape"):
        prior.state_secret(0, 1.0, [[1.0, 0.0]])
