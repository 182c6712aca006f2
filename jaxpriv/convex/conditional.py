"""What a convex program needs of a Gaussian prior and one secret, checked and computed in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxpriv.errors import InputError


SecretLike = Sequence[int] | np.ndarray | tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Conditional:
    """The trace given the secret: mean map H (n, k), covariance C (n, n), and positions (k,) in the trace.

    `positions` is empty for a secret given by its joint covariance with the trace.
    """

    mean_map: np.ndarray
    covariance: np.ndarray
    positions: np.ndarray

    @property
    def size(self) -> int:
        return self.mean_map.shape[0]

    @property
    def rest(self) -> np.ndarray:
        """Positions (n - k,) outside the secret."""
        return np.setdiff1d(np.arange(self.size), self.positions)

    def loss(self, noise: np.ndarray) -> float:
        """The smallest t with t (C + G) >= H H^T for the noise covariance G (n, n), in 1/variance, rounded up.

        C + G is lowered by a multiple of its rounding error before it is factorised, so a direction without noise
        that rounding alone makes positive counts as infinite loss. H and C are taken as they are; the rigorous
        evaluation, which also bounds their errors, is that of `jaxpriv.certificates`.
        """
        total = symmetric(self.covariance + noise)
        total -= 4 * len(total) * np.finfo(float).eps * np.linalg.norm(total, 2) * np.eye(len(total))
        try:
            factor = np.linalg.cholesky(total)
        except np.linalg.LinAlgError:
            return np.inf
        gain = np.linalg.solve(factor, self.mean_map)
        return float(np.linalg.norm(gain, 2) ** 2)


def conditional(covariance: np.ndarray, secret: SecretLike) -> Conditional:
    """The law of the trace given the secret, for the prior covariance (n, n).

    `secret` is a list of positions in the trace, or the pair (cross (n, k), variance (k, k)): the covariance of the
    trace with the secret, and the secret's own. Raises InputError for anything that is not a covariance, for positions
    that are repeated or outside the trace, and for a secret whose variance is singular.
    """
    covariance = checked_covariance(covariance, "the prior covariance")
    n = len(covariance)
    if isinstance(secret, tuple) and len(secret) == 2 and np.ndim(secret[0]) == 2:
        positions = np.zeros(0, dtype=int)
        cross = np.asarray(secret[0], dtype=float)
        variance = checked_covariance(secret[1], "the secret's variance")
        if cross.shape != (n, len(variance)):
            raise InputError(
                f"cross has shape {cross.shape}; expected ({n}, {len(variance)}): the trace has {n} points and the "
                f"secret {len(variance)} coordinates"
            )
        if not np.all(np.isfinite(cross)):
            raise InputError("cross contains a value that is not finite")
    else:
        positions = checked_positions(secret, n)
        cross, variance = covariance[:, positions], covariance[np.ix_(positions, positions)]
    spread = np.linalg.eigvalsh(variance)
    if spread[0] <= len(variance) * np.finfo(float).eps * spread[-1]:
        raise InputError(
            "the secret's prior variance is singular (a time given twice, or coordinates that determine each other); "
            "leave out what the rest determines"
        )
    mean_map = np.linalg.solve(variance, cross.T).T
    rest = covariance - mean_map @ cross.T - cross @ mean_map.T + mean_map @ variance @ mean_map.T
    mean_map[positions] = np.eye(len(positions), mean_map.shape[1])
    rest[positions, :] = 0.0
    rest[:, positions] = 0.0
    return Conditional(mean_map, symmetric(rest), positions)


def symmetric(matrix: np.ndarray) -> np.ndarray:
    """The symmetric part of a square matrix."""
    return (matrix + matrix.T) / 2


def order(matrix: object, name: str) -> int:
    """The order m of a square matrix (m, m); InputError for any other shape."""
    shape = np.asarray(matrix).shape
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise InputError(f"{name} has shape {shape}; expected a square matrix")
    return shape[0]


def checked_positions(secret: object, n: int) -> np.ndarray:
    """Distinct positions (k,) inside a trace of n points; InputError otherwise."""
    positions = np.asarray(secret)
    if positions.ndim != 1 or positions.size == 0 or not np.issubdtype(positions.dtype, np.integer):
        raise InputError(f"a secret is a non-empty list of whole positions or a pair (cross, variance); got {secret!r}")
    if positions.min() < 0 or positions.max() >= n:
        raise InputError(f"secret position {positions[(positions < 0) | (positions >= n)][0]} is outside 0..{n - 1}")
    if len(np.unique(positions)) != len(positions):
        raise InputError(f"the secret lists a position twice: {positions.tolist()}")
    return positions


def checked_covariance(matrix: object, name: str) -> np.ndarray:
    """A finite, symmetric, positive semidefinite float64 copy (m, m) up to rounding; InputError otherwise."""
    matrix = checked_symmetric(matrix, name)
    least = np.linalg.eigvalsh(matrix)[0]
    if least < -len(matrix) * 64 * np.finfo(float).eps * np.abs(matrix).max():
        raise InputError(f"{name} is not positive semidefinite: its smallest eigenvalue is {least:.3g}")
    return matrix


def checked_symmetric(matrix: object, name: str) -> np.ndarray:
    """A finite, symmetric float64 copy (m, m); InputError otherwise."""
    order(matrix, name)
    matrix = np.array(matrix, dtype=np.float64)
    if not np.all(np.isfinite(matrix)):
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise InputError(f"{name} is not finite at ({row}, {column})")
    if np.abs(matrix - matrix.T).max() > 1e-10 * np.abs(matrix).max():
        raise InputError(
            f"{name} is not symmetric: it differs from its transpose by {np.abs(matrix - matrix.T).max():.3g}"
        )
    return symmetric(matrix)


def checked_positive(value: float, name: str, unit: str) -> float:
    """A finite positive number; InputError otherwise."""
    if isinstance(value, bool) or np.ndim(value) != 0 or not np.isfinite(value) or not value > 0:
        raise InputError(f"{name} must be a positive, finite number ({unit}); got {value!r}")
    return float(value)


def checked_weights(weights: np.ndarray | None, n: int) -> np.ndarray:
    """The cost matrix W (n, n) of tr(W G), from None, n positive weights, or a positive definite matrix."""
    if weights is None:
        return np.eye(n)
    matrix = np.asarray(weights, dtype=float)
    matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
    matrix = checked_covariance(matrix, "weights")
    if matrix.shape != (n, n) or np.linalg.eigvalsh(matrix)[0] <= 0:
        raise InputError(f"weights must be {n} positive numbers or a positive definite ({n}, {n}) matrix")
    return matrix
