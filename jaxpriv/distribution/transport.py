"""Couplings of two distributions and Wasserstein distances: linear programs, north-west corners, and W_∞ by flow."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from scipy import optimize, sparse

from jaxpriv.certificates.arithmetic import float64_array
from jaxpriv.distribution.divergences import check_distribution
from jaxpriv.distribution.flow import shipped, whole_masses
from jaxpriv.errors import CertificateError, InputError


@dataclass(frozen=True)
class Coupling:
    """A joint distribution with given margins.

    Attributes:
        plan: γ, (n, m) non-negative; its rows sum to the first distribution, its columns to the second.
        cost: Σ γ d of the plan, or the largest d on its support where `kind` is "minimax".
        potentials: (u, v) with u_i + v_j ≤ d_ij and Σ λu + Σ μv = cost, where a linear program was solved. u is the
            gradient of the cost by λ, up to a constant.
        kind: "cost", "minimax" or "independent".
        method: "north-west corner", "linear program" or "flow".
    """

    plan: np.ndarray
    cost: float
    potentials: tuple[np.ndarray, np.ndarray] | None
    kind: str
    method: str


def check_cost(cost: Any, shape: tuple[int, int] | None = None) -> np.ndarray:
    """A cost matrix as float64. Raises InputError: wrong shape, not finite, or negative."""
    matrix = float64_array(cost, "cost")
    if matrix.ndim != 2 or (shape is not None and matrix.shape != shape):
        raise InputError(f"cost has shape {matrix.shape}; expected {shape or '(n, m)'}.")
    if np.any(matrix < 0.0):
        raise InputError("cost holds a negative entry.")
    return matrix


def check_metric(distance: Any, size: int | None = None) -> np.ndarray:
    """A metric as float64, (n, n).

    Raises:
        InputError: not symmetric, a diagonal that is not zero, or a violated triangle inequality (beyond rounding).
    """
    matrix = check_cost(distance, None if size is None else (size, size))
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"a metric is square; this has shape {matrix.shape}.")
    slack = 1e-12 * float(np.max(matrix, initial=0.0))
    if np.any(np.abs(matrix - matrix.T) > slack):
        raise InputError("the distance is not symmetric.")
    if np.any(np.diagonal(matrix) != 0.0):
        raise InputError("the distance of a point from itself is not zero.")
    for middle in range(len(matrix)):
        over = matrix > matrix[:, middle, None] + matrix[None, middle] + slack
        if np.any(over):
            i, j = np.argwhere(over)[0]
            raise InputError(f"the triangle inequality fails from {i} over {middle} to {j}.")
    return matrix


def is_monge(cost: np.ndarray) -> bool:
    """Whether d(i, j) + d(i+1, j+1) ≤ d(i, j+1) + d(i+1, j) for all neighbours, which is enough for all pairs.

    It depends on the order of rows and columns: |x − y|^p with p ≥ 1 has it for sorted points.
    """
    minors = cost[:-1, :-1] + cost[1:, 1:] - cost[:-1, 1:] - cost[1:, :-1]
    return bool(np.all(minors <= 1e-12 * np.max(np.abs(cost), initial=0.0)))


def north_west(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The corner plan of two distributions, (n, m): at most n + m − 1 positive entries, no spurious ones.

    Walked in exact arithmetic, each distribution divided by its own exact sum, because cumulative sums in floating
    point invent pairs that no optimal plan has.
    """
    left, right = whole_masses(first, second)
    total = sum(left)
    plan = np.zeros((len(left), len(right)))
    i = j = 0
    while i < len(left) and j < len(right):
        amount = min(left[i], right[j])
        if amount:
            plan[i, j] = amount / total
        left[i] -= amount
        right[j] -= amount
        if left[i] == 0:
            i += 1
        else:
            j += 1
    return plan


def optimal_coupling(
    first: Any, second: Any, cost: Any, *, method: Literal["auto", "north-west corner", "linear program"] = "auto"
) -> Coupling:
    """The coupling of least expected cost.

    "auto" takes the north-west corner where the cost is Monge in the order given, and the linear program otherwise: by
    POT's network simplex where it is installed, by HiGHS where it is not.

    Raises:
        InputError: bad distributions or cost, or the corner was asked for and the cost is not Monge.
        CertificateError: the solver failed.
    """
    p, q = check_distribution(first, "first"), check_distribution(second, "second")
    matrix = check_cost(cost, (p.size, q.size))
    if method not in ("auto", "north-west corner", "linear program"):
        raise InputError(f"method is {method!r}; expected 'auto', 'north-west corner' or 'linear program'.")
    if method != "linear program":
        if is_monge(matrix):
            plan = north_west(p, q)
            return Coupling(plan, float(np.sum(plan * matrix)), None, "cost", "north-west corner")
        if method == "north-west corner":
            raise InputError(
                "the cost is not Monge in this order of rows and columns, so the north-west corner need not be "
                "optimal; sort the points if they lie on a line, or use method='linear program'."
            )
    return _linear_program(p, q, matrix)


