"""Verified upper bounds of how far a strategy's answers move when one person's contributions change."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from jaxpriv.certificates.arithmetic import SMALLEST, UNIT_ROUNDOFF, gamma, require_arithmetic
from jaxpriv.designs.matrix_mechanism.participations import MOST_SETS, Participations


_MOST_SIGNS = 12  # participations for which all signs are tried


class Sensitivity(NamedTuple):
    """Upper bounds of max ‖C u‖ over the changes u one person can make.

    `scalar`: each contribution is a number of absolute value at most 1. `vector`: each is a vector of Euclidean norm
    at most 1, C acting on every coordinate alike; never below `scalar`.
    """

    scalar: float
    vector: float


def sensitivity(
    strategy: Float[np.ndarray, "r n"],
    participations: Participations | None = None,
    changes: Float[np.ndarray, "n K"] | None = None,
) -> Sensitivity:
    """Bounds of the sensitivity of a strategy C (r, n): of a float64 matrix, its rounding included.

    One participation: the largest column norm. Given `changes`: the largest ‖C u‖ over its columns u (`vector` is
    then infinite unless every change has one entry). Otherwise ‖C u‖² = Σ_ij X_ij u_i u_j with X = CᵀC, over sets of
    steps: with signs where they can be enumerated, else, and for vectors, through Σ |X_ij|; where there are too many
    sets, through the two dynamic programs of Choquette-Choo et al. (2023, arXiv:2306.08153, Algorithm 4), which are
    exact where X has no entry between steps that one person can share, so for banded strategies.
    """
    require_arithmetic()
    strategy = np.asarray(strategy, dtype=np.float64)
    size = strategy.shape[1]
    if changes is not None:
        scalar = _column_norms(strategy, changes)
        alone = np.all(np.count_nonzero(changes, axis=0) <= 1)
        return Sensitivity(scalar, scalar if alone else np.inf)
    if participations is None or participations.most(size) == 1:
        single = float(np.max(_norms_up(np.sum(strategy**2, axis=0), strategy.shape[0])))
        return Sensitivity(single, single)
    gram = _gram_upper(strategy)
    if participations.number_of_sets(size) > MOST_SETS:
        bound = _root_up(_two_stage(gram.magnitude, participations), size)
        return Sensitivity(bound, bound)
    return _over_sets(gram, participations.sets(size), size)


class _Gram(NamedTuple):
    centre: np.ndarray
    magnitude: np.ndarray  # at least |X_ij| of the exact X
    radius: np.ndarray  # at least |X_ij − centre|


def _gram_upper(strategy: np.ndarray) -> _Gram:
    centre = strategy.T @ strategy
    centre = 0.5 * (centre + centre.T)
    absolute = np.abs(strategy)
    radius = 2.0 * gamma(strategy.shape[0] + 2) * (absolute.T @ absolute) + SMALLEST
    return _Gram(centre, np.abs(centre) + radius, radius)


def _over_sets(gram: _Gram, sets: Sequence[tuple[int, ...]], size: int) -> Sensitivity:
    scalar = vector = 0.0
    for length in {len(one) for one in sets}:
        steps = np.array([one for one in sets if len(one) == length])
        rows, columns = steps[:, :, None], steps[:, None, :]
        entrywise = np.max(np.sum(gram.magnitude[rows, columns], axis=(1, 2)))
        vector = max(vector, float(entrywise))
        if length > _MOST_SIGNS:
            scalar = max(scalar, float(entrywise))
            continue
        # In blocks, so that all signs of all sets need not fit into memory at once.
        signs = np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=length - 1)])
        for block in np.array_split(np.arange(len(steps)), max(1, len(steps) * len(signs) // 200_000)):
            inner = gram.centre[rows[block], columns[block]]
            quadratic = np.einsum("si,bij,sj->bs", signs, inner, signs, optimize=True)
            error = np.sum(gram.radius[rows[block], columns[block]], axis=(1, 2))
            error += 4.0 * gamma(length * length) * np.sum(np.abs(inner), axis=(1, 2))
            if quadratic.size:
                scalar = max(scalar, float(np.max(np.max(quadratic, axis=1) + error)))
    return Sensitivity(min(_root_up(scalar, size), _root_up(vector, size)), _root_up(vector, size))


def _two_stage(magnitude: np.ndarray, participations: Participations) -> float:
    """max over sets S of Σ_{i ∈ S} max over sets T of Σ_{j ∈ T} |X_ij|; an exact spacing counts as "at least"."""
    return float(_best_sums(_best_sums(magnitude, participations)[None], participations)[0])


def _best_sums(rows: np.ndarray, participations: Participations) -> np.ndarray:
    """For every row of non-negative numbers the largest sum over a set of steps."""
    count, size = rows.shape
    gap = participations.separation
    best = np.zeros((count, size + gap))
    for _ in range(participations.most(size)):
        ahead = np.zeros((count, size + gap))
        ahead[:, :size] = rows + best[:, gap:]
        best = np.maximum.accumulate(ahead[:, ::-1], axis=1)[:, ::-1]
    return best[:, 0]


def _column_norms(strategy: np.ndarray, changes: np.ndarray) -> float:
    moved = strategy @ changes
    radius = gamma(strategy.shape[1] + 2) * (np.abs(strategy) @ np.abs(changes))
    return float(np.max(_norms_up(np.sum((np.abs(moved) + radius) ** 2, axis=0), strategy.shape[0])))


def _norms_up(squares: np.ndarray, count: int) -> np.ndarray:
    return np.sqrt(squares) * (1.0 + (count + 8) * UNIT_ROUNDOFF) + SMALLEST


def _root_up(square: float, size: int) -> float:
    """The root of a computed sum of non-negative numbers, above that of the exact sum (at most size² additions)."""
    return float(np.sqrt(square * (1.0 + 4.0 * gamma(2 * size + 16)))) * (1.0 + 4.0 * UNIT_ROUNDOFF)
