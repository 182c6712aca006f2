"""A real Kalman filter and smoother on simulated trajectories err as much as the covariances say."""

from __future__ import annotations

import jax
import numpy as np
from scipy.stats import chi2

from jaxpriv.priors.state_space import LinearSystem
from jaxpriv.systems.kalman import finite_horizon
from jaxpriv.systems.leakage import state_leakage


COUNT, STEPS, TIME = 10_000, 12, 6


def simulate(system, noise, rng):
    """States (COUNT, STEPS, n) and outputs (COUNT, STEPS, m), stationary from the start."""
    n, m = len(system.A), len(system.C)
    start, disturbance, sensor = (np.linalg.cholesky(one) for one in (np.asarray(system.stationary), system.Q, noise))
    states = np.empty((COUNT, STEPS, n))
    states[:, 0] = rng.standard_normal((COUNT, n)) @ start.T
    for k in range(1, STEPS):
        states[:, k] = states[:, k - 1] @ system.A.T + rng.standard_normal((COUNT, n)) @ disturbance.T
    return states, states @ system.C.T + rng.standard_normal((COUNT, STEPS, m)) @ sensor.T


def adversary(system, noise, outputs):
    """Textbook filter and Rauch–Tung–Striebel smoother, covariances and all, in NumPy."""
    A, Q, C = system.A, system.Q, system.C
    mean = np.zeros((COUNT, len(A)))
    covariance = np.asarray(system.stationary)
    filtered, predicted = [], []
    for k in range(STEPS):
        predicted.append((mean, covariance))
        gain = covariance @ C.T @ np.linalg.inv(C @ covariance @ C.T + noise)
        mean = mean + (outputs[:, k] - mean @ C.T) @ gain.T
        covariance = covariance - gain @ C @ covariance
        filtered.append((mean, covariance))
        mean, covariance = mean @ A.T, A @ covariance @ A.T + Q
    smoothed = [filtered[-1][0]]
    for k in range(STEPS - 2, -1, -1):
        gain = filtered[k][1] @ A.T @ np.linalg.inv(predicted[k + 1][1])
        smoothed.insert(0, filtered[k][0] + (smoothed[0] - predicted[k + 1][0]) @ gain.T)
    return [one[0] for one in filtered], smoothed


def test_error_of_an_adversary():
    system = LinearSystem([[0.9, 0.2], [0.0, 0.7]], [[0.5, 0.1], [0.1, 0.3]], [[1.0, 0.0]])
    noise = np.array([[2.0]])
    states, outputs = simulate(system, noise, np.random.default_rng(7))
    filtered, smoothed = adversary(system, noise, outputs)
    expected = jax.jit(finite_horizon, static_argnums=2)(system, noise, STEPS)
    for estimates, covariances in ((filtered, expected.filtered), (smoothed, expected.smoothed)):
        for k in (0, TIME, STEPS - 1):
            error = states[:, k] - estimates[k]
            root = np.linalg.cholesky(covariances[k])
            whitened = np.linalg.solve(root, error.T)
            # Whitened errors are standard normal: N tr S ~ χ² of N n degrees of freedom, within four standard errors.
            total, degrees = float(np.sum(whitened**2)), COUNT * 2
            assert 3e-5 < chi2.sf(total, degrees) < 1 - 3e-5
            correlation = float(whitened[0] @ whitened[1]) / COUNT
            assert abs(correlation) < 4 / np.sqrt(COUNT)


def test_leakage_exceeds_epsilon_as_often_as_delta_says():
    a, Q, theta, delta = 0.9, 0.25, 0.1718077883261, 0.05
    system = LinearSystem([[a]], [[Q]])
    noise = np.array([[theta]])
    _, outputs = simulate(system, noise, np.random.default_rng(8))
    for name, last, estimate in (("filter", TIME, 0), ("smoother", STEPS - 1, 1)):
        kept = outputs[:, : last + 1]
        size = last + 1
        # Log of the largest posterior to prior ratio of x_TIME, from the joint law of what was heard: no recursion.
        lags = np.subtract.outer(np.arange(size), np.arange(size))
        prior = Q / (1 - a * a)
        heard = prior * a ** np.abs(lags) + theta * np.eye(size)
        cross = prior * a ** np.abs(np.arange(size) - TIME)
        weights = np.linalg.solve(heard, cross)
        mean, left = kept[:, :, 0] @ weights, prior - cross @ weights
        leakage = 0.5 * np.log(prior / left) + 0.5 * mean**2 / (prior - left)
        function = jax.jit(lambda t, name=name, size=size: state_leakage(system, t, delta, name, steps=size, time=TIME))
        rate = np.mean(leakage > float(function(noise)))
        # Four binomial standard errors.
        assert abs(rate - delta) < 4 * np.sqrt(delta * (1 - delta) / COUNT), (name, estimate)
