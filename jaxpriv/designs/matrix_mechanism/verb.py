"""`matrix_mechanism`: least correlated Gaussian noise for a workload of linear queries, certified."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import ArrayLike, Float

from jaxpriv.certificates.arithmetic import UNIT_ROUNDOFF
from jaxpriv.designs.matrix_mechanism.bounds import lower_bound
from jaxpriv.designs.matrix_mechanism.dual import DualWeights, dual_weights
from jaxpriv.designs.matrix_mechanism.finish import Found, finished
from jaxpriv.designs.matrix_mechanism.participations import Participations
from jaxpriv.designs.matrix_mechanism.result import MatrixMechanism
from jaxpriv.designs.matrix_mechanism.structured import least_banded, least_toeplitz
from jaxpriv.errors import InputError
from jaxpriv.precision import double_precision, host_array


STEPS = {"dense": 60, "banded": 2000, "toeplitz": 1000}


def matrix_mechanism(
    workload: Float[ArrayLike, "m n"],
    *,
    mu: float = 1.0,
    participations: Participations | Float[np.ndarray, "n K"] | None = None,
    structure: Literal["dense", "banded", "toeplitz"] = "dense",
    bandwidth: int | None = None,
    tolerance: float = 1e-6,
    max_steps: int | None = None,
    floor_sd: float | None = None,
    resolution: float = 0.0,
) -> MatrixMechanism:
    """The Gaussian noise of least total error for the queries A x under μ-Gaussian differential privacy.

    The matrix mechanism (Li, Hay, Rastogi, Miklau and McGregor, PODS 2010; Denisov et al., NeurIPS 2022): minimise
    tr(AᵀA G) over covariances with G ⪰ u uᵀ/μ² for every change u that one person can make. Proofs in
    docs/matrix_mechanism.md.

    Args:
        workload: A, (m, n), queries by steps; `np.tri(n)` for prefix sums.
        mu: of Gaussian differential privacy; noise is proportional to 1/μ.
        participations: None, one person contributes to one step, by at most 1; or how often and how far apart
            (`Participations`); or the changes themselves as columns, (n, K), their negatives included by symmetry.
        structure: "dense"; "banded", C with `bandwidth` diagonals and columns of one norm; "toeplitz", C with
            coefficients that are positive and do not increase, at most `bandwidth` of them. C is lower triangular.
        bandwidth: number of diagonals. For banded strategies and several participations it may not exceed their
            separation.
        tolerance: relative gap at which a design counts as optimal ("toeplitz": norm of the gradient of the log error
            at which the search ends).
        max_steps: of Newton's method (dense) or L-BFGS.
        floor_sd: standard deviation of independent noise on top, for `mechanism.release`; the default costs 1e-8 of the
            error.
        resolution: step to which the data are recorded; the floor is at least twice that.

    Returns:
        A `MatrixMechanism`: its μ is verified, rounding included, and never above the one asked for.

    Raises:
        InputError: an argument is wrong, or the changes are too many to list for a dense design.
    """
    matrix = _checked_workload(workload)
    size = matrix.shape[1]
    for name, value in (("mu", mu), ("tolerance", tolerance)):
        if not (isinstance(value, (int, float)) and 0.0 < value < np.inf):
            raise InputError(f"{name} is {value!r}; expected a positive number.")
    bandwidth = _checked_bandwidth(structure, bandwidth, participations, size)
    listed = _changes(participations, structure, size)
    steps = STEPS[structure] if max_steps is None else max_steps
    with double_precision():
        if structure == "dense":
            found = _dense(matrix, listed, mu, tolerance, steps)
        elif structure == "banded":
            found = _banded(matrix, bandwidth, participations, mu, tolerance, steps)
        else:
            found = _toeplitz(matrix, bandwidth, participations, mu, tolerance, steps)
        return finished(matrix, found, participations, listed, structure, mu, tolerance, floor_sd, resolution)


def _checked_workload(workload: object) -> np.ndarray:
    matrix = host_array(workload, "workload", 2)
    empty = np.flatnonzero(~np.any(matrix != 0.0, axis=0))
    if empty.size:
        raise InputError(
            f"column {int(empty[0])} of workload is zero: no query asks for that number, so it needs no noise. Leave "
            "such columns out."
        )
    return matrix


def _checked_bandwidth(
    structure: str, bandwidth: int | None, participations: Participations | np.ndarray | None, size: int
) -> int:
    if structure not in STEPS:
        raise InputError(f"structure is {structure!r}; expected 'dense', 'banded' or 'toeplitz'.")
    if structure == "dense":
        if bandwidth is not None:
            raise InputError("bandwidth is for structure='banded' and 'toeplitz'.")
        return size
    if not isinstance(participations, (Participations, type(None))):
        raise InputError(f"structure={structure!r} needs Participations; a list of changes is for 'dense'.")
    if bandwidth is None and structure == "toeplitz":
        return size
    if isinstance(bandwidth, bool) or not isinstance(bandwidth, (int, np.integer)) or not 1 <= bandwidth <= size:
        raise InputError(f"bandwidth is {bandwidth!r}; expected a whole number from 1 to {size}.")
    several = participations is not None and participations.most(size) > 1
    if structure == "banded" and several and participations is not None and bandwidth > participations.separation:
        raise InputError(
            f"bandwidth is {bandwidth} and the separation {participations.separation}: a banded strategy of equal "
            "norms has a closed sensitivity only up to the separation."
        )
    return int(bandwidth)


def _changes(participations: Participations | np.ndarray | None, structure: str, size: int) -> np.ndarray | None:
    """The changes as columns where a dense design needs them; None for the unit vectors and for other structures."""
    if participations is None or structure != "dense":
        return None
    if isinstance(participations, Participations):
        return None if participations.most(size) == 1 else participations.changes(size)
    changes = host_array(participations, "participations", 2)
    if changes.shape[0] != size:
        raise InputError(f"participations has {changes.shape[0]} rows for a workload of {size} columns.")
    if np.linalg.matrix_rank(changes) < size:
        raise InputError("the changes do not span the data: some direction would get no noise. Add what can change.")
    return changes


def _dense(matrix: np.ndarray, changes: np.ndarray | None, mu: float, tolerance: float, max_steps: int) -> Found:
    moved = matrix if changes is None else matrix @ changes
    # In units in which the largest entry is about 1: an exact rescaling.
    unit = 2.0 ** -int(np.frexp(np.max(np.abs(moved)))[1])
    if changes is not None:
        moved = moved[:, np.any(moved != 0.0, axis=0)]
    solved, accurate = _solved(unit * moved, 0.1 * tolerance, max_steps)
    root = np.sqrt(np.asarray(solved.weights))
    left, values, right = np.linalg.svd(unit * moved * root, full_matrices=False)
    kept = values > UNIT_ROUNDOFF * max(moved.shape) * values[0]
    left, values, right = left[:, kept], values[kept], right[kept]
    strategy = (left.T @ (unit * matrix)) / np.sqrt(values)[:, None]
    # With the unit vectors S^½ Qᵀ D(v)^−½ is the same strategy, and better conditioned where weights are not small.
    if changes is None and np.min(root) > 1e-6 * np.max(root):
        strategy = np.sqrt(values)[:, None] * right / root
    trial = left @ right
    trial_changes = changes
    if changes is not None:
        trial_changes = changes[:, np.any(matrix @ changes != 0.0, axis=0)]
    lower = lower_bound(matrix, trial, trial_changes, mu)
    history = tuple(float(gap) for gap in np.asarray(solved.history)[: int(solved.steps)])
    stats = {"method": "dual Newton", "steps": int(solved.steps), "history": history, "accurate": accurate}
    return Found(strategy, lower, "all noise", stats)


def _solved(moved: np.ndarray, tolerance: float, max_steps: int) -> tuple[DualWeights, bool]:
    """Gram matrices first, at a third of the time; singular value decompositions where rounding stops those."""
    rows = np.asarray(np.linalg.qr(moved, mode="r")) if moved.shape[0] > moved.shape[1] else moved
    solved = dual_weights(rows, tolerance=tolerance, max_steps=max_steps)
    gap = 1.0 - float(solved.lower) / float(solved.upper)
    if -1e-12 <= gap <= tolerance:
        return solved, False
    again = dual_weights(rows, tolerance=tolerance, max_steps=max_steps, accurate=True)
    worse = not float(again.upper) - float(again.lower) < float(solved.upper) - float(solved.lower)
    return (solved, False) if worse and gap >= 0.0 else (again, True)


def _banded(matrix, bandwidth, participations, mu, tolerance, max_steps) -> Found:
    most = 1 if participations is None else participations.most(matrix.shape[1])
    found = least_banded(matrix, bandwidth, mu**2 / most, tolerance, max_steps)
    about = f"strategies of {bandwidth} diagonals with columns of norm at most μ/√{most}"
    return Found(
        found.strategy, found.lower, about, {"method": "L-BFGS", "steps": found.steps, "gradient": found.gradient}
    )


def _toeplitz(matrix, bandwidth, participations, mu, tolerance, max_steps) -> Found:
    size = matrix.shape[1]
    sharing = Participations(1) if participations is None else participations
    first = np.arange(0, size, sharing.separation)[: sharing.most(size)]
    found = least_toeplitz(matrix, bandwidth, first, tolerance, max_steps)
    # A few of the changes give a bound that holds for all noise, if not the best one.
    few = None
    if len(first) > 1:
        few = np.zeros((size, 0))
        exact = Participations(sharing.count, sharing.separation, "exact")
        for steps in exact.sets(size):
            column = np.zeros((size, 1))
            column[list(steps)] = 1.0
            few = np.hstack([few, column])
        few = few[:, np.any(matrix @ few != 0.0, axis=0)]
    moved = matrix if few is None else matrix @ few
    solved, _ = _solved(moved, 1e-8, STEPS["dense"])
    left, _, right = np.linalg.svd(moved * np.sqrt(np.asarray(solved.weights)), full_matrices=False)
    lower = lower_bound(matrix, left @ right, few, mu)
    stats = {"method": "L-BFGS", "steps": found.steps, "gradient": found.gradient}
    return Found(found.strategy, lower, "all noise", stats, first)
