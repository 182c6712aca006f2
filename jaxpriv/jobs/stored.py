"""Reading the files that a job wrote: JSON with a format, a version and known entries only."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jaxpriv.errors import InputError


MAX_BYTES = 64 * 2**20


def read_object(path: Path, kind: str, version: int) -> dict[str, Any]:
    """Read a JSON object whose `format` is `kind` and whose `format_version` is `version`, without these two.

    Raises `InputError`, which names the file, for anything else: another version, numbers that are not finite, a name
    that occurs twice. Versions are whole numbers, and only the one that this jaxpriv writes is read.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path.name}: larger than {MAX_BYTES // 2**20} MB")
        content = json.loads(
            path.read_text(encoding="utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_repetition
        )
    except OSError as problem:
        raise InputError(f"{path.name}: cannot be read ({problem.strerror or 'unknown reason'})") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path.name}: not a JSON file as jaxpriv writes them") from None
    if not isinstance(content, dict) or content.pop("format", None) != kind:
        raise InputError(f'{path.name}: its "format" is not "{kind}"')
    found = content.pop("format_version", None)
    if type(found) is not int or found != version:
        raise InputError(f"{path.name}: this jaxpriv reads version {version} of the format; use the one that wrote it")
    return content


def check_names(content: dict[str, Any], expected: set[str], where: str) -> None:
    """Raise `InputError` unless an object has exactly the `expected` entries."""
    missing, unknown = sorted(expected - set(content)), sorted(set(content) - expected)
    if missing:
        raise InputError(f"{where}: lacks {', '.join(missing)}")
    if unknown:
        raise InputError(f"{where}: has {len(unknown)} entries that are not known to this version of the format")


def number(value: Any, where: str) -> float:
    """Return a finite number as a float, or raise `InputError`."""
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise InputError(f"{where}: not a finite number")
    return float(value)


def whole(value: Any, where: str) -> int:
    """Return a whole number, or raise `InputError`."""
    if type(value) is not int:
        raise InputError(f"{where}: not a whole number")
    return value


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("repeated name")
    return content
