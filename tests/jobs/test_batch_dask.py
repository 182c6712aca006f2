"""The batch job on Dask: one of two workers is killed, and the output is that of one process."""

from __future__ import annotations

import importlib.util
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from jaxpriv.errors import InputError
from jaxpriv.jobs.batch.run import run_batch


pytestmark = [
    # Of Dask itself: workers that are killed leave sockets and log files behind.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed.*"),
    pytest.mark.filterwarnings("ignore:Port .* is already in use:UserWarning"),
]

spec = importlib.util.spec_from_file_location("batch_data", Path(__file__).with_name("batch_data.py"))
assert spec is not None and spec.loader is not None
data = importlib.util.module_from_spec(spec)
spec.loader.exec_module(data)


@pytest.mark.slow
def test_a_worker_is_killed_and_nothing_is_lost_or_twice(tmp_path):
    distributed = pytest.importorskip("distributed")
    table = data.make_table(tmp_path / "in.parquet", 120)
    run_batch(table, tmp_path / "alone", data.request(7), part_traces=4)
    out = tmp_path / "out"
    failures: list[BaseException] = []
    summaries = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        first, second = client.run(os.getpid).values()

        def work() -> None:
            try:
                summaries.append(
                    run_batch(table, out, data.request(7), part_traces=4, scheduler=cluster.scheduler_address)
                )
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        deadline = time.monotonic() + 240
        while not list(out.glob("share/part-*")) and thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.02)
        written = len(list(out.glob("share/part-*")))
        os.kill(first, signal.SIGKILL)
        thread.join(240)
        assert not thread.is_alive() and not failures
        assert second in client.run(os.getpid).values()
    assert 1 <= written < summaries[0].parts
    assert data.files(out) == data.files(tmp_path / "alone")
    assert data.records(out) == data.records(tmp_path / "alone")
    assert data.refused(out) == data.refused(tmp_path / "alone")


def test_nobody_answers(tmp_path):
    pytest.importorskip("distributed")
    table = data.make_table(tmp_path / "in.parquet", 3)
    with pytest.raises(InputError, match="no Dask scheduler"):
        run_batch(table, tmp_path / "out", data.request(7), scheduler="nowhere://1")
