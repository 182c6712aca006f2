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


def prepare_folder(out: Path, about: dict[str, Any], seed: int | None) -> bytes:
    """Make the folder of a batch, or go on with it, and give the key of the names of its parts.

    The key is random and stays in `private`, because names made from the positions alone would let anybody check a
    guess of them; a simulation's key is made from its seed. Raises `InputError` for a folder that holds another batch,
    or anything else.
    """
    if not out.parent.is_dir():
        raise InputError(f"the folder that should hold {out} does not exist; create it first")
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise InputError(f"{out} exists already and is no folder; choose another --out")
    private, about_file = out / "private", out / "private" / "batch.json"
    if out.exists() and any(out.iterdir()):
        if not {one.name for one in out.iterdir()} <= _OURS or not private.is_dir():
            raise InputError(f"{out} holds something that jaxpriv did not write; choose another --out")
        if any((out / "share").glob("*")) and not about_file.exists():
            raise InputError(f"{out} holds no batch that could go on; choose another --out")
    try:
        out.mkdir(exist_ok=True)
        private.mkdir(mode=0o700, exist_ok=True)
        write_once(private / "key", lambda path: path.write_text(secrets.token_hex(32)))
        if not any((out / "share").glob("part-*")):
            write_anew(about_file, json_text(about))
        elif not write_once(about_file, json_text(about)) and json.loads(about_file.read_text()) != plain(about):
            raise InputError(
                f"{out} was begun with other options or another input (see {about_file}); pass the same ones to go on, "
                "or choose another --out"
            )
        (out / "share").mkdir(exist_ok=True)
        (private / "parts").mkdir(mode=0o700, exist_ok=True)
        key = bytes.fromhex((private / "key").read_text())
    except (OSError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"cannot use {out}: {getattr(problem, 'strerror', None) or 'it is damaged'}") from None
    return key if seed is None else seed.to_bytes(32, "big", signed=False)


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
