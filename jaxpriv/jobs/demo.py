"""The demonstration: the whole job on a made-up day, with a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jaxpriv.jobs.demo_trace import CLINIC, HOME, ORIGIN, WORK, demo_day
from jaxpriv.jobs.output import check_output, output_folder
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import Progress, Protected, protect, write_release
from jaxpriv.jobs.target import Target
from jaxpriv.report.rounding import given, significant
from jaxpriv.traces.files import read_trace


PRIOR = PriorChoice("matern32", 1800.0, 2500.0, 5.0, source="made up for the demonstration, not fitted to the day")
TARGET = Target(radius_m=500.0, epsilon=1.0)


def run_demo(
    out: Path,
    *,
    points: int = 120,
    seed: int = 8,
    force: bool = False,
    progress: Progress = lambda step: None,
) -> Protected:
    """Protect a visit to a clinic in a made-up day of `points` fixes, and write `out` with a picture.

    The release is simulated from `seed`. Raises `InputError` when `out` cannot be written.
    """
    check_output(out, force)
    day = demo_day(points, seed)
    with output_folder(out, force) as folder:
        (folder / "input.csv").write_text(day.csv, encoding="utf-8")
        trace = read_trace(folder / "input.csv")
        done = protect(trace, [day.secret_us], TARGET, PRIOR, simulate_seed=seed, origin=ORIGIN, progress=progress)
        write_release(folder, trace, done)
        progress("Drawing the picture")
        from jaxpriv.plots.day import DayPicture, draw_day

        picture = DayPicture(
            hours=(trace.time_us % 86_400_000_000) / 3.6e9,
            true=done.details.true_m,
            released=done.details.released_m,
            believed=done.details.believed_m,
            halfwidth=done.details.halfwidth_m,
            secret=int(np.argmin(np.abs(trace.time_us - day.secret_us))),
            title=(
                f"A made-up day: ε = {significant(done.report.epsilon, 3, 'up')} for any two places at most "
                f"{given(TARGET.radius_m)} m apart during the visit to the clinic (SIMULATED noise)"
            ),
            places=(("home", *HOME), ("clinic", *CLINIC), ("work", *WORK)),
        )
        draw_day(picture, folder / "picture.png")
    return done
