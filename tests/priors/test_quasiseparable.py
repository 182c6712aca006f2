"""The quasiseparable prior against the dense one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import jax
import numpy as np
import pytest
from tinygp.kernels import Constant, quasisep

import jaxpriv as jp
from jaxpriv.errors import InputError
from jaxpriv.priors import kernels, quasiseparable
from jaxpriv.priors.markov_kernels import is_markov, markov_terms
from jaxpriv.priors.quasiseparable import QuasiseparablePrior


EVERY = {
    "matern12": kernels.matern12(3.0, 2.0),
    "matern32": kernels.matern32(3.0, 2.0),
    "matern52": kernels.matern52(3.0, 2.0),
    "sum of a product and a constant": kernels.matern52(3.0, 2.0) * kernels.matern12(5.0) + Constant(2.0),
    "tinygp's own": 0.5 * quasisep.Matern52(2.0, sigma=1.5) + quasisep.Exp(1.0) * quasisep.Matern32(4.0),
}


def matern(order: int, scale: float):
    def values(gap):
        x = np.sqrt(2 * order + 1) * gap / scale
        return np.exp(-x) * (1.0, 1 + x, 1 + x + x**2 / 3)[order]

    return values


FORMULAS = {
    "matern12": lambda gap: 4 * matern(0, 3.0)(gap),
    "matern32": lambda gap: 4 * matern(1, 3.0)(gap),
    "matern52": lambda gap: 4 * matern(2, 3.0)(gap),
    "sum of a product and a constant": lambda gap: 4 * matern(2, 3.0)(gap) * matern(0, 5.0)(gap) + 2,
    "tinygp's own": lambda gap: 0.5 * 2.25 * matern(2, 2.0)(gap) + matern(0, 1.0)(gap) * matern(1, 4.0)(gap),
}


@pytest.mark.parametrize("name", EVERY)
def test_everything_agrees_with_the_matrix(name, rng):
    times = rng.permutation(np.cumsum(rng.exponential(0.2, 80)))
    times[5] = times[9]
    prior = QuasiseparablePrior(EVERY[name], times, 0.1)
    expected = FORMULAS[name](np.abs(times[:, None] - times)) + 0.01 * np.eye(80)
    vectors = rng.standard_normal((80, 2))
    # A few roundings of one kernel value; measured 1.5e-15.
    np.testing.assert_allclose(prior.columns([3, 5]), expected[:, [3, 5]], rtol=1e-14)
    # Sums of 80 products up to 50 in size round by 1e-14 each way; measured 2e-14.
    np.testing.assert_allclose(prior.product(vectors), expected @ vectors, rtol=0, atol=5e-13)
    np.testing.assert_allclose(prior.bounded_product(vectors).values, expected @ vectors, rtol=0, atol=5e-13)
    # Two solves with a condition number of at most 830: 2e-13 in units of the solution; measured 1e-13.
    np.testing.assert_allclose(
        prior.shifted_solve(0.3, vectors), np.linalg.solve(expected + 0.3 * np.eye(80), vectors), rtol=0, atol=1e-12
    )
    if name != "tinygp's own":  # whose evaluation of pairs is not what is tested here, and slow to compile
        np.testing.assert_allclose(prior.covariance, expected, rtol=1e-14)


def test_draws_have_the_prior_s_covariance():
    prior = QuasiseparablePrior(EVERY["matern32"], np.array([0.0, 3.0, 1.0, 1.0]), 0.5)
    draws = np.array([prior.sample(key) for key in jax.random.split(jax.random.key(1), 1000)])
    expected = np.asarray(prior.covariance)
    # Standard error of an entry is at most sqrt(2/1000) of the variances: four of them.
    np.testing.assert_allclose(draws.T @ draws / 1000, expected, atol=4 * np.sqrt(2 / 1000) * expected.max())
    np.testing.assert_array_equal(prior.sample(jax.random.key(3)), prior.sample(jax.random.key(3)))


def test_new_values_compile_nothing_new(rng):
    times = np.cumsum(rng.exponential(0.2, 50))
    vectors = rng.standard_normal((50, 1))
    programs: tuple[Any, ...] = (quasiseparable._factor, quasiseparable._solve, quasiseparable._scan_states)

    def use(scale: float, shift: float) -> list[int]:
        prior = QuasiseparablePrior(kernels.matern32(scale, scale), times * scale, 0.1)
        prior.shifted_solve(shift, vectors)
        prior.product(vectors)
        return [program._cache_size() for program in programs]

    first = use(1.0, 0.1)
    assert use(2.0, 0.7) == first


@pytest.mark.parametrize("dtype_flag", [False, True])
def test_double_precision_whatever_the_flag(dtype_flag):
    with jax.enable_x64(dtype_flag):
        prior = QuasiseparablePrior(kernels.matern52(1.0), np.arange(30.0) * 1e-3, 1e-3)
        assert prior.shifted_solve(1e-6, np.ones((30, 1))).dtype == np.float64
        assert np.all(np.isfinite(prior.shifted_solve(1e-6, np.ones((30, 1)))))


def test_the_nugget_is_never_above_the_variance_that_was_asked_for():
    for sd in (0.0, 0.1, 1 / 3, 1e-8, 123.456):
        prior = QuasiseparablePrior(kernels.matern12(1.0), np.arange(3.0), sd)
        assert Fraction(prior.nugget) <= Fraction(sd) ** 2


def test_kernels_that_have_no_finite_state_are_refused():
    for kernel in (kernels.rbf(1.0), kernels.periodic(24.0, 1.0), kernels.matern32(1.0) + kernels.rbf(2.0)):
        assert not is_markov(kernel)
        with pytest.raises(InputError, match=r"no exact finite state.*regular grid.*inducing"):
            QuasiseparablePrior(kernel, np.arange(3.0))
    large = kernels.matern52(1.0) * kernels.matern52(2.0) * kernels.matern52(3.0) * kernels.matern32(1.0)
    with pytest.raises(InputError, match="54 numbers of state"):
        markov_terms(large)


@pytest.mark.parametrize(
    ("times", "noise_sd", "message"),
    [
        (np.zeros((2, 2)), 0.1, "times has shape"),
        (np.array([0.0, np.nan]), 0.1, "not finite"),
        (np.array([]), 0.1, "empty"),
        (np.arange(3.0), -1.0, "noise_sd is -1"),
    ],
)
def test_bad_arguments(times, noise_sd, message):
    with pytest.raises(InputError, match=message):
        QuasiseparablePrior(kernels.matern12(1.0), times, noise_sd)


def test_the_matrix_of_a_long_trace_is_not_formed():
    prior = QuasiseparablePrior(kernels.matern12(1.0), np.arange(5001.0), 0.1)
    with pytest.raises(InputError, match="is not formed above 5000"):
        _ = prior.covariance
    secret = jp.Secret((3,), 1.0)
    with pytest.raises(InputError, match="is not formed above 5000"):
        secret.joint(prior)
