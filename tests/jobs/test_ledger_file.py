"""The file of a ledger: who may read it, what it refuses, and that the document describes it."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

import jaxpriv as jp
from jaxpriv.jobs.ledger import file as ledger_file
from jaxpriv.jobs.ledger.account import Ledger
from jaxpriv.jobs.ledger.file import VERSION, LedgerFile
from jaxpriv.jobs.ledger.text import summarise


DOCUMENT = (Path(__file__).parents[2] / "docs/ledger.md").read_text(encoding="utf-8")


def test_only_its_owner_can_read_it(tmp_path):
    path = tmp_path / "l"
    before = os.umask(0)
    try:
        with Ledger(path) as book:
            assert book.limit is None and len(book.key) == 32
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for mode in (0o640, 0o604, 0o620):
        path.chmod(mode)
        with pytest.raises(jp.InputError, match=f"others on this machine can read or write it.*chmod 600 {path}"):
            Ledger(path)


def test_files_that_are_no_ledger(tmp_path):
    def made(name, content=b""):
        path = tmp_path / name
        path.write_bytes(content)
        path.chmod(0o600)
        return path

    with pytest.raises(jp.InputError, match="no such ledger"):
        summarise(tmp_path / "missing")
    with pytest.raises(jp.InputError, match="not a file"):
        Ledger(tmp_path)
    with pytest.raises(jp.InputError, match="cannot be written"):
        Ledger(tmp_path / "missing" / "l")
    with pytest.raises(jp.InputError, match="not the file of a ledger"):
        Ledger(made("text", b"time,lat,lon\n" * 100))
    other = made("other")
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE x (y)")
    with pytest.raises(jp.InputError, match="no ledger of jaxpriv"):
        Ledger(other)
    newer = tmp_path / "newer"
    with Ledger(newer):
        pass
    with closing(sqlite3.connect(newer)) as database:
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(
        jp.InputError, match=f"reads version {VERSION} of the ledger, and this is version {VERSION + 1}"
    ):
        Ledger(newer)
    # Empty, as after a kill before the first transaction: a ledger to be.
    with Ledger(made("empty"), 1.0) as book:
        assert book.limit == 1.0 and book.people() == []
    # The limit comes with the first release.
    assert summarise(tmp_path / "empty").text().startswith("0 person(s); no limit was set")


def test_another_writer_is_waited_for_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger_file, "WAIT_S", 0.05)
    with Ledger(tmp_path / "l"):
        pass
    first, second = LedgerFile(tmp_path / "l"), LedgerFile(tmp_path / "l")
    with (
        first.writing(),
        pytest.raises(jp.InputError, match="another run is writing to this ledger"),
        second.writing(),
    ):
        pass
    with second.writing():  # free again
        pass
    first.close()
    second.close()


def test_a_block_that_raises_keeps_nothing(tmp_path):
    file = LedgerFile(tmp_path / "l")

    def write():
        with file.writing() as database:
            database.execute("INSERT INTO certified VALUES (x'00', x'00')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    with file.reading() as database:
        assert database.execute("SELECT count(*) FROM certified").fetchone() == (0,)
    file.close()


def test_every_column_is_described_with_its_version(tmp_path):
    with Ledger(tmp_path / "l"):
        pass
    assert f"user_version` {VERSION}" in DOCUMENT
    with closing(sqlite3.connect(tmp_path / "l")) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            if table.startswith("sqlite_"):
                continue
            (row,) = re.findall(rf"^\| `{table}` \|(.*)\|$", DOCUMENT, re.M)
            columns = {one[1] for one in database.execute(f"PRAGMA table_info({table})")}
            assert columns - set(re.findall(r"`([a-z0-9_]+)`", row)) == set(), table
