"""The linear program of an optimal channel laid out in blocks of outputs, each with the inputs near them.

A block of neighbouring outputs has multipliers for the pairs of inputs within a horizon (in nats) of the block. An
input beyond it is compared with one place only, the output's own: its probability is at least e^{−c} of the one there.
What is left out makes the program a relaxation, so that bounds stay valid; the channel is repaired against every pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Bool, Float, Int
from scipy.sparse.linalg import eigsh

from jaxpriv.channels.geometry import pairwise_distances
from jaxpriv.channels.hilbert import hilbert_order
from jaxpriv.channels.problem import ChannelProblem


# Outputs of a block: rows of that many numbers are moved at once, and the multipliers of a block fit the cache.
_WIDTH = 16


class Program(NamedTuple):
    """B blocks of M/B outputs; in each, W inputs with D slots of neighbours, unused slots with zero gains.

    The slot (b, j, x) stands for the limits own K[x] <= gain K[neighbour] at the outputs of block b, scaled so that
    own² + gain² = 1; `neighbour` counts within the block, and `back` is the neighbour's slot for x. `places` (B, W) are
    the inputs of a block (repeated where it has fewer), `row` (B, n) is where an input is found there (W: nowhere).
    `tail` (n, M) is e^{−c} to the input `anchor` of the output, 0 inside the block; it has no rows without a horizon.
    """

    cost: Float[Array, "n M"]
    places: Int[Array, "B W"]
    row: Int[Array, "B n"]
    neighbour: Int[Array, "B D W"]
    back: Int[Array, "B D W"]
    own: Float[Array, "B D W"]
    gain: Float[Array, "B D W"]
    received: Float[Array, "B D W"]
    push: Float[Array, "B D W"]
    tail: Float[Array, "t M"]
    anchor: Int[Array, " M"]
    errors: Float[Array, "g n"]
    weight: Float[Array, " n"]


class Layout(NamedTuple):
    """Host-side tables: `columns` (M,) is the output of each column, −1 for padding; slots turned back into pairs."""

    columns: Int[np.ndarray, " M"]
    used: Bool[np.ndarray, "B D W"]
    first: Int[np.ndarray, "B D W"]
    second: Int[np.ndarray, "B D W"]
    level: Float[np.ndarray, "B D W"]
    own: Float[np.ndarray, "B D W"]
    tail: Float[np.ndarray, "t M"]
    anchor: Int[np.ndarray, " M"]
    error_scale: float
    norm: float


class Tails(NamedTuple):
    """Rows shrink[x, z] K[anchor z, z] <= K[x, z] and their multipliers."""

    anchor: Int[np.ndarray, " k"]
    shrink: Float[np.ndarray, "n k"]
    prices: Float[np.ndarray, "n k"]


class Prices(NamedTuple):
    """Multipliers of a block: of the directed `pairs` (E, 2) with `levels` (E,), of its tails and of the error rows."""

    columns: Int[np.ndarray, " k"]
    pairs: Int[np.ndarray, "E 2"]
    levels: Float[np.ndarray, " E"]
    limits: Float[np.ndarray, "E k"]
    errors: Float[np.ndarray, "g k"]
    tails: Tails | None


def build_program(
    problem: ChannelProblem, dtype: np.dtype, horizon: float | None = None, width: int = _WIDTH
) -> tuple[Program, Layout]:
    """The arrays of the iteration in `dtype`, and the tables that read its multipliers.

    `horizon` (nats): inputs farther from all outputs of a block are tails; None for none. It is ignored where some
    inputs have no limit between them.
    """
    n = len(problem.cost)
    directed = np.concatenate([problem.limits.pairs, problem.limits.pairs[:, ::-1]])
    levels = np.concatenate([problem.limits.levels, problem.limits.levels])
    order = np.lexsort((directed[:, 1], directed[:, 0]))
    directed, levels = directed[order], levels[order]
    columns, anchor, nearby = _blocks(problem, horizon, width)
    size = len(columns) // len(nearby)
    tail = np.where(np.repeat(nearby.T, size, axis=1), 0.0, np.exp(-problem.limits.allowed[:, anchor]))
    tail = np.where(columns >= 0, tail, 0.0)
    tail = tail if np.any(tail) else np.zeros((0, len(columns)))
    weight = _local_weight(problem)
    tables = [_table(np.flatnonzero(inside), directed, levels) for inside in nearby]
    slots = max(1, *(int(table[1].max(initial=-1)) + 1 for table in tables))
    wide = max(int(np.count_nonzero(inside)) for inside in nearby)
    shape = (len(nearby), slots, wide)
    places, row = np.zeros((shape[0], wide), dtype=np.int32), np.full((shape[0], n), wide, dtype=np.int32)
    used, level, own, gain, received = np.zeros(shape, bool), *(np.zeros(shape) for _ in range(4))
    neighbour, back, first, second = (np.zeros(shape, dtype=np.int32) for _ in range(4))
    for b, (kept, slot, backward, local, nats) in enumerate(tables):
        inside = np.flatnonzero(nearby[b])
        places[b], row[b, inside] = inside[0], np.arange(len(inside))
        places[b, : len(inside)] = inside
        where = (b, slot, local[:, 0])
        used[where], level[where] = True, nats
        neighbour[where], back[where] = local[:, 1], backward
        first[where], second[where] = kept[:, 0], kept[:, 1]
        # 1/√(1 + e^{2c}) and e^c/√(1 + e^{2c}) without overflow.
        own[where] = np.exp(-nats) / np.sqrt(1.0 + np.exp(-2.0 * nats))
        gain[where] = 1.0 / np.sqrt(1.0 + np.exp(-2.0 * nats))
        received[where] = gain[where]
    push = np.where(used, np.minimum(weight[first], weight[second]), 0.0)
    errors, error_scale = np.zeros((0, n)), 1.0
    if problem.errors is not None:
        error_scale = float(np.linalg.norm(problem.errors / np.sqrt(weight), 2))
        errors = problem.errors / error_scale
    # A column of padding costs more than any other, so that nothing is ever published there.
    padded = 4.0 * np.max(np.abs(problem.cost)) + np.max(problem.cost)
    cost = np.where(columns[None, :] >= 0, problem.cost[:, np.maximum(columns, 0)], padded)
    real = {"cost": cost, "own": own, "gain": gain, "received": received, "push": push}
    real |= {"errors": errors, "weight": weight, "tail": tail}
    whole = {"places": places, "row": row, "neighbour": neighbour, "back": back, "anchor": anchor}
    program = Program(
        **{name: jnp.asarray(value, dtype) for name, value in real.items()},
        **{name: jnp.asarray(value) for name, value in whole.items()},
    )
    # The rows of one output's tails have norm at most 1 + the norm of its shrinking factors.
    star = 1.0 + float(np.max(np.linalg.norm(tail, axis=0))) if len(tail) else 0.0
    norm = float(np.hypot(_norm(directed, levels, weight, errors), star))
    return program, Layout(columns, used, first, second, level, own, tail, anchor, error_scale, norm)


def to_columns(layout: Layout, matrix: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n M"]:
    """A channel in the program's order of outputs, padding included."""
    return np.where(layout.columns[None, :] >= 0, matrix[:, np.maximum(layout.columns, 0)], 0.0)


