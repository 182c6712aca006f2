"""A problem of many floors for the compiled solver: in units and coordinates in which it is well scaled, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxpriv.designs.floor_problem import FloorProblem
from jaxpriv.designs.majorant.product import ProductStack
from jaxpriv.designs.majorant.stack import FloorStack, inference_stack, join, low_rank_stack


def floor_stack(problem: FloorProblem, scale: float, floor_variance: float, shading: float) -> FloorStack:
    """The floors for the compiled solver, in `unit`s, at the targets times `scale`.

    Everything is asked for a little more strictly, by the relative `shading`.

    With weights, in the coordinates W^½ X and with the floor η W inside the prior covariances.
    """
    unit, n = problem.unit, problem.size
    root = weight_root(problem.weights)
    width = max(floor.cross.shape[1] for floor in problem.floors)
    cross = np.zeros((len(problem.floors), n, width))
    variance = np.zeros((len(problem.floors), width, width))
    mask = np.zeros((len(problem.floors), width), bool)
    target = np.empty(len(problem.floors))
    for i, floor in enumerate(problem.floors):
        k = floor.cross.shape[1]
        cross[i, :, :k] = (floor.cross if root is None else root @ floor.cross) / (
            unit if root is None else math.sqrt(unit) * math.sqrt(unit)
        )
        variance[i, :k, :k] = floor.variance / unit
        mask[i, :k] = True
        target[i] = floor.target * unit * (1.0 - shading) * (scale if floor.scales else 1.0)
    shared, owner, shift = _shared([covariance / unit for covariance in problem.covariances])
    if root is not None:
        weighted = [
            root @ (covariance + floor_variance * np.eye(n)) @ root / unit for covariance in problem.covariances
        ]
        shared, owner, shift = weighted, list(range(len(weighted))), [0.0] * len(weighted)
    stacks = [
        inference_stack(
            np.stack(shared),
            [floor.prior for floor in problem.floors],
            cross,
            variance,
            target,
            mask=mask,
            shift=np.array(shift),
            covariance_index=owner,
        )
    ]
    stacks[0] = _with_fixed(stacks[0], [i for i, floor in enumerate(problem.floors) if not floor.scales])
    if problem.fixed:
        width = max(shape.shape[1] for shape, _ in problem.fixed)
        columns = np.zeros((len(problem.fixed), n, width))
        for i, (shape, squared) in enumerate(problem.fixed):
            height = math.sqrt(squared * (1.0 - shading) * unit)
            columns[i, :, : shape.shape[1]] = (shape if root is None else root @ shape) / height
        base = np.zeros((1, n, n)) if root is None else floor_variance * root[None] @ root[None] / unit
        stacks.append(low_rank_stack(base, [0] * len(problem.fixed), columns))
    stack = join(*stacks) if len(stacks) > 1 else stacks[0]
    times = [floor.times for floor in problem.floors]
    if all(time is None for time in times):
        return stack
    return ProductStack.of(stack, [*times, *(None for _ in problem.fixed)])


def factor_in_units(problem: FloorProblem, factor: np.ndarray) -> np.ndarray:
    """A factor of the compiled solver's noise in the unit and the coordinates of the trace."""
    factor = np.asarray(factor) * math.sqrt(problem.unit)
    root = weight_root(problem.weights)
    return factor if root is None else np.linalg.solve(root, factor)


def duals_in_units(problem: FloorProblem, columns: np.ndarray) -> list[np.ndarray]:
    """The compiled solver's dual columns, (J, n, k), in the coordinates of the trace: one (n, k_j) a floor."""
    root = weight_root(problem.weights)
    columns = np.asarray(columns) if root is None else root @ np.asarray(columns)
    widths = [floor.cross.shape[1] for floor in problem.floors] + [shape.shape[1] for shape, _ in problem.fixed]
    return [column[:, :width] for column, width in zip(columns, widths, strict=True)]


def compiled_duals(problem: FloorProblem, duals: Sequence[np.ndarray]) -> Array:
    """The inverse of `duals_in_units`: columns (J, n, k) of spectral norm 1 to start the compiled solver from."""
    root = weight_root(problem.weights)
    width = max(dual.shape[1] for dual in duals)
    columns = np.zeros((len(duals), problem.size, width))
    for j, dual in enumerate(duals):
        columns[j, :, : dual.shape[1]] = dual if root is None else np.linalg.solve(root, dual)
    wide = columns.transpose(1, 0, 2).reshape(problem.size, -1)
    return jnp.asarray(columns / max(float(np.linalg.norm(wide, 2)), 1e-300))


def weight_root(weights: np.ndarray | None) -> np.ndarray | None:
    """W^½, (n, n), or None for equal weights."""
    if weights is None:
        return None
    if weights.ndim == 1:
        return np.diag(np.sqrt(weights))
    values, vectors = np.linalg.eigh(weights)
    return (vectors * np.sqrt(values)) @ vectors.T


def _shared(covariances: list[np.ndarray]) -> tuple[list[np.ndarray], list[int], list[float]]:
    """Covariances that differ by a multiple of the identity only are multiplied once."""
    kept: list[np.ndarray] = []
    owner: list[int] = []
    shift: list[float] = []
    for covariance in covariances:
        for i, other in enumerate(kept):
            difference = np.diagonal(covariance) - np.diagonal(other)
            even = float(np.ptp(difference)) <= 1e-14 * float(np.max(np.diagonal(covariance)))
            if even and float(np.min(difference)) >= 0.0 and np.array_equal(np.triu(covariance, 1), np.triu(other, 1)):
                owner.append(i)
                shift.append(float(np.mean(difference)))
                break
        else:
            owner.append(len(kept))
            shift.append(0.0)
            kept.append(covariance)
    return kept, owner, shift


def _with_fixed(stack: FloorStack, fixed: list[int]) -> FloorStack:
    """The same floors with some whose targets do not scale: their slope moves into the base."""
    if not fixed:
        return stack
    keep = jnp.asarray(np.isin(np.arange(stack.count), fixed))[:, None, None]
    return FloorStack(
        covariances=stack.covariances,
        directions=stack.directions,
        base=jnp.where(keep, stack.base + stack.slope, stack.base),
        slope=jnp.where(keep, 0.0, stack.slope),
        shift=stack.shift,
        prior_index=stack.prior_index,
        covariance_index=stack.covariance_index,
        fixed=tuple(fixed),
    )
