"""Check a folder that `batch` wrote: every file, every trace once, and the promise against the stored noise."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.jobs.batch.digests import changed_files, kept_digests
from jaxpriv.jobs.batch.placing import plane_radius
from jaxpriv.jobs.batch.recertify import EPSILON, FLOOR, NOISE, POSITIONS, RECORD, certified_problems, problems_of
from jaxpriv.jobs.batch.record import FORMAT, TraceRecord, read_part, record_name
from jaxpriv.jobs.batch.shared import SharedTrace, read_shared
from jaxpriv.jobs.batch.summary import plain_reason
from jaxpriv.jobs.plain_json import plain
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.requests import SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.report.verification import Check, Verification


FILES, SHARED, UNCHANGED, ONCE, COMPLETE = "files", "shared files", "unchanged", "once", "complete"
_RIGHT = {
    FILES: "share holds the files of parts, and nothing else",
    SHARED: "each is whole and holds numbers, instants and positions only",
    UNCHANGED: "every shared file is as it was when the run ended",
    ONCE: "no trace is in two files",
    COMPLETE: "every trace of the input is released or refused, once, as summary.json counts them",
    RECORD: "every released trace has its record, and it is of what is shared",
    POSITIONS: "every position is a pair of whole multiples of the grid of its release",
    FLOOR: "they follow from the stored noise, and the floors are high enough",
    EPSILON: "the certificate of every trace was computed again, and no ε of a record is below it",
    NOISE: "the size of the noise is what the records say",
}


def is_batch(folder: Path) -> bool:
    """Whether a folder is one that `batch` wrote, or its share."""
    return (folder / "private" / "batch.json").is_file() or any(
        next(place.glob("part-*.parquet"), None) is not None for place in (folder, folder / "share")
    )


def verify_batch(folder: Path, progress: Callable[[str], None] = lambda step: None) -> Verification:
    """Check the folder of a batch, or its share folder alone.

    The shared files: each whole, with a trace's number, instants and positions and nothing else, and no trace in two of
    them. With the private folder: unchanged since the run ended; every trace of the input released or refused, once;
    and for each that was released the certificate of the stored noise under the stated priors, computed again, with no
    ε of a record below it. Raises `InputError` for what cannot be read; whatever disagrees is a failed check.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError("checking a batch needs pyarrow: pip install 'jaxpriv[tables]'") from None
    share = folder / "share" if (folder / "share").is_dir() else folder
    private = folder / "private"
    alone = share == folder or not private.is_dir()
    found = _Found(None if alone else _Description.read(private / "batch.json"))
    parts = {path.stem.removeprefix("part-"): path for path in sorted(share.glob("part-*.parquet"))}
    known = set(parts.values())
    others = [one for one in share.iterdir() if one not in known or one.is_symlink() or not one.is_file()]
    if others:
        found.problem(FILES, f"{len(others)} more than the parts in the share folder: remove them")
    for count, (name, path) in enumerate(parts.items(), 1):
        progress(f"Checking part {count} of {len(parts)}, {len(found.released)} traces checked")
        traces, problem = read_shared(path)
        if problem:
            found.problem(SHARED, f"{path.name}: {problem}")
        record = private / "parts" / record_name(name)
        if alone:
            found.released += [one.number for one in traces]
        elif not record.is_file():
            found.released += [one.number for one in traces]
            found.problem(RECORD, f"{path.name} has no record in private/parts")
        else:
            found.part(path.name, traces, read_part(record))
    twice = [number for number, times in Counter(found.released).items() if times > 1]
    if twice:
        found.problem(ONCE, f"trace {twice[0]} is in two files, or twice in one")
    if alone:
        unknown = Check("release", None, "the shared files do not say whether they are a release or simulated output")
        missing = Check("promise", None, "the private folder is not here, and with it the noise and its records")
        return Verification((unknown, *found.checks((FILES, SHARED, ONCE)), missing), False)
    progress("Counting")
    lost = {path.stem for path in (private / "parts").glob("*.json")} - set(parts)
    if lost:
        found.problem(FILES, f"share lacks the files of {len(lost)} recorded parts")
    unchanged = found.compare_digests(folder, [path.name for path in parts.values()])
    found.compare_counts(folder, len(parts))
    checks = [found.is_release(), *found.checks((FILES, SHARED)), *unchanged, *found.checks((ONCE, COMPLETE))]
    checks += found.checks((RECORD, POSITIONS, FLOOR))
    if not found.certified:
        promise = Check(EPSILON, None, "no trace was released, or none could be checked: there is nothing to certify")
        return Verification((*checks, promise), found.simulated)
    checks += found.checks((EPSILON, NOISE))
    return Verification(tuple(checks), found.simulated, max(found.certified), found.order)


@dataclass(frozen=True)
class _Description:
    """What batch.json says of the options that the promise depends on."""

    target: Target
    given: PriorChoice | None
    middle: bool
    simulated: bool

    @classmethod
    def read(cls, path: Path) -> _Description:
        about = _json(path)
        if about.get("format") != FORMAT:
            raise InputError(f"{path} is of another version; use the jaxpriv that wrote it")
        try:
            given = about["prior"]["given"]
            return cls(
                Target(**about["target"]),
                None if given is None else PriorChoice(**given),
                about["secrets"] == plain(vars(SecretRequest())),
                about["simulate"] is not None,
            )
        except (KeyError, TypeError, ValueError, InputError):
            raise InputError(f"{path} is damaged; restore it") from None