def from_columns(layout: Layout, matrix: Float[Array, "n M"]) -> Float[np.ndarray, "n m"]:
    """A channel in its own order of outputs, float64, on the host."""
    real = layout.columns >= 0
    result = np.empty((matrix.shape[0], int(np.count_nonzero(real))))
    result[:, layout.columns[real]] = np.asarray(matrix, dtype=np.float64)[:, real]
    return result


def multipliers(
    layout: Layout, limits: Float[Array, "B D W k"], tails: Float[Array, "t M"], errors: Float[Array, "g M"]
) -> Iterator[Prices]:
    """Block by block, the multipliers of the unscaled limits, tails and error rows (see `least_reduced_costs`)."""
    tail_prices = np.asarray(tails, dtype=np.float64)
    error_prices = np.asarray(errors, dtype=np.float64) / layout.error_scale
    width = len(layout.columns) // len(layout.used)
    for b, used in enumerate(layout.used):
        columns = layout.columns[b * width : (b + 1) * width]
        real = columns >= 0
        prices = np.asarray(limits[b], dtype=np.float64)[used][:, real] * layout.own[b][used][:, None]
        pairs = np.stack([layout.first[b][used], layout.second[b][used]], axis=1)
        block = error_prices[:, b * width : (b + 1) * width][:, real]
        where = b * width + np.flatnonzero(real)
        far = (
            None if not len(tail_prices) else Tails(layout.anchor[where], layout.tail[:, where], tail_prices[:, where])
        )
        yield Prices(columns[real], pairs, layout.level[b][used], prices, block, far)


