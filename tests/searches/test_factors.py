"""Structured factors: where they are free, and what they can represent."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.searches.factors import LowRankFactor, MaskedFactor


N = 6


def spd(seed=0):
    root = np.random.default_rng(seed).standard_normal((N, N))
    return root @ root.T + 0.5 * np.eye(N)


STRUCTURES = {
    "lower": (MaskedFactor.lower(N), np.tril(np.ones((N, N)))),
    "diagonal": (MaskedFactor.diagonal(N), np.eye(N)),
    "banded": (MaskedFactor.banded(N, 2), sum(np.eye(N, k=-k) for k in range(3))),
    "blocks": (MaskedFactor.blocks([0, 1, 0, 1, 1, 2]), None),
    "groups": (MaskedFactor.groups(N, [[0, 2], [1, 3, 4]]), None),
}
STRUCTURES["blocks"] = (STRUCTURES["blocks"][0], np.tril(np.equal.outer([0, 1, 0, 1, 1, 2], [0, 1, 0, 1, 1, 2])))
STRUCTURES["groups"] = (STRUCTURES["groups"][0], STRUCTURES["blocks"][1])


@pytest.mark.parametrize("name", STRUCTURES)
def test_only_the_free_entries_are_parameters(name):
    structure, mask = STRUCTURES[name]
    assert structure.entries.size == mask.sum()
    filled = structure.with_factor(np.arange(1.0, N * N + 1).reshape(N, N)).factor
    np.testing.assert_array_equal(filled, mask * np.arange(1.0, N * N + 1).reshape(N, N))
    gradient = jax.grad(lambda one: jnp.sum(one.covariance * spd()), allow_int=True)(structure)
    assert gradient.entries.shape == structure.entries.shape


@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_a_covariance_of_the_structure_is_represented_exactly(floor):
    full = spd()
    root = np.tril(spd(1))
    cases = {
        "lower": full,
        "diagonal": np.diag(np.diag(full)),
        "banded": (root * STRUCTURES["banded"][1]) @ (root * STRUCTURES["banded"][1]).T + floor * np.eye(N),
        "blocks": full * np.equal.outer([0, 1, 0, 1, 1, 2], [0, 1, 0, 1, 1, 2]),
    }
    for name, covariance in cases.items():
        mask = STRUCTURES[name][1]
        start = MaskedFactor(mask, floor_variance=floor).with_covariance(covariance)
        np.testing.assert_allclose(start.covariance, covariance, atol=1e-12 * np.max(covariance), err_msg=name)


def test_a_covariance_outside_the_structure_keeps_its_variances():
    start = MaskedFactor.banded(N, 1, 0.2).with_covariance(spd())
    np.testing.assert_allclose(np.diag(start.covariance), np.diag(spd()), rtol=1e-12)
    assert float(start.covariance[0, 3]) == 0.0


def test_low_rank_and_singular_covariances():
    columns = np.random.default_rng(3).standard_normal((N, 2))
    covariance = columns @ columns.T + 0.3 * np.eye(N)
    exact = LowRankFactor.from_covariance(covariance, 2, 0.3)
    np.testing.assert_allclose(exact.covariance, covariance, atol=1e-13 * 20)
    # The best rank-one approximation leaves the second eigenvalue.
    left = np.linalg.eigvalsh(covariance - np.asarray(LowRankFactor.from_covariance(covariance, 1, 0.3).covariance))
    np.testing.assert_allclose(left[-1], np.linalg.eigvalsh(covariance)[-2] - 0.3, rtol=1e-10)
    singular = MaskedFactor.lower(N).with_covariance(columns @ columns.T)
    np.testing.assert_allclose(singular.covariance, columns @ columns.T, atol=1e-12)
    wide = LowRankFactor.from_covariance(columns @ columns.T, 4)
    moved = wide.perturbed(jax.random.key(0), 1e-3)
    assert np.min(np.linalg.norm(moved.factor, axis=0)) > 0.0
    np.testing.assert_allclose(moved.covariance, columns @ columns.T, atol=0.05)


def test_it_becomes_a_mechanism_with_the_same_noise():
    structure = MaskedFactor.banded(N, 1, 0.25).with_covariance(spd())
    mechanism = structure.mechanism(0.1)
    assert isinstance(mechanism, jp.GaussianMechanism) and float(mechanism.resolution) == 0.1
    np.testing.assert_allclose(mechanism.covariance, structure.covariance, atol=1e-13 * 20)
    assert structure.size == N and eqx.tree_equal(structure.scaled(1.0), structure)


def test_entries_and_floor_have_the_right_derivatives():
    weights = jnp.asarray(spd(2))
    start = MaskedFactor.lower(N, 0.1).with_covariance(spd())
    gradient = jax.grad(lambda one: jnp.sum(weights * one.covariance), allow_int=True)(start)
    expected = 2.0 * (np.asarray(weights) @ np.asarray(start.factor))[np.tril_indices(N)]
    np.testing.assert_allclose(gradient.entries, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient.floor_variance, np.trace(weights), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LowRankFactor(np.ones(3)), r"factor has shape \(3,\)"),
        (lambda: LowRankFactor(np.full((2, 2), np.nan)), "not finite"),
        (lambda: LowRankFactor(np.ones((2, 1)), -1.0), "floor_variance is -1"),
        (lambda: LowRankFactor(np.ones((2, 1)), np.ones(2)), "expected one number"),
        (lambda: LowRankFactor.from_covariance(np.eye(3), 4), "rank is 4"),
        (lambda: LowRankFactor.from_covariance(np.ones((2, 3)), 1), "covariance has shape"),
        (lambda: MaskedFactor(np.zeros((2, 2))), "at least one free entry"),
        (lambda: MaskedFactor(np.eye(2), np.eye(3)), "factor has shape"),
        (lambda: MaskedFactor.lower(3).with_factor(np.eye(2)), "factor has shape"),
        (lambda: MaskedFactor.lower(3).with_covariance(np.eye(2)), "covariance has shape"),
        (lambda: MaskedFactor.lower(0), "size is 0"),
        (lambda: MaskedFactor.banded(3, 3), "width is 3"),
        (lambda: MaskedFactor.blocks([]), "labels has shape"),
        (lambda: MaskedFactor.groups(3, [[0, 3]]), "position 3 of group 0"),
        (lambda: MaskedFactor.groups(3, [[0], [0]]), "position 0 is in two groups"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(jp.InputError, match=message):
        call()
