"""Two writers of one ledger, one of them killed: no entry is lost, none is there twice."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest


RELEASES = 3  # as in ledger_writers.py


def _run(folder: Path, repetitions: int) -> list[str]:
    script = Path(__file__).with_name("ledger_writers.py")
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(script), str(folder), str(repetitions)],
        capture_output=True, text=True, env=environment, timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def _told(folder: Path, i: int) -> dict[str, tuple[str, int]]:
    """For each draw the last state that a writer was told of, and its number."""
    found = {}
    for child in ("first", "second"):
        path = folder / f"{i}.{child}"
        for line in path.read_text().splitlines() if path.exists() else ():
            state, number, draw = line.split("|")
            found[draw] = (state, int(number))
    return found


def _check(folder: Path, i: int) -> str:
    """Check one ledger; return the state that the killed writer left behind."""
    with sqlite3.connect(folder / f"{i}.ledger") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        rows = database.execute(
            "SELECT id, number, draw, state, request, epsilon_together FROM release ORDER BY number"
        ).fetchall()
        outputs = {
            identity: dict(
                database.execute("SELECT name, content FROM output WHERE release = ?", (identity,)).fetchall()
            )
            for identity, *_ in rows
        }
    database.close()
    assert os.stat(folder / f"{i}.ledger").st_mode & 0o777 == 0o600
    told = _told(folder, i)
    states = {draw: state for _, _, draw, state, _, _ in rows}
    # Nothing that was acknowledged is lost, but for reservations that another writer took over: those have no output.
    order = ["reserved", "stored", "published"]
    for draw, (state, _) in told.items():
        if draw in states:
            assert order.index(states[draw]) >= order.index(state)
        else:
            assert state == "reserved"
    # Nothing is there twice, and every certificate was of the releases that were on record.
    requests = [request for _, _, _, _, request, _ in rows]
    numbers = [number for _, number, *_ in rows]
    assert len(set(requests)) == len(requests) and numbers == list(range(1, len(rows) + 1))
    for identity, number, draw, state, _, together in rows:
        assert together == number
        assert set(outputs[identity]) == (set() if state == "reserved" else {"share/trace.csv", "share/release.json"})
        if state != "reserved":
            assert outputs[identity]["share/trace.csv"] == draw.encode() * 500
    # The writer that lived made all of its releases.
    wanted = {f"{'both' if i % 2 == 0 else 'second'} {k}".encode() for k in range(RELEASES)}
    assert wanted <= set(requests)
    published = {request for _, _, _, state, request, _ in rows if state != "reserved"}
    assert wanted <= published
    return " ".join(sorted({state for _, _, _, state, request, _ in rows}))


def test_two_writers_and_a_kill(tmp_path):
    ended = _run(tmp_path, 5)
    assert len(ended) == 5 and all(line.endswith(" 0") for line in ended)
    for i in range(5):
        _check(tmp_path, i)


@pytest.mark.slow
def test_two_writers_and_a_hundred_kills(tmp_path):
    ended = _run(tmp_path, 100)
    assert len(ended) == 100 and all(line.endswith(" 0") for line in ended)
    assert sum(line.startswith("killed") for line in ended) > 30
    left = [_check(tmp_path, i) for i in range(100)]
    # The kills fell at different points.
    assert len(set(left)) > 1
