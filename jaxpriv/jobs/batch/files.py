"""The folder of a batch: files that appear whole, once, and under a name that tells nothing of what they hold."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from jaxpriv.errors import InputError
from jaxpriv.jobs.plain_json import plain


KEY_BYTES = 32
_OURS = {"share", "private", "summary.json"}


def write_once(path: Path, write: Callable[[Path], object]) -> bool:
    """Write a file that appears whole under its name; False when there was one, which is then left as it is.

    Whoever comes first is kept, also when several processes write at the same time: a name never has two contents.
    """
    work = _written(path, write)
    try:
        os.link(work, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if path.exists():
            return False
        os.replace(work, path)
    finally:
        work.unlink(missing_ok=True)
    _flush_folder(path.parent)
    return True


def write_anew(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file that appears whole under its name, in place of an earlier one."""
    os.replace(_written(path, write), path)
    _flush_folder(path.parent)


def json_text(value: Any) -> Callable[[Path], object]:
    """A writer of JSON."""
    text = json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return lambda path: path.write_bytes(text.encode())


def open_folder(out: Path) -> bytes:
    """Make the folder of a batch, or open one, and give its key.

    The key is random and stays in `private`: names and digests made without it would let anybody check a guess of the
    positions. Raises `InputError` for a folder that holds anything else, and for one that lost the key of its parts.
    """
    if not out.parent.is_dir():
        raise InputError(f"the folder that should hold {out} does not exist; create it first")
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise InputError(f"{out} exists already and is no folder; choose another --out")
    private = out / "private"
    if out.exists() and any(out.iterdir()):
        if not {one.name for one in out.iterdir()} <= _OURS or not private.is_dir():
            raise InputError(f"{out} holds something that jaxpriv did not write; choose another --out")
        if any((out / "share").glob("*")) and not (private / "batch.json").exists():
            raise InputError(f"{out} holds no batch that could go on; choose another --out")
    if _has_parts(out) and not (private / "key").exists():
        raise InputError(
            f"{private / 'key'} is missing, and without it the parts that {out} holds would be released again; restore "
            "it"
        )
    try:
        out.mkdir(exist_ok=True)
        private.mkdir(mode=0o700, exist_ok=True)
        write_once(private / "key", lambda path: path.write_text(secrets.token_hex(KEY_BYTES)))
        (out / "share").mkdir(exist_ok=True)
        (private / "parts").mkdir(mode=0o700, exist_ok=True)
        key = bytes.fromhex((private / "key").read_text())
    except (OSError, ValueError) as problem:
        raise _unusable(out, problem) from None
    if len(key) != KEY_BYTES:
        raise InputError(f"{private / 'key'} is not a key of {KEY_BYTES} bytes; restore it")
    return key


def keep_description(out: Path, about: dict[str, Any]) -> None:
    """Write `private/batch.json`, or check that the batch which the folder holds is this one.

    A folder without any part may begin another batch. Raises `InputError` for other options, another input, another
    key or another release of jaxpriv.
    """
    file, now = out / "private" / "batch.json", plain(about)
    try:
        if not _has_parts(out):
            write_anew(file, json_text(about))
            return
        before = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(before, dict):
            raise ValueError
    except (OSError, ValueError) as problem:
        raise _unusable(out, problem) from None
    if other := sorted(name for name in {*before, *now} if before.get(name) != now.get(name)):
        raise InputError(
            f"{out} was begun with other options or another input: {', '.join(map(repr, other))} differ from {file}; "
            "pass the same ones to go on. Another --out is another release of every trace"
        )


def _has_parts(out: Path) -> bool:
    return any((out / "share").glob("part-*"))


def _unusable(out: Path, problem: Exception) -> InputError:
    return InputError(f"cannot use {out}: {getattr(problem, 'strerror', None) or 'it is damaged'}")


def remove_leftovers(out: Path) -> None:
    """Remove what killed runs left unfinished; call it when no other process works on the folder."""
    for folder in (out, out / "share", out / "private", out / "private" / "parts"):
        for left in folder.glob(".*.unfinished"):
            with suppress(OSError):
                left.unlink()


def _written(path: Path, write: Callable[[Path], object]) -> Path:
    handle, name = tempfile.mkstemp(prefix=".", suffix=".unfinished", dir=path.parent)
    os.close(handle)
    work = Path(name)
    try:
        write(work)
        if path.parent.name == "share":
            work.chmod(0o644)
        with work.open("rb+") as file:
            os.fsync(file.fileno())
    except BaseException:
        work.unlink(missing_ok=True)
        raise
    return work


def _flush_folder(folder: Path) -> None:
    with suppress(OSError):  # some systems cannot flush a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
