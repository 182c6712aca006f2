"""No trace of a batch is drawn twice: what stands in the folder already, and traces that the input repeats."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.jobs.batch.input import input_files
from jaxpriv.traces.trace import Trace


_DIGEST_BYTES = 16


def refuse_output_in_input(path: Path, out: Path) -> None:
    """Raise `InputError` for an output in the input's folder: the next run would read it. Both are resolved paths."""
    if path.is_dir() and (out == path or path in out.parents):
        raise InputError(
            f"--out {out} lies in the input {path}, where the next run would read what this one writes; choose a "
            "folder outside of it"
        )


def content_digests(path: Path, key: bytes) -> list[list[str]]:
    """Each file of the input: its path in the folder, and the HMAC-SHA256 of its content, which is read in pieces.

    Keyed, because a plain hash could be confirmed by whoever guesses the file.
    """
    found: list[list[str]] = []
    for file in input_files(path):
        digest = hmac.new(key, b"file\0", hashlib.sha256)
        with file.open("rb") as content:
            while piece := content.read(2**20):
                digest.update(piece)
        found.append([file.relative_to(path).as_posix() if path.is_dir() else file.name, digest.hexdigest()])
    return found


def key_digest(key: bytes) -> str:
    """What tells one key from another; it says nothing of a random one."""
    return hashlib.sha256(b"jaxpriv batch\0" + key).hexdigest()


@dataclass(frozen=True)
class Standing:
    """The traces whose releases stand in the folder: their numbers, ascending, and in which of the `names` each is."""

    names: tuple[str, ...] = field(repr=False)
    numbers: np.ndarray = field(repr=False)
    owners: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, out: Path) -> Standing:
        """Read the numbers from the shared files themselves.

        Raises `InputError` for a file that is damaged, one without its private record, and a trace in two files.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        names: list[str] = []
        numbers: list[np.ndarray] = []
        for path in sorted((out / "share").glob("part-*.parquet")):
            name = path.stem.removeprefix("part-")
            try:
                found = np.unique(pq.read_table(path, columns=["trace"]).column("trace").to_numpy())
            except (OSError, KeyError, pa.ArrowException):
                raise InputError(f"{path} is damaged; restore it, or choose another --out") from None
            if not (out / "private" / "parts" / f"{name}.json").is_file():
                raise InputError(f"{out}/private/parts/{name}.json is missing; restore it, or choose another --out")
            names.append(name)
            numbers.append(found.astype(np.int64))
        every = np.concatenate([*numbers, np.zeros(0, np.int64)])
        owners = np.repeat(np.arange(len(names), dtype=np.int32), [len(one) for one in numbers])
        order = np.argsort(every, kind="stable")
        every, owners = every[order], owners[order]
        twice = np.flatnonzero(every[1:] == every[:-1])
        if twice.size:
            raise InputError(f"trace {every[twice[0]]} stands in two files of {out}/share; remove one of them")
        return cls(tuple(names), every, owners)

    def refuse_again(self, numbers: Iterable[int]) -> None:
        """Raise `InputError` when one of these traces was released in a part that stands."""
        for number in numbers:
            place = int(np.searchsorted(self.numbers, number))
            if place < len(self.numbers) and self.numbers[place] == number:
                raise InputError(
                    f"trace {number} was released already, in share/part-{self.names[self.owners[place]]}.parquet, and "
                    "now has another content or other traces in its part; go on with the input and the folder as they "
                    "were"
                )


class Repeats:
    """The traces of the input that were met, in a temporary database: the memory for it does not grow with them."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._seen = sqlite3.connect("")  # on disk when it is large, and gone when it is closed
        self._seen.execute("CREATE TABLE seen (digest BLOB PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID")

    def earlier(self, number: int, trace: Trace) -> int | None:
        """The number of an earlier trace with the same instants and positions, or None, and then this one is noted.

        A row that stands twice in a trace counts once, and the order of the rows of one instant does not matter.
        """
        digest = hmac.new(self._key, b"trace\0" + _rows(trace), hashlib.sha256).digest()[:_DIGEST_BYTES]
        found = self._seen.execute("SELECT number FROM seen WHERE digest = ?", (digest,)).fetchone()
        if found is None:
            self._seen.execute("INSERT INTO seen VALUES (?, ?)", (digest, number))
            return None
        return int(found[0])

    def close(self) -> None:
        """Forget them."""
        self._seen.close()


def _rows(trace: Trace) -> bytes:
    rows = np.empty(len(trace.latitude), [("time", "<i8"), ("latitude", "<f8"), ("longitude", "<f8")])
    rows["time"] = trace.time_us[trace.point_of_row]
    rows["latitude"], rows["longitude"] = trace.latitude + 0.0, trace.longitude + 0.0  # no negative zero
    return np.unique(rows).tobytes()
