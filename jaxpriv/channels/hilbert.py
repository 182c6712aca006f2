"""The Hilbert curve: an order of places in which neighbours in the order are near each other on the map."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from jaxpriv.errors import InputError
from jaxpriv.precision import host_array


_LARGEST_ORDER = 31


def hilbert_values(cells: Int[np.ndarray, "n 2"], order: int) -> Int[np.ndarray, " n"]:
    """Positions of cells (n, 2) along the Hilbert curve through a 2^order × 2^order grid, (n,).

    The curve starts in cell (0, 0) and ends in (2^order − 1, 0). For order 1 it visits (0,0) (0,1) (1,1) (1,0); the
    axis of the first step alternates with the parity of the order.

    Raises InputError: cells that are not whole numbers of the grid, or an order outside 1 … 31.
    """
    grid = np.asarray(cells)
    if not (isinstance(order, (int, np.integer)) and 1 <= order <= _LARGEST_ORDER):
        raise InputError(f"the order of the Hilbert curve is {order!r}; expected 1 … {_LARGEST_ORDER}.")
    if grid.ndim != 2 or grid.shape[1] != 2 or grid.dtype.kind not in "iu":
        raise InputError("cells must be whole numbers of shape (n, 2).")
    if grid.size and (grid.min() < 0 or grid.max() >= 1 << order):
        raise InputError(f"a cell lies outside the grid 0 … {(1 << order) - 1}.")
    x, y = grid[:, 0].astype(np.int64), grid[:, 1].astype(np.int64)
    value = np.zeros(len(grid), dtype=np.int64)
    for side in (1 << level for level in reversed(range(int(order)))):
        right, upper = (x & side) > 0, (y & side) > 0
        value += side * side * ((3 * right) ^ upper.astype(np.int64))
        x, y = x & (side - 1), y & (side - 1)
        turned = ~upper & right
        x, y = np.where(turned, side - 1 - x, x), np.where(turned, side - 1 - y, y)
        x, y = np.where(upper, x, y), np.where(upper, y, x)
    return value


def hilbert_order(
    locations: Float[np.ndarray, "n 2"],
    order: int = 16,
    box: tuple[float, float, float] | None = None,
    rotation: int = 0,
) -> Int[np.ndarray, " n"]:
    """Places sorted along the Hilbert curve: a permutation of 0 … n − 1; equal cells keep the order of the input.

    Args:
        locations: (n, 2) in any unit.
        order: the grid has 2^order cells a side.
        box: (left, bottom, side) of the square that the grid covers; the same scale for both axes. By default the
            smallest square with the lower left corner of the bounding box. A place on the upper edge belongs to the
            last cell; a place outside the box is refused.
        rotation: quarter turns of the curve, 0 … 3.

    Raises:
        InputError: locations that are not finite or outside the box, a box without extent, an unknown rotation.
    """
    places = host_array(locations, "locations", 2)
    if places.shape[1] != 2:
        raise InputError(f"locations have shape {places.shape}; expected (n, 2).")
    if rotation not in (0, 1, 2, 3):
        raise InputError(f"rotation is {rotation!r}; expected 0, 1, 2 or 3 quarter turns.")
    if not (isinstance(order, (int, np.integer)) and 1 <= order <= _LARGEST_ORDER):
        raise InputError(f"the order of the Hilbert curve is {order!r}; expected 1 … {_LARGEST_ORDER}.")
    corner = places.min(axis=0) if box is None else np.array(box[:2], dtype=np.float64)
    side = float(np.max(places.max(axis=0) - corner)) if box is None else float(box[2])
    if box is None and side == 0.0:
        return np.arange(len(places))
    if not (np.isfinite(side) and side > 0.0):
        raise InputError("the box of the Hilbert curve has no extent.")
    scaled = (places - corner) / side
    if np.any(scaled < 0.0) or np.any(scaled > 1.0):
        raise InputError(f"location {int(np.argwhere((scaled < 0.0) | (scaled > 1.0))[0][0])} lies outside the box.")
    count = 1 << int(order)
    cells = np.minimum((scaled * count).astype(np.int64), count - 1)
    for _ in range(rotation):
        cells = np.stack([count - 1 - cells[:, 1], cells[:, 0]], axis=1)
    return np.argsort(hilbert_values(cells, order), kind="stable")


def checked_order(order: Int[np.ndarray, " n"] | None, locations: Float[np.ndarray, "n 2"]) -> Int[np.ndarray, " n"]:
    """The given permutation of the places, checked, or their Hilbert order. Raises InputError: not a permutation."""
    if order is None:
        return hilbert_order(locations)
    listed = np.asarray(order)
    if listed.shape != (len(locations),) or not np.array_equal(np.sort(listed), np.arange(len(locations))):
        raise InputError(f"order must be a permutation of 0 … {len(locations) - 1}.")
    return listed.astype(np.int64)