def _blocks(
    problem: ChannelProblem, horizon: float | None, width: int
) -> tuple[Int[np.ndarray, " M"], Int[np.ndarray, " M"], Bool[np.ndarray, "B n"]]:
    """Outputs in blocks of neighbours, padded with −1; the input closest to each; and the inputs of each block."""
    n, m = problem.cost.shape
    count = -(-m // width)
    size = -(-m // count)
    order = np.arange(m) if problem.outputs is None else hilbert_order(problem.outputs)
    columns = np.full(count * size, -1)
    # Spread the padding: every block has at least one output.
    for b, part in enumerate(np.array_split(order, count)):
        columns[b * size : b * size + len(part)] = part
    nearby, anchor = np.ones((count, n), dtype=bool), np.zeros(len(columns), dtype=np.int32)
    if horizon is not None and problem.outputs is not None and np.all(np.isfinite(problem.limits.allowed)):
        closest = np.argmin(pairwise_distances(np.asarray(problem.prior.locations), problem.outputs), axis=0)
        anchor = np.where(columns >= 0, closest[np.maximum(columns, 0)], 0).astype(np.int32)
        near = problem.limits.allowed[:, closest] <= horizon
        for b, part in enumerate(np.array_split(order, count)):
            nearby[b] = np.any(near[:, part], axis=1)
    return columns, anchor, nearby


def _table(inside: np.ndarray, directed: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, ...]:
    """The directed pairs among some inputs: pairs, slot of each, slot of its reverse, local positions, levels."""
    n = int(np.max(directed, initial=-1)) + 1
    local = np.full(max(n, int(np.max(inside)) + 1), -1)
    local[inside] = np.arange(len(inside))
    kept = np.all(local[directed] >= 0, axis=1)
    pairs = directed[kept]
    here = local[pairs]
    degree = np.bincount(here[:, 0], minlength=len(inside))
    slot = np.arange(len(pairs)) - np.repeat(np.cumsum(degree) - degree, degree)
    place = np.zeros((len(inside), len(inside)), dtype=np.int64)
    place[here[:, 0], here[:, 1]] = slot
    return pairs, slot, place[here[:, 1], here[:, 0]], here, levels[kept]


def _norm(directed: np.ndarray, levels: np.ndarray, weight: np.ndarray, errors: np.ndarray) -> float:
    """The largest singular value of the weighted constraints of one output, with 1 % to spare."""
    n, count = len(weight), len(directed)
    own = np.exp(-levels) / np.sqrt(1.0 + np.exp(-2.0 * levels))
    gain = 1.0 / np.sqrt(1.0 + np.exp(-2.0 * levels))
    root = np.sqrt(np.minimum(weight[directed[:, 0]], weight[directed[:, 1]]))
    rows = sp.csr_matrix(
        (np.concatenate([root * own, -root * gain]), (np.tile(np.arange(count), 2), directed.T.ravel())),
        shape=(count, n),
    )
    scale = 1.0 / np.sqrt(weight)
    square = scale[:, None] * ((rows.T @ rows).toarray() + errors.T @ errors) * scale[None, :]
    if n <= 400:
        largest = float(np.linalg.eigvalsh(square)[-1])
    else:
        # A fixed start that no symmetry of a map makes orthogonal to the leading vector.
        first = 1.0 + 0.5 * np.cos(np.arange(n) * 2.399963)
        largest = float(eigsh(square, k=1, v0=first, return_eigenvectors=False)[0])
    return 1.01 * float(np.sqrt(largest)) if largest > 0.0 else 1.0


def _local_weight(problem: ChannelProblem) -> np.ndarray:
    """The cost scale of each row, averaged over its surroundings e^{−c}, mean one: flows between rows follow it."""
    near = np.exp(-problem.limits.allowed)
    spread = np.mean(problem.cost, axis=1) - np.min(problem.cost, axis=1)
    local = near @ spread / np.sum(near, axis=1)
    if not np.max(local) > 0.0:
        return np.ones(len(local))
    local = np.maximum(local, 1e-4 * np.max(local))
    return local / np.mean(local)
