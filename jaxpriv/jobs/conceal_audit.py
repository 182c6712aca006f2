"""What the tables of a coupling mechanism hide and cost, from their whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from jaxpriv.channels.exact_levels import ExactRows, exact_geo_level, log_up
from jaxpriv.channels.table import IntegerTable
from jaxpriv.jobs.conceal_groups import GroupCounts


@dataclass(frozen=True)
class GroupNumbers:
    """What the mechanism costs one group: expected and largest distance moved, metres, and how its places are hidden:
    `point_level`, nats per metre, is infinite where some published place rules out some true one."""

    name: str
    loss_m: float
    worst_m: float
    point_level: float


def group_numbers(name: str, law: np.ndarray, table: IntegerTable, distances: np.ndarray) -> GroupNumbers:
    """The numbers of a group with the law (n,); distances in metres."""
    matrix = np.asarray(table.weights, dtype=np.float64) / 2.0**table.bits
    carried = (law > 0.0)[:, None] & (table.weights > 0)
    level = exact_geo_level(ExactRows.of(table), distances)
    return GroupNumbers(
        name, float(law @ np.sum(matrix * distances, axis=1)), float(np.max(distances[carried])), level.value
    )


def exact_outputs(groups: GroupCounts, tables: tuple[IntegerTable, ...]) -> list[list[Fraction]]:
    """The law of what each group publishes, in exact fractions, if the group is distributed as its counts."""
    laws = []
    for counts, table in zip(groups.counts, tables, strict=True):
        shares = [Fraction(float(one)) for one in counts]
        common = max(share.denominator for share in shares)
        whole = np.array([share.numerator * (common // share.denominator) for share in shares], dtype=object)
        total = int(sum(whole)) << table.bits
        carrying = np.flatnonzero(whole)
        sums = whole[carrying] @ table.weights[carrying].astype(object)
        laws.append([Fraction(int(one), total) for one in sums])
    return laws


def exact_level(laws: list[list[Fraction]]) -> tuple[float, float]:
    """The largest D_∞ (nats) and total variation between two of the laws, in either order, both rounded up."""
    level = Fraction(1)
    for first in laws:
        for second in laws:
            if any(p > 0 and q == 0 for p, q in zip(first, second, strict=True)):
                return math.inf, _variation_up(laws)
            level = max(level, *(p / q for p, q in zip(first, second, strict=True) if q))
    return (log_up(level) if level > 1 else 0.0), _variation_up(laws)


def _variation_up(laws: list[list[Fraction]]) -> float:
    largest = max(
        (sum((abs(p - q) for p, q in zip(a, b, strict=True)), Fraction(0)) / 2 for a in laws for b in laws),
        default=Fraction(0),
    )
    return min(math.nextafter(float(largest), math.inf), 1.0) if largest else 0.0
