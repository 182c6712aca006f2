"""A run that is killed leaves a whole folder or none, wherever it was."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.private_record import read_entry
from jaxpriv.jobs.protect import protect, protect_file
from jaxpriv.jobs.target import Target
from jaxpriv.jobs.verify import verify_folder
from jaxpriv.traces.files import read_trace


START = 1_714_982_400
PRIOR, TARGET = PriorChoice("matern32", 60.0, 300.0, 1.0), Target(200.0, 1.0)


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """The design for the trace, made once in this process."""
    folder = tmp_path_factory.mktemp("design")
    trace = _prepare(folder)
    return pickle.dumps(protect(trace, [(START + 60) * 10**6], TARGET, PRIOR, simulate_seed=1).noise)


def _prepare(folder: Path):
    rows = [f"{START + 20 * i},{45 + math.sin(i * i) * 1e-3:.7f},{-30 + math.cos(i) * 1e-3:.7f}" for i in range(6)]
    (folder / "in.csv").write_text("time,lat,lon\n" + "\n".join(rows) + "\n")
    (folder / "secret").write_text(str((START + 60) * 10**6))
    return read_trace(folder / "in.csv")


def _kill(folder: Path, noise: bytes, *arguments: str) -> list[str]:
    _prepare(folder)
    (folder / "noise.pickle").write_bytes(noise)
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    script = Path(__file__).with_name("killed_runs.py")
    done = subprocess.run(
        [sys.executable, str(script), str(folder), *arguments],
        capture_output=True, text=True, env=environment, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [line.split(maxsplit=1)[1] for line in done.stdout.splitlines()]


def _is_whole(out: Path) -> bool:
    """Whether the folder is there; if so, it must be complete and right."""
    if not out.exists():
        return False
    assert verify_folder(out).verified
    names = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    private = ["mechanism.npz", "record.json", "report.html", "report.json", "report.txt"]
    assert names == [*(f"private/{name}" for name in private), "share/release.json", "share/trace.csv"]
    return True


def test_killed_before_each_call_to_the_file_system(tmp_path, noise):
    ended = _kill(tmp_path, noise, "steps")
    # All but the last, which was left alone: many more steps than ten, each of them once.
    assert ended == ["killed"] * (len(ended) - 1) + ["exit 0"]
    assert len(ended) > 30
    whole = [_is_whole(tmp_path / f"out{i}") for i in range(len(ended))]
    # It appears at one step and stays: what follows is cleaning up.
    assert whole == sorted(whole) and 0 < whole.count(False) < len(ended) - 1
    # What is published is on record.
    for out in (tmp_path / f"out{i}" for i, there in enumerate(whole) if there):
        (kept,) = Path(f"{out}-state", "jaxpriv").glob("*.json")
        assert read_entry(kept) == read_entry(out / "private/record.json")

    # The next run removes what the killed one left beside its place.
    last = max(i for i, there in enumerate(whole) if not there)
    assert list(tmp_path.glob(f".out{last}.*.partial"))
    protect_file(
        tmp_path / "in.csv", tmp_path / f"out{last}", [(START + 60) * 10**6], TARGET, PRIOR, again=True
    )  # fmt: skip
    assert not list(tmp_path.glob(f".out{last}.*.partial"))
    assert _is_whole(tmp_path / f"out{last}")


@pytest.mark.slow
def test_killed_while_replacing_a_folder(tmp_path, noise):
    ended = _kill(tmp_path, noise, "steps", "force")
    before = (tmp_path / "warm/share/release.json").read_bytes()
    states = []
    for i in range(len(ended)):
        out = tmp_path / f"out{i}"
        new = _is_whole(out) and (out / "share/release.json").read_bytes() != before
        states.append("new" if new else "old" if out.exists() else "none")
    assert set(states) == {"old", "none", "new"}
    assert states == sorted(states, key=["old", "none", "new"].index)


@pytest.mark.slow
def test_killed_at_a_hundred_random_times(tmp_path, noise):
    ended = _kill(tmp_path, noise, "100")
    assert len(ended) == 100 and set(ended) <= {"killed", "exit 0"}
    whole = [_is_whole(tmp_path / f"out{i}") for i in range(100)]
    # Both happen: the times of the kills follow the length of a run.
    assert 5 < np.count_nonzero(whole) < 95