@dataclass
class _Found:
    """What was found so far; `about` is None for a share folder alone."""

    about: _Description | None
    problems: dict[str, list[str]] = field(default_factory=dict)
    released: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    stated: list[float] = field(default_factory=list)
    certified: list[float] = field(default_factory=list)
    estimate: bool = False

    @property
    def simulated(self) -> bool:
        return self.about is not None and self.about.simulated

    @property
    def order(self) -> float | None:
        return None if self.about is None else self.about.target.order

    def problem(self, check: str, text: str) -> None:
        self.problems.setdefault(check, []).append(text)

    def checks(self, names: Iterable[str]) -> list[Check]:
        """A check of each name: passed, or failed with its first problem and how many there are."""
        done = []
        for name in names:
            wrong = self.problems.get(name, [])
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            done.append(Check(name, not wrong, wrong[0] + more if wrong else _RIGHT[name]))
        return done

    def is_release(self) -> Check:
        if self.simulated:
            return Check("release", False, "simulated output, made from a seed: it is not a release and not private")
        return Check("release", True, "drawn with the operating system's randomness, by its own account")

    def part(self, name: str, traces: list[SharedTrace], said: dict[str, Any]) -> None:
        """Check the traces of a shared file against the record of the part."""
        assert self.about is not None
        self.released += [one.number for one in traces]
        self.refused |= {_number(one): str(one.get("reason")) for one in said["refused"]}
        records: dict[int, TraceRecord] = {}
        for one in said["traces"]:
            try:
                record = TraceRecord.from_json(one, plane_radius(self.about.target))
                records[record.number] = record
            except InputError as error:
                self.problem(RECORD, str(error))
        stated = {_number(one) for one in said["traces"]}
        if stated != {one.number for one in traces} or len(stated) < len(said["traces"]):
            self.problem(RECORD, f"{name} and its record are not of the same traces")
        for shared in traces:
            if shared.number in records:
                self._trace(records[shared.number], shared, self.about)

    def _trace(self, record: TraceRecord, shared: SharedTrace, about: _Description) -> None:
        self.stated.append(record.epsilon)
        self.estimate = self.estimate or record.estimate
        options = {"middle": about.middle, "simulated": about.simulated}
        wrong = list(problems_of(record, shared, about.target, about.given, **options))
        if record.points == len(shared.time_us):
            seconds = (shared.time_us - shared.time_us[0]) / 1e6
            epsilon, more = certified_problems(record, seconds, about.target)
            self.certified.append(epsilon)
            wrong += more
        for check, text in wrong:
            self.problem(check, f"trace {record.number}: {text}")

    def compare_digests(self, folder: Path, names: list[str]) -> list[Check]:
        digests = kept_digests(folder)
        if not digests:
            return [Check(UNCHANGED, None, "private/shared.json is not here: it is written when a run ends")]
        for name in changed_files(folder, digests):
            self.problem(UNCHANGED, f"{name} was changed after its run")
        for name in sorted(set(names) - set(digests)):
            self.problem(UNCHANGED, f"{name} is not one of the files that were there when the run ended")
        return self.checks((UNCHANGED,))

    def compare_counts(self, folder: Path, parts: int) -> None:
        """Check that every trace of the input is there once, and what summary.json says."""
        if not (folder / "summary.json").is_file():
            self.problem(COMPLETE, "the run did not end; start it again with the same options, and it goes on")
            return
        summary = _json(folder / "summary.json")
        refused: dict[int, str] = {}
        for line in _lines(folder / "private" / "refused.jsonl"):
            if _number(line) in refused:
                self.problem(COMPLETE, f"trace {_number(line)} is refused twice")
            refused[_number(line)] = str(line.get("reason"))
        if not self.refused.items() <= refused.items():
            self.problem(COMPLETE, "refused.jsonl lacks traces that were refused, or has another reason")
        if both := sorted(refused.keys() & set(self.released)):
            self.problem(COMPLETE, f"trace {both[0]} is both released and refused")
        there = np.unique(np.array([*self.released, *refused], dtype=np.int64))
        total = summary.get("traces")
        if type(total) is not int or not np.array_equal(there, np.arange(total)):
            absent = sorted(set(range(total if type(total) is int else 0)) - set(there.tolist()))
            text = f"trace {absent[0]} is neither" if absent else "there are more traces than summary.json counts"
            self.problem(COMPLETE, f"{text} released nor refused" if absent else text)
        expected = {
            "done": len(self.released),
            "refused": len(refused),
            "reasons": dict(Counter(map(plain_reason, refused.values()))),
            "parts": parts,
            "epsilon": max(self.stated, default=None),
            "estimate": self.estimate,
            "simulated": self.simulated,
        }
        if wrong := [name for name, value in expected.items() if summary.get(name) != value]:
            self.problem(COMPLETE, f"summary.json says something else than the files: {', '.join(wrong)}")


def _number(entry: dict[str, Any]) -> int:
    found = entry.get("trace")
    return found if type(found) is int else -1


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} is missing; restore it") from None
    except (OSError, ValueError, RecursionError):
        raise InputError(f"{path} is damaged; restore it") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} is damaged; restore it")
    return content


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                entry = json.loads(line)
                if not isinstance(entry, dict):
                    raise ValueError
                yield entry
    except FileNotFoundError:
        raise InputError(f"{path} is missing; restore it") from None
    except (OSError, ValueError, RecursionError):
        raise InputError(f"{path} is damaged; restore it") from None
