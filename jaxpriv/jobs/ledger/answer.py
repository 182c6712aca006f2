"""Answers from the ledger: the output of an earlier release, written once more. Nothing is drawn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.jobs.ledger.account import RECORD, Ledger
from jaxpriv.jobs.ledger.joint import SecretTogether
from jaxpriv.jobs.ledger.outside import keep_record_again, outside_warning
from jaxpriv.jobs.ledger.records import LedgerRelease
from jaxpriv.jobs.mechanism_file import MechanismFile
from jaxpriv.jobs.odds import odds_record
from jaxpriv.jobs.output import output_folder, write_private
from jaxpriv.jobs.private_record import Entry, PrivateRecord
from jaxpriv.jobs.protect import Protected, share_texts
from jaxpriv.jobs.release_file import OBSERVED, TITLE, ReleaseFile, read_release
from jaxpriv.report.reading import record_from
from jaxpriv.report.record import LedgerRecord, Report, TogetherRecord
from jaxpriv.report.text import report_text
from jaxpriv.report.together import together_warning, with_ledger
from jaxpriv.traces.files import sanitised_text
from jaxpriv.traces.trace import Trace


@dataclass(frozen=True)
class Answered:
    """What was written again: which release it was and what the ledger says of it now; the report as text and JSON.

    `warnings` are those that came up since, or are about all releases together.
    """

    record: LedgerRecord
    text: str = field(repr=False)
    json: str = field(repr=False)
    warnings: tuple[str, ...] = ()


def outputs_of(trace: Trace, done: Protected, entry: Entry) -> dict[str, bytes]:
    """What the ledger keeps of a release's output: the shared files, the report and the private record's entry.

    The report as text is made from the other one. Its page is not kept: it shows the true positions.
    """
    texts = {f"share/{name}": text for name, text in share_texts(trace, done).items()}
    texts["private/report.json"] = done.report.to_json() + "\n"
    texts[RECORD] = entry.text()
    texts["style"] = _style(trace)
    if done.on_grid is not None:
        times = tuple(trace.time_us.tolist())
        texts[f"private/{OBSERVED}"] = ReleaseFile(times, done.released, done.plane).text()
    return {name: text.encode("utf-8") for name, text in texts.items()}


def answer(
    book: Ledger,
    person: str,
    release: LedgerRelease,
    trace: Trace,
    out: Path,
    force: bool,
    record: PrivateRecord,
    again: bool,
) -> Answered:
    """Write the stored output of a release to a folder, bit for bit, and its report as of now.

    Where the trace comes in a file of another format, or with other columns, the same published numbers are written in
    that one. Raises `InputError` as `output_folder` and `outside_warning` do.
    """
    stored = book.outputs(release.draw)
    if not {"share/release.json", "private/report.json", RECORD} <= set(stored):
        raise InputError("the ledger lacks the output of this release; restore it from a copy")
    warning = outside_warning(book, release, record, trace, out, person, again)
    observed = stored.get(f"private/{OBSERVED}")
    answered = _reported(book, person, release, stored["private/report.json"], warning)
    with output_folder(out, force) as folder:
        numbers = folder / "share" / "release.json"
        numbers.write_bytes(stored["share/release.json"])
        name = f"share/trace.{trace.style.kind}"
        if stored.get("style") == _style(trace).encode("utf-8"):
            (folder / name).write_bytes(stored[name])
        else:
            rows, published = trace, read_release(numbers)
            if observed is not None:  # other rows than the input's, on a grid of times
                times = np.array(published.time_us)
                rows = replace(trace, time_us=times, point_of_row=np.arange(len(times)))
            text = sanitised_text(rows, *published.positions(), TITLE)
            (folder / name).write_bytes(text.encode("utf-8"))
        if observed is not None:
            write_private(folder / "private" / OBSERVED, observed.decode("utf-8"))
        write_private(folder / "private" / "report.json", answered.json + "\n")
        write_private(folder / "private" / "report.txt", answered.text)
        MechanismFile(
            release.mechanisms, release.time_us, release.grid_exponent, release.resolution_m, simulated=False
        ).write(folder / "private" / "mechanism.npz")
        # Last before the folder gets its name: what is published is on record.
        write_private(folder / RECORD, keep_record_again(book, release, record, trace, out).text())
    book.publish(release.draw)
    return answered


def _reported(book: Ledger, person: str, release: LedgerRelease, stored: bytes, warning: str | None) -> Answered:
    """The report of a release as it was stored, with what is on record by now."""
    content = {name: one for name, one in json.loads(stored).items() if not name.startswith("format")}
    report = record_from(Report, content | {"ledger": None}, "report.json of the ledger")
    now = book.together(person)
    record = LedgerRecord(
        release.number,
        len(book.releases(person)),
        book.limit,
        max(one.together for one in now),
        told(now, report),
        again=True,
    )
    report = with_ledger(report, record)
    if warning is not None:
        report = replace(report, warnings=(warning, *report.warnings))
    shown = tuple(one for one in (warning, together_warning(record)) if one is not None)
    return Answered(record, report_text(report), report.to_json(), shown)


def told(secrets: Sequence[SecretTogether], report: Report) -> tuple[TogetherRecord, ...]:
    """What a report says of secrets on record; odds for its own ones, at its own order and δ."""
    own = {one.label for one in report.by_secret}
    return tuple(
        TogetherRecord(
            one.label,
            one.release,
            one.alone,
            one.together,
            odds_record(one.together, report.order, report.odds.delta).exact_factor if one.label in own else None,
        )
        for one in secrets
    )


def _style(trace: Trace) -> str:
    """How the file of a trace writes its rows, and which instants they have."""
    return f"{trace.style!r} {hashlib.sha256(trace.point_of_row.astype('<i8').tobytes()).hexdigest()}"
