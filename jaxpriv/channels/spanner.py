"""Few pairs of places that stand for all of them: greedy spanners, with the dilation they really have."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from jaxpriv.channels.geometry import check_metric
from jaxpriv.errors import InputError
from jaxpriv.precision import host_array


@dataclass(frozen=True)
class Spanner:
    """A connected graph on n places whose shortest paths are not much longer than the distances.

    * `pairs` (E, 2): its edges, smaller position first.
    * `dilation`: the largest ratio of a shortest path to the distance it replaces, measured on the finished graph and
      rounded up. It is this number, not the stretch that was asked for, that belongs into a privacy claim.
    """

    pairs: Int[np.ndarray, "E 2"] = field(repr=False)
    dilation: float


def greedy_spanner(distances: Float[np.ndarray, "n n"], stretch: float, *, reach: float = np.inf) -> Spanner:
    """The greedy spanner of Althöfer et al. (1993): pairs by length, each kept if no path within stretch × its length.

    Args:
        distances: (n, n), symmetric, zero on the diagonal.
        stretch: at least 1. At 1 only pairs that lie exactly on a path through others are left out.
        reach: longer pairs are not considered (the graph is still connected, or InputError); the dilation says what
            that costs.

    Time O(n²) for each edge kept, in practice much less; memory O(n²).

    Raises:
        InputError: not a table of distances, stretch < 1, coincident places, or a reach that leaves pieces.
    """
    d = host_array(distances, "the distances", 2)
    check_metric(d, triangle=False)
    if not (np.isfinite(stretch) and stretch >= 1.0):
        raise InputError(f"the stretch is {stretch}; expected a finite number of at least 1.")
    n = len(d)
    first, second = np.triu_indices(n, 1)
    lengths = d[first, second]
    if np.any(lengths <= 0.0):
        where = int(np.argmin(lengths))
        raise InputError(f"places {first[where]} and {second[where]} coincide; merge them before building a spanner.")
    near = np.flatnonzero(lengths <= reach)
    order = near[np.argsort(lengths[near], kind="stable")]
    paths = np.full((n, n), np.inf)
    np.fill_diagonal(paths, 0.0)
    kept = []
    for x, y, length in zip(first[order].tolist(), second[order].tolist(), lengths[order].tolist(), strict=True):
        if paths[x, y] <= stretch * length * (1.0 + 1e-12):
            continue
        kept.append((x, y))
        _insert(paths, x, y, length)
    pairs = np.array(kept, dtype=np.int64).reshape(-1, 2)
    return Spanner(pairs, dilation(d, pairs))


def dilation(distances: Float[np.ndarray, "n n"], pairs: Int[np.ndarray, "E 2"]) -> float:
    """The largest ratio of a shortest path along `pairs` to the distance between its ends, rounded up; at least 1.

    Raises InputError if some two places are not connected.
    """
    weights = distances[pairs[:, 0], pairs[:, 1]]
    graph = csr_matrix((weights, (pairs[:, 0], pairs[:, 1])), shape=distances.shape)
    paths = np.asarray(shortest_path(graph, method="D", directed=False))
    if not np.all(np.isfinite(paths)):
        x, y = (int(i) for i in np.argwhere(~np.isfinite(paths))[0])
        raise InputError(f"no path of the graph connects places {x} and {y}; allow longer pairs.")
    apart = ~np.eye(len(paths), dtype=bool)
    # A path has at most n − 1 additions, each rounded once.
    slack = 1.0 + 2.0 * len(paths) * np.finfo(np.float64).eps
    return float(max(1.0, np.max(paths[apart] / distances[apart])) * slack)


def _insert(paths: np.ndarray, x: int, y: int, length: float) -> None:
    # Only a start that now reaches y through x faster, and an end that x now reaches through y faster, can gain.
    for a, b in ((x, y), (y, x)):
        starts = np.flatnonzero(paths[:, a] + length < paths[:, b])
        ends = np.flatnonzero(length + paths[b] < paths[a])
        through = (paths[starts, a] + length)[:, None] + paths[b, ends][None, :]
        if len(starts) and len(ends):
            block = np.ix_(starts, ends)
            paths[block] = np.minimum(paths[block], through)
