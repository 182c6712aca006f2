"""Where to send the groups: the target of least total movement, and outputs that may differ a little.

Linear programs (HiGHS), and the closed form on a line. Derived here; proofs in docs/distribution.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, sparse

from jaxpriv.channels.channel import Channel
from jaxpriv.distribution.coupling import check_groups
from jaxpriv.distribution.divergences import check_distribution
from jaxpriv.distribution.transport import check_cost, wasserstein
from jaxpriv.errors import CertificateError, InputError


_LARGEST = 2_000_000  # variables of a program that is still tried


@dataclass(frozen=True)
class Barycentre:
    """The target μ, (m,), and the weighted expected distance of the mechanism that sends every group to it."""

    target: np.ndarray
    cost: float


@dataclass(frozen=True)
class RelaxedOutputs:
    """Channels of least movement whose output laws differ by a bounded factor.

    Attributes:
        channels: one for each group, (n, m). outputs: their laws under the known distributions, (groups, m).
        cost: weighted expected distance; lower_bound: the value of the linear program, which nothing goes below.
        epsilon: the largest D_∞ between two output laws of the channels returned, rounded up: at most what was asked.
    """

    channels: tuple[Channel, ...]
    outputs: np.ndarray
    cost: float
    lower_bound: float
    epsilon: float


def barycentre(groups: Any, distance: Any, weights: Any = None) -> Barycentre:
    """The target μ of least Σ p_s W_1(λ̂_s, μ), by a linear program over all couplings at once.

    Args:
        groups: λ̂, (groups, n). distance: d, (n, m). weights: p, one for each group; equal by default.

    Raises:
        InputError: bad arguments, or a program of more than two million variables.
        CertificateError: the solver failed.
    """
    cost, laws, share = _checked(groups, distance, weights)
    solved = _solve(laws, cost, share, None)
    target = solved.sum(axis=1)[0]
    target = np.maximum(target, 0.0) / np.sum(np.maximum(target, 0.0))
    return Barycentre(target, _movement(laws, target, cost, share))


def line_barycentre(groups: Any, positions: Any, weights: Any = None) -> Barycentre:
    """The barycentre on a line, in closed form: its distribution function is the weighted median of the groups'.

    Inputs and outputs are the same sorted `positions`, (n,). Lower medians, so that ties keep the function monotone.
    """
    points = np.asarray(positions, dtype=np.float64)
    if points.ndim != 1 or not np.all(np.isfinite(points)) or np.any(np.diff(points) <= 0.0):
        raise InputError("positions must be finite and strictly increasing.")
    cost, laws, share = _checked(groups, np.abs(points[:, None] - points), weights)
    cumulative = np.cumsum(laws, axis=1)
    order = np.argsort(cumulative, axis=0, kind="stable")
    heights = np.take_along_axis(cumulative, order, axis=0)
    gathered = np.cumsum(share[order], axis=0)
    median = heights[np.argmax(gathered >= 0.5 - 1e-12, axis=0), np.arange(points.size)]
    median[-1] = 1.0
    target = np.maximum(np.diff(median, prepend=0.0), 0.0)
    target /= np.sum(target)
    return Barycentre(target, _movement(laws, target, cost, share))


def relaxed_outputs(
    groups: Any, distance: Any, epsilon: float, weights: Any = None, *, between: Any = None
) -> RelaxedOutputs:
    """The channels of least expected distance whose output laws ν_s satisfy ν_s ≤ e^ε ν_t for all pairs of groups.

    Args:
        groups: λ̂, (groups, n), known exactly. distance: d, (n, m).
        epsilon: nats; 0 is the barycentre.
        between: distances between the groups, (groups, groups); the factor is then e^(ε · between), the extended
            notion. `pairwise_distances` gives the Wasserstein ones.

    The solver's channels are mixed with the constant channel of the mean output until the bound holds in exact terms;
    what that costs is in `cost`.

    Raises:
        InputError: bad arguments, or a program of more than two million variables.
        CertificateError: the solver failed.
    """
    cost, laws, share = _checked(groups, distance, weights)
    if not (math.isfinite(epsilon) and epsilon >= 0.0):
        raise InputError(f"epsilon is {epsilon}; expected a number of nats of at least 0.")
    budgets = np.full((len(laws), len(laws)), float(epsilon))
    if between is not None:
        budgets = float(epsilon) * check_cost(between, budgets.shape)
    plans = _solve(laws, cost, share, budgets)
    value = float(np.einsum("s,snm,nm->", share, plans, cost))
    sums = plans.sum(axis=2, keepdims=True)
    mean = np.einsum("s,snm->m", share, plans)
    mean /= mean.sum()
    rows = np.where(sums > 1e-300, plans / np.where(sums > 1e-300, sums, 1.0), mean)
    rows = _repaired(rows, laws, mean, budgets)
    outputs = np.einsum("sn,snm->sm", laws, rows)
    reached = np.einsum("s,sn,snm,nm->", share, laws, rows, cost)
    levels = [_ratio(outputs[s], outputs[t]) for s in range(len(laws)) for t in range(len(laws)) if s != t]
    largest = max(levels, default=0.0)
    lower = value - 1e-7 * float(np.max(cost))
    return RelaxedOutputs(tuple(Channel.from_matrix(one) for one in rows), outputs, float(reached), lower, largest)


def pairwise_distances(groups: Any, distance: Any) -> np.ndarray:
    """W_1 between every two groups, (groups, groups)."""
    laws = check_groups(groups, np.asarray(distance).shape[0])
    found = np.zeros((len(laws), len(laws)))
    for s in range(len(laws)):
        for t in range(s):
            found[s, t] = found[t, s] = wasserstein(laws[s], laws[t], distance)
    return found


def _checked(groups, distance, weights) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    cost = check_cost(distance)
    laws = check_groups(groups, cost.shape[0])
    share = (
        np.full(len(laws), 1.0 / len(laws)) if weights is None else check_distribution(weights, "weights", len(laws))
    )
    variables = len(laws) * cost.size
    if variables > _LARGEST:
        raise InputError(
            f"{len(laws)} groups on {cost.shape[0]} × {cost.shape[1]} cells make a linear program of {variables:,} "
            f"variables; the limit is {_LARGEST:,}. Merge cells, use kind='entropic' with a target of your own, or "
            "searched_outputs."
        )
    return cost, laws, share


def _solve(laws: np.ndarray, cost: np.ndarray, share: np.ndarray, budgets: np.ndarray | None) -> np.ndarray:
    """Plans γ, (groups, n, m), with rows λ_s; equal columns' sums (no budgets), or within the factors e^budget."""
    count, (n, m) = len(laws), cost.shape
    factors = None if budgets is None else np.exp(np.minimum(budgets, 700.0))
    scale = float(np.max(cost)) or 1.0
    objective = np.concatenate([(p * cost / scale).ravel() for p in share])
    rows = sparse.kron(sparse.eye_array(count * n), np.ones((1, m)))
    columns = sparse.kron(sparse.eye_array(count), sparse.kron(np.ones((1, n)), sparse.eye_array(m))).tocsr()
    block = [columns[s * m : (s + 1) * m] for s in range(count)]
    equal, unequal = [rows], []
    for s in range(count):
        for t in range(count):
            if s == t:
                continue
            factor = 1.0 if factors is None else float(factors[s, t])
            if factor > 1.0:
                unequal.append(block[s] - factor * block[t])
            elif t == s + 1 if factors is None else s < t:
                equal.append(block[s] - block[t])
    a_eq = sparse.vstack(equal).tocsr()
    b_eq = np.concatenate([(laws / laws.sum(axis=1, keepdims=True)).ravel(), np.zeros(m * (len(equal) - 1))])
    solved = optimize.linprog(
        objective,
        A_ub=sparse.vstack(unequal).tocsr() if unequal else None,
        b_ub=np.zeros(m * len(unequal)) if unequal else None,
        A_eq=a_eq,
        b_eq=b_eq,
        bounds=(0, None),
        method="highs",
    )
    if solved.status != 0:
        raise CertificateError(f"the linear program was not solved: {solved.message}")
    return np.maximum(solved.x, 0.0).reshape(count, n, m)


