"""Several secrets, priors, structures and bounds in one cone program: everything `jaxpriv.design` can ask of noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jaxpriv.convex.conditional import checked_weights, symmetric
from jaxpriv.convex.solving import check_size, cvxpy, lifted, run
from jaxpriv.errors import InputError


Structure = Literal["joint", "block", "diagonal", "banded"]


@dataclass(frozen=True)
class Requirement:
    """Hᵀ(C + G)⁻¹H ⪯ D = diag(d of each coordinate's time), with a mean of d of at most `target` (times the scale).

    Attributes:
        mean_map, covariance: H, (n, k), and C, (n, n).
        times: the time 0..s−1 of each coordinate, (k,); all 0 for the enclosing ball.
        target: in 1/variance.
        scales: whether a budget problem may scale the target.
    """

    mean_map: np.ndarray
    covariance: np.ndarray
    times: np.ndarray
    target: float
    scales: bool = True


@dataclass(frozen=True)
class GeneralSolution:
    """What the solver returned, unverified: the noise above the floor, (n, n), its duals and its own value.

    `duals` holds for each requirement Z (n, k), Z Zᵀ its dual variable up to a common factor; `value` is the least cost
    of the noise above the floor, or the least scale of the targets.
    """

    excess: np.ndarray
    value: float
    duals: list[np.ndarray]
    status: str
    seconds: float


def general_program(
    requirements: Sequence[Requirement],
    *,
    structure: Structure = "joint",
    bandwidth: int | None = None,
    positions: Sequence[int] = (),
    weights: np.ndarray | None = None,
    floor_variance: float = 0.0,
    budget: float | None = None,
    solver: str = "CLARABEL",
    options: Mapping[str, Any] | None = None,
    n_max: int = 60,
) -> GeneralSolution:
    """Noise ηI + K, K ⪰ 0 of the structure: the least tr(W K), or the least scale of the targets for tr(W K) ≤ budget.

    Each requirement is the cone [[D, Hᵀ], [H, C + ηI + K]] ⪰ 0, written in coordinates in which white noise of the
    expected size is the identity. `positions` are the coordinates of white noise of structure "block".

    Raises:
        InputError: no requirement, or a program above `n_max`.
        InfeasibleError: the requirements that do not scale cost more than the budget.
        CertificateError: the solver failed.
    """
    if not requirements:
        raise InputError("requirements is empty; give at least one.")
    n = requirements[0].mean_map.shape[0]
    check_size([n, *(n + one.mean_map.shape[1] for one in requirements)], n_max)
    cp = cvxpy()
    cost = checked_weights(weights, n)
    if budget is None:
        unit = float(np.mean([one.mean_map.shape[1] / one.target for one in requirements])) / n
    else:
        unit = budget / float(np.trace(cost))
    noise, constraints = _noise(cp, n, structure, bandwidth, positions)
    scale: Any = 1.0 if budget is None else cp.Variable()
    # The scale is counted in what white noise of the budget would need.
    scale_unit = 1.0 if budget is None else _white_scale(requirements, unit + floor_variance)
    cones, whites = [], []
    for one in requirements:
        white = _whitening(one.covariance + (floor_variance + unit) * np.eye(n))
        gain = white @ one.mean_map / np.sqrt(one.target * (scale_unit if one.scales else 1.0))
        factor = scale if one.scales else 1.0
        k = gain.shape[1]
        count = int(one.times.max()) + 1
        if count == 1:
            diagonal = factor * np.eye(k)
        else:
            d = cp.Variable(count)
            labels = (one.times[:, None] == np.arange(count)).astype(float)
            diagonal = cp.diag(labels @ d)
            constraints.append(cp.sum(d) <= count * factor)
        fixed = np.eye(n) - unit * white @ white
        cones.append(cp.bmat([[diagonal, gain.T], [gain, fixed + unit * (white @ noise @ white)]]) >> 0)
        whites.append(white)
    spent = cp.sum(cp.multiply(cost / float(np.trace(cost)), noise))
    if budget is None:
        problem = cp.Problem(cp.Minimize(spent), [*constraints, *cones])
    else:
        problem = cp.Problem(cp.Minimize(scale), [*constraints, *cones, spent <= 1.0])
    status, seconds = run(problem, solver, options, "general design program")
    value = float(problem.value) * (unit * float(np.trace(cost)) if budget is None else scale_unit)
    duals = [_dual(cone.dual_value, white, one) for cone, white, one in zip(cones, whites, requirements, strict=True)]
    excess, _ = lifted(unit * np.asarray(noise.value))
    return GeneralSolution(excess, value, duals, status, seconds)


def _noise(cp: Any, n: int, structure: str, bandwidth: int | None, positions: Sequence[int]) -> tuple[Any, list[Any]]:
    """The unknown covariance (n, n) of the structure, and the constraints that come with it."""
    if structure == "diagonal":
        return cp.diag(cp.Variable(n, nonneg=True)), []
    if structure == "block":
        rest = np.setdiff1d(np.arange(n), np.asarray(positions, dtype=int))
        inside = np.zeros(n)
        inside[list(positions)] = 1.0
        white = cp.Variable(nonneg=True) * np.diag(inside)
        if rest.size == 0:
            return white, []
        select = np.eye(n)[:, rest]
        return white + select @ cp.Variable((rest.size, rest.size), PSD=True) @ select.T, []
    noise = cp.Variable((n, n), PSD=True)
    if structure == "joint":
        return noise, []
    outside = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) > (bandwidth or 0)
    return noise, [cp.multiply(outside.astype(float), noise) == 0.0] if outside.any() else []


def _whitening(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(symmetric(matrix))
    return symmetric((vectors / np.sqrt(np.maximum(values, np.finfo(float).tiny))) @ vectors.T)


def _white_scale(requirements: Sequence[Requirement], variance: float) -> float:
    """The scale of the targets that white noise meets."""
    scales = [
        float(
            np.linalg.norm(_whitening(one.covariance + variance * np.eye(len(one.covariance))) @ one.mean_map, 2) ** 2
        )
        / one.target
        for one in requirements
        if one.scales
    ]
    return max(scales, default=1.0) or 1.0


def _dual(value: Any, white: np.ndarray, one: Requirement) -> np.ndarray:
    """Z (n, k) from the dual matrix of the requirement's cone, whose lower right block is that of C + G ⪰ HD⁻¹Hᵀ."""
    k = one.mean_map.shape[1]
    if value is None:
        return np.zeros_like(one.mean_map)
    lower = white @ symmetric(np.asarray(value))[k:, k:] @ white
    values, vectors = np.linalg.eigh(symmetric(lower))
    return vectors[:, -k:] * np.sqrt(np.maximum(values[-k:], 0.0))
