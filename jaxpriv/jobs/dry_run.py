"""What a run would do, in words, before anything is drawn or written."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from jaxpriv.jobs.grid_times import GridRequest
from jaxpriv.jobs.output import check_output
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import plan
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.report.rounding import significant
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.instants import format_instant
from jaxpriv.traces.oddities import find_oddities
from jaxpriv.traces.projection import LocalPlane


def dry_run(
    path: Path,
    out: Path,
    secrets: SecretRequest | Sequence[int],
    target: Target,
    prior: PriorRequest | PriorChoice,
    *,
    reading: ReadOptions | None = None,
    origin: LocalPlane | None = None,
    force: bool = False,
    grid: GridRequest | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> str:
    """Say what was understood: secrets, priors, the error that the noise will have and how long it takes.

    The noise is designed as in a run, but nothing is drawn, written or recorded. Raises as `protect_file` does.
    """
    check_output(out, force)
    start = time.perf_counter()
    progress("Reading the trace")
    trace = read_trace(path, options=reading, progress=progress)
    regular = None if grid is None else grid.times(int(trace.time_us[0]), int(trace.time_us[-1]))
    made = plan(trace, secrets, target, prior, origin=origin, progress=progress)
    took = time.perf_counter() - start
    noise = made.noise
    epsilon = max(one.design.epsilon for one in (noise.east, noise.north))
    lines = [made.source.first_line, "", f"{trace.n_points} points."]
    lines += [
        *trace.cleaning.sentences(),
        *find_oddities(None, trace).sentences(),
        "",
        made.secrets.describe().rstrip("\n"),
        "",
    ]
    for name, members in zip(("east", "north"), made.source.axes, strict=True):
        count = len(members.labels)
        lines.append(f"{count} prior{'s' if count > 1 else ''} for {name}:")
        lines += [f"  - {label}" for label in members.labels]
    lines += [f"Note: {text}" for text in made.source.findings]
    if grid is not None and regular is not None:
        lines += [
            "",
            f"{len(regular)} rows would be published, every {grid.step_s:g} s from {format_instant(int(regular[0]))} "
            f"to {format_instant(int(regular[-1]))}, drawn from the release of the fixes and the prior.",
        ]
    lines += [
        "",
        f"Points would be displaced by {significant(noise.rms_m, 3, 'up')} m (root mean square, grid included), with "
        f"ε = {significant(epsilon, 3, 'up')} at order {target.order:g}, certified; relative gap "
        f"{significant(noise.gap, 2, 'up')}.",
        f"Reading, priors and design took {significant(took, 2)} s and will take as long again; drawing and writing "
        "come on top. Nothing was drawn, written or recorded.",
    ]
    return "\n".join(lines) + "\n"