def _linear_program(p: np.ndarray, q: np.ndarray, cost: np.ndarray) -> Coupling:
    rows, columns = np.flatnonzero(p), np.flatnonzero(q)
    inner = cost[np.ix_(rows, columns)]
    scale = float(np.max(inner)) or 1.0
    found = _network_simplex(p[rows] / p.sum(), q[columns] / q.sum(), inner / scale)
    if found is not None:
        return _finished(cost, rows, columns, found[0], found[1] * scale)
    equations = sparse.vstack(
        [
            sparse.kron(sparse.eye_array(len(rows)), np.ones((1, len(columns)))),
            sparse.kron(np.ones((1, len(rows))), sparse.eye_array(len(columns))),
        ]
    ).tocsr()
    right = np.concatenate([p[rows] / p.sum(), q[columns] / q.sum()])
    solved = optimize.linprog(inner.ravel() / scale, A_eq=equations, b_eq=right, bounds=(0, None), method="highs")
    if solved.status != 0:
        raise CertificateError(f"the transport program was not solved: {solved.message}")
    return _finished(cost, rows, columns, solved.x.reshape(inner.shape), solved.eqlin.marginals[len(rows) :] * scale)


def _network_simplex(p: np.ndarray, q: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Plan and column potentials by POT where it is installed, far faster than a general solver; None otherwise."""
    try:
        import ot  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    plan, log = ot.emd(p, q, np.ascontiguousarray(cost), numItermax=10_000_000, log=True)
    return None if log["warning"] else (np.asarray(plan), np.asarray(log["v"]))


def _finished(cost, rows, columns, inner_plan, column_potentials) -> Coupling:
    plan = np.zeros(cost.shape)
    plan[np.ix_(rows, columns)] = np.maximum(inner_plan, 0.0)
    # Any v gives the best u, so that the pair is feasible whatever the solver's slack.
    u = np.min(cost[:, columns] - column_potentials, axis=1)
    v = np.min(cost - u[:, None], axis=0)
    return Coupling(plan, float(np.sum(plan * cost)), (u, v), "cost", "linear program")


def wasserstein(first: Any, second: Any, distance: Any, power: float = 1.0) -> float:
    """W_p = (min Σ γ d^p)^{1/p} over couplings γ, in the unit of the distance; power = ∞ for the largest d instead.

    Raises:
        InputError: bad arguments, or a power below 1.
        CertificateError: the solver failed.
    """
    if not power >= 1.0:
        raise InputError(f"power is {power}; expected a number from 1 to infinity.")
    if np.isinf(power):
        return minimax_coupling(first, second, distance).cost
    matrix = check_cost(distance)
    scale = float(np.max(matrix)) or 1.0
    return scale * optimal_coupling(first, second, (matrix / scale) ** power).cost ** (1.0 / power)


def minimax_coupling(first: Any, second: Any, distance: Any, *, ignoring: float = 0.0) -> Coupling:
    """A coupling whose largest distance is least: W_∞ and a plan that attains it.

    Decided in exact arithmetic on the numbers given, each distribution divided by its exact sum: no tolerance hides a
    small mass that has far to go, which would claim more privacy than there is. `ignoring` leaves that much mass out of
    the plan; what follows from such a distance holds with δ = `ignoring` only.
    """
    if not 0.0 <= ignoring < 1.0:
        raise InputError(f"ignoring is {ignoring}; expected a probability from 0 to below 1.")
    p, q = check_distribution(first, "first"), check_distribution(second, "second")
    matrix = check_cost(distance, (p.size, q.size))
    supply, demand = whole_masses(p, q)
    total = sum(supply)
    support = (np.array([s > 0 for s in supply])[:, None]) & (np.array([d > 0 for d in demand])[None, :])
    heights = np.unique(matrix[support])
    needed = total - int(Fraction(ignoring) * total)
    low, high = 0, len(heights) - 1
    best = None
    while low <= high:
        middle = (low + high) // 2
        amount, plan = shipped(supply, demand, support & (matrix <= heights[middle]))
        if amount >= needed:
            best, high = (heights[middle], plan), middle - 1
        else:
            low = middle + 1
    if best is None:
        raise AssertionError("the product of two distributions is a coupling of them.")
    dense = np.zeros(matrix.shape)
    for (i, j), amount in best[1].items():
        dense[i, j] = amount / total
    return Coupling(dense, float(best[0]), None, "minimax", "flow")
