"""Output folders that appear whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jaxpriv.errors import InputError


# What an output folder may hold for --force to replace it: nothing that jaxpriv did not write.
_OURS = {"share", "private", "picture.png", "input.csv"}


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

    It has a folder `share` (what may be shared) and a folder `private` with mode 0700. Raises `InputError` as
    `check_output` does, and for a disk that cannot be written.
    """
    check_output(target, force)
    try:
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    except OSError as problem:
        raise InputError(f"cannot write beside {target}: {problem.strerror or 'unknown reason'}") from None
    made = work / "whole"
    try:
        made.mkdir()
        (made / "share").mkdir()
        (made / "private").mkdir(mode=0o700)
        yield made
        check_output(target, force)
        if target.exists():
            target.rename(work / "replaced")
        made.rename(target)
    except OSError as problem:
        raise InputError(f"cannot write {target}: {problem.strerror or 'unknown reason'}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
