"""Releases that a ledger does not hold: what the private record of this user knows of them, and what enters it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jaxpriv.errors import InputError
from jaxpriv.jobs.ledger.account import MORE_RECORDS, Ledger
from jaxpriv.jobs.ledger.records import LedgerRelease
from jaxpriv.jobs.private_record import Entry, PrivateRecord
from jaxpriv.report.record import ReleasesRecord
from jaxpriv.traces.trace import Trace


def check_outside(
    book: Ledger, person: str, record: PrivateRecord, trace: Trace, out: Path, again: bool
) -> tuple[Entry, ReleasesRecord]:
    """The private record's entry for this release, and what it knows of releases that are not in the ledger.

    Raises `InputError` for content that was released outside the ledger, unless `again` is set.
    """
    entry = record.entry(trace, out)
    last, found = record.earlier(entry, replaced=out, elsewhere=book.kept_records(person))
    if last is not None and not again:
        raise InputError(
            f"the same positions and times are on record as released ({last.recorded}, to {last.folder}), and this "
            "ledger does not hold that release: nothing could be said about both together. Share that one instead. To "
            "release them once more all the same, pass --again"
        )
    return replace(entry, number=found.number), found if last is not None else replace(found, number=1)


def keep_record(
    book: Ledger, person: str, draw: str, record: PrivateRecord, trace: Trace, out: Path, again: bool
) -> tuple[Entry, ReleasesRecord] | None:
    """Put a reserved release into the private record, before it is drawn; also return what is known of others.

    The ledger notes the entry first, so that whoever takes the reservation over finds it and takes it for no other
    release. None when the reservation was taken over. Raises as `check_outside`.
    """
    noted = [Entry.from_text(text) for text in book.noted_records(draw)]
    while True:
        entry, outside = check_outside(book, person, record, trace, out, again)
        for old in noted:  # of a run that died
            if old.content == entry.content and record.holds(old):
                return old, outside
        if not book.note_record(draw, entry.text()):
            return None
        if record.keep_if_free(entry):
            return entry, outside


def keep_record_again(book: Ledger, release: LedgerRelease, record: PrivateRecord, trace: Trace, out: Path) -> Entry:
    """The entry of the private record for a release that is written once more.

    A new one where this record holds none, as under another key than the one that the release was made with.
    """
    present = record.entry(trace, out)
    for old in (Entry.from_text(text) for text in book.noted_records(release.draw)):
        if old.content == present.content and record.holds(old):
            return old
    while True:
        _, found = record.earlier(present)
        entry = replace(present, number=found.number)
        if not book.note_record(release.draw, entry.text(), MORE_RECORDS + record.path_of(entry).stem):
            raise InputError("the ledger does not hold this release any more; restore it from a copy")
        if record.keep_if_free(entry):
            return entry


def outside_warning(book: Ledger, release: LedgerRelease, record: PrivateRecord, trace: Trace, out: Path, person: str,
                    again: bool) -> str | None:  # fmt: skip
    """Say that the content of a release on record was also released outside the ledger; None where it was not.

    Raises `InputError` for a release that may never have been published, unless `again` is set: somebody would then
    have both for the first time.
    """
    entry = record.entry(trace, out)
    last, _ = record.earlier(entry, replaced=out, elsewhere=book.kept_records(person))
    if last is None:
        return None
    if release.state == "stored" and not again:
        raise InputError(
            f"the same positions and times are on record as released ({last.recorded}, to {last.folder}), and this "
            f"ledger does not hold that release; its own release number {release.number} of them may not be published "
            "yet, and nothing could be said about both together. Share that one instead. To write release number "
            f"{release.number} all the same, pass --again"
        )
    return (
        f"The same positions and times are on record as released outside this ledger ({last.recorded}, to "
        f"{last.folder}). Losses of several releases do not add: together they can tell far more than the sum, and no "
        "number is claimed for them together. The numbers here are for somebody who does not see that release."
    )
