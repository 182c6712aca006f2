"""Baselines that need no prior: the planar Laplace and the planar geometric mechanism on the cells of a grid.

Both take one law of displacements for every place of an unbounded grid, so that |log f(z|x) − log f(z|y)| ≤ ε d(x, y)
without the factor 2 of a normaliser that varies, and then bring an output outside the rectangle of the map to the
nearest cell of it (post-processing). Cells are summed outwards until what is left is below 1e-17 of what is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from jaxpriv.channels.channel import Channel
from jaxpriv.errors import InputError
from jaxpriv.precision import host_array


_TAIL = 40.0  # nats: e^-40 is below a rounding unit of what the border cells already hold
_MOST_CELLS = 4_000_000
_NODES = 12


@dataclass(frozen=True)
class GridMechanism:
    """A channel from places to all cells of a rectangle: outputs (m, 2) are the cells' centres, in the places' unit.

    `moved` is the largest distance between a place and the cell it was counted as: 0 for places on the grid, and then
    the mechanism is ε-geo-indistinguishable between places, not only between their cells.
    """

    channel: Channel
    outputs: Float[np.ndarray, "m 2"] = field(repr=False)
    moved: float


def planar_geometric(
    locations: Float[np.ndarray, "n 2"], epsilon: float, spacing: float | tuple[float, float]
) -> GridMechanism:
    """Displacements with probability ∝ e^{−ε d} on the grid, cut to the map's rectangle; ε in nats per unit.

    A two-dimensional form of the truncated geometric mechanism (Ghosh, Roughgarden and Sundararajan, 2009). Places are
    counted as their nearest cells; the grid starts at the first place.

    Raises InputError: ε or the spacing not positive, or a grid and a reach of more than four million cells.
    """
    return _mechanism(locations, epsilon, spacing, lambda x, y: np.exp(-epsilon * np.hypot(x, y)))


def planar_laplace(
    locations: Float[np.ndarray, "n 2"], epsilon: float, spacing: float | tuple[float, float]
) -> GridMechanism:
    """The planar Laplace mechanism (Andrés et al., CCS 2013) rounded to the cells of a grid and cut to the rectangle.

    Cell probabilities are integrals of the density ε²/(2π) e^{−ε d} by Gauss–Legendre rules of 12 points a side (in
    polar form on the central cell), with a relative error below 1e-10 for ε spacing ≤ 4; the audit gives the level of
    what was computed. Arguments and errors as in `planar_geometric`.
    """
    steps = _steps(spacing)
    if epsilon * max(steps) > 4.0:
        raise InputError(
            f"epsilon × spacing is {epsilon * max(steps):g}, above 4: the noise is smaller than a cell and its "
            "integrals would not be accurate; use planar_geometric or a finer grid."
        )
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)

    def cell_mass(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        total = np.zeros(np.broadcast_shapes(x.shape, y.shape))
        for u, weight_u in zip(nodes, weights, strict=True):
            for v, weight_v in zip(nodes, weights, strict=True):
                radius = np.hypot(x + 0.5 * u * steps[0], y + 0.5 * v * steps[1])
                total += weight_u * weight_v * np.exp(-epsilon * radius)
        total *= epsilon**2 / (2.0 * np.pi) * steps[0] * steps[1] / 4.0
        total[0, 0] = _central_mass(epsilon, steps)
        return total

    return _mechanism(locations, epsilon, spacing, cell_mass)


def _central_mass(epsilon: float, steps: tuple[float, float]) -> float:
    nodes, weights = np.polynomial.legendre.leggauss(40)
    corner = np.arctan2(steps[1], steps[0])
    total = 0.0
    for begin, end, half, across in ((0.0, corner, steps[0] / 2, np.cos), (corner, np.pi / 2, steps[1] / 2, np.sin)):
        angles = begin + (end - begin) * (nodes + 1.0) / 2.0
        radius = epsilon * half / across(angles)
        total += (end - begin) / 2.0 * float(weights @ (-np.expm1(-radius) - radius * np.exp(-radius)))
    return 4.0 * total / (2.0 * np.pi)


def _mechanism(locations, epsilon, spacing, mass) -> GridMechanism:
    places = host_array(locations, "locations", 2)
    steps = _steps(spacing)
    if not (np.isfinite(epsilon) and epsilon > 0.0):
        raise InputError(f"epsilon is {epsilon}; expected a positive finite number of nats per unit of distance.")
    cells = np.rint((places - places[0]) / np.array(steps)).astype(np.int64)
    lowest = cells.min(axis=0)
    shape = cells.max(axis=0) - lowest + 1
    reach = [int(np.ceil(_TAIL / (epsilon * step))) + 1 for step in steps]
    extent = [int(shape[axis]) + reach[axis] for axis in (0, 1)]
    if extent[0] * extent[1] > _MOST_CELLS or len(places) * int(np.prod(shape)) > 20 * _MOST_CELLS:
        raise InputError(
            f"the noise reaches over {extent[0]} × {extent[1]} cells of this grid: take a coarser spacing or a larger "
            "epsilon, or the exponential mechanism."
        )
    x, y = (np.arange(size) * step for size, step in zip(extent, steps, strict=True))
    masses = mass(x[:, None], y[None, :])
    # Cell z holds its own displacement; a border cell also everything outwards of it.
    tail_x = np.cumsum(masses[::-1], axis=0)[::-1]
    tail_y = np.cumsum(masses[:, ::-1], axis=1)[:, ::-1]
    tails = np.cumsum(tail_x[:, ::-1], axis=1)[:, ::-1]
    count_x, count_y = int(shape[0]), int(shape[1])
    rows = []
    for cell in cells - lowest:
        dx, dy = np.abs(np.arange(count_x) - cell[0])[:, None], np.abs(np.arange(count_y) - cell[1])[None, :]
        row = masses[dx, dy]
        _add_border(row, tail_x, tail_y, tails, masses, dx, dy)
        rows.append(np.ravel(row))
    matrix = np.array(rows)
    grid = np.stack(np.meshgrid(np.arange(count_x), np.arange(count_y), indexing="ij"), axis=-1).reshape(-1, 2)
    origin = places[0] + lowest * np.array(steps)
    snapped = places[0] + cells * np.array(steps)
    moved = float(np.max(np.hypot(*(places - snapped).T)))
    with np.errstate(divide="ignore"):
        channel = Channel.from_log_weights(np.log(matrix))
    return GridMechanism(channel, origin + grid * np.array(steps), moved if moved > 1e-9 * max(steps) else 0.0)


def _add_border(row, tail_x, tail_y, tails, masses, dx, dy) -> None:
    """Bring the mass outside the rectangle to its border cells; a side of one cell takes both directions."""
    for edge in {0: 0, 1: row.shape[0] - 1}.values():
        row[edge, :] += (tail_x[dx[edge], dy] - masses[dx[edge], dy])[0]
    for edge in {0: 0, 1: row.shape[1] - 1}.values():
        row[:, edge] += (tail_y[dx, dy[:, edge]] - masses[dx, dy[:, edge]])[:, 0]
    for a in (0, row.shape[0] - 1):
        for b in (0, row.shape[1] - 1):
            i, j = int(dx[a, 0]), int(dy[0, b])
            row[a, b] += tails[i, j] - tail_x[i, j] - tail_y[i, j] + masses[i, j]


def _steps(spacing: float | tuple[float, float]) -> tuple[float, float]:
    pair = np.broadcast_to(np.asarray(spacing, dtype=np.float64), (2,)) if np.size(spacing) in (1, 2) else np.zeros(2)
    if not np.all(np.isfinite(pair) & (pair > 0.0)):
        raise InputError(f"the spacing of the grid is {spacing}; expected one or two positive numbers.")
    return float(pair[0]), float(pair[1])
