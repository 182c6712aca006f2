"""Discrete priors from files: tables of places, cells or check-ins, polygons of regions, and grids over traces."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.errors import InputError
from jaxpriv.precision import host_array
from jaxpriv.traces.degrees import is_missing, read_degrees
from jaxpriv.traces.projection import LocalPlane, public_origin
from jaxpriv.traces.trace import Trace


_MAX_BYTES = 256 * 2**20
_MAX_EXTENT_M = 1_000_000.0  # within it the plane keeps distances to half a percent
_LATITUDE = ("latitude", "lat", "cell_lat_min", "lat_min")
_LONGITUDE = ("longitude", "lon", "lng", "long", "cell_lon_min", "lon_min")
_COUNT = ("count", "counts", "visits", "points", "population", "weight", "probability", "flow")
_NAME = ("name", "tile_id", "cell", "id")
_SIZE = "size_deg"


def read_prior_csv(path: Path | str, count: str | None = None, plane: LocalPlane | None = None) -> DiscretePrior:
    """A prior from a table with a header: one place, cell or check-in a row.

    The columns are `lat`/`latitude` and `lon`/`lng`/`longitude` in degrees; or `cell_lat_min`, `cell_lon_min` and
    `size_deg`, of which the centres are taken. `count` names the column of counts; by default the first of count,
    visits, points, population, weight, probability and flow that is there, and without any each row counts one, as in
    a list of check-ins. Rows at the same place add up; places without a positive count stay, with probability 0.

    Raises InputError: an unreadable file, a missing column, a cell that is no number (with its row), fewer than two
    places, or an extent of more than 1,000 km.
    """
    rows = list(csv.reader(io.StringIO(_text(path), newline=""), skipinitialspace=True))
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise InputError("the table has no rows under its header.")
    header = [cell.strip().lower() for cell in rows[0]]
    lat, lon = _column(header, _LATITUDE), _column(header, _LONGITUDE)
    if lat is None or lon is None:
        raise InputError("the header names no latitude and longitude; name the columns lat and lon.")
    counts = _column(header, _COUNT if count is None else (count.lower(),))
    if count is not None and counts is None:
        raise InputError(f"the table has no column {count!r}; it has {', '.join(header)}.")
    size = header.index(_SIZE) if _SIZE in header and header[lat].endswith("min") else None
    places: dict[tuple[float, float], float] = {}
    names: dict[tuple[float, float], str] = {}
    label = _column(header, _NAME)
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise InputError(f"row {number} has {len(row)} cells; the header has {len(header)}.")
        half = _number(row[size], number, _SIZE) / 2.0 if size is not None else 0.0
        position = (
            round(_degrees(row[lat], number, "latitude", 90.0) + half, 12),
            round(_degrees(row[lon], number, "longitude", 360.0) + half, 12),
        )
        weight = 1.0 if counts is None else _number(row[counts], number, header[counts])
        if weight < 0.0:
            raise InputError(f"row {number}: the {header[counts or 0]} is negative.")
        places[position] = places.get(position, 0.0) + weight
        names.setdefault(position, row[label].strip() if label is not None else "")
    degrees = np.array(list(places))
    return _prior(degrees[:, 0], degrees[:, 1], np.array(list(places.values())), plane, list(names.values()))


def read_prior_geojson(path: Path | str, count: str = "population", plane: LocalPlane | None = None) -> DiscretePrior:
    """A prior at the centroids of the polygons (or at the points) of a GeoJSON FeatureCollection.

    Probabilities are proportional to the property `count` of each feature; names are the property name or tile_id, or
    the feature's id. Centroids are those of the projected polygons, holes taken out; a centroid may lie outside a
    region that is not convex.

    Raises InputError: not a FeatureCollection, a feature without the property, another geometry than Polygon,
    MultiPolygon and Point, or one without area.
    """
    try:
        document = json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"the file is not JSON: {error.msg} in line {error.lineno}.") from None
    features = document.get("features") if isinstance(document, dict) else None
    if not isinstance(features, list) or len(features) < 2:
        raise InputError("expected a GeoJSON FeatureCollection of at least two features.")
    parts = [_rings(feature, number) for number, feature in enumerate(features)]
    vertices = np.concatenate([ring for rings in parts for ring, _ in rings])
    local = public_origin(vertices[:, 1], vertices[:, 0]) if plane is None else plane
    centres, counts, names = [], [], []
    for number, (feature, rings) in enumerate(zip(features, parts, strict=True)):
        properties = feature.get("properties") or {}
        if not isinstance(properties.get(count), (int, float)):
            raise InputError(f"feature {number} has no number in the property {count!r}.")
        counts.append(float(properties[count]))
        names.append(str(properties.get("name", properties.get("tile_id", feature.get("id", "")))))
        projected = [(local.to_metres(ring[:, 1], ring[:, 0]), hole) for ring, hole in rings]
        centres.append(_centroid(projected, number))
    places = np.array(centres)
    _check_extent(places)
    return DiscretePrior.from_counts(places, np.array(counts), local, names if all(names) else None)


def grid_prior(
    positions: Float[np.ndarray, "N 2"] | Iterable[Trace],
    cell: float,
    plane: LocalPlane | None = None,
    least_count: int = 1,
) -> DiscretePrior:
    """Counts of positions in the square cells of a grid, at the centres of cells with at least `least_count`.

    `positions` are metres (N, 2), or traces, which are projected to `plane` (by default around all of them). `cell` is
    the side in metres; cell edges are at its multiples, so that the same plane gives the same grid. A prior counted
    from the very people it is to protect is itself a function of their data: nothing here hides that.

    Raises InputError: a side that is not positive, no position, or fewer than two cells.
    """
    if not (np.isfinite(cell) and cell > 0.0):
        raise InputError(f"the side of a cell is {cell}; expected a positive number of metres.")
    if isinstance(positions, np.ndarray):
        metres, local = host_array(positions, "positions", 2), plane
    else:
        traces = list(positions)
        if not traces:
            raise InputError("no trace was given.")
        latitude = np.concatenate([trace.latitude for trace in traces])
        longitude = np.concatenate([trace.longitude for trace in traces])
        local = public_origin(latitude, longitude) if plane is None else plane
        metres = local.to_metres(latitude, longitude)
        _check_extent(metres)
    if metres.shape[1] != 2:
        raise InputError(f"positions have shape {metres.shape}; expected (N, 2).")
    cells, counts = np.unique(np.floor(metres / cell).astype(np.int64), axis=0, return_counts=True)
    kept = counts >= least_count
    if np.count_nonzero(kept) < 2:
        raise InputError(f"fewer than two cells have {least_count} positions or more; take smaller cells.")
    return DiscretePrior.from_counts((cells[kept] + 0.5) * cell, counts[kept], local)


def _prior(latitude, longitude, counts, plane, names) -> DiscretePrior:
    local = public_origin(latitude, longitude) if plane is None else plane
    metres = local.to_metres(latitude, longitude)
    _check_extent(metres)
    return DiscretePrior.from_counts(metres, counts, local, names if all(names) else None)


def _check_extent(metres: np.ndarray) -> None:
    if np.max(np.hypot(metres[:, 0], metres[:, 1])) > _MAX_EXTENT_M:
        raise InputError("a place lies more than 1,000 km from the origin of the local plane: cut the map into parts.")


def _text(path: Path | str) -> str:
    try:
        if Path(path).stat().st_size > _MAX_BYTES:
            raise InputError(f"{path} is larger than {_MAX_BYTES // 2**20} MB.")
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise InputError(f"cannot read {path}: {problem.strerror or 'unknown reason'}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8.") from None


def _column(header: list[str], wanted: tuple[str, ...]) -> int | None:
    return next((header.index(name) for name in wanted if name in header), None)


def _number(cell: str, row: int, name: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise InputError(f"row {row}: the {name} is not a finite number.")
    return value


def _degrees(cell: str, row: int, name: str, limit: float) -> float:
    if is_missing(cell):
        raise InputError(f"row {row}: the {name} is missing.")
    value, _ = read_degrees(cell, f"row {row}", name)
    if abs(value) > limit:
        raise InputError(f"row {row}: the {name} is outside ±{limit:g} degrees.")
    return value


def _rings(feature: Any, number: int) -> list[tuple[np.ndarray, bool]]:
    """The rings of a geometry in degrees, (k, 2) longitude and latitude each, and whether each is a hole."""
    geometry = (feature.get("geometry") or {}) if isinstance(feature, dict) else {}
    kind, coordinates = geometry.get("type"), geometry.get("coordinates")
    if kind not in ("Point", "Polygon", "MultiPolygon"):
        raise InputError(f"feature {number} is a {kind}; expected Polygon, MultiPolygon or Point.")
    try:
        polygons: Any = [[[coordinates]]] if kind == "Point" else [coordinates] if kind == "Polygon" else coordinates
        rings = [
            (np.array([vertex[:2] for vertex in ring], dtype=np.float64), place > 0)
            for polygon in polygons
            for place, ring in enumerate(polygon)
        ]
    except (TypeError, ValueError, IndexError):
        rings = []
    if not rings or any(a.ndim != 2 or a.shape[1:] != (2,) or not np.all(np.isfinite(a)) for a, _ in rings):
        raise InputError(f"feature {number} has coordinates that cannot be read.")
    return rings


def _centroid(rings: list[tuple[np.ndarray, bool]], number: int) -> np.ndarray:
    """The centre of area of projected rings, holes taken out whichever way they turn; a point is its own."""
    start = rings[0][0][0]
    if len(rings) == 1 and len(rings[0][0]) == 1:
        return start
    area, moment = 0.0, np.zeros(2)
    for ring, hole in rings:
        here, there = ring - start, np.roll(ring - start, -1, axis=0)
        cross = here[:, 0] * there[:, 1] - there[:, 0] * here[:, 1]
        turn = -np.sign(np.sum(cross)) if hole else np.sign(np.sum(cross))
        area += turn * float(np.sum(cross)) / 2.0
        moment += turn * np.sum((here + there) * cross[:, None], axis=0) / 6.0
    if not area > 0.0:
        raise InputError(f"feature {number} has no area.")
    return start + moment / area
