"""What shall stay uncertain, in words, and the secrets that this means: times, windows, visits, ends, every fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.jobs.calendar_words import CalendarWord
from jaxpriv.jobs.secret_choice import SecretTime, Timed, locate_secret
from jaxpriv.jobs.secret_words import PlaceWord, TimeWord, WindowWord, read_word
from jaxpriv.jobs.visits import Visit, ends, visits
from jaxpriv.report.record import SecretRecord
from jaxpriv.report.rounding import given, significant
from jaxpriv.secrets.secret import EveryPoint, Secret
from jaxpriv.secrets.unsampled import UnsampledSecret
from jaxpriv.traces.instants import format_instant
from jaxpriv.traces.trace import Trace


# As many floors as the design follows one by one, even under a single prior; beyond it is as rough as for every fix.
MAX_SECRETS = 600
# Hypotheses about fixes protected together may jump by the radius from each to the next, so that the noise grows
# steeply with their number. Measured with fixes 5 s apart under six Matérn priors with a nugget of 3 cm: 8 fixes take
# 550 times the noise of one, certified to 1e-5 of the target; 12 are certified to 6e-5 only, and 24 not at all.
MAX_TOGETHER = 8

_CHOSEN_BY_PLACE = (
    "These times were chosen by where the person was, which makes the times a secret themselves: the noise is stronger "
    "at them, and whoever sees it learns when. Choose times from a calendar, or protect every fix (--all), if that "
    "matters."
)


@dataclass(frozen=True)
class ChosenSecret:
    """One secret: the place at one time, or (several `times`) the places at fixes that are protected together."""

    times: tuple[SecretTime, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of its fixes in the trace; none for a time between fixes."""
        return tuple(one.position for one in self.times if one.position is not None)

    @property
    def label(self) -> str:
        """The secret in words, without its place."""
        first, last = self.times[0].record, self.times[-1].record
        if len(self.times) > 1:
            return f"the {len(self.times)} fixes from {first.fix_time} to {last.fix_time}, together"
        if first.fix_time is None:
            return f"{first.time}, a time between two fixes"
        if first.fix_time == first.time:
            return f"the fix at {first.fix_time}"
        away = significant(abs(first.fix_offset_s or 0.0), 2)
        return f"the fix at {first.fix_time}, the nearest to {first.time} ({away} s away)"

    def on_axis(self, plane_radius_m: float) -> Secret | UnsampledSecret:
        """The secret of one coordinate; the radius is in metres of the local plane."""
        if not self.positions:
            return UnsampledSecret(self.times[0].seconds, plane_radius_m)
        return Secret.at_times(self.positions, plane_radius_m)


@dataclass(frozen=True)
class ChosenSecrets:
    """All secrets of a trace, in order of time, each protected by itself.

    `every` is True when they are all fixes. `understood` says what each word was taken to mean, `warnings` what such a
    choice gives away or leaves open, `naive` whether a time had no offset and was taken as UTC.
    """

    secrets: tuple[ChosenSecret, ...]
    understood: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    every: bool = False
    naive: bool = False

    def on_axis(self, plane_radius_m: float) -> list[Secret | UnsampledSecret] | EveryPoint:
        """What `design` takes for one coordinate; the radius is in metres of the local plane."""
        if self.every:
            return EveryPoint(plane_radius_m)
        return [one.on_axis(plane_radius_m) for one in self.secrets]

    def describe(self) -> str:
        """Say what was understood: for a dry run."""
        count = len(self.secrets)
        lines = [f"{count} secret{'s' if count > 1 else ''}{', each protected by itself' if count > 1 else ''}:"]
        lines += [f"  - {text}" for text in self.understood]
        if self.naive:
            lines.append("Note: a time without an offset was taken as UTC.")
        return "\n".join(lines + [f"Note: {text}" for text in self.warnings]) + "\n"


@dataclass
class _Gathering:
    """Secrets while they are collected: the same fix named twice is one secret."""

    found: dict[tuple[int, ...], ChosenSecret] = field(default_factory=dict)
    understood: list[str] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)  # in order, once each

    def add(self, secret: ChosenSecret) -> None:
        self.found.setdefault(secret.positions or (-1, secret.times[0].time_us), secret)


