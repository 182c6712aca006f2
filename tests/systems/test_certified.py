"""Certified leakage of systems: never below an independent computation in many digits, and close to it."""

from __future__ import annotations

import flint
import jax
import numpy as np
import pytest
from scipy.stats import chi2

import jaxpriv as jp
from jaxpriv.certificates.scalars import chi_square_quantile
from jaxpriv.priors.state_space import LinearSystem
from jaxpriv.systems.certified import certify_system
from jaxpriv.systems.enclosure import Enclosure
from jaxpriv.systems.leakage import information_rate, state_information, trajectory_information


def ball(matrix):
    return flint.arb_mat([[flint.arb(float(x)) for x in row] for row in matrix])


def exact_informations(system, noise, doublings=60):
    """Half log-determinants of the steady state to 60 digits, by doubling the recursions in ball arithmetic."""
    A, Q, C, noise = (ball(np.asarray(one)) for one in (system.A, system.Q, system.C, noise))
    G = C.transpose() * noise.inv() * C
    n = A.nrows()
    identity = ball(np.eye(n))
    stationary, power = Q, A
    for _ in range(doublings):
        stationary, power = stationary + power * stationary * power.transpose(), power * power

    def riccati(A, G, H):
        A = A.transpose()
        for _ in range(12):
            inverse = (identity + G * H).inv()
            A, G, H = A * inverse * A, G + A * inverse * G * A.transpose(), H + A.transpose() * H * inverse * A
        return H

    predicted, ahead = riccati(A, G, Q), riccati(A.transpose(), Q, G)
    prior = stationary.det().log()
    half = flint.arb(1) / 2
    return {
        "output": half * (ball(np.eye(C.nrows())) + noise.inv() * C * stationary * C.transpose()).det().log(),
        "filter": half * (prior - predicted.det().log() + (identity + G * predicted).det().log()),
        "smoother": half * (prior - predicted.det().log() + (identity + ahead * predicted).det().log()),
    }


def draw(n, m, seed, scale):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    A *= rng.uniform(0.3, 0.95) / np.max(np.abs(np.linalg.eigvals(A)))
    root, other = rng.standard_normal((n, n)), rng.standard_normal((m, m))
    noise = scale * (other @ other.T + 0.1 * np.eye(m))
    return LinearSystem(A, root @ root.T, rng.standard_normal((m, n))), 0.5 * (noise + noise.T)


@pytest.mark.parametrize(("n", "m", "scale"), [(1, 1, 1.0), (2, 1, 1e-3), (3, 2, 1.0), (3, 3, 1e2)])
def test_never_below_the_truth(n, m, scale):
    for seed in range(3):
        system, noise = draw(n, m, seed, scale)
        found = certify_system(system, noise, 0.05)
        before = flint.ctx.prec
        try:
            flint.ctx.prec = 400
            exact = exact_informations(system, noise)
            for name, information in found.information.items():
                # arb compares rigorously: True only if every point of the ball is below.
                assert flint.arb(information) >= exact[name], (name, seed)
                assert information - float(exact[name].mid()) < 1e-6 * max(1.0, information)
        finally:
            flint.ctx.prec = before
        for name, epsilon in found.epsilon.items():
            assert epsilon >= found.information[name] + 0.5 * chi_square_quantile(found.ranks[name], 0.05)
            assert epsilon == pytest.approx(
                found.information[name] + 0.5 * chi2.isf(0.05, found.ranks[name]), rel=1e-12
            )


def test_trajectory_and_rate():
    system, noise = draw(2, 1, 3, 1.0)
    found = certify_system(system, noise, 0.05, steps=20, observers=("output",))
    total = float(jax.jit(trajectory_information, static_argnums=2)(system, noise, 20))
    assert total - 1e-12 < found.trajectory_information < total + 1e-9
    rate = float(jax.jit(information_rate)(system, noise))
    assert rate - 1e-13 < found.rate < rate + 1e-9
    assert found.trajectory_epsilon == pytest.approx(total + 0.5 * chi2.isf(0.05, 20), rel=1e-9)
    assert "about all 20 states together" in str(found)


def test_singular_disturbance_is_certified():
    system = LinearSystem([[0.95, 0.3], [0.0, 0.8]], np.diag([0.0, 0.2]), [[1.0, 0.0]])
    found = certify_system(system, [[0.5]], 0.05)
    value = float(jax.jit(lambda t: state_information(system, t))(np.array([[0.5]])))
    assert value - 1e-12 <= found.information["smoother"] <= value + 1e-6


def test_enclosures_hold_the_exact_result():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((4, 4)), rng.standard_normal((4, 4))
    S = B @ B.T
    found = Enclosure(0.5 * (S + S.T)).sandwiched(Enclosure(A))
    exact = ball(A) * ball(0.5 * (S + S.T)) * ball(A).transpose()
    error = np.array([[float((exact[i, j] - found.centre[i, j]).abs_upper()) for j in range(4)] for i in range(4)])
    assert 0.0 < np.linalg.norm(error) <= found.radius < 1e-11
    inverse = Enclosure(S).inverse_between(Enclosure(A))
    exact = ball(A).transpose() * ball(S).inv() * ball(A)
    error = np.array([[float((exact[i, j] - inverse.centre[i, j]).abs_upper()) for j in range(4)] for i in range(4)])
    assert np.linalg.norm(error) <= inverse.radius < 1e-6 * np.linalg.norm(inverse.centre)
    assert not Enclosure(np.diag([1.0, 1e-9]), 1e-8).is_semidefinite()
    assert np.isinf(Enclosure(np.diag([1.0, -1.0])).inverse_between(Enclosure(A[:2])).radius)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"A": [[1.01]]}, jp.InputError, "spectral radius is 1.01"),
        ({"noise": [[0.0]]}, jp.InfeasibleError, "without noise leaks without bound"),
        ({"noise": [[-1.0]]}, jp.InputError, "smallest eigenvalue is -1"),
        ({"noise": np.eye(2)}, jp.InputError, r"expected \(1, 1\)"),
        ({"delta": 1.0}, jp.InputError, "delta"),
        ({"rank": 2}, jp.InputError, "rank is 2"),
        ({"steps": 0}, jp.InputError, "at least 1"),
        ({"Q": [[0.0]]}, jp.CertificateError, "never moves|could not be verified"),
        ({"A": [[1.0 - 1e-16 * 2]]}, jp.CertificateError, "too close to unstable"),
    ],
)
def test_failures(change, error, words):
    given = {"A": [[0.9]], "Q": [[0.2]], "noise": [[0.1]], "delta": 0.05, "rank": None, "steps": None, **change}
    with pytest.raises(error, match=words):
        certify_system(
            LinearSystem(given["A"], given["Q"]),
            given["noise"],
            given["delta"],
            rank=given["rank"],
            steps=given["steps"],
        )
