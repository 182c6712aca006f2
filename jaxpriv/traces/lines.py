"""The lines of a text file, however long it is, in whichever encoding its numbers can be read."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from dataclasses import dataclass

from jaxpriv.errors import InputError
from jaxpriv.traces.encoding import table_mark, undecodable
from jaxpriv.traces.sources import Source


MAX_LINE = 2**20
_CHUNK = 2**20
_TOO_LONG = InputError(f"a line has more than {MAX_LINE} characters; it is no table of a trace")


@dataclass(frozen=True)
class TextLines:
    """The lines of a table with their ends, decoded: UTF-16 by its mark, else UTF-8, else Latin-1.

    Each iteration reads the file again. Raises `InputError` for what is no text, and for a line of more than a million
    characters.
    """

    source: Source
    encoding: str

    @classmethod
    def of(cls, source: Source) -> TextLines:
        """Read through the file once to find its encoding."""
        with source.open("Looking through the file:") as file:
            start = file.read(4)
            marked = table_mark(start)
            if marked is not None:
                return cls(source, marked)
            decoder = codecs.getincrementaldecoder("utf-8")()
            encoding, chunk, line = "utf-8", start, 0
            while chunk:
                if b"\0" in chunk:
                    raise InputError("the file is not text")
                lengths = [len(part) for part in chunk.replace(b"\r", b"\n").split(b"\n")]
                if line + lengths[0] > MAX_LINE or max(lengths) > MAX_LINE:
                    raise _TOO_LONG
                line = lengths[-1] + (line if len(lengths) == 1 else 0)
                try:
                    decoder.decode(chunk)
                except UnicodeDecodeError:
                    # Names in other columns; numbers and times are plain ASCII.
                    encoding, decoder = "latin-1", codecs.getincrementaldecoder("latin-1")()
                chunk = file.read(_CHUNK)
            try:
                decoder.decode(b"", final=True)
            except UnicodeDecodeError:
                encoding = "latin-1"
            return cls(source, encoding)

    def __iter__(self) -> Iterator[str]:
        with self.source.open("Reading the table:") as file:
            text = io.TextIOWrapper(file, self.encoding, newline="")
            try:
                if self.encoding in ("utf-8", "latin-1"):  # whose lines have been measured
                    yield from text
                while line := text.readline(MAX_LINE):
                    if len(line) == MAX_LINE:
                        raise _TOO_LONG
                    yield line
            except UnicodeDecodeError:
                raise undecodable(self.encoding) from None
