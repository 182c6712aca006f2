"""The bytes of a trace file, which may be packed and may be too many to hold: read as often as they are needed."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from jaxpriv.errors import InputError


Progress = Callable[[str], None]
# A file that is read in one piece, and a table that is read row by row.
MAX_BYTES, MAX_TABLE_BYTES = 64 * 2**20, 2**32
# Tables of text pack to a twentieth of their size or so.
_MAX_RATIO = 200
_KEPT = 8 * 2**20
_CHUNK = 2**20
_NOT_GZIP = "the file is not gzip, or its end is missing; unpack it first"


@dataclass(frozen=True)
class Source:
    """A file, gzipped where `packed`.

    `content` holds its bytes as they are when they are few, or can be read only once. `progress` is told how far a long
    read is.
    """

    path: Path
    packed: bool
    size: int
    content: bytes | None = field(repr=False)
    progress: Progress = field(repr=False, default=lambda step: None)

    @classmethod
    def of(cls, path: Path, packed: bool, progress: Progress = lambda step: None) -> Source:
        """Look at a file. Raises `InputError` when it cannot be read."""
        try:
            with path.open("rb") as file:
                found = os.fstat(file.fileno())
                regular = stat.S_ISREG(found.st_mode)
                if regular and found.st_size > _KEPT:
                    return cls(path, packed, found.st_size, None, progress)
                # What is no regular file, such as a pipe, is read once.
                content = file.read() if regular else file.read(MAX_BYTES + 1)
        except OSError as problem:
            raise _unreadable(path, problem) from None
        if not regular and len(content) > MAX_BYTES:
            raise _too_large(MAX_BYTES)
        return cls(path, packed, len(content), content, progress)

    def whole(self) -> bytes:
        """All bytes, unpacked. Raises `InputError` when they are more than can be held."""
        if not self.packed and self.size > MAX_BYTES:
            raise _too_large(MAX_BYTES)
        with self.open() as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise _too_large(MAX_BYTES)
        return content

    @contextmanager
    def open(self, what: str = "Reading:") -> Iterator[io.BufferedReader]:
        """Open the bytes, unpacked, from their start; no more than `MAX_TABLE_BYTES` are given.

        What goes wrong while they are read is raised as `InputError` where the block ends.
        """
        try:
            raw: io.BufferedIOBase
            with self.path.open("rb") if self.content is None else io.BytesIO(self.content) as raw:
                if not self.packed:
                    yield io.BufferedReader(_Measured(raw, raw, self, what), _CHUNK)
                    return
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield io.BufferedReader(_Measured(unpacked, raw, self, what), _CHUNK)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise InputError(_NOT_GZIP) from None
        except OSError as problem:
            raise _unreadable(self.path, problem) from None


class _Measured(io.RawIOBase):
    """Bytes of a source, limited in number, with the progress told every few megabytes."""

    _STEP = 4 * 2**20

    def __init__(self, inner: io.BufferedIOBase, raw: io.BufferedIOBase, source: Source, what: str):
        super().__init__()
        self._inner, self._raw, self._source, self._what = inner, raw, source, what
        self._given = self._told = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[override]
        count = self._inner.readinto(buffer)
        self._given += count
        if self._given > MAX_TABLE_BYTES:
            raise _too_large(MAX_TABLE_BYTES)
        if self._given > MAX_BYTES and self._given > _MAX_RATIO * self._source.size:
            raise InputError(f"the file unpacks to more than {_MAX_RATIO} times its size; unpack it first")
        if self._given - self._told > self._STEP:
            self._told = self._given
            self._source.progress(f"{self._what} {min(100 * self._raw.tell() // max(self._source.size, 1), 100)} %")
        return count


def _too_large(limit: int) -> InputError:
    return InputError(f"the file is larger than {limit // 2**20} MB; cut it into shorter periods")


def _unreadable(path: Path, problem: OSError) -> InputError:
    return InputError(f"cannot read {path}: {problem.strerror or 'unknown reason'}")
