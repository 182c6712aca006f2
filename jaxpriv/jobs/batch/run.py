"""A data set of many traces, larger than memory: every trace is released once, or listed with the reason."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxpriv.designs.batch.buckets import bucket_of
from jaxpriv.errors import InputError
from jaxpriv.jobs.batch.designs import check_target
from jaxpriv.jobs.batch.digests import refuse_changed
from jaxpriv.jobs.batch.files import keep_description, open_folder, remove_leftovers, write_anew
from jaxpriv.jobs.batch.input import InputTrace, input_files, input_traces
from jaxpriv.jobs.batch.once import Repeats, Standing, content_digests, key_digest, refuse_output_in_input
from jaxpriv.jobs.batch.part import BatchOptions, Part, run_part
from jaxpriv.jobs.batch.priors import TOGETHER
from jaxpriv.jobs.batch.record import share_name
from jaxpriv.jobs.batch.summary import BatchSummary, finish, json_line
from jaxpriv.jobs.plain_json import plain
from jaxpriv.traces.contents import ReadOptions


PART_TRACES = TOGETHER // 2  # both coordinates of them are designed at once
LEAST_MEMORY = 1_000_000_000


def run_batch(
    path: Path,
    out: Path,
    options: BatchOptions,
    *,
    reading: ReadOptions | None = None,
    memory: float = 2e9,
    scheduler: str | None = None,
    workers: int = 1,
    part_traces: int = PART_TRACES,
    progress: Callable[[str], None] = lambda step: None,
) -> BatchSummary:
    """Release every trace of a table or a folder into the folder `out`; go on where an earlier run was ended.

    `out/share` holds Parquet files (trace, time, lat, lon), each written whole and once; `out/private` (mode 0700)
    whose trace each number is, what is certified of it, and every refusal; `out/summary.json` the counts. `memory`
    limits each process, in bytes, about. With a `scheduler`, or several `workers`, the parts are tasks of Dask; the
    workers must see `out` under the same path. `part_traces` is how many traces of about one length make a part: a
    simulation's positions do not depend on it.

    A folder goes on with the same content of the input, options, `part_traces`, key and release of jaxpriv only, which
    is checked before any part is designed. Of identical traces (the same instants and positions) the first is released.

    Raises `InputError` for input, options and folders that cannot be used, `InfeasibleError` for a budget below the
    noise floor.
    """
    path, out = Path(path).resolve(), Path(out).resolve()
    if memory < LEAST_MEMORY:
        raise InputError("--memory: at least 1 GB is needed for each process")
    if part_traces < 1:
        raise InputError("a part needs at least one trace")
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError("the batch command needs pyarrow: pip install 'jaxpriv[tables]'") from None
    reading = reading or ReadOptions()
    check_target(options.target)
    refuse_output_in_input(path, out)
    try:
        input_files(path)
        described = _described(options, reading)
        key = open_folder(out)
        remove_leftovers(out)
        progress("Comparing the input with the folder")
        about = described | {
            "jaxpriv": importlib.metadata.version("jaxpriv"),
            "part_traces": part_traces,
            "key": key_digest(key),
            "input": content_digests(path, key),
        }
    except OSError as problem:
        raise InputError(f"cannot read {problem.filename}: {problem.strerror or 'unknown reason'}") from None
    keep_description(out, about)
    refuse_changed(out)
    named = json.dumps(plain(described), sort_keys=True).encode()
    naming = key if options.seed is None else options.seed.to_bytes(32, "big")
    parts = _Parts(path, out, options, reading, named, naming, memory, Standing.of(out), part_traces)
    if scheduler is None and workers == 1:
        for part in parts:
            run_part(part)
            progress(f"{parts.traces} traces read, {len(parts.names)} parts written")
    else:
        from jaxpriv.jobs.batch.on_dask import run_on_dask

        run_on_dask(parts, scheduler, workers, memory, progress)
    progress("Counting")
    return finish(
        out,
        parts.unread,
        parts.names,
        traces=parts.traces,
        repeated=parts.repeated,
        found=parts.found,
        simulated=options.seed is not None,
        standing={share_name(name) for name in parts.standing.names},
    )


def _described(options: BatchOptions, reading: ReadOptions) -> dict[str, Any]:
    read = {"columns": vars(reading.columns), "duplicates": reading.duplicates, "strict": reading.strict}
    return {**options.describe(), "reading": read}


@dataclass
class _Parts:
    """The parts of a batch as their traces are read; only the traces of unfinished parts are held."""

    path: Path
    out: Path
    options: BatchOptions
    reading: ReadOptions
    about: bytes
    key: bytes
    memory: float
    standing: Standing
    size: int
    traces: int = 0
    repeated: int = 0
    found: int = 0
    names: list[str] = field(default_factory=list, repr=False)

    def __iter__(self) -> Iterator[Part]:
        """The parts that are still to be run. What is in none of them is listed in `private/unread.jsonl`."""
        waiting: dict[int, list[InputTrace]] = {}

        def write(path: Path) -> None:
            path.touch()

        write_anew(self.unread, write)
        with self.unread.open("a", encoding="utf-8") as unread, closing(Repeats(self.key)) as repeats:
            for one in input_traces(self.path, self.reading):
                self.traces += 1
                reason = one.reason
                if one.trace is not None and (same := repeats.earlier(one.number, one.trace)) is not None:
                    self.repeated += 1
                    reason = f"same as trace {same}, and its noise would average out with that one's"
                if one.trace is None or reason:
                    unread.write(json_line({"trace": one.number, "keys": one.keys, "reason": reason}))
                    continue
                bucket = bucket_of(one.trace.n_points)
                waiting.setdefault(bucket, []).append(one)
                if len(waiting[bucket]) == self.size:
                    yield from self._part(waiting.pop(bucket))
        for bucket in sorted(waiting):
            yield from self._part(waiting[bucket])

    @property
    def unread(self) -> Path:
        return self.out / "private" / "unread.jsonl"

    def _part(self, traces: list[InputTrace]) -> Iterator[Part]:
        part = Part.of(traces, self.out, self.options, self.about, self.key, self.memory)
        self.names.append(part.name)
        if part.done:
            self.found += 1
        else:
            self.standing.refuse_again(one.number for one in traces)
            yield part
