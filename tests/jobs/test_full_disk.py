"""Folders that cannot be written and disks that are full: a sentence, and nothing half-written."""

from __future__ import annotations

import errno
import math
import os
import resource
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jaxpriv.cli.app import app
from jaxpriv.errors import InputError
from jaxpriv.fitting.fit import fit
from jaxpriv.fitting.prior_file import write_prior
from jaxpriv.jobs.output import output_folder


@contextmanager
def files_of_at_most(size):
    """No file of this process can grow beyond `size` bytes: a write then fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _places(path):
    rows = [f"{48 + i / 100:.2f},{16 + j / 100:.2f},{1 + i * j}" for i in range(4) for j in range(4)]
    path.write_text("lat,lon,count\n" + "\n".join(rows) + "\n")
    return str(path)


@pytest.mark.parametrize("size", [0, 500, 5_000])
def test_a_disk_that_is_full(size, tmp_path):
    # channel.npz alone has 2 kB, the picture more than 5 kB.
    command = ["obfuscate", _places(tmp_path / "map.csv"), "--out", str(tmp_path / "out"), "--method", "uniform"]
    with files_of_at_most(size):
        found = CliRunner().invoke(app, [*command, "--epsilon", "1", "--min-error", "100m"])
    assert (found.exit_code, "cannot write" in found.stderr) == (2, True), found.output
    assert sorted(os.listdir(tmp_path)) == ["map.csv"]


def test_a_folder_that_exists_is_not_lost_when_the_disk_is_full(tmp_path):
    out = tmp_path / "out"
    with output_folder(out) as folder:
        (folder / "share" / "a.txt").write_text("first")
    with pytest.raises(InputError, match="cannot write"), files_of_at_most(3), output_folder(out, force=True) as folder:
        (folder / "share" / "a.txt").write_text("second")
    assert (out / "share" / "a.txt").read_text() == "first"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC, errno.EACCES, errno.EDQUOT])
def test_a_folder_that_cannot_be_written(code, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    words = f"cannot write beside .*: {os.strerror(code)}"
    with pytest.raises(InputError, match=words), output_folder(tmp_path / "out"):
        raise AssertionError("there is no folder to write into")
    assert os.listdir(tmp_path) == []


def test_a_real_folder_that_is_read_only():
    # The kernel's own folder of processes, where nobody, not even root, makes files.
    if not os.path.isdir("/proc/self"):
        pytest.skip("no /proc on this system")
    with pytest.raises(InputError, match="cannot write beside /proc/out: "), output_folder(Path("/proc/out")):
        raise AssertionError("there is no folder to write into")


def test_a_prior_file_on_a_full_disk(tmp_path):
    times = [10.0 * i for i in range(24)]
    found = fit(times, [100 * math.sin(t / 40) + math.cos(7 * t) for t in times], kernel="matern32", confidence=None)
    (tmp_path / "old.json").write_text("old")
    for name in ("old.json", "new.json"):
        with pytest.raises(InputError, match="cannot"), files_of_at_most(100):
            write_prior(tmp_path / name, [[found]], "given")
    assert os.listdir(tmp_path) == ["old.json"]
    assert (tmp_path / "old.json").read_text() == "old"
