"""Reading a report back: entries must be known and of their kind, and all there but those that joined the format later.

A field that joins a format within one version carries the metadata `LATER` and a default, which says what a file of
before it means.
"""

from __future__ import annotations

import sys
import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, Union

from jaxpriv.errors import InputError


T = TypeVar("T")

LATER = types.MappingProxyType({"later": True})


def record_from(kind: type[T], content: Any, where: str) -> T:
    """Build a record (a dataclass of this package) from parsed JSON.

    Fields marked `LATER` may be missing and then have their default. Raises `InputError`, which says where, for other
    entries that are missing, and for those that are not known or of another kind than the record's own. The values are
    not quoted.
    """
    if not isinstance(content, dict):
        raise InputError(f"{where}: not an object")
    hints = typing.get_type_hints(kind)
    known = fields(kind)  # type: ignore[arg-type]
    there = [one.name for one in known if one.name in content]
    missing = [one.name for one in known if one.name not in content and "later" not in one.metadata]
    if missing:
        raise InputError(f"{where}: lacks {', '.join(missing)}")
    if len(content) > len(there):
        raise InputError(f"{where}: has {len(content) - len(there)} entries that are not known")
    return kind(**{name: _value(hints[name], content[name], f"{where}: {name}") for name in there})


def _value(hint: Any, content: Any, where: str) -> Any:
    if typing.get_origin(hint) in (Union, types.UnionType):
        if content is None:
            return None
        (hint,) = [option for option in typing.get_args(hint) if option is not type(None)]
    if is_dataclass(hint):
        return record_from(typing.cast(type, hint), content, where)
    if typing.get_origin(hint) is tuple:
        return _sequence(typing.get_args(hint), content, where)
    if hint is float and type(content) in (int, float) and abs(content) <= sys.float_info.max:
        return float(content)
    if type(content) is not hint:
        raise InputError(f"{where}: not a {'number' if hint in (int, float) else hint.__name__}")
    return content


def _sequence(kinds: tuple[Any, ...], content: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(content, list):
        raise InputError(f"{where}: not a list")
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(content)
    if len(kinds) != len(content):
        raise InputError(f"{where}: {len(content)} entries instead of {len(kinds)}")
    return tuple(_value(kind, one, f"{where}[{i}]") for i, (kind, one) in enumerate(zip(kinds, content, strict=True)))
