"""A covariance matrix as a mechanism that certificates can be computed for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Float

from jaxpriv.certificates.arithmetic import square_bounds
from jaxpriv.certificates.definiteness import semidefinite_pair
from jaxpriv.certificates.noise import noise_matrix
from jaxpriv.errors import InputError
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.precision import host_array


_ATTEMPTS = 12


@dataclass(frozen=True)
class AuditedNoise:
    """The mechanism that stands for the noise, and what has to be said about that."""

    mechanism: GaussianMechanism
    note: str = ""


def audited_noise(noise: GaussianMechanism | Float[Array | np.ndarray, "n n"], size: int | None) -> AuditedNoise:
    """The mechanism itself, or for a covariance matrix G a mechanism whose covariance is verified to be at most G.

    Less noise never protects more, so that bounds for the second hold for G. A matrix that is singular to working
    precision is taken for the factor of its leading eigenvectors, which is said.

    Raises:
        InputError: a matrix that is not finite, symmetric and positive semidefinite, or not of the prior's size.
    """
    if isinstance(noise, GaussianMechanism):
        found = AuditedNoise(
            GaussianMechanism(host_array(noise.factor, "factor", 2), float(noise.floor_sd))
            if noise.factor.shape[1]
            else GaussianMechanism(np.zeros((noise.size, 0)), float(noise.floor_sd))
        )
    else:
        found = _of_matrix(host_array(noise, "the noise covariance", 2))
    if size is not None and found.mechanism.size != size:
        raise InputError(f"the noise is for {found.mechanism.size} coordinates, the prior for {size}.")
    return found


def _of_matrix(matrix: np.ndarray) -> AuditedNoise:
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"the noise covariance has shape {matrix.shape}; expected (n, n).")
    largest = float(np.max(np.abs(matrix)))
    if np.max(np.abs(matrix - matrix.T)) > 1e-12 * largest:
        raise InputError("the noise covariance is not symmetric. Pass (G + G.T)/2 if that is what you mean.")
    matrix = np.tril(matrix) + np.tril(matrix, -1).T
    size = len(matrix)
    values, vectors = np.linalg.eigh(matrix)
    cut = 16.0 * size * np.finfo(float).eps * max(float(values[-1]), 0.0)
    if values[0] < -cut:
        raise InputError(f"the noise covariance has a negative eigenvalue, {values[0]:.3g}.")
    if values[0] > cut:
        floor_sd = float(np.sqrt(0.5 * values[0]))
        lent = cut / 64.0
        for _ in range(_ATTEMPTS):
            kept = np.maximum(values - floor_sd**2 - lent, 0.0)
            mechanism = GaussianMechanism(vectors * np.sqrt(kept), floor_sd)
            below, error = noise_matrix(np.asarray(mechanism.factor), square_bounds(floor_sd)[1])
            gap = matrix - below
            if semidefinite_pair(gap, None, error + 2.0**-52 * np.abs(gap)):
                return AuditedNoise(mechanism)
            lent *= 2.0
    kept = values > cut
    factor = vectors[:, kept] * np.sqrt(values[kept])
    note = (
        f"The covariance is singular to working precision: {size - int(kept.sum())} of {size} eigenvalues count as "
        "zero, and the numbers are for the factor of the others."
    )
    return AuditedNoise(GaussianMechanism(factor, 0.0), note)