def _movement(laws, target, cost, share) -> float:
    return float(sum(p * wasserstein(law, target, cost) for p, law in zip(share, laws, strict=True)))


def _ratio(first: np.ndarray, second: np.ndarray) -> float:
    has = first > 0.0
    if np.any(has & (second <= 0.0)):
        return math.inf
    # Sums of products of so many terms, and two logarithms.
    return float(np.max(np.log(first[has]) - np.log(second[has]))) + 4 * (len(first) + 8) * 2.0**-53


def _repaired(rows: np.ndarray, laws: np.ndarray, mean: np.ndarray, budgets: np.ndarray) -> np.ndarray:
    """(1 − t) C + t · constant for the least t of a short ladder at which all output laws are within their factors."""
    for t in (0.0, *(10.0 ** np.arange(-15, 0.01, 0.5))):
        mixed = (1.0 - t) * rows + t * mean
        mixed = mixed / mixed.sum(axis=2, keepdims=True)
        outputs = np.einsum("sn,snm->sm", laws, mixed)
        # A column that rounding alone fills belongs to nobody.
        if all(
            _ratio(outputs[s], outputs[u]) <= max(budgets[s, u], 8 * (len(mean) + 8) * 2.0**-53)
            for s in range(len(laws))
            for u in range(len(laws))
            if s != u
        ):
            return mixed
    return np.repeat(np.repeat(mean[None, None], rows.shape[1], axis=1), len(laws), axis=0)
