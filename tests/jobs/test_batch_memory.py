"""The memory of a batch does not grow with the data set."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from jaxpriv.jobs.batch import programs as batch_programs, run as batch
from jaxpriv.jobs.requests import PriorRequest


spec = importlib.util.spec_from_file_location("batch_data", Path(__file__).with_name("batch_data.py"))
assert spec is not None and spec.loader is not None
data = importlib.util.module_from_spec(spec)
spec.loader.exec_module(data)

RUN = """
import sys
from pathlib import Path
from jaxpriv.jobs.batch.run import run_batch
from jaxpriv.jobs.batch.part import BatchOptions
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.requests import PriorRequest
from jaxpriv.jobs.target import Target
prior = PriorRequest(given=PriorChoice("matern32", 60.0, 100.0, 3.0))
done = run_batch(Path(sys.argv[1]), Path(sys.argv[2]), BatchOptions(Target(50.0, budget_m=30.0), prior))
peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
print(done.traces, done.done + done.refused, peak)
"""


def test_no_more_traces_are_held_than_wait_for_their_part(tmp_path, monkeypatch):
    size, count, read = 4, 80, batch.input_traces
    alive: set[int] = set()
    most = 0

    def watched(*given):
        nonlocal most
        for one in read(*given):
            if one.trace is not None:
                alive.add(one.number)
                weakref.finalize(one.trace, alive.discard, one.number)
            yield one
            most = max(most, len(alive))

    monkeypatch.setattr(batch, "input_traces", watched)
    summary = batch.run_batch(
        data.make_table(tmp_path / "in.parquet", count), tmp_path / "out", data.request(), part_traces=size
    )
    assert summary.done > 5 * size
    # A part that is full, the one being filled in each of the two lengths, and the trace that was read last.
    assert size < most <= 3 * size + 1


def test_programs_of_more_lengths_than_fit_are_forgotten(monkeypatch):
    cleared: list[int] = []
    monkeypatch.setattr(batch_programs, "_held", set())
    monkeypatch.setattr(batch_programs.jax, "clear_caches", lambda: cleared.append(1))
    counts = []
    for bucket in (32, 50, 16, 32, 50, 64, 64, 50):
        batch_programs.make_room(bucket, PriorRequest(), 2e9)
        counts.append(len(cleared))
    # Two lengths fit into 2 GB, and a third takes the place of both; nothing is fitted to traces of 16 fixes.
    assert counts == [0, 0, 0, 0, 0, 1, 1, 1]
    batch_programs.make_room(100, PriorRequest(), 1e9)
    assert len(cleared) == 2 and batch_programs._held == {100}
    for bucket in (16, 32, 50, 64):
        batch_programs.make_room(bucket, PriorRequest(given=data.PRIOR), 2e9)
    assert len(cleared) == 2


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak memory of a process is read from /proc")
def test_ten_times_the_traces_in_the_same_memory(tmp_path):
    peaks = []
    for count in (400, 4000):
        table = data.make_table(tmp_path / f"{count}.parquet", count)
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(table), str(tmp_path / f"out{count}")],
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert done.returncode == 0, done.stderr
        traces, accounted, peak = map(int, done.stdout.split())
        assert traces == accounted == count
        peaks.append(peak)
    # 7 % more were measured: the heap is more scattered after ten times the work. A fifth leaves room for other
    # machines; that no traces are kept is told by the test above, exactly.
    assert peaks[1] <= 1.2 * peaks[0]
    assert peaks[1] * 1024 < 2e9  # --memory, of which 2 GB is the default
