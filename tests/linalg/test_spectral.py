"""Spectral functions against their definition, and their derivatives against finite differences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv.linalg.spectral import (
    largest_eigenvalue,
    positive_part,
    psd_sqrt,
    top_eigenvalue_sum,
    top_positive_sum,
)


def _rotated(values, rng):
    basis, _ = np.linalg.qr(rng.standard_normal((len(values), len(values))))
    matrix = basis @ np.diag(values) @ basis.T
    return 0.5 * (matrix + matrix.T)


def _direction(n, rng):
    matrix = rng.standard_normal((n, n))
    return matrix + matrix.T


# Spectra with a repeated eigenvalue away from the kink of the positive part, a cluster, and the identity.
SPECTRA = {
    "distinct": [-2.0, -0.5, 0.3, 1.7, 4.0],
    "repeated": [-1.0, -1.0, 2.0, 2.0, 2.0],
    "identity": [1.0, 1.0, 1.0, 1.0, 1.0],
    "cluster": [-1.0, 1.0, 1.0 + 1e-15, 1.0 + 1e-9, 3.0],
}


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("function", [positive_part, psd_sqrt])
def test_derivative_of_matrix_functions(spectrum, function, rng):
    values = np.abs(SPECTRA[spectrum]) if function is psd_sqrt else np.array(SPECTRA[spectrum])
    matrix, direction = _rotated(values, rng), _direction(5, rng)
    _, tangent = jax.jvp(function, (jnp.asarray(matrix),), (jnp.asarray(direction),))
    step = 1e-5
    difference = (function(matrix + step * direction) - function(matrix - step * direction)) / (2 * step)
    # Central differences of step 1e-5 on a smooth function: error ~1e-10 times third derivatives.
    np.testing.assert_allclose(tangent, difference, atol=1e-7)


def test_positive_part_is_the_nearest_positive_matrix(rng):
    matrix = _rotated(SPECTRA["distinct"], rng)
    part = np.asarray(positive_part(matrix))
    values = np.linalg.eigvalsh(part)
    assert values[0] > -1e-14
    # Complementarity with the removed part characterises the projection on the cone.
    np.testing.assert_allclose(part @ (part - matrix), 0.0, atol=1e-13)


def test_square_root_squares(rng):
    matrix = _rotated([0.0, 0.0, 1.0, 2.0, 5.0], rng)
    root = psd_sqrt(matrix)
    np.testing.assert_allclose(root @ root, matrix, atol=1e-7)  # a zero eigenvalue of −1e-16 has a root of 1e-8


def test_largest_eigenvalue_at_a_double_one_is_the_central_difference(rng):
    matrix, direction = _rotated([0.0, 1.0, 2.0, 3.0, 3.0], rng), _direction(5, rng)
    _, slope = jax.jvp(largest_eigenvalue, (jnp.asarray(matrix),), (jnp.asarray(direction),))
    step = 1e-6
    up, down = (np.linalg.eigvalsh(matrix + s * direction)[-1] for s in (step, -step))
    # At a double eigenvalue both are the mean of the two one-sided slopes.
    np.testing.assert_allclose(slope, (up - down) / (2 * step), rtol=1e-5)


def test_largest_eigenvalue_at_the_identity_is_a_subgradient(rng):
    gradient = np.asarray(jax.grad(largest_eigenvalue)(2.0 * jnp.eye(4)))
    np.testing.assert_allclose(gradient, np.eye(4) / 4, atol=1e-15)
    for _ in range(20):
        direction = _direction(4, rng)
        assert np.linalg.eigvalsh(2.0 * np.eye(4) + direction)[-1] >= 2.0 + np.sum(gradient * direction) - 1e-12


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_sum_of_the_largest(spectrum, rng):
    matrix = _rotated(SPECTRA[spectrum], rng)
    for count in range(1, 6):
        value = top_eigenvalue_sum(jnp.asarray(matrix), count)
        np.testing.assert_allclose(value, np.sum(np.sort(SPECTRA[spectrum])[5 - count :]), rtol=1e-12, atol=1e-12)
        gradient = np.asarray(jax.grad(top_eigenvalue_sum)(jnp.asarray(matrix), count))
        assert np.isfinite(gradient).all()
        assert np.trace(gradient) == pytest.approx(count)
        for _ in range(5):
            direction = 0.1 * _direction(5, rng)
            moved = np.sum(np.linalg.eigvalsh(matrix + direction)[5 - count :])
            assert moved >= value + np.sum(gradient * direction) - 1e-12


def test_sum_of_the_positive_ones(rng):
    matrix, direction = _rotated(SPECTRA["distinct"], rng), _direction(5, rng)
    assert top_positive_sum(jnp.asarray(matrix), 3) == pytest.approx(6.0)
    assert top_positive_sum(jnp.asarray(matrix), 1) == pytest.approx(4.0)
    assert top_positive_sum(jnp.asarray(matrix), 5) == pytest.approx(6.0)
    _, slope = jax.jvp(lambda m: top_positive_sum(m, 3), (jnp.asarray(matrix),), (jnp.asarray(direction),))
    step = 1e-6
    values = [np.maximum(np.linalg.eigvalsh(matrix + s * direction), 0).sum() for s in (step, -step)]
    np.testing.assert_allclose(slope, (values[0] - values[1]) / (2 * step), rtol=1e-6)
