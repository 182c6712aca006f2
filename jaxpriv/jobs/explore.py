"""What a release of a trace would cost at many values of ε: designs, and nothing that is drawn to be shared."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from jaxpriv.errors import CertificateError, InfeasibleError, InputError
from jaxpriv.jobs.designing import design_noise
from jaxpriv.jobs.explore_example import common_normals, example
from jaxpriv.jobs.output import check_output, output_folder, write_private
from jaxpriv.jobs.page import page_details
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import Planned, Progress, plan
from jaxpriv.jobs.reporting import make_report
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.report.claims import not_claimed
from jaxpriv.report.explorer import explorer_html
from jaxpriv.report.page.exploration import Exploration, Rung
from jaxpriv.report.rounding import given
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.projection import LocalPlane
from jaxpriv.traces.trace import Trace


# About equal steps in the logarithm, from odds of less than 2 : 1 to odds that protect nobody.
LADDER = (0.05, 0.1, 0.17, 0.3, 0.5, 0.7, 1.0, 1.7, 3.0, 5.0, 10.0)
MAX_RUNGS = 40
_LIMIT_S = 180.0
_SEED = 8


def explore(
    trace: Trace,
    secrets: SecretRequest | Sequence[int],
    target: Target,
    prior: PriorRequest | PriorChoice,
    *,
    ladder: Sequence[float] = LADDER,
    origin: LocalPlane | None = None,
    limit_s: float = _LIMIT_S,
    clock: Callable[[], float] = time.monotonic,
    progress: Progress = lambda step: None,
) -> Exploration:
    """Design the noise for each ε of a ladder (nats) and simulate an example of each; nothing is released or recorded.

    `target.epsilon` joins the ladder and is where the page starts; the ladder is filled in from both ends and the
    middle, so that it stays even when `limit_s` seconds have passed and the rest is left out. All examples are made
    from the same random numbers: their differences are those of the designs. Values at which no design can be made are
    left out with a sentence; if that is all of them, the error of the first is raised. Raises as `protect` does, and
    `InputError` for a ladder that is empty, too long or holds what is no ε.
    """
    if target.epsilon is None:
        raise InputError("the explorer goes over values of epsilon; give no --budget and no --uncertainty")
    values = _checked(ladder, target.epsilon)
    began = clock()
    order = filling_order(len(values), values.index(target.epsilon))
    first = replace(target, epsilon=values[order[0]])
    progress(_step(first, 1, len(values)))
    made = plan(trace, secrets, first, prior, origin=origin, progress=progress)
    rungs: dict[int, Rung] = {order[0]: _rung(trace, first, made)}
    left_out: list[str] = []
    for count, at in enumerate(order[1:], start=2):
        wanted = replace(target, epsilon=values[at])
        if clock() - began > limit_s:
            missing = ", ".join(given(values[i]) for i in sorted(order[count - 1 :]))
            left_out.append(f"Left out for lack of time: ε = {missing}; a longer --limit has them, too.")
            break
        progress(_step(wanted, count, len(values)))
        try:
            noise = design_noise(trace.seconds, made.secrets, wanted, made.source)
        except (InfeasibleError, CertificateError) as problem:
            left_out.append(f"Left out: ε = {given(values[at])}, {problem}")
            continue
        rungs[at] = _rung(trace, wanted, replace(made, noise=noise))
    kept = sorted(rungs)
    return Exploration(
        tuple(rungs[at] for at in kept),
        kept.index(order[0]),
        tuple(left_out),
        not_claimed(False, made.secrets.every),
    )


def explore_file(
    path: Path,
    out: Path,
    secrets: SecretRequest | Sequence[int],
    target: Target,
    prior: PriorRequest | PriorChoice,
    *,
    ladder: Sequence[float] = LADDER,
    reading: ReadOptions | None = None,
    origin: LocalPlane | None = None,
    limit_s: float = _LIMIT_S,
    force: bool = False,
    progress: Progress = lambda step: None,
) -> Exploration:
    """Read a trace file, explore it, and write `out`/private/explorer.html (mode 0600 in a folder of mode 0700).

    The page is private: it is made with the trace and shows it. A folder that holds a release is never replaced. Raises
    as `explore` does, and `InputError` for files.
    """
    check_output(out, force)
    if (out / "share").exists():
        raise InputError(f"{out} holds a release; choose another --out")
    progress("Reading the trace")
    trace = read_trace(path, options=reading, progress=progress)
    found = explore(trace, secrets, target, prior, ladder=ladder, origin=origin, limit_s=limit_s, progress=progress)
    progress("Writing")
    with output_folder(out, force) as folder:
        (folder / "share").rmdir()  # there is nothing to share
        write_private(folder / "private" / "explorer.html", explorer_html(found))
    return found


def filling_order(count: int, start: int) -> list[int]:
    """Order 0 to count − 1: the start, both ends, then the middle of the longest gap again and again."""
    order = list(dict.fromkeys([start, count - 1, 0]))
    while len(order) < count:
        known = sorted(order)
        low, high = max(pairwise(known), key=lambda pair: pair[1] - pair[0])
        order.append((low + high) // 2)
    return order


def _checked(ladder: Sequence[float], start: float) -> list[float]:
    values = sorted({float(value) for value in (*ladder, start)})
    if not ladder or len(values) > MAX_RUNGS:
        raise InputError(f"{len(ladder)} values of epsilon were given; the page takes 1 to {MAX_RUNGS}")
    for value in values:
        if not (value > 0 and np.isfinite(value)):
            raise InputError(f"epsilon is {value:g}; it must be a positive, finite number of nats")
    return values


def _step(target: Target, count: int, total: int) -> str:
    return f"Designing for ε = {given(target.epsilon or 0.0)} ({count} of {total})"


def _rung(trace: Trace, target: Target, made: Planned) -> Rung:
    axes = (made.noise.east, made.noise.north)
    normals = common_normals(trace.n_points, len(axes), _SEED)
    drawn = example(axes, made.metres, made.noise.grid_exponent, normals)
    report = make_report(trace, made.secrets, target, made.source, made.plane, made.noise, drawn, None)
    details = page_details(trace, made.metres, made.secrets, made.source, made.noise, drawn, report)
    variance = sum(axis.noise_variance() for axis in axes) + len(axes) * 4.0**drawn.exponent / 12
    shown = np.isin(trace.time_us, details.time_us)  # of a long trace the page has some fixes only
    return Rung(report, details, np.sqrt(variance)[shown])
