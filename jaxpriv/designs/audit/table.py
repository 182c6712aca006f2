"""The rows of an audit, as values and as text."""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict, dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Literal


Bound = Literal["upper", "lower", "estimate", "not a bound"]

_ROUNDING = {"upper": ROUND_CEILING, "lower": ROUND_FLOOR}
_MEANS = {"upper": "at most", "lower": "at least", "estimate": "about", "not a bound": "printed"}
_DIGITS = 5
_WIDTH = 116


@dataclass(frozen=True)
class AuditRow:
    """One notion of privacy and its value for one subject.

    Attributes:
        subject: what is protected: a secret, the whole trace, a change of the trace.
        notion: the notion, with its parameters.
        value: in `unit`; infinite where nothing is promised, and `note` then says why.
        unit: "nats", "squared unit of the trace" …; empty for pure numbers.
        bound: "upper" or "lower" for verified bounds, "estimate" for float64 arithmetic without error bounds, and
            "not a bound" for what a published formula would say.
        note: why a value is infinite, what it cannot go below, what not to conclude.
    """

    subject: str
    notion: str
    value: float
    unit: str
    bound: Bound
    note: str = ""


@dataclass(frozen=True)
class Audit:
    """What one Gaussian mechanism promises under each notion; `rows` in the order of `str(audit)`."""

    rows: tuple[AuditRow, ...]
    delta: float
    order: float
    size: int

    def of(self, notion: str, subject: str = "") -> list[AuditRow]:
        """The rows whose notion starts with `notion` (and whose subject starts with `subject`)."""
        return [row for row in self.rows if row.notion.startswith(notion) and row.subject.startswith(subject)]

    def worst(self, count: int) -> Audit:
        """The same without all secrets but the `count` whose first row has the largest value."""
        first: dict[str, float] = {}
        for row in self.rows:
            if row.subject.startswith("secret "):
                first.setdefault(row.subject, row.value)
        kept = set(sorted(first, key=lambda subject: -first[subject])[:count])
        return replace(self, rows=tuple(row for row in self.rows if row.subject not in first or row.subject in kept))

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON; an infinite value is None, and its note says why."""
        rows = [asdict(row) | {"value": row.value if math.isfinite(row.value) else None} for row in self.rows]
        return {"delta": self.delta, "order": self.order, "size": self.size, "rows": rows}

    def __str__(self) -> str:
        cells = [("protected", "notion", "", "value", "unit")]
        cells += [(row.subject, row.notion, _means(row), _text(row), row.unit) for row in self.rows]
        widths = [max(len(line[i]) for line in cells) for i in range(5)]
        lines, last = [], ""
        for i, (subject, notion, means, value, unit) in enumerate(cells):
            parts = ("" if subject == last else subject, notion, means)
            last = subject
            padded = [f"{part:<{width}}" for part, width in zip(parts, widths, strict=False)]
            lines.append("  ".join([*padded, f"{value:>{widths[3]}}", unit]).rstrip())
            if i == 0:
                lines.append("-" * (sum(widths) + 8))
            elif self.rows[i - 1].note:
                space = " " * (widths[0] + 4)
                wrap = textwrap.TextWrapper(
                    _WIDTH, initial_indent=space, subsequent_indent=space, break_on_hyphens=False
                )
                lines += wrap.wrap(self.rows[i - 1].note)
        return "\n".join(lines)


def _means(row: AuditRow) -> str:
    return "" if math.isinf(row.value) else _MEANS[row.bound]


def _text(row: AuditRow) -> str:
    if math.isinf(row.value):
        return "infinite"
    rounded = Context(prec=_DIGITS, rounding=_ROUNDING.get(row.bound, ROUND_HALF_EVEN)).create_decimal(
        Decimal(row.value)
    )
    if rounded == 0:
        return "0"
    return f"{rounded:f}" if 1e-4 <= abs(rounded) < 1e7 else f"{rounded:.{_DIGITS - 1}e}"
