"""What traces and series have in common: rows at instants, rules that were applied, and when a file is refused."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from jaxpriv.errors import InputError


MAX_POINTS = 200_000

NO_TIME_DROPPED = "dropped: no time."
OUT_OF_ORDER = "out of order: sorted by time."
MERGED = "at the instant of another row: merged into their mean, written to each of them."
NAIVE_TIME = "with a time without an offset: taken as UTC."
LEAP_SECOND = "at the leap second 23:59:60: taken as the first second of the next day."
OFFSET_TIME = "with a time in another offset: brought to UTC."


class TimedRows:
    """Rows (m) at n ≤ m distinct instants.

    `time_us` (n,) int64 are strictly increasing microseconds since 1970 in UTC, `point_of_row` (m,) the instant that
    each row belongs to.
    """

    time_us: np.ndarray
    point_of_row: np.ndarray

    @property
    def n_points(self) -> int:
        """Number of distinct instants."""
        return len(self.time_us)

    @property
    def n_rows(self) -> int:
        """Number of rows kept, duplicates included."""
        return len(self.point_of_row)

    @property
    def seconds(self) -> np.ndarray:
        """Seconds since the first instant, (n,)."""
        return (self.time_us - self.time_us[0]) / 1e6

    @property
    def median_step_s(self) -> float:
        """Median time between neighbouring points in seconds; 0 for a single point."""
        return float(np.median(np.diff(self.seconds))) if self.n_points > 1 else 0.0


def counted(rules: Iterable[tuple[int, str]]) -> list[str]:
    """Say the rules that did something to rows, with how many."""
    return [f"{count} row{'s' if count > 1 else ''} {text}" for count, text in rules if count]


def in_order(time_us: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Sort rows at `time_us` (m,) by time.

    Returns their order (m,), the distinct instants (n,), the one of each sorted row (m,), and how many rows of the file
    are earlier than the row above them.
    """
    order = np.argsort(time_us, kind="stable")
    distinct, point_of_row = np.unique(time_us[order], return_inverse=True)
    return order, distinct, point_of_row, int(np.count_nonzero(np.diff(time_us) < 0))


def check_cleaned(repairs: list[str], points: int, *, strict: bool, max_points: int, kind: str, what: str) -> None:
    """Raise `InputError` when `strict` and a rule repaired something, and for more than `max_points` distinct instants.

    `kind` is what the file holds (a trace, a series), `what` it says at its times.
    """
    if strict and repairs:
        raise InputError(f"strict reading repairs nothing, and this file needs it: {' '.join(repairs)}")
    if points > max_points:
        raise InputError(
            f"the {kind} has {points} distinct times and at most {max_points} can be protected at once; cut the file "
            f"into shorter periods, at times chosen without looking at the {what}"
        )
