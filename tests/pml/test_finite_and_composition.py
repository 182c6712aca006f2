"""Finite alphabets by the definition, the failure of post-processing, and several releases."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv import pml


PRIOR = np.array([0.5, 0.3, 0.2, 0.0])
CHANNEL = np.array([[0.7, 0.2, 0.1, 0.0], [0.1, 0.8, 0.1, 0.0], [0.25, 0.25, 0.5, 0.0], [0.0, 0.0, 0.1, 0.9]])


def test_leakage_is_the_definition():
    found = np.asarray(pml.finite_leakage(PRIOR, CHANNEL))
    output = PRIOR @ CHANNEL
    for y in range(3):
        # Posterior over prior, the other form of the definition; the value without prior mass does not count.
        ratios = [PRIOR[x] * CHANNEL[x, y] / output[y] / PRIOR[x] for x in range(3)]
        np.testing.assert_allclose(found[y], math.log(max(ratios)), rtol=1e-13)
    assert found[3] == 0.0
    # Σ p(y) e^ℓ(y) = Σ max Q: the maximal leakage of Issa, Wagner and Kamath (2020).
    np.testing.assert_allclose(np.dot(output, np.exp(found)), CHANNEL[:3].max(axis=0).sum(), rtol=1e-12)


def test_profile_is_that_of_the_list_of_outputs():
    leakage, output = np.asarray(pml.finite_leakage(PRIOR, CHANNEL)), PRIOR @ CHANNEL
    for epsilon in (0.0, 0.4, 0.6, 0.9, 2.0):
        assert pml.finite_delta(PRIOR, CHANNEL, epsilon) == pytest.approx(output[leakage > epsilon].sum(), abs=1e-15)
    for delta in (0.0, 0.1, 0.3, 0.9, 1.0):
        level = float(pml.finite_epsilon(PRIOR, CHANNEL, delta))
        assert float(pml.finite_delta(PRIOR, CHANNEL, level)) <= delta
        if level > 0:
            assert float(pml.finite_delta(PRIOR, CHANNEL, level - 1e-9)) > delta


def test_a_channel_without_information_leaks_nothing():
    same = np.tile([0.2, 0.8], (4, 1))
    np.testing.assert_allclose(pml.finite_leakage(PRIOR, same), 0.0, atol=1e-15)
    assert pml.finite_epsilon(PRIOR, same, 0.0) < 1e-15


def test_a_fine_gaussian_channel_approaches_the_gaussian_profile():
    """A discretised scalar Gaussian with a sum for each integral; its leakage is that of Gaussians on a bounded set."""
    noise, step = 0.8, 0.04
    x = np.arange(-8, 8, step)
    y = np.arange(-11, 11, step)
    prior = np.exp(-0.5 * x**2)
    prior /= prior.sum()
    channel = np.exp(-0.5 * (y[None] - x[:, None]) ** 2 / noise)
    channel /= channel.sum(axis=1, keepdims=True)
    information = pml.additive_information(np.eye(1), noise * np.eye(1))
    for epsilon in (1.0, 2.0, 3.0):
        expected = pml.leakage_delta(information, epsilon, 1)
        # Outputs are a step apart, where the density of Y is at most 0.3; the leakage is the Gaussian one up to the
        # sums' errors.
        np.testing.assert_allclose(pml.finite_delta(prior, channel, epsilon), expected, atol=2 * 0.3 * step)


def test_post_processing_can_destroy_the_tail_bound():
    """The direction of a two-dimensional output, cut into a hundred sectors, leaks log 100 whatever comes out."""
    information = 1.1
    before = float(pml.leakage_epsilon(information, 0.05, 2))
    assert before == pytest.approx(4.0957, abs=1e-3)
    # In the limit of ever more distant data each sector has one x that makes it certain: Q is then the identity.
    sectors = 100
    leakage = pml.finite_leakage(np.full(sectors, 1 / sectors), np.eye(sectors))
    np.testing.assert_allclose(leakage, math.log(100), rtol=1e-13)
    assert float(pml.finite_delta(np.full(sectors, 1 / sectors), np.eye(sectors), before)) == pytest.approx(1.0)


def test_bad_probabilities_are_refused():
    with pytest.raises(jp.InputError, match="channel"):
        pml.finite_leakage(PRIOR, CHANNEL + 0.1)
    with pytest.raises(jp.InputError, match="prior"):
        pml.finite_leakage(np.array([1.2, -0.2]), np.eye(2))
    with pytest.raises(jp.InputError, match="shapes"):
        pml.finite_leakage(PRIOR, np.eye(3))


def test_composition_bounds_the_stacked_release():
    rng = np.random.default_rng(15)
    for _ in range(20):
        root = rng.standard_normal((4, 4))
        prior = root @ root.T + 0.1 * np.eye(4)
        first, second = rng.standard_normal((1, 4)), rng.standard_normal((2, 4))
        parts = [pml.additive_information(one @ prior @ one.T, np.eye(len(one))) for one in (first, second)]
        stacked = np.concatenate([first, second])
        joint = pml.additive_information(stacked @ prior @ stacked.T, np.eye(3))
        assert float(pml.leakage_epsilon(joint, 0.05, 3)) <= float(pml.compose_releases(parts, [1, 2], 0.05)) + 1e-12
        epsilon, delta = pml.compose_guarantees(
            [pml.leakage_epsilon(parts[0], 0.02, 1), pml.leakage_epsilon(parts[1], 0.03, 2)], [0.02, 0.03]
        )
        assert float(pml.leakage_delta(joint, epsilon, 3)) <= float(delta) + 1e-12


def test_the_same_data_again_pay_the_rank_once():
    signal, noise = np.eye(1), 0.5 * np.eye(1)
    once = pml.additive_information(signal, noise)
    both = pml.leakage_epsilon(pml.additive_information(signal, noise / 2), 0.05, 1)
    bound = pml.compose_same([once, once], 1, 0.05)
    assert both <= bound < pml.compose_releases([once, once], [1, 1], 0.05)


def test_dependent_noises_break_composition():
    """X + V and X − V publish X, though each leaks little."""
    seen = np.array([[2.0, 0.0], [0.0, 2.0]])
    assert pml.mutual_information(np.eye(1), np.ones((1, 2)), seen) == jnp.inf


def test_composition_refuses_lists_that_do_not_match():
    for call in (
        lambda: pml.compose_releases([], [], 0.05),
        lambda: pml.compose_releases([1.0], [1, 2], 0.05),
        lambda: pml.compose_same([], 1, 0.05),
        lambda: pml.compose_guarantees([1.0], []),
    ):
        with pytest.raises(jp.InputError):
            call()