def choose_secrets(
    trace: Timed,
    words: Sequence[str] = (),
    *,
    match_m: float | None = None,
    together: bool = False,
    every: bool = False,
    hide_ends_m: float | None = None,
) -> ChosenSecrets:
    """Find the secrets that words mean on a trace.

    A word is a TIME (the fix nearest to it within one median step, else the place between two fixes), a window
    START/END (each fix in it), a schedule (each fix in its windows on all dates of the trace), or a place LAT,LON (each
    fix within `match_m` of it). `together` makes one joint secret of the fixes of each window and each visit.
    `hide_ends_m` protects the first and the last stay: the fixes at either end until the trace first leaves that
    distance; they are hidden by noise, never cut. `every` is all fixes.

    Raises `InputError` for words that cannot be read, options that do not go together, a time or window outside the
    trace, a window without a fix, a place that was not visited or that a series has none of, and too many secrets.
    """
    read = [read_word(word) for word in words]
    places = [word for word in read if isinstance(word, PlaceWord)]
    _check_options(len(read), bool(places), match_m, together, every, hide_ends_m)
    if (places or hide_ends_m is not None) and not isinstance(trace, Trace):
        raise InputError(
            "a series has no places; name its sensitive times by --secret, or protect all of them by --all"
        )
    if together and all(isinstance(word, TimeWord) for word in read) and hide_ends_m is None:
        raise InputError("--compound joins the fixes of a window START/END or of a visit; a single time has one")
    if every:
        secrets = tuple(ChosenSecret((_at_fix(trace, i),)) for i in range(trace.n_points))
        text = f"every fix of the trace, {trace.n_points} of them; the places between fixes are not among them"
        return ChosenSecrets(secrets, (text,), every=True)
    gathered = _Gathering()
    for text, word in zip(words, read, strict=True):
        if isinstance(word, TimeWord):
            secret = ChosenSecret((locate_secret(trace, word.us),))
            gathered.add(secret)
            gathered.understood.append(f"{text}: {secret.label}.")
        elif isinstance(word, WindowWord):
            _add_window(gathered, trace, text, word, together)
        elif isinstance(word, CalendarWord):
            _add_calendar(gathered, trace, text, word, together)
        else:
            assert match_m is not None and isinstance(trace, Trace)
            _add_visits(gathered, trace, word, match_m, together)
    if hide_ends_m is not None and isinstance(trace, Trace):
        for name, run in zip(("first", "last"), ends(trace, hide_ends_m), strict=True):
            text = f"the {name} stay, until the trace is {given(hide_ends_m)} m away: {_span(trace, run)}"
            gathered.understood.append(f"{text}{_add_run(gathered, trace, run, together, '--hide-ends')}.")
        gathered.warnings[_CHOSEN_BY_PLACE] = None
        gathered.warnings[
            "Noise hides the ends and does not cut them; the fixes just outside are published nearly as they are."
        ] = None
    if len(gathered.found) > MAX_SECRETS:
        raise InputError(
            f"that makes {len(gathered.found)} secrets, and at most {MAX_SECRETS} can be protected one by one; "
            "protect every fix with --all, or name shorter windows"
        )
    secrets = tuple(sorted(gathered.found.values(), key=lambda one: (one.times[0].seconds, len(one.times))))
    naive = any(word.naive for word in read if isinstance(word, TimeWord | WindowWord))
    return ChosenSecrets(secrets, tuple(gathered.understood), tuple(gathered.warnings), naive=naive)


def _check_options(
    count: int, places: bool, match_m: float | None, together: bool, every: bool, hide_ends_m: float | None
) -> None:
    if every and (count or hide_ends_m is not None or together or match_m is not None):
        raise InputError("--all already means every fix, each by itself; leave the other choices of secrets out")
    if not every and not count and hide_ends_m is None:
        raise InputError(
            "say what to protect: --secret with a time, a window START/END, a schedule or a place LAT,LON; "
            "--hide-ends; or --all"
        )
    if places and match_m is None:
        raise InputError("--secret LAT,LON needs --match, how near to the place a fix must be, such as --match 150m")
    if match_m is not None and not places:
        raise InputError("--match goes with a place, --secret LAT,LON")
    for option, value in (("--match", match_m), ("--hide-ends", hide_ends_m)):
        if value is not None and not 0 < value < float("inf"):
            raise InputError(f"{option} is {value} m; it must be a positive distance")


def _at_fix(trace: Timed, position: int) -> SecretTime:
    us = int(trace.time_us[position])
    name = format_instant(us)
    return SecretTime(us, position, (us - int(trace.time_us[0])) / 1e6, SecretRecord(name, name, 0.0))


