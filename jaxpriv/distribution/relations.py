"""Which pairs are to be indistinguishable: relations on inputs, and their liftings to distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxpriv.distribution.divergences import check_distribution
from jaxpriv.distribution.flow import shipped, transportable, whole_masses
from jaxpriv.distribution.transport import check_cost, optimal_coupling
from jaxpriv.errors import InputError


def check_relation(relation: Any, size: int | None = None) -> np.ndarray:
    """Φ as booleans (n, n) with the diagonal added: a pair of equal inputs costs nothing, and liftings need it.

    Raises:
        InputError: not a square matrix of booleans, of the wrong size, or no pair at all.
    """
    array = np.asarray(relation)
    if array.dtype != bool:
        if array.dtype.kind not in "iu" or not np.all((array == 0) | (array == 1)):
            raise InputError(f"a relation is a matrix of booleans; this has dtype {array.dtype}.")
        array = array.astype(bool)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or (size is not None and array.shape[0] != size):
        raise InputError(f"the relation has shape {array.shape}; expected ({size or 'n'}, {size or 'n'}).")
    if not np.any(array):
        raise InputError("the relation holds no pair.")
    return array | np.eye(len(array), dtype=bool)


def from_pairs(pairs: Any, size: int, *, symmetric: bool = True) -> np.ndarray:
    """The relation of the listed pairs (i, j), with the diagonal, and with each pair reversed unless told otherwise.

    Raises InputError for a pair outside 0 … size − 1, or an empty list.
    """
    listed = np.asarray(list(pairs))
    if listed.ndim != 2 or listed.shape[1:] != (2,) or listed.dtype.kind not in "iu":
        raise InputError("pairs must be a list, not empty, of pairs of positions.")
    if np.any((listed < 0) | (listed >= size)):
        raise InputError(f"a pair names a position outside 0 … {size - 1}.")
    relation = np.eye(size, dtype=bool)
    relation[listed[:, 0], listed[:, 1]] = True
    return relation | relation.T if symmetric else relation


def within(distance: Any, radius: float) -> np.ndarray:
    """The relation of all pairs at most `radius` apart."""
    matrix = check_cost(distance)
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"the distance has shape {matrix.shape}; a relation is on one set.")
    if not radius >= 0.0:
        raise InputError(f"radius is {radius}; expected a distance of at least 0.")
    return check_relation(matrix <= radius)


def is_lifted(first: Any, second: Any, relation: Any) -> bool:
    """Whether (λ₀, λ₁) is in the lifting Φ^#: some coupling of the two lives on pairs of Φ.

    Exact for the numbers given, each distribution divided by its exact sum; the diagonal counts as in Φ. Rounding in
    probabilities that were computed can therefore turn a yes into a no, which is the safe answer; `missing_mass` says
    by how much.
    """
    p, q, allowed = _pair(first, second, relation)
    return transportable(*whole_masses(p, q), allowed)


def missing_mass(first: Any, second: Any, relation: Any) -> float:
    """The least mass that any coupling of the two puts outside Φ; 0 exactly when `is_lifted`."""
    p, q, allowed = _pair(first, second, relation)
    supply, demand = whole_masses(p, q)
    total = sum(supply)
    return (total - shipped(supply, demand, allowed)[0]) / total


def is_lifted_optimally(first: Any, second: Any, relation: Any, distance: Any, power: float = 1.0) -> bool:
    """Whether a coupling on pairs of Φ is also one of least Σ γ d^p: the lifting Φ^#_{W_p}.

    Decided by two linear programs in floating point; costs that agree to 1e-9 of the largest distance count as equal.
    """
    p, q, allowed = _pair(first, second, relation)
    matrix = check_cost(distance, allowed.shape)
    if not is_lifted(p, q, allowed):
        return False
    scale = float(np.max(matrix)) or 1.0
    cost = (matrix / scale) ** power
    free = optimal_coupling(p, q, cost, method="linear program").cost
    # Outside Φ a unit costs more than any plan inside could save.
    bound = optimal_coupling(p, q, np.where(allowed, cost, 4.0), method="linear program").cost
    return bound <= free + 1e-9


def diameter(first: Any, second: Any, distance: Any) -> float:
    """The largest distance between the supports of two distributions; W_1 ≤ W_∞ ≤ this."""
    p, q = check_distribution(first, "first"), check_distribution(second, "second")
    matrix = check_cost(distance, (p.size, q.size))
    return float(np.max(matrix[np.ix_(p > 0.0, q > 0.0)]))


def _pair(first: Any, second: Any, relation: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    p = check_distribution(first, "first")
    q = check_distribution(second, "second", p.size)
    return p, q, check_relation(relation, p.size)
