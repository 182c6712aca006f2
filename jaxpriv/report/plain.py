"""What a release means for one person, in sentences that need no mathematics."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxpriv.report.rounding import given, significant


_NO_LIMIT = 1e6


def odds_factor(factor: float | None) -> str:
    """Say a factor on odds, rounded up; large ones are no protection and are called so."""
    if factor is None or factor > _NO_LIMIT:
        return "more than a million (no useful limit)"
    return significant(factor, 2, "up")


def bet(factor: float | None) -> str:
    """Say a factor on even odds as a bet, rounded up."""
    if factor is None or factor > _NO_LIMIT:
        return "no useful limit"
    return f"{significant(factor, 2, 'up')} : 1"


def with_unit(number: str, unit: str) -> str:
    """Write a number with its unit; without one for a series whose unit is not known ("")."""
    return f"{number} {unit}".rstrip()


def in_cases(probability: float) -> str:
    """Say a probability in cases: 0.01 is "1 of 100 cases"."""
    cases = 1.0 / probability
    if cases >= 2 and abs(cases - round(cases)) <= 1e-9 * cases:
        return f"1 of {round(cases)} cases"
    return f"{given(100 * probability)} % of cases"


def interval(halfwidths: Sequence[float], names: Sequence[str], unit: str, *, lowest: bool = False) -> str:
    """Say half-widths along the axes `names`, once where they are alike; `lowest` rounds down."""
    values = [significant(value, 3, "down" if lowest else "nearest") for value in halfwidths]
    if len(values) == 1:
        return f"±{with_unit(values[0], unit)}"
    if len(set(values)) == 1:
        return f"±{with_unit(values[0], unit)} {' and '.join(names)}"
    return " and ".join(f"±{with_unit(value, unit)} {name}" for value, name in zip(values, names, strict=True))


def place_sentence(
    before: Sequence[float],
    after: Sequence[float],
    names: Sequence[str] = ("east", "north"),
    unit: str = "m",
    releases: int = 1,
) -> str:
    """Say how well somebody knows a place before and after the release, from half-widths of 68 % intervals.

    `before` and `after` have one value for each axis; those after are rounded down. `releases` is how many of them
    somebody has seen after which this is left.
    """
    first, then = ("the release", "it") if releases == 1 else ("any release", f"all {releases} releases on record")
    if len(names) == 1:
        know, share = "know the value", "68 %"
    else:
        know, share = "place you", "68 % in each direction"
    return (
        f"Before {first}, someone who knows your habits could {know} to within {interval(before, names, unit)}; "
        f"after {then}, to no better than {interval(after, names, unit, lowest=True)} ({share})."
    )


def bet_sentence(distance: float, factor: float | None, delta: float, unit: str = "m", releases: int = 1) -> str:
    """Say what somebody who found two places equally likely would bet after the release; the factor is rounded up.

    `releases` is how many of them somebody has seen whose odds these are.
    """
    seen = "the release" if releases == 1 else f"all {releases} releases on record"
    settle = "the release may" if releases == 1 else f"all {releases} releases on record together may"
    what = "places" if unit == "m" else "values"
    suspected = f"If they suspected two {what} {with_unit(given(distance), unit)} apart equally, "
    if bet(factor) == "no useful limit":
        return f"{suspected}{settle} as good as settle which one it was: there is no useful limit on their odds."
    return (
        f"{suspected}after seeing {seen} they would bet at most {bet(factor)} on either, except in {in_cases(delta)}."
    )


def best_guess(epsilon: float, order: float) -> str:
    """Say how often the better of two equally likely places is guessed right at most, in percent, rounded up.

    Φ(μ/2) with μ² = 2ε/λ, for places whose odds the release changes by the full ε (nats at order λ).
    """
    if math.isinf(epsilon):
        return "100"
    half = math.sqrt(2 * epsilon / order) / 2
    chance = 100 * (1 - math.erfc(half / math.sqrt(2)) / 2)
    return f"{min(100, math.ceil(chance + 1e-9))}"
