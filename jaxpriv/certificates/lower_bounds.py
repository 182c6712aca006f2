"""Rigorous lower bounds, valid for every mechanism: of the loss within a budget, and of the cost at a target.

Noise is any `G >= floor_variance I` of cost `tr(W G)`. With the trial vectors of `trials`, `Q` the sum of their `u u'`
and r the largest eigenvalue of `W^-1/2 Q W^-1/2`, the noise above the floor, K, has `tr(K Q) <= r tr(W K)`. For
mechanisms of a restricted structure r is smaller: "block" (independent noise of one variance on the secret's
coordinates, nothing across) `max(tr Q_SS / tr W_SS, r_UU)`; "diagonal" `max_i Q_ii / W_ii`; "banded" the largest r of
the windows of bandwidth + 1 coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from jaxpriv.certificates.arithmetic import float64_array, fraction_down, gamma, require_arithmetic
from jaxpriv.certificates.cost import check_weights
from jaxpriv.certificates.steepness import steepest
from jaxpriv.certificates.trials import Trial, check_problem, evaluate, vectors_from
from jaxpriv.errors import InputError


def loss_lower_bound(
    covariance: Any,
    joints: Any,
    V: Any,
    Z: Any,
    budget: float,
    floor_variance: float,
    structure: str = "joint",
    weights: Any = None,
    *,
    targets: Sequence[float] | None = None,
    indices: Sequence[int] | None = None,
) -> float:
    """Lower bound, for every noise of cost at most `budget`, of the largest `loss_j / targets_j` (default 1).

    `joints` is one `(cross (n, k), variance (k, k))` or a list; then V, Z and, for several priors, `covariance` are
    lists too. V_j (n, k_j) should be near `(C_j + G)^-1 H_j` and Z_j (k_j, k_j) positive semidefinite; any values give
    a valid bound, and their scale is chosen inside. `indices` (the secret's coordinates) is needed for "block".
    In 1 / squared unit of the secret where targets are 1; 0 where nothing could be verified. Derived here. Raises
    InputError for wrong shapes, for a budget below the floor's own cost and for an unknown structure.
    """
    require_arithmetic()
    problems = _problems(covariance, joints, V, Z)
    size = problems[0][0].shape[0]
    scales = _targets(targets, len(problems))
    weights = check_weights(weights, size)
    floor, spent = _floor(floor_variance, weights, size)
    remaining = Fraction(float(budget)) - spent
    if remaining < 0:
        raise InputError(
            f"the budget {float(budget)} is below the cost {float(spent)} of the floor alone; "
            "raise the budget or lower the floor."
        )
    trial = _collect(problems, scales)
    if trial is None:
        return 0.0
    steep = steepest(trial.columns, structure, weights, indices)
    if not np.isfinite(steep):
        return 0.0
    total = trial.curvature + floor * _square_sum(trial.columns) + remaining * Fraction(steep)
    if trial.linear <= 0 or trial.length <= 0 or total <= 0:
        return 0.0
    return fraction_down(trial.linear**2 / (4 * total * trial.length))


def cost_lower_bound(
    covariance: Any,
    joints: Any,
    V: Any,
    Z: Any,
    targets: float | Sequence[float],
    floor_variance: float,
    structure: str = "joint",
    weights: Any = None,
    *,
    indices: Sequence[int] | None = None,
) -> float:
    """Lower bound of the cost of every noise whose losses are at most `targets` (arguments as `loss_lower_bound`).

    Never below the cost of the floor alone. Raises InputError for wrong shapes, targets that are not positive, and an
    unknown structure.
    """
    require_arithmetic()
    problems = _problems(covariance, joints, V, Z)
    size = problems[0][0].shape[0]
    scales = _targets(targets, len(problems))
    weights = check_weights(weights, size)
    floor, spent = _floor(floor_variance, weights, size)
    return _cost(_collect(problems, scales), floor, spent, structure, weights, indices, scalable=True)


def majorant_lower_bound(
    covariance: Any,
    joints: Any,
    Z: Any,
    targets: float | Sequence[float],
    floor_variance: float,
    weights: Any = None,
    *,
    fixed: Sequence[tuple[Any, Any]] = (),
    structure: str = "joint",
    indices: Sequence[int] | None = None,
    bandwidth: int | None = None,
    times: Sequence[np.ndarray | None] | None = None,
) -> float:
    """As `cost_lower_bound`, from the dual variables of the least-trace majorant: Z_j (n, l), `Y_j = Z_j Z_j' / s`.

    The floors `F_j = H_j (S_j + I / t_j) H_j' - Sigma_j` (t_j the targets) are never formed, and the scale s that makes
    the sum of the Y_j at most the identity is verified inside. `fixed` adds floors `U U'`: pairs (U (n, q), Z (n, l)).
    For noise of a restricted `structure` only its steepness is (`steepest`). `times` gives, for each joint, the time of
    each of its coordinates; where it is not None the requirement is that of the product of balls, H D^-1 H' in place of
    H H' / t_j for some D = diag(d_time) with a mean of d of at most t_j, and the bound holds whatever the D.
    """
    require_arithmetic()
    entries = _listed(joints)
    problems = [
        (*check_problem(prior, joint, i), float64_array(z, f"Z[{i}]"))
        for i, (prior, joint, z) in enumerate(
            zip(_repeated(covariance, len(entries)), entries, _matched(Z, joints, len(entries), "Z"), strict=True)
        )
    ]
    size = problems[0][0].shape[0]
    scales = _targets(targets, len(problems))
    weights = check_weights(weights, size)
    floor, spent = _floor(floor_variance, weights, size)
    labels = [None] * len(problems) if times is None else list(times)
    trials = []
    for (prior, cross, variance, dual), scale, label in zip(problems, scales, labels, strict=True):
        if dual.ndim != 2 or dual.shape[0] != size:
            raise InputError(f"each Z must have shape ({size}, l); one has shape {dual.shape}.")
        try:
            w = np.linalg.solve(variance, cross.T @ dual)
            b = np.linalg.solve(variance, _relaxed(w, label)) / float(scale)
        except np.linalg.LinAlgError:
            return fraction_down(spent)
        trials.append((evaluate(prior, cross, variance, dual, b, w, label), scale))
    trial = _sum_trials(trials)
    for i, (root, dual) in enumerate(fixed):
        trial = _with_fixed(trial, float64_array(root, f"fixed[{i}] U"), float64_array(dual, f"fixed[{i}] Z"))
    return _cost(trial, floor, spent, structure, weights, indices, scalable=False, bandwidth=bandwidth)


def _relaxed(image: np.ndarray, times: np.ndarray | None) -> np.ndarray:
    """D^-1 H'Z for the D with a mean of 1 that is cheapest against Z: d proportional to the norms of its rows."""
    if times is None or np.max(times) == 0:
        return image
    norms = np.sqrt(np.bincount(times, np.sum(image * image, axis=1)))
    return image * np.divide(np.mean(norms), norms, out=np.zeros_like(norms), where=norms > 0)[times][:, None]


def _with_fixed(trial: Trial | None, root: np.ndarray, dual: np.ndarray) -> Trial | None:
    """The trial with `tr(Y U U')`, Y = dual dual', rounded down, on its linear side."""
    if trial is None:
        return None
    size = trial.columns.shape[0]
    if root.ndim != 2 or dual.ndim != 2 or root.shape[0] != size or dual.shape[0] != size:
        raise InputError(
            f"U and Z of a fixed floor must have {size} rows; they have shapes {root.shape}, {dual.shape}."
        )
    reached = np.abs(root.T @ dual)
    sure = np.maximum(reached - 2 * gamma(size + 4) * (np.abs(root).T @ np.abs(dual)), 0.0)
    total = float(np.sum(sure * sure)) * (1 - gamma(sure.size + 8))
    if not np.isfinite(total):
        return None
    columns = np.concatenate([trial.columns, dual], axis=1)
    return Trial(trial.linear + Fraction(max(total, 0.0)), trial.curvature, trial.length, columns)


def _cost(
    trial: Trial | None,
    floor: Fraction,
    spent: Fraction,
    structure: str,
    weights: np.ndarray | None,
    indices: Sequence[int] | None,
    *,
    scalable: bool,
    bandwidth: int | None = None,
) -> float:
    if trial is None or trial.length <= 0:
        return fraction_down(spent)
    steep = steepest(trial.columns, structure, weights, indices, bandwidth)
    if not 0 < steep < np.inf or trial.linear <= 0:
        return fraction_down(spent)
    # Scaling the u against the b is free: the best scale turns `linear - length` into the larger linear^2/(4 length).
    gained = trial.linear**2 / (4 * trial.length) if scalable else trial.linear - trial.length
    above = (gained - trial.curvature - floor * _square_sum(trial.columns)) / Fraction(steep)
    return fraction_down(spent + max(above, Fraction(0)))


def _problems(covariance: Any, joints: Any, V: Any, Z: Any) -> list[tuple]:
    entries = _listed(joints)
    count = len(entries)
    solutions, duals = _matched(V, joints, count, "V"), _matched(Z, joints, count, "Z")
    problems = []
    for i, (prior, joint) in enumerate(zip(_repeated(covariance, count), entries, strict=True)):
        prior, cross, variance = check_problem(prior, joint, i)
        solution, dual = float64_array(solutions[i], f"V[{i}]"), float64_array(duals[i], f"Z[{i}]")
        width = cross.shape[1]
        if solution.shape != cross.shape or dual.shape != (width, width):
            raise InputError(
                f"V[{i}] and Z[{i}] must have shapes {cross.shape} and {(width, width)}; "
                f"they have shapes {solution.shape} and {dual.shape}."
            )
        problems.append((prior, cross, variance, solution, dual))
    if len({problem[0].shape for problem in problems}) != 1:
        raise InputError("all covariances must have one size.")
    return problems


def _collect(problems: list[tuple], scales: list[Fraction]) -> Trial | None:
    trials = []
    for (prior, cross, variance, solution, dual), scale in zip(problems, scales, strict=True):
        u, b, w = vectors_from(cross, variance, solution, dual)
        if u.shape[1]:
            trials.append((evaluate(prior, cross, variance, u, b, w), scale))
    return _sum_trials(trials)


def _sum_trials(trials: list[tuple[Trial | None, Fraction]]) -> Trial | None:
    if not trials or any(trial is None for trial, _ in trials):
        return None
    return Trial(
        sum((trial.linear for trial, _ in trials), Fraction(0)),
        sum((trial.curvature for trial, _ in trials), Fraction(0)),
        sum((scale * trial.length for trial, scale in trials), Fraction(0)),
        np.concatenate([trial.columns for trial, _ in trials], axis=1),
    )


def _square_sum(columns: np.ndarray) -> Fraction:
    return Fraction(float(np.sum(columns * columns)) * (1 + gamma(columns.size + 4)))


def _floor(floor_variance: float, weights: np.ndarray | None, size: int) -> tuple[Fraction, Fraction]:
    """The floor's variance and its own cost, exactly."""
    value = float(float64_array(floor_variance, "floor_variance"))
    if value < 0:
        raise InputError(f"floor_variance must not be negative; it is {value}.")
    if weights is None:
        return Fraction(value), Fraction(value) * size
    diagonal = (np.diagonal(weights) if weights.ndim == 2 else weights).tolist()
    return Fraction(value), Fraction(value) * sum(map(Fraction, diagonal), Fraction(0))


def _targets(targets: float | Sequence[float] | None, count: int) -> list[Fraction]:
    values = [1.0] * count if targets is None else np.broadcast_to(float64_array(targets, "targets"), (count,)).tolist()
    if not all(value > 0 for value in values):
        raise InputError("targets must be positive.")
    return [Fraction(value) for value in values]


def _listed(joints: Any) -> list:
    single = isinstance(joints, tuple) and len(joints) == 2 and not isinstance(joints[0], (tuple, list))
    entries = [joints] if single else list(joints)
    if not entries:
        raise InputError("there must be at least one joint.")
    return entries


def _repeated(covariance: Any, count: int) -> list:
    if not isinstance(covariance, (list, tuple)):
        return [covariance] * count
    if len(covariance) != count:
        raise InputError(f"there are {len(covariance)} covariances for {count} joints.")
    return list(covariance)


def _matched(values: Any, joints: Any, count: int, name: str) -> list:
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    if len(values) != count:
        raise InputError(f"{name} must have one matrix for each of the {count} joints; it has {len(values)}.")
    return values
