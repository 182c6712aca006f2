"""What a column of a table holds: what was understood, what would be cleaned, and whether it can be protected."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.fitting.checks import MIN_POINTS
from jaxpriv.report.rounding import significant
from jaxpriv.traces.contents import ReadOptions, shown_name
from jaxpriv.traces.instants import format_instant
from jaxpriv.traces.series import SeriesCleaning, clean_series
from jaxpriv.traces.series_format import raw_series


@dataclass(frozen=True)
class SeriesInspection:
    """What was found. Steps in seconds, `resolution` (the lattice of the values, 0 when it cannot be told) in the unit
    of the column; `problem` says why `protect` would refuse the file as it is."""

    column: str
    time_column: str
    times: int
    first: str
    last: str
    median_step_s: float
    longest_step_s: float
    resolution: float
    decimals: int
    constant: bool
    cleaning: SeriesCleaning
    problem: str | None

    def to_json(self) -> str:
        """Everything that was found, as JSON."""
        return json.dumps(asdict(self) | {"cleaning_rules": self.cleaning.sentences()}, indent=2, ensure_ascii=False)

    def text(self) -> str:
        """Say what was found; no value is told."""
        known = f"about {significant(self.resolution, 2, 'up')}" if self.resolution else "cannot be told"
        lines = [
            f"Series: column {shown_name(self.column)}, times from {shown_name(self.time_column)}",
            f"Rows: {self.cleaning.rows_read} read, {self.cleaning.dropped} would be dropped; {self.times} times",
            f"Time: {self.first} to {self.last} (UTC)",
            f"Median step: {significant(self.median_step_s, 3)} s; longest: {significant(self.longest_step_s, 3)} s",
            f"Values: up to {self.decimals} decimals; resolution {known}, in the unit of the column",
        ]
        if self.constant:
            lines.append("The value never changes.")
        if self.cleaning.sentences():
            lines += ["Cleaning:", *(f"  - {sentence}" for sentence in self.cleaning.sentences())]
        if self.problem:
            lines.append(f"protect would refuse this: {self.problem}")
        elif self.times < MIN_POINTS or self.constant:
            lines.append("protect can read this; a prior cannot be fitted to it, give the numbers of one.")
        else:
            lines.append("protect can read this.")
        return "\n".join(lines) + "\n"


def inspect_series(path: Path, column: str, options: ReadOptions | None = None) -> SeriesInspection:
    """Read a column of a table and say what it holds. Raises `InputError` for what cannot be read at all."""
    options = options or ReadOptions()
    raw = raw_series(path, column, options)
    series = clean_series(raw, max_points=len(raw.time_us) + 1)
    problem = None
    try:
        clean_series(raw, strict=options.strict)
    except InputError as found:
        problem = str(found)
    steps = np.diff(series.seconds)
    return SeriesInspection(
        raw.style.value_name,
        raw.style.time_name,
        series.n_points,
        format_instant(int(series.time_us[0])),
        format_instant(int(series.time_us[-1])),
        series.median_step_s,
        float(np.max(steps)) if len(steps) else 0.0,
        series.step,
        raw.decimals,
        bool(np.ptp(series.rows) == 0),
        series.cleaning,
        problem,
    )
