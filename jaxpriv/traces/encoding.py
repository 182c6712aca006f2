"""Bytes of a file as text, in whichever encoding the numbers can be read."""

from __future__ import annotations

import codecs
import re

from jaxpriv.errors import InputError


_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
# What writes digits and markup as ASCII does: text in other encodings has a mark or a zero byte at its start.
_KNOWN = re.compile(
    r"utf-?8|(us-)?ascii|iso[-_]?8859-?\d{1,2}|latin-?\d{1,2}|(windows-?|cp)125\d|koi8-[ru]|gb(k|2312|18030)|big5"
    r"|shift[-_]jis|euc-(jp|kr)|utf-?16([bl]e)?",
    re.IGNORECASE,
)


def table_mark(start: bytes) -> str | None:
    """The encoding that the first bytes of a text name, or None."""
    return next((encoding for mark, encoding in _BOMS if start.startswith(mark)), None)


def decode_table(content: bytes) -> str:
    """Decode a PLT or GeoJSON file: UTF-16 by its mark, else UTF-8, else Latin-1. Raises `InputError` for no text."""
    marked = table_mark(content)
    if marked is not None:
        return _decode(content, marked)
    if b"\0" in content:
        raise InputError("the file is not text")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")  # names in other columns; numbers and times are plain ASCII


def decode_xml(content: bytes) -> str:
    """Decode an XML file by its mark, its first bytes or its declaration; characters that are broken are replaced.

    Names may come out wrong; they are read by nobody. Raises `InputError` for an encoding that is not known.
    """
    marked = table_mark(content)
    if marked is not None:
        return _decode(content, marked)
    for start, encoding in ((b"<\0", "utf-16-le"), (b"\0<", "utf-16-be")):
        if content.startswith(start):
            return _decode(content, encoding)
    declared = _DECLARED.match(content)
    name = declared[1].decode("ascii") if declared else "utf-8"
    try:
        if not _KNOWN.fullmatch(name):
            raise LookupError
        # Declared as UTF-16 in bytes that are none: converted by a tool that left the declaration.
        codec = "utf-8" if name.lower().startswith(("utf-16", "utf16")) else codecs.lookup(name).name
    except LookupError:
        raise InputError("the character encoding that the file declares is not known; save it as UTF-8") from None
    return content.decode(codec, errors="replace")


def undecodable(encoding: str) -> InputError:
    """What to raise for text that is not in the encoding its mark names."""
    name = "UTF-16" if encoding == "utf-16" else "UTF-8"
    return InputError(f"the file begins like {name} text but is not; save it as UTF-8")


def _decode(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise undecodable(encoding) from None
