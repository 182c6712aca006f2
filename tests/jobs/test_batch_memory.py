"""The memory of a batch does not grow with the data set."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest


spec = importlib.util.spec_from_file_location("batch_data", Path(__file__).with_name("batch_data.py"))
assert spec is not None and spec.loader is not None
data = importlib.util.module_from_spec(spec)
spec.loader.exec_module(data)

RUN = """
import sys
from pathlib import Path
from jaxpriv.jobs.batch import run_batch
from jaxpriv.jobs.batch_part import BatchRequest
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.requests import PriorRequest
from jaxpriv.jobs.target import Target
prior = PriorRequest(given=PriorChoice("matern32", 60.0, 100.0, 3.0))
done = run_batch(Path(sys.argv[1]), Path(sys.argv[2]), BatchRequest(Target(50.0, budget_m=30.0), prior))
peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
print(done.traces, done.done + done.refused, peak)
"""


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
    assert peaks[1] <= 1.2 * peaks[0]
    assert peaks[1] * 1024 < 2e9