def _span(trace: Timed, run: Visit) -> str:
    first, last = (format_instant(trace.time_us[i]) for i in (run.first, run.last))
    return f"the fix at {first}" if run.count == 1 else f"{run.count} fixes from {first} to {last}"


def _add_run(gathered: _Gathering, trace: Timed, run: Visit, together: bool, what: str) -> str:
    """Add the fixes of a run, one by one or as one secret, and say which."""
    times = tuple(_at_fix(trace, i) for i in range(run.first, run.last + 1))
    if not together or run.count == 1:
        for one in times:
            gathered.add(ChosenSecret((one,)))
        return ", each by itself" if run.count > 1 else ""
    if run.count > MAX_TOGETHER:
        raise InputError(
            f"{what}: {run.count} fixes cannot be protected together, at most {MAX_TOGETHER} can; leave --compound out "
            "to protect each by itself, or name a shorter window"
        )
    gathered.add(ChosenSecret(times))
    gathered.warnings[
        "Fixes protected together stay uncertain even as to jumps between them, which takes far more noise than "
        "protecting each; that each is protected does not follow unless they are named, too."
    ] = None
    return ", together"


def _add_window(gathered: _Gathering, trace: Timed, text: str, word: WindowWord, together: bool) -> None:
    times = trace.time_us
    if word.end_us < times[0] or word.start_us > times[-1]:
        side = "ends before the trace begins" if word.end_us < times[0] else "begins after the trace ends"
        raise InputError(f"--secret {text}: the window {side}; check the dates and the offsets from UTC")
    inside = np.flatnonzero((times >= word.start_us) & (times <= word.end_us))
    if not len(inside):
        raise InputError(
            f"--secret {text}: no fix lies in the window; name a single time in it, and the place between two fixes is "
            "protected"
        )
    run = Visit(int(inside[0]), int(inside[-1]))
    how = _add_run(gathered, trace, run, together, f"--secret {text}")
    gathered.understood.append(f"{text}: {_span(trace, run)}{how}.")
    edges = np.array([max(word.start_us, times[0]), *times[inside], min(word.end_us, times[-1])])
    longest = int(np.argmax(np.diff(edges)))
    if np.diff(edges)[longest] > 2e6 * trace.median_step_s:
        start, end = (format_instant(us) for us in edges[longest : longest + 2])
        gathered.warnings[
            f"{text}: no fix lies between {start} and {end}, and the places in between are not protected; name a time "
            "there if they shall be."
        ] = None


def _add_calendar(gathered: _Gathering, trace: Timed, text: str, word: CalendarWord, together: bool) -> None:
    """Every window of the schedule on every date of the trace, whatever was done there."""
    times = trace.time_us
    windows = word.windows(int(times[0]), int(times[-1]))
    runs = []
    for start, end in windows:
        inside = np.flatnonzero((times >= start) & (times <= end))
        if len(inside):
            runs.append(Visit(int(inside[0]), int(inside[-1])))
    if not runs:
        raise InputError(f"--secret {text}: no fix lies in a window of the schedule; check the hours and the offset")
    for run in runs:
        _add_run(gathered, trace, run, together, f"--secret {text}")
    fixes = sum(run.count for run in runs)
    how = "each window's together" if together else "each by itself"
    gathered.understood.append(
        f"{text}: {fixes} fix{'es' if fixes > 1 else ''} in {len(runs)} window{'s' if len(runs) > 1 else ''}, {how}."
    )
    if len(runs) < len(windows):
        gathered.warnings[
            f"{text}: {len(windows) - len(runs)} of {len(windows)} windows of the schedule hold no fix, and what lies "
            "in them is not protected."
        ] = None


def _add_visits(gathered: _Gathering, trace: Trace, word: PlaceWord, match_m: float, together: bool) -> None:
    found = visits(trace, word.latitude, word.longitude, match_m)
    if not found:
        raise InputError(
            f"--secret LAT,LON: no fix is within {given(match_m)} m of the place; check it (latitude first), or pass a "
            "larger --match"
        )
    for number, run in enumerate(found, 1):
        how = _add_run(gathered, trace, run, together, f"--secret LAT,LON, visit {number}")
        gathered.understood.append(f"visit {number} of {len(found)} to the place given: {_span(trace, run)}{how}.")
    gathered.warnings[_CHOSEN_BY_PLACE] = None
