"""A private record of what was released, so that nobody releases the same trace twice without meaning to.

It notices and warns; what several releases tell together is the business of a ledger (`jaxpriv.jobs.ledger.account`).
A record holds no position. The content (the set of cleaned rows: instants and positions) is kept as an HMAC-SHA256
under a random key of the user, because a plain hash could be confirmed by whoever guesses the trace. Each run of eight
consecutive instants is kept as a digest under the same key, to notice parts of a trace and longer versions of it;
these digests are of the times alone, which a release publishes anyway.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
import struct
import tempfile
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jaxpriv.errors import InputError
from jaxpriv.jobs.stored import check_names, read_object, whole
from jaxpriv.report.record import ReleasesRecord
from jaxpriv.traces.trace import Trace


FORMAT, VERSION = "jaxpriv-record", 1
RUN = 8  # consecutive instants that two traces share before they are said to overlap
_ENTRIES = {"content", "number", "recorded", "folder", "runs"}
_KEY_BYTES, _RUN_BYTES = 32, 8


@dataclass(frozen=True)
class Entry:
    """One release on record: its content, which release of that content it was, when, and where it was written."""

    content: str
    number: int
    recorded: str
    folder: str
    runs: frozenset[bytes] = field(repr=False)

    def text(self) -> str:
        """Write the record as JSON."""
        runs = base64.b64encode(b"".join(sorted(self.runs))).decode("ascii")
        entries = {"content": self.content, "number": self.number, "recorded": self.recorded, "folder": self.folder}
        return json.dumps({"format": FORMAT, "format_version": VERSION} | entries | {"runs": runs}) + "\n"

    @classmethod
    def from_text(cls, text: str) -> Entry:
        """Read what `text` wrote. Raises `InputError` for another text."""
        content = json.loads(text)
        return _entry({name: one for name, one in content.items() if not name.startswith("format")}, "record.json")


@dataclass(frozen=True)
class PrivateRecord:
    """The records in the user's state folder, and the key that their digests are made with."""

    folder: Path
    key: bytes = field(repr=False)

    @classmethod
    def open(cls) -> PrivateRecord:
        """Open the record of this user, making its folder (mode 0700) and key (mode 0600) when they are missing.

        Raises `InputError` when they cannot be kept.
        """
        folder = state_folder()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (folder / "key").exists():
                with suppress(FileExistsError):  # another run was faster
                    _create(folder / "key", secrets.token_bytes(_KEY_BYTES))
            key = (folder / "key").read_bytes()
        except OSError as problem:
            raise InputError(
                f"cannot keep the record of releases in {folder}: {problem.strerror or 'unknown reason'}; "
                "set XDG_STATE_HOME to a folder that can be written"
            ) from None
        if len(key) != _KEY_BYTES:
            raise InputError(f"{folder / 'key'} is not a key of {_KEY_BYTES} bytes; restore it, or remove it")
        return cls(folder, key)

    def entry(self, trace: Trace, folder: Path, number: int = 1) -> Entry:
        """Make the record of releasing a trace to a folder; nothing is written."""
        time_us = trace.time_us[trace.point_of_row]
        rows = sorted(set(zip(time_us.tolist(), trace.latitude.tolist(), trace.longitude.tolist(), strict=True)))
        packed = b"".join(struct.pack("<qdd", us, lat + 0.0, lon + 0.0) for us, lat, lon in rows)
        times = trace.time_us.astype("<i8")
        length = min(RUN, len(times))
        runs = frozenset(
            self._digest(b"times", times[i : i + length].tobytes())[:_RUN_BYTES] for i in range(len(times) - length + 1)
        )
        recorded = datetime.now(UTC).isoformat(timespec="seconds")
        return Entry(self._digest(b"content", packed).hex(), number, recorded, str(folder.absolute()), runs)

    def earlier(
        self, entry: Entry, replaced: Path | None = None, elsewhere: Collection[str] = ()
    ) -> tuple[Entry | None, ReleasesRecord]:
        """Look up what is on record: the last release of the same content, and what the report shall say.

        `replaced` is a folder of an earlier release that is to be replaced; its own record counts, too. Entries whose
        text is in `elsewhere` are accounted for there: they count in the number, and are not returned or reported.
        Raises `InputError` for a record that cannot be read.
        """
        paths = sorted(self.folder.glob("*.json"))
        if replaced is not None and (replaced / "private" / "record.json").is_file():
            paths.append(replaced / "private" / "record.json")
        known = [read_entry(path) for path in paths]
        same = [one for one in known if one.content == entry.content]
        number = max((one.number for one in same), default=0) + 1
        last = max((one for one in same if one.text() not in elsewhere), key=lambda one: one.number, default=None)
        overlapping = [one for one in known if one.content != entry.content and one.runs & entry.runs]
        return last, ReleasesRecord(number, sum(1 for one in overlapping if one.text() not in elsewhere))

    def path_of(self, entry: Entry) -> Path:
        """Where a record is kept."""
        return self.folder / f"{entry.content[:32]}.{entry.number}.json"

    def holds(self, entry: Entry) -> bool:
        """Whether this very record is kept here."""
        try:
            return self.path_of(entry).read_text(encoding="ascii") == entry.text()
        except (OSError, ValueError):
            return False

    def keep_if_free(self, entry: Entry) -> bool:
        """Write a record; False when its number is taken. Raises `InputError` when it cannot be written."""
        try:
            _create(self.path_of(entry), entry.text().encode("ascii"))
        except FileExistsError:
            return False
        except OSError as problem:
            raise InputError(
                f"cannot keep the record of releases in {self.folder}: {problem.strerror or 'unknown reason'}"
            ) from None
        return True

    def keep(self, entry: Entry) -> Path:
        """Write a record and return its path; raises `InputError` when another run recorded that release first."""
        if not self.keep_if_free(entry):
            raise InputError("the same content was released by another run at the same time; see --again")
        return self.path_of(entry)

    def _digest(self, purpose: bytes, content: bytes) -> bytes:
        return hmac.new(self.key, purpose + b"\0" + content, hashlib.sha256).digest()


def state_folder() -> Path:
    """Folder of the record: `jaxpriv` in $XDG_STATE_HOME, or in ~/.local/state when that is not an absolute path."""
    configured = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(configured):
        return Path(configured) / "jaxpriv"
    try:
        return Path.home() / ".local" / "state" / "jaxpriv"
    except RuntimeError:
        raise InputError("there is no home folder to keep the record of releases in; set XDG_STATE_HOME") from None


def read_entry(path: Path) -> Entry:
    """Read one record; raises `InputError` for a file that is none."""
    return _entry(read_object(path, FORMAT, VERSION), path.name)


def _entry(content: dict[str, Any], where: str) -> Entry:
    check_names(content, _ENTRIES, where)
    texts = [content[name] for name in ("content", "recorded", "folder", "runs")]
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"{where}: not a record as jaxpriv writes them")
    try:
        runs = base64.b64decode(content["runs"], validate=True)
    except ValueError:
        raise InputError(f"{where}: not a record as jaxpriv writes them") from None
    return Entry(
        content["content"],
        whole(content["number"], f"{where}: number"),
        content["recorded"],
        content["folder"],
        frozenset(runs[i : i + _RUN_BYTES] for i in range(0, len(runs), _RUN_BYTES)),
    )


def _create(path: Path, content: bytes) -> None:
    """Write a file that appears whole, readable by its owner only; `FileExistsError` when it is there already."""
    handle, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)
    finally:
        os.unlink(name)
