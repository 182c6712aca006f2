"""The parts of a batch as tasks of Dask."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxpriv.errors import InputError


if TYPE_CHECKING:
    from distributed import WorkerPlugin

    from jaxpriv.jobs.batch.part import Part

RETRIES = 3
_AHEAD = 2  # tasks for each worker that wait, so that none is idle and few traces are held


def run_on_dask(
    parts: Iterable[Part],
    scheduler: str | None,
    workers: int,
    memory: float,
    progress: Callable[[str], None] = lambda step: None,
) -> None:
    """Run every part as one task, on the scheduler at an address or on `workers` processes of this machine.

    Few parts are under way at a time, so that the data set is never held. The tasks of a worker that is lost are run by
    another; a part that two of them run is written once. Raises `InputError` when Dask is not installed or nobody
    answers at the address.
    """
    try:
        from distributed import Client, LocalCluster, as_completed
    except ImportError:
        raise InputError("--scheduler and --workers need Dask: pip install 'jaxpriv[dask]'") from None
    with ExitStack() as stack:
        if scheduler is None:
            options: dict[str, Any] = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
            cluster: Any = LocalCluster(n_workers=workers, memory_limit=int(memory), **options)
            scheduler = stack.enter_context(cluster).scheduler_address
        try:
            client = stack.enter_context(Client(scheduler, timeout=30, set_as_default=False))
        except (OSError, TimeoutError, ValueError):
            raise InputError(f"--scheduler {scheduler}: no Dask scheduler answers there") from None
        # Also on the workers that take the place of lost ones, before JAX is loaded there.
        client.register_plugin(_compilation_cache(), name="jaxpriv-compilation-cache")
        waiting: Iterator[Part] = iter(parts)
        finished = as_completed(loop=client.loop)

        def submit() -> bool:
            part = next(waiting, None)
            if part is None:
                return False
            finished.add(client.submit(_run, part, key=f"jaxpriv-{part.name}", retries=RETRIES, pure=False))
            return True

        for _ in range(_AHEAD * max(len(client.scheduler_info(n_workers=-1)["workers"]), 1)):
            if not submit():
                break
        for count, future in enumerate(finished, 1):
            future.result()
            future.release()
            progress(f"{count} parts written")
            submit()


def _run(part: Part) -> str:
    from jaxpriv.jobs.batch.part import run_part

    return run_part(part)


def _compilation_cache() -> WorkerPlugin:
    """Keep compiled programs in the folder of each worker, where nobody chose another."""
    from distributed import Worker, WorkerPlugin

    class CompilationCache(WorkerPlugin):
        def setup(self, worker: Worker) -> None:
            folder = Path(worker.local_directory) / "jaxpriv-compiled"
            os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))

    return CompilationCache()
