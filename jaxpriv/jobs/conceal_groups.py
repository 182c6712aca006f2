"""Counts of several groups over the places of a map, from one table."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.prior_files import read_prior_csv
from jaxpriv.errors import InputError
from jaxpriv.traces.projection import LocalPlane


# Columns that say where a place is, how it is called or when it was visited: never a group by themselves.
_NO_GROUP = {
    *("latitude", "lat", "cell_lat_min", "lat_min", "longitude", "lon", "lng", "long", "cell_lon_min", "lon_min"),
    *("size_deg", "name", "tile_id", "cell", "id", "time", "timestamp", "datetime", "date"),
}
_MOST_COUNTED = 2.0**52  # up to which float64 keeps whole numbers apart, sums included


@dataclass(frozen=True)
class GroupCounts:
    """What is known of the groups.

    `places` are the places with the first group's law; `plane` their local plane; `counts` (groups, n) the numbers of
    the table, rows at one place added up; `whole` says whether all of them are whole numbers, as counts are.
    """

    names: tuple[str, ...]
    places: DiscretePrior = field(repr=False)
    plane: LocalPlane = field(repr=False)
    counts: np.ndarray = field(repr=False)
    whole: bool

    @property
    def laws(self) -> np.ndarray:
        """λ̂, (groups, n)."""
        return self.counts / self.counts.sum(axis=1, keepdims=True)


def read_group_counts(path: Path, groups: tuple[str, ...] | None = None) -> GroupCounts:
    """Read a table of places as `read_prior_csv` does, with one column of counts for each group.

    `groups` names the columns; by default every column of numbers is one, but those that say where a place is, its
    name or a time. Raises InputError as `read_prior_csv`, and for fewer than two groups, a name twice, or a group
    without any count.
    """
    header, rows = _table(path)
    names = _numeric(header, rows) if groups is None else tuple(one.strip().lower() for one in groups)
    if len(set(names)) != len(names):
        raise InputError(f"a group is named twice: {', '.join(names)}.")
    missing = [name for name in names if name not in header]
    if missing:
        raise InputError(f"the table has no column {missing[0]!r}; it has {', '.join(header)}.")
    if len(names) < 2:
        raise InputError(
            f"the table has {len(names)} column(s) of counts; a group hides among others only: give at least two, or "
            "name them with --groups day,night"
        )
    counts, places = [], None
    for name in names:
        values = [_value(row, header.index(name)) for row in rows]
        total = math.fsum(values)
        if total == 0.0 and all(value == 0.0 for value in values):
            raise InputError(f"the group {name!r} has no count above zero.")
        found = read_prior_csv(path, name)
        places = found if places is None else places
        whole = total < _MOST_COUNTED and all(value == round(value) for value in values)
        shared = np.asarray(found.probabilities, dtype=np.float64) * total
        counts.append((np.rint(shared) if whole else shared, whole))
    if places is None or places.plane is None:
        raise AssertionError("a prior read from degrees has a plane.")
    return GroupCounts(
        names, places, places.plane, np.stack([one for one, _ in counts]), all(whole for _, whole in counts)
    )


def _table(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""), skipinitialspace=True))
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path.name}: cannot be read as a text table ({type(problem).__name__})") from None
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise InputError("the table has no rows under its header.")
    return [cell.strip().lower() for cell in rows[0]], rows[1:]


def _numeric(header: list[str], rows: list[list[str]]) -> tuple[str, ...]:
    return tuple(
        name
        for k, name in enumerate(header)
        if name not in _NO_GROUP and all(math.isfinite(_value(row, k)) for row in rows)
    )


def _value(row: list[str], column: int) -> float:
    """The number in a cell, NaN where there is none; `read_prior_csv` says which row it is."""
    try:
        return float(row[column])
    except (ValueError, IndexError):
        return math.nan
