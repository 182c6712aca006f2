"""Round numbers for axes, scale bars and clocks."""

from __future__ import annotations

import math

from jaxpriv.traces.instants import format_instant


_SECOND = 10**6
_DAY = 86_400
_CLOCK_STEPS = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200,
    _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 30 * _DAY, 90 * _DAY, 365 * _DAY,
)  # fmt: skip


def round_below(value: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is at most `value`, which is positive."""
    power = 10.0 ** math.floor(math.log10(value))
    return max((factor * power for factor in (1, 2, 5) if factor * power <= value * (1 + 1e-9)), default=power)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return multiples of a round step between low and high, about as many as asked for."""
    if not high > low:
        return [low]
    step = round_below((high - low) / max(about - 1, 1))
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def length_text(value: float, unit: str = "m") -> str:
    """Write a number on a scale, without needless zeros; metres as kilometres from 1 km."""
    if unit == "m" and abs(value) >= 1000:
        value, unit = value / 1000, "km"
    return f"{value:.6g} {unit}".rstrip().replace("-", "−")


def clock_ticks(first_us: int, last_us: int, about: int = 8) -> list[tuple[int, str, str]]:
    """Return (instant, time of day, date) at round times in UTC; the date is empty where it has not changed.

    From a step of one day the time of day is empty.
    """
    span = (last_us - first_us) / _SECOND
    years = math.ceil(span / (365 * _DAY) / about)
    step = next((s for s in _CLOCK_STEPS if span / s <= about), max(years, 1) * 365 * _DAY) * _SECOND
    found, previous = [], ""
    for at in range(-(-first_us // step) * step, last_us + 1, step):
        date, _, clock = format_instant(at).rstrip("Z").partition("T")
        clock = "" if step >= _DAY * _SECOND else clock if step < 60 * _SECOND else clock[:5]
        found.append((at, clock, "" if date == previous else date))
        previous = date
    return found or [(first_us, format_instant(first_us)[11:19], format_instant(first_us)[:10])]
