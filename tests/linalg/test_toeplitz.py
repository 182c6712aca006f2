"""FFT products of Toeplitz and banded matrices, and the bounds of their rounding, against integer arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.linalg.banded import banded_gram, banded_product, smallest_eigenvalue_of_band
from jaxpriv.linalg.toeplitz import Toeplitz, embedding_length


def integers(rng: np.random.Generator, size: int, bits: int) -> np.ndarray:
    return rng.integers(-(2**bits), 2**bits, size)


def exact_product(lags: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """In Python integers, so that nothing is rounded."""
    n = vector.size
    index = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return lags.astype(object)[index] @ vector.astype(object)


@pytest.mark.parametrize("seed", range(60))
def test_the_error_is_within_its_bound(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 200))
    lags = integers(rng, embedding_length(n) // 2 + 1, int(rng.integers(1, 20)))
    if seed % 2:  # entries of very different sizes
        lags = lags * 2 ** rng.integers(0, 20, lags.size)
    vector = integers(rng, n, 20)
    matrix = Toeplitz(lags.astype(float), n)
    exact = exact_product(lags, vector)
    computed = matrix.product(vector.astype(float)[:, None])[:, 0]
    error = np.linalg.norm(np.array([float(int(e) - float(c)) for e, c in zip(exact, computed, strict=True)]))
    bound = float(matrix.product_error(vector.astype(float)[:, None])[0])
    assert error <= bound
    # Not a bound that says nothing: within a hundred-billionth of the largest product there could be.
    assert bound <= 1e-11 * np.max(np.abs(matrix.symbol)) * np.linalg.norm(vector.astype(float)) + 1e-280


def test_a_bound_a_thousand_times_smaller_would_fail():
    failures = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        lags = integers(rng, embedding_length(150) // 2 + 1, 19)
        vector = integers(rng, 150, 20)
        matrix = Toeplitz(lags.astype(float), 150)
        computed = matrix.product(vector.astype(float)[:, None])[:, 0]
        exact = exact_product(lags, vector)
        error = np.linalg.norm(np.array([float(int(e) - float(c)) for e, c in zip(exact, computed, strict=True)]))
        failures += error > 1e-3 * float(matrix.product_error(vector.astype(float)[:, None])[0])
    assert failures > 10


def test_the_smallest_eigenvalue_is_below_every_one():
    for n, length in ((40, 2.0), (100, 9.0)):
        lags = np.exp(-np.arange(embedding_length(n) // 2 + 1) / length)
        lags[0] += 0.01
        matrix = Toeplitz(lags, n)
        dense = lags[np.abs(np.subtract.outer(np.arange(n), np.arange(n)))]
        assert 0.0 < matrix.smallest_eigenvalue <= np.linalg.eigvalsh(dense)[0]


def test_solves_agree_with_the_dense_ones_from_any_start():
    n = 150
    k = np.arange(embedding_length(n) // 2 + 1)
    right = np.random.default_rng(0).standard_normal((n, 2))
    for lags in (np.exp(-0.5 * (k / 6.0) ** 2), np.exp(-2.0 * np.sin(np.pi * k / 24.0) ** 2)):
        matrix = Toeplitz(lags, n)
        dense = lags[np.abs(np.subtract.outer(np.arange(n), np.arange(n)))] + 0.5 * np.eye(n)
        expected = np.linalg.solve(dense, right)
        # Relative residual 1e-13 at a condition number of at most 300.
        np.testing.assert_allclose(matrix.shifted_solve(0.5, right), expected, atol=1e-10)
        np.testing.assert_allclose(matrix.shifted_solve(0.5, right, start=expected), expected, atol=1e-10)


def test_lags_of_another_length_are_refused():
    with pytest.raises(InputError, match="expected"):
        Toeplitz(np.ones(5), 100)
    with pytest.raises(InputError, match="not finite"):
        Toeplitz(np.full(embedding_length(3) // 2 + 1, np.nan), 3)


def test_banded_matrices_against_dense_ones():
    from scipy.sparse import csr_array

    column = np.array([1.0, 0.6, 0.2, 0.02])
    band = np.repeat(column[:, None], 30, axis=1)
    for below in range(1, 4):
        band[below, 30 - below :] = 0.0
    lag = np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    dense = np.where(lag < 4, np.concatenate([column, np.zeros(30)])[lag], 0.0)
    columns = np.random.default_rng(0).standard_normal((30, 2))
    np.testing.assert_allclose(banded_product(band, columns), dense @ columns, atol=1e-14)
    assert smallest_eigenvalue_of_band(column) <= np.linalg.eigvalsh(dense)[0]
    gram = banded_gram(csr_array(dense), 6)
    np.testing.assert_allclose(banded_product(gram, columns), dense @ dense @ columns, atol=1e-13)
