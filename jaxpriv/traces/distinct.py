"""The different values of a column, counted while rows go by, with a limit on how many are kept."""

from __future__ import annotations

from jaxpriv.errors import InputError
from jaxpriv.traces.degrees import is_missing


MAX_VALUES = 100_000


def plain_value(cell: str) -> str:
    """A cell without spaces around it; "" where it stands for no value."""
    text = cell.strip()
    return "" if is_missing(text) else text


class Distinct:
    """How many rows have each value, in the order of their first rows; "" stands for none.

    Whole numbers that only rise, as those that number rows, need not be kept to be known as different.
    """

    def __init__(self, label: str):
        self._label = label
        self._counts: dict[str, int] = {}
        self._rows = 0
        self._last = -1
        self._rising = True
        self._kept = True

    def add(self, cell: str) -> None:
        """Count one row by its cell."""
        self._rows += 1
        if self._rising:
            self._rising = self._rises(cell)
        if self._kept:
            # Cells as they are: there are few different ones, and many rows.
            self._counts[cell] = self._counts.get(cell, 0) + 1
            if len(self._counts) > MAX_VALUES:
                self._kept = False
                self._counts = {}

    @property
    def number(self) -> int:
        """How many different values there are, without "". Raises `InputError` where too many to be told."""
        if not self._kept and self._rising:
            return self._rows
        counts = self.counts
        return len(counts) - ("" in counts)

    @property
    def counts(self) -> dict[str, int]:
        """Rows of each value. Raises `InputError` when there are too many values to be kept."""
        if not self._kept:
            raise InputError(
                f"{self._label} has more than {MAX_VALUES} different values, too many people for one file; if it does "
                "not tell people apart, say which column does: --columns who=COLUMN"
            )
        plain: dict[str, int] = {}
        for cell, rows in self._counts.items():
            value = plain_value(cell)
            plain[value] = plain.get(value, 0) + rows
        return plain

    @property
    def known(self) -> bool:
        """Whether the number can be told."""
        return self._kept or self._rising

    def _rises(self, value: str) -> bool:
        if not (value.isascii() and value.isdigit() and len(value) <= 18) or int(value) <= self._last:
            return False
        self._last = int(value)
        return True
