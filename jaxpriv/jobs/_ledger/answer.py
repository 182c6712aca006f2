"""Answers from the ledger: the output of an earlier release, written once more. Nothing is drawn."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.jobs.ledger import Ledger
from jaxpriv.jobs.ledger_records import LedgerRelease
from jaxpriv.jobs.mechanism_file import MechanismFile
from jaxpriv.jobs.output import output_folder, write_private
from jaxpriv.jobs.private_record import Entry, PrivateRecord, read_entry
from jaxpriv.jobs.protect import Protected, share_texts
from jaxpriv.jobs.release_file import OBSERVED, TITLE, ReleaseFile, read_release
from jaxpriv.report.record import LedgerRecord, TogetherRecord
from jaxpriv.report.text import report_text, together_text
from jaxpriv.traces.files import sanitised_text
from jaxpriv.traces.trace import Trace


@dataclass(frozen=True)
class Answered:
    """What was written again: which release it was and what the ledger says of it now; the report as text and JSON."""

    record: LedgerRecord
    text: str = field(repr=False)
    json: str = field(repr=False)


def outputs_of(trace: Trace, done: Protected, entry: Entry) -> dict[str, bytes]:
    """What the ledger keeps of a release's output: the shared files, the report and the private record's entry.

    The report's page is not among them: it shows the true positions.
    """
    texts = {f"share/{name}": text for name, text in share_texts(trace, done).items()}
    texts["private/report.json"] = done.report.to_json() + "\n"
    texts["private/report.txt"] = report_text(done.report)
    texts["private/record.json"] = entry.text()
    texts["style"] = _style(trace)
    if done.on_grid is not None:
        times = tuple(trace.time_us.tolist())
        texts[f"private/{OBSERVED}"] = ReleaseFile(times, done.released, done.plane).text()
    return {name: text.encode("utf-8") for name, text in texts.items()}


def answer(
    book: Ledger, person: str, release: LedgerRelease, trace: Trace, out: Path, force: bool, limit: float | None
) -> Answered:
    """Write the stored output of a release to a folder, bit for bit.

    Where the trace comes in a file of another format, or with other columns, the same published numbers are written in
    that one. Raises `InputError` as `output_folder` does.
    """
    stored = book.outputs(release.draw)
    if not {"share/release.json", "private/report.json", "private/record.json"} <= set(stored):
        raise InputError("the ledger lacks the output of this release; restore it from a copy")
    observed = stored.get(f"private/{OBSERVED}")
    now = book.together(person)
    record = LedgerRecord(
        release.number,
        len(book.releases(person)),
        limit,
        max(one.together for one in now),
        tuple(TogetherRecord(one.label, one.release, one.alone, one.together) for one in now),
        again=True,
    )
    content = json.loads(stored["private/report.json"]) | {"ledger": asdict(record)}
    answered = Answered(
        record,
        together_text(record) + "\n\n" + stored["private/report.txt"].decode("utf-8"),
        json.dumps(content, indent=2, allow_nan=False),
    )
    with output_folder(out, force) as folder:
        numbers = folder / "share" / "release.json"
        numbers.write_bytes(stored["share/release.json"])
        name = f"share/trace.{trace.style.kind}"
        if stored.get("style") == _style(trace).encode("utf-8"):
            (folder / name).write_bytes(stored[name])
        else:
            published = read_release(numbers)
            if observed is not None:  # other rows than the input's, on a grid of times
                times = np.array(published.time_us)
                trace = replace(trace, time_us=times, point_of_row=np.arange(len(times)))
            text = sanitised_text(trace, *published.positions(), TITLE)
            (folder / name).write_bytes(text.encode("utf-8"))
        if observed is not None:
            write_private(folder / "private" / OBSERVED, observed.decode("utf-8"))
        write_private(folder / "private" / "report.json", answered.json + "\n")
        write_private(folder / "private" / "report.txt", answered.text)
        write_private(folder / "private" / "record.json", stored["private/record.json"].decode("ascii"))
        MechanismFile(
            release.mechanisms, release.time_us, release.grid_exponent, release.resolution_m, simulated=False
        ).write(folder / "private" / "mechanism.npz")
        # The run that drew it may have been killed before it got as far.
        record_of_user, entry = PrivateRecord.open(), read_entry(folder / "private" / "record.json")
        if not record_of_user.path_of(entry).exists():
            record_of_user.keep(entry)
    book.publish(release.draw)
    return answered


def _style(trace: Trace) -> str:
    """How the file of a trace writes its rows, and which instants they have."""
    return f"{trace.style!r} {hashlib.sha256(trace.point_of_row.astype('<i8').tobytes()).hexdigest()}"
