"""The end of a batch: every refusal listed, every trace counted once, and digests of what was written."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxpriv.errors import InputError
from jaxpriv.jobs.batch.digests import keep_digests
from jaxpriv.jobs.batch.files import json_text, remove_leftovers, write_anew
from jaxpriv.jobs.batch.record import read_part, record_name, share_name
from jaxpriv.jobs.plain_json import plain


ANOTHER_RELEASE = (
    "A second run into another folder is another release of every trace: the noise of the two averages out, and what "
    "they tell adds up. No run notices it, because no record of releases is kept for a batch."
)


@dataclass(frozen=True)
class BatchSummary:
    """Counts of a batch: `traces` = `done` + `refused`. `reasons` counts refusals by reason, without their numbers.

    `repeated` of the refused have the instants and positions of an earlier trace of the input. `parts` were written or
    found, `found` of them by an earlier run. ε is in nats, the largest of all traces.
    """

    traces: int
    done: int
    refused: int
    repeated: int
    reasons: dict[str, int]
    parts: int
    found: int
    epsilon: float | None
    estimate: bool
    simulated: bool

    def record(self) -> dict[str, Any]:
        """As summary.json says it, which depends on the data set and the options only."""
        names = ("traces", "done", "refused", "repeated", "reasons", "parts", "epsilon", "estimate", "simulated")
        note = {} if self.simulated else {"note": ANOTHER_RELEASE}
        return {name: getattr(self, name) for name in names} | note


def finish(
    out: Path,
    unread: Path,
    names: Sequence[str],
    *,
    traces: int,
    repeated: int,
    found: int,
    simulated: bool,
    standing: Collection[str] = (),
) -> BatchSummary:
    """Read what was written, list every refusal, check that all `traces` are there once, and write summary.json.

    `unread` lists the traces that are in none of the parts `names`; it is removed. `standing` are names of shared files
    that an earlier run wrote. Raises `InputError` for a file of
    `share` that belongs to no part.
    """
    private = out / "private"
    remove_leftovers(out)  # of workers that were lost
    strange = {path.name for path in (out / "share").iterdir()} - {share_name(name) for name in names}
    if strange:
        raise InputError(
            f"{out}/share holds {len(strange)} file(s) of an input that has changed since; choose another --out, and "
            "release no trace twice"
        )
    reasons: Counter[str] = Counter()
    done = 0
    largest: list[float] = []
    estimate = False

    def write(path: Path) -> None:
        nonlocal done, estimate
        with path.open("w", encoding="utf-8") as refused, unread.open(encoding="utf-8") as lines:
            for line in lines:
                refused.write(line)
                reasons[plain_reason(json.loads(line)["reason"])] += 1
            for name in names:
                record = read_part(private / "parts" / record_name(name))
                done += len(record["traces"])
                largest[:] = [max([*largest, *(float(one["epsilon"]) for one in record["traces"])], default=0.0)]
                estimate = estimate or any(one["estimate"] for one in record["traces"])
                for one in record["refused"]:
                    refused.write(json_line(one))
                    reasons[plain_reason(one["reason"])] += 1

    write_anew(private / "refused.jsonl", write)
    keep_digests(out, [share_name(name) for name in names], standing)
    unread.unlink()
    count = sum(reasons.values())
    if done + count != traces:
        raise RuntimeError("the numbers of traces read and written differ")
    summary = BatchSummary(
        traces,
        done,
        count,
        repeated,
        dict(sorted(reasons.items())),
        len(names),
        found,
        largest[0] if done else None,
        estimate,
        simulated,
    )
    write_anew(out / "summary.json", json_text(summary.record()))
    return summary


def json_line(value: Any) -> str:
    """A line of JSON."""
    return json.dumps(plain(value), ensure_ascii=False) + "\n"


def plain_reason(reason: str) -> str:
    """A reason without its numbers."""
    return re.sub(r"[+-]?\d[\d.,e+-]*", "…", reason)
