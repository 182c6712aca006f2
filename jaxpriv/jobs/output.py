"""Output folders that appear whole or not at all."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jaxpriv.errors import InputError


try:
    import fcntl
except ImportError:  # a system without advisory locks: leftovers stay
    fcntl = None

# What an output folder may hold for --force to replace it: nothing that jaxpriv did not write.
_OURS = {"share", "private", "picture.png", "input.csv"}
_LOCK = "running"


def check_output(target: Path, force: bool = False) -> None:
    """Raise `InputError` when `target` cannot be written: it exists, or its parent does not."""
    if not target.parent.is_dir():
        raise InputError(f"the folder that should hold {target} does not exist; create it first")
    if not target.exists() and not target.is_symlink():
        return
    if not force:
        raise InputError(f"{target} exists already; choose another --out, or pass --force to replace it")
    if target.is_symlink() or not target.is_dir() or not {entry.name for entry in target.iterdir()} <= _OURS:
        raise InputError(f"{target} holds something that jaxpriv did not write; choose another --out")


@contextmanager
def output_folder(target: Path, force: bool = False) -> Iterator[Path]:
    """Give a temporary folder beside `target`, moved into place when the block ends without an error.

    It has a folder `share` (what may be shared) and a folder `private` with mode 0700. What it holds reaches the disk
    before it gets its name; when the process is killed, `target` is whole or not there, and the next run with this
    target removes what was left beside it. Raises `InputError` as `check_output` does, and for a disk that cannot be
    written.
    """
    check_output(target, force)
    try:
        _remove_leftovers(target)
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    except OSError as problem:
        raise InputError(f"cannot write beside {target}: {problem.strerror or 'unknown reason'}") from None
    made = work / "whole"
    lock = None
    try:
        lock = (work / _LOCK).open("w")
        _try_lock(lock.fileno())
        made.mkdir()
        (made / "share").mkdir()
        (made / "private").mkdir(mode=0o700)
        yield made
        _reach_the_disk(made)
        check_output(target, force)
        if target.exists():
            target.rename(work / "replaced")
        made.rename(target)
    except OSError as problem:
        raise InputError(f"cannot write {target}: {problem.strerror or 'unknown reason'}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if lock is not None:
            lock.close()


def write_private(path: Path, text: str) -> None:
    """Write a text file that only its owner can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _reach_the_disk(folder: Path) -> None:
    """Flush every file and folder below, so that a power cut, too, leaves all or nothing."""
    paths = [*folder.rglob("*"), folder]
    for path in paths:
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
    for path in paths:
        if path.is_dir():
            with suppress(OSError):  # some systems cannot flush a folder
                handle = os.open(path, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)


def _remove_leftovers(target: Path) -> None:
    """Remove what killed runs for this target left behind; a living run holds the lock of its folder."""
    for folder in target.parent.glob(f".{glob.escape(target.name)}.*.partial"):
        try:
            handle = os.open(folder / _LOCK, os.O_RDWR)
        except OSError:
            continue
        try:
            if _try_lock(handle):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(handle)


def _try_lock(handle: int) -> bool:
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
