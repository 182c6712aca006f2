"""What any noise that protects every secret must cost: the clusters' duals together, verified.

For dual columns Z_f of floor f (one secret under one prior), each zero outside its window, and b, w free,

    sum_f tr(Z_f' G Z_f) >= sum_f (linear_f - curvature_f - t_f length_f)   for every G that meets the targets,

and the left side is at most s tr G with s the largest eigenvalue of the Gram matrix of all columns. Columns of
overlapping windows are first made orthonormal where they are longer than that together: where every dual comes from its
own cluster's optimum and the clusters are far apart, nothing is lost. (Derived here; proof in
docs/long_traces_approximations.md.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxpriv.certificates.arithmetic import UNIT_ROUNDOFF, down, norm_up, up
from jaxpriv.certificates.definiteness import largest_eigenvalue_upper
from jaxpriv.designs.long.clusters import Cluster


_KERNEL = 2.0**-44  # relative error of kernel values that the bound allows for
_NOTHING = 1e-7  # norm of dual columns that are left out


@dataclass(frozen=True)
class DualBlock:
    """The dual columns of one floor, (w, l), on the window of `cluster`, with the floor's place: prior and secret."""

    cluster: int
    prior: int
    secret: int
    columns: np.ndarray


def joined(blocks: Sequence[DualBlock], clusters: Sequence[Cluster]) -> list[DualBlock]:
    """The same blocks with singular values above 1 of all columns together cut to 1, each kept on its own window."""
    blocks = [block for block in blocks if float(np.linalg.norm(block.columns)) > _NOTHING]
    found: list[DualBlock] = []
    for group in _connected(blocks, clusters):
        if len({block.cluster for block in group}) == 1:
            found += group
            continue
        gram = _gram(group, clusters)
        values, vectors = np.linalg.eigh(gram)
        turn = (vectors / np.sqrt(np.maximum(values, 1.0))) @ vectors.T
        ends = np.cumsum([0, *(block.columns.shape[1] for block in group)])
        for i, block in enumerate(group):
            mine = clusters[block.cluster]
            columns = np.zeros_like(block.columns)
            for j, other in enumerate(group):
                theirs = clusters[other.cluster]
                low, high = max(mine.start, theirs.start), min(mine.stop, theirs.stop)
                if low < high:
                    part = other.columns[low - theirs.start : high - theirs.start]
                    weight = turn[ends[j] : ends[j + 1], ends[i] : ends[i + 1]]
                    columns[low - mine.start : high - mine.start] += part @ weight
            found.append(DualBlock(block.cluster, block.prior, block.secret, columns))
    return found


def steepness(blocks: Sequence[DualBlock], clusters: Sequence[Cluster]) -> float:
    """An upper bound of the largest eigenvalue of the sum of all Z Z'."""
    worst = 0.0
    for group in _connected(blocks, clusters):
        gram = _gram(group, clusters)
        size = sum(norm_up(block.columns) ** 2 for block in group)
        height = max(clusters[block.cluster].size for block in group)
        worst = max(
            worst, up(largest_eigenvalue_upper((gram + gram.T) / 2) + 2.0 * (height + 8) * UNIT_ROUNDOFF * size)
        )
    return worst


def floor_value(
    covariance: np.ndarray, cross: np.ndarray, variance: np.ndarray, target: float, columns: np.ndarray
) -> float:
    """A lower bound of tr(Z' F Z), F = H (V + I/t) H' − Σ: for any G ⪰ F, of tr(Z' G Z).

    `covariance` Σ (w, w) and `cross` Σ_:S (w, k) on the window, without anything known at its edges. In floating
    point with a bound of every rounding: w and b below are arbitrary, so that no inverse has to be exact.
    """
    w = np.linalg.solve(variance, cross.T @ columns)
    b = np.linalg.solve(variance, w) / target
    reached, moved = cross.T @ columns, covariance @ columns
    absolute = np.abs(columns)
    linear = 2.0 * np.sum(b * reached) + 2.0 * np.sum(w * reached)
    quadratic = np.sum(columns * moved) + np.sum(w * (variance @ w)) + target * np.sum((variance @ b) ** 2)
    size = 2.0 * np.sum((np.abs(b) + np.abs(w)) * (np.abs(cross).T @ absolute))
    size += np.sum(absolute * (np.abs(covariance) @ absolute)) + np.sum(np.abs(w) * (np.abs(variance) @ np.abs(w)))
    size += target * np.sum((np.abs(variance) @ np.abs(b)) ** 2)
    count = covariance.shape[0] + columns.size + 16
    return down(float(linear - quadratic) - float(size) * (_KERNEL + 8.0 * count * UNIT_ROUNDOFF))


def cost_lower(
    values: Sequence[float], blocks: Sequence[DualBlock], steep: float, floor_variance: float, size: int
) -> float:
    """No noise that meets every floor and is at least `floor_variance` on `size` coordinates has a smaller trace.

    tr G ≥ tr(G Y)/s + η tr(I − Y/s) for Y = Σ Z Zᵀ ⪯ s I and G ⪰ η I.
    """
    spent = floor_variance * size * (1.0 - 2.0**-50)
    if not 0.0 < steep < math.inf:
        return spent
    power = sum(norm_up(block.columns) ** 2 for block in blocks) * (1.0 + 2.0**-40)
    above = (math.fsum(values) * (1.0 - 2.0**-50) - floor_variance * power) / steep
    return max(spent + above * (1.0 - 2.0**-50), spent) if above > 0.0 else spent


def _gram(group: Sequence[DualBlock], clusters: Sequence[Cluster]) -> np.ndarray:
    ends = np.cumsum([0, *(block.columns.shape[1] for block in group)])
    gram = np.zeros((ends[-1], ends[-1]))
    by_cluster: dict[int, list[int]] = {}
    for i, block in enumerate(group):
        by_cluster.setdefault(block.cluster, []).append(i)
    for first, mine in by_cluster.items():
        for second, theirs in by_cluster.items():
            one, other = clusters[first], clusters[second]
            low, high = max(one.start, other.start), min(one.stop, other.stop)
            if low >= high:
                continue
            left = np.concatenate([group[i].columns[low - one.start : high - one.start] for i in mine], axis=1)
            right = np.concatenate([group[j].columns[low - other.start : high - other.start] for j in theirs], axis=1)
            rows = np.concatenate([np.arange(ends[i], ends[i + 1]) for i in mine])
            places = np.concatenate([np.arange(ends[j], ends[j + 1]) for j in theirs])
            gram[np.ix_(rows, places)] = left.T @ right
    return gram


def _connected(blocks: Sequence[DualBlock], clusters: Sequence[Cluster]) -> list[list[DualBlock]]:
    """Blocks whose windows are connected by overlaps, group by group."""
    order = sorted(blocks, key=lambda block: (clusters[block.cluster].start, block.cluster))
    groups: list[list[DualBlock]] = []
    stop = -1
    for block in order:
        window = clusters[block.cluster]
        if groups and window.start < stop:
            groups[-1].append(block)
        else:
            groups.append([block])
        stop = max(stop, window.stop)
    return groups
