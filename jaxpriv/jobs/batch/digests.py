"""Digests of the shared files of a batch, kept in private: what is changed after its run is found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from pathlib import Path

from jaxpriv.errors import InputError
from jaxpriv.jobs.batch.files import json_text, write_anew


FILE = "shared.json"


def kept_digests(out: Path) -> dict[str, str]:
    """SHA-256 of every shared file, by its name, as it was when its run ended; empty before any did.

    Raises `InputError` for a file of digests that is damaged.
    """
    path = out / "private" / FILE
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["sha256"]
        if not all(isinstance(one, str) for one in (*found, *found.values())):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{path} is damaged; restore it") from None
    return found


def changed_files(out: Path, digests: dict[str, str]) -> list[str]:
    """Names of the shared files that are there with another content than their digest."""
    share = out / "share"
    return [name for name, digest in digests.items() if (share / name).is_file() and _digest(share / name) != digest]


def refuse_changed(out: Path) -> None:
    """Raise `InputError` when a shared file was changed since its run ended."""
    if changed := changed_files(out, kept_digests(out)):
        raise InputError(
            f"{out}/share/{changed[0]} was changed after it was written; restore it, or choose another --out"
        )


def keep_digests(out: Path, names: Iterable[str], standing: Collection[str]) -> None:
    """Write the digests of the shared files `names`; those of the ones that stood before this run are kept."""
    before = kept_digests(out)
    found = {}
    for name in names:
        kept = before.get(name) if name in standing else None
        found[name] = kept or _digest(out / "share" / name)
    write_anew(out / "private" / FILE, json_text({"sha256": found}))


def _digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
