"""release.json of a series: the released integers and all that is needed to turn them into values. It may be shared."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal
from pathlib import Path
from typing import get_args

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.jobs.release_file import padded, read_integers, read_times
from jaxpriv.jobs.stored import check_names, number, read_object, whole
from jaxpriv.mechanisms.grid_release import LARGEST_TAU
from jaxpriv.report.text import SIMULATED
from jaxpriv.traces.instants import TimeStyle, format_instant
from jaxpriv.traces.series import SeriesStyle
from jaxpriv.traces.series_format import write_series


FORMAT, VERSION = "jaxpriv-series-release", 1
FIELDS = "value = integer * 2^grid_exponent, in the unit of the column"
_ENTRIES = {
    "simulated", "note", "fields", "time_column", "value_column", "delimiter", "time_style", "decimals",
    "grid_exponent", "tau", "times", "integers",
}  # fmt: skip
# Digits before the point that a value is padded to, so that the length of the file tells nothing.
_DIGITS, _MAX_DECIMALS = 8, 15


@dataclass(frozen=True)
class ReleasedValues:
    """What is released: whole multiples of the public step 2^`exponent`, (n,); `tau` is None for a simulation."""

    integers: tuple[int, ...] = field(repr=False)
    exponent: int
    tau: float | None

    @property
    def simulated(self) -> bool:
        """Whether the values come from a seeded generator and are not a release."""
        return self.tau is None

    @property
    def values(self) -> np.ndarray:
        """The released values, (n,)."""
        return np.ldexp(np.array(self.integers, dtype=np.float64), self.exponent)


def decimals_for(resolution: float) -> int:
    """The decimals to write values with: the fewest whose step is at most the declared resolution; a public number."""
    return min(max(0, math.ceil(-math.log10(resolution) - 1e-9)), _MAX_DECIMALS)


@dataclass(frozen=True)
class SeriesFile:
    """What is shared of a series: how its rows are written, instants (n,) in microseconds since 1970, and values."""

    style: SeriesStyle
    decimals: int
    time_us: tuple[int, ...] = field(repr=False)
    values: ReleasedValues

    def text(self) -> str:
        """Write release.json. Every entry is a function of public parameters, of the times and of the integers."""
        content = {
            "format": FORMAT,
            "format_version": VERSION,
            "simulated": self.values.simulated,
            "note": SIMULATED if self.values.simulated else "",
            "fields": FIELDS,
            "time_column": self.style.time_name,
            "value_column": self.style.value_name,
            "delimiter": self.style.delimiter,
            "time_style": self.style.time_style,
            "decimals": self.decimals,
            "grid_exponent": self.values.exponent,
            "tau": self.values.tau,
            "times": [format_instant(us) for us in self.time_us],
        }
        written = json.dumps(content, allow_nan=False, ensure_ascii=True)
        return f'{written[:-1]}, "integers": {padded(self.values.integers)}}}\n'

    def table(self, point_of_row: np.ndarray) -> str:
        """Write the sanitised table: a row for each entry of `point_of_row` (m,), values of fixed width."""
        width = 1 + _DIGITS + (1 + self.decimals if self.decimals else 0)
        texts = [f"{self._rounded(integer):>{width}}" for integer in self.values.integers]
        times = np.array(self.time_us, dtype=np.int64)[point_of_row]
        return write_series(self.style, times, [texts[point] for point in point_of_row])

    def _rounded(self, integer: int) -> str:
        context = Context(prec=400, rounding=ROUND_HALF_EVEN)
        scaled = context.multiply(Decimal(integer), context.power(Decimal(2), self.values.exponent))
        text = f"{scaled.quantize(Decimal(1).scaleb(-self.decimals), context=context):f}"
        return text.lstrip("-") if not text.strip("-0.") else text


def read_series_release(path: Path) -> SeriesFile:
    """Read a series' release.json, simulated or not. Raises `InputError` for anything that `text` does not write."""
    content, name = read_object(path, FORMAT, VERSION), path.name
    check_names(content, _ENTRIES, name)
    simulated = content["simulated"]
    if type(simulated) is not bool or content["note"] != (SIMULATED if simulated else ""):
        raise InputError(f"{name}: simulated and note do not agree")
    style = [content[entry] for entry in ("delimiter", "time_column", "value_column", "time_style")]
    if not all(isinstance(text, str) for text in style) or style[3] not in get_args(TimeStyle):
        raise InputError(f"{name}: a column or the style of the times is not known")
    if content["fields"] != FIELDS or style[0] not in (",", ";", "\t", "|"):
        raise InputError(f"{name}: fields or delimiter is not what version {VERSION} of the format uses")
    tau = None if content["tau"] is None else number(content["tau"], f"{name}: tau")
    if simulated != (tau is None) or (tau is not None and not 0 < tau <= float(LARGEST_TAU)):
        raise InputError(f"{name}: tau must be null for simulated output, else above 0 and at most 2^-50")
    exponent, decimals = (whole(content[entry], f"{name}: {entry}") for entry in ("grid_exponent", "decimals"))
    if not (-200 <= exponent <= 200 and 0 <= decimals <= _MAX_DECIMALS):
        raise InputError(f"{name}: grid_exponent or decimals is out of range")
    times = read_times(content["times"], name)
    integers = read_integers(content["integers"], len(times), f"{name}: integers")
    return SeriesFile(SeriesStyle(*style), decimals, times, ReleasedValues(integers, exponent, tau))
