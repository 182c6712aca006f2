"""Channels: constructors and what they refuse, lifting, composition, sampling, derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv.channels.channel import Channel
from jaxpriv.errors import InputError


@pytest.fixture
def matrix(rng):
    return rng.dirichlet(np.ones(4), size=3)


def test_a_matrix_comes_back_as_it_was_given(matrix):
    channel = Channel.from_matrix(matrix)
    assert (channel.n_inputs, channel.n_outputs) == (3, 4)
    np.testing.assert_allclose(channel.matrix, matrix, rtol=1e-15)


def test_zeros_are_kept_and_do_not_poison_derivatives():
    matrix = jnp.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]])
    channel = Channel.from_matrix(matrix)
    assert np.asarray(channel.log_matrix)[0, 2] == -np.inf
    merge = Channel.deterministic(np.array([0, 1, 1]), 2)
    gradient = jax.grad(lambda m: jnp.sum(Channel.from_matrix(m).then(merge).matrix ** 2))(matrix)
    # d/dm of (sum of merged)² = 2 · merged, also for the zero's neighbours; the zero itself has derivative 0 by choice.
    np.testing.assert_allclose(gradient, [[1.0, 1.0, 0.0], [0.5, 1.5, 1.5]], atol=1e-14)


def test_a_row_that_does_not_sum_to_one_is_refused_and_never_rescaled(matrix):
    with pytest.raises(InputError, match="row 1 sums to"):
        Channel.from_matrix(matrix * np.array([1.0, 1.001, 1.0])[:, None])
    # Within the tolerance of float64 the entries stay what they are.
    slightly = matrix * (1.0 + 5e-10)
    np.testing.assert_array_equal(Channel.from_matrix(slightly).log_matrix, np.log(slightly))


def test_float32_rows_are_judged_by_float32(rng):
    row = rng.dirichlet(np.ones(1000)).astype(np.float32)[None]
    assert Channel.from_matrix(row).log_matrix.dtype == np.float32
    with pytest.raises(InputError, match="sums to"):
        Channel.from_matrix(row * np.float32(1.0001))


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0.5, np.nan]], "not finite"),
        ([[1.5, -0.5]], "negative probability"),
        ([0.5, 0.5], "expected \\(n, m\\)"),
        (np.zeros((0, 2)), "expected \\(n, m\\)"),
    ],
)
def test_matrices_that_are_refused(matrix, words):
    with pytest.raises(InputError, match=words):
        Channel.from_matrix(np.asarray(matrix))


def test_log_matrices_and_weights_that_are_refused():
    with pytest.raises(InputError, match="NaN"):
        Channel(np.array([[0.0, np.nan]]))
    with pytest.raises(InputError, match="all −inf"):
        Channel.from_log_weights(np.array([[0.0, 0.0], [-np.inf, -np.inf]]))
    with pytest.raises(InputError, match="common positive sum; row 1"):
        Channel.from_integer_weights(np.array([[1, 3], [2, 3]]))
    with pytest.raises(InputError, match="negative"):
        Channel.from_integer_weights(np.array([[1, 3], [5, -1]]))
    with pytest.raises(InputError, match="outside"):
        Channel.deterministic(np.array([0, 2]), 2)


def test_log_weights_are_a_softmax(rng):
    weights = rng.normal(size=(2, 5)) * 300.0
    expected = np.exp(weights - np.max(weights, axis=1, keepdims=True))
    channel = Channel.from_log_weights(weights)
    np.testing.assert_allclose(channel.matrix, expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(
        Channel.from_log_weights(jnp.asarray(weights)).log_matrix, channel.log_matrix, rtol=1e-12
    )


def test_lifting_is_the_law_of_the_output(matrix, rng):
    prior = rng.dirichlet(np.ones(3))
    np.testing.assert_allclose(Channel.from_matrix(matrix).lift(prior), prior @ matrix, rtol=1e-14)
    with pytest.raises(InputError, match="does not fit"):
        Channel.from_matrix(matrix).lift(np.ones(4) / 4)


def test_composition_is_the_matrix_product_and_keeps_tiny_probabilities(matrix, rng):
    after = rng.dirichlet(np.ones(5), size=4)
    product = Channel.from_matrix(matrix).then(Channel.from_matrix(after))
    np.testing.assert_allclose(product.matrix, matrix @ after, rtol=1e-13)
    tiny = Channel.from_log_weights(np.array([[0.0, -900.0], [0.0, -901.0]]))
    swapped = tiny.then(Channel.deterministic(np.array([1, 0]), 2))
    # exp(−900) is zero in float64; its logarithm is not.
    np.testing.assert_allclose(np.asarray(swapped.log_matrix)[:, 0], [-900.0, -901.0], rtol=1e-15)
    with pytest.raises(InputError, match="cannot be followed"):
        product.then(Channel.from_matrix(after))


def test_constant_reveals_nothing():
    channel = Channel.constant(np.array([0.2, 0.8]), 3)
    np.testing.assert_array_equal(channel.matrix, np.tile(channel.matrix[:1], (3, 1)))


def test_batches_and_compilation(rng):
    stack = rng.dirichlet(np.ones(4), size=(2, 3))
    prior = rng.dirichlet(np.ones(3))
    lifted = jax.jit(jax.vmap(lambda m: Channel.from_matrix(m).lift(prior)))(stack)
    np.testing.assert_allclose(lifted, np.einsum("x,bxz->bz", prior, stack), rtol=1e-13)
    batch = Channel.from_matrix(stack)
    np.testing.assert_allclose(batch.then(batch.from_matrix(np.eye(4))).matrix, stack, rtol=1e-13)


def test_simulated_frequencies(matrix):
    channel = Channel.from_matrix(matrix)
    drawn = np.asarray(channel.sample(jax.random.key(0), np.repeat(np.arange(3), 20_000)))
    for x in range(3):
        counts = np.bincount(drawn[20_000 * x : 20_000 * (x + 1)], minlength=4) / 20_000
        # Four standard deviations of a frequency: at most 4 · 0.5/√20000 = 0.0142; the seed is fixed.
        np.testing.assert_allclose(counts, matrix[x], atol=0.0142)
