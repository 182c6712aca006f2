"""What a trace file holds: what was understood, what is odd, what would be dropped, and whether it can be protected."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jaxpriv.errors import InputError
from jaxpriv.jobs.plain_json import plain
from jaxpriv.traces.cleaning import clean, examine
from jaxpriv.traces.contents import Contents, Person, ReadOptions
from jaxpriv.traces.files import file_contents
from jaxpriv.traces.instants import format_instant
from jaxpriv.traces.oddities import Oddities, find_oddities
from jaxpriv.traces.projection import EXTENT_M
from jaxpriv.traces.sources import Progress
from jaxpriv.traces.timed import MAX_POINTS
from jaxpriv.traces.trace import Cleaning, RawRows


_FEW_POINTS = 20
_TIME_UNITS = {
    "iso": "dates and times (ISO 8601)",
    "epoch_s": "seconds since 1970",
    "epoch_ms": "milliseconds since 1970",
    "epoch_us": "microseconds since 1970",
    "epoch_ns": "nanoseconds since 1970",
}


@dataclass(frozen=True)
class InspectedPerson:
    """The rows of one person. Times in UTC, steps in seconds, resolution in metres; None where nothing is usable."""

    name: str | None
    points: int
    first: str | None
    last: str | None
    median_step_s: float
    resolution_m: float
    time_unit: str
    decimals: int
    cleaning: Cleaning
    odd: Oddities
    problems: tuple[str, ...]

    @property
    def dropped(self) -> int:
        """Rows that would not be in a sanitised file."""
        return self.cleaning.dropped


@dataclass(frozen=True)
class Inspection:
    """What a file holds. `problem` says why `protect` would refuse the file as it is, `columns` what stands where."""

    kind: str
    columns: dict[str, str]
    counts: dict[str, int]
    trips: bool
    people: tuple[InspectedPerson, ...]
    problem: str | None

    def to_json(self) -> str:
        """Everything that was found, as JSON; people in the order of the file."""
        data: dict[str, Any] = {
            "format": self.kind,
            "columns": self.columns,
            "counts": self.counts,
            "units": {"time": "UTC", "position": "degrees (WGS 84)", "steps": "s", "resolution": "m"},
            "told_apart": "trips" if self.trips else "people",
            "people": [_person_data(person) for person in self.people],
            "protect_would_refuse": self.problem,
        }
        return json.dumps(plain(data), indent=2, ensure_ascii=False)


def inspect_file(path: Path, options: ReadOptions | None = None, progress: Progress = lambda step: None) -> Inspection:
    """Read a trace file and say what it holds; nothing is written. `progress` is told how far a long read is.

    Raises `InputError`, without any time or position, for a file that cannot be read at all.
    """
    options = options or ReadOptions()
    contents = file_contents(path, options, survey=True, progress=progress)
    people, alone = [], None
    for person in contents.people:
        people.append(_inspected(person, options))
        alone = person.raw if len(contents.people) == 1 else None
    return Inspection(
        contents.kind,
        contents.columns,
        contents.counts,
        contents.trips,
        tuple(people),
        _problem(path, options, contents, alone),
    )


def _inspected(person: Person, options: ReadOptions) -> InspectedPerson:
    raw = person.raw
    cleaning, trace = examine(raw, options.duplicates)
    odd = find_oddities(raw, trace)
    unit = "date and time of day, or day number" if raw.style.kind == "plt" else _TIME_UNITS[raw.style.time_style]
    if trace is None:
        nothing = ("No row has a usable time and position.",)
        return InspectedPerson(person.name, 0, None, None, 0.0, 0.0, unit, raw.decimals, cleaning, odd, nothing)
    problems = []
    if trace.n_points > MAX_POINTS:
        problems.append(f"More than {MAX_POINTS} points: cut the file into shorter periods to protect it.")
    if trace.n_points < _FEW_POINTS:
        problems.append(f"Fewer than {_FEW_POINTS} points: a prior cannot be fitted to it; pass --prior to protect it.")
    if odd.extent_m > EXTENT_M:
        problems.append("Too far from the plane's origin to be protected: cut the journey into parts.")
    return InspectedPerson(
        person.name,
        trace.n_points,
        format_instant(int(trace.time_us[0])),
        format_instant(int(trace.time_us[-1])),
        trace.median_step_s,
        trace.step_m,
        unit,
        raw.decimals,
        cleaning,
        odd,
        tuple(problems),
    )


def _problem(path: Path, options: ReadOptions, contents: Contents, alone: RawRows | None) -> str | None:
    """Why protect would refuse the file, with the same words, or None; `alone` are the rows of its only person."""
    try:
        # The tracks of a GPX file are refused by its reader, several people by the contents.
        if alone is None or contents.counts.get("tracks", 0) > 1:
            alone = (file_contents(path, options) if contents.counts.get("tracks", 0) > 1 else contents).one_person()
        clean(alone, strict=options.strict, duplicates=options.duplicates)
    except InputError as problem:
        return str(problem)
    return None


def _person_data(person: InspectedPerson) -> dict[str, Any]:
    data = asdict(person)
    return data | {
        "dropped": person.dropped,
        "odd": asdict(person.odd),
        "cleaning_rules": person.cleaning.sentences(),
        "odd_sentences": person.odd.sentences(),
    }
