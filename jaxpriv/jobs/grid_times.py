"""Publication on a public, regular grid of times: what is published is drawn from the release and public numbers.

The noise is designed for the fixes as they were recorded, and Z, their release, is certified. Z stays private. What is
published is the path at the times of the grid, drawn from its law given Z under a stated prior with an unknown mean. It
depends on the positions through Z alone, so that it tells no more about them than Z does. If the prior is right, its
differences have the law that the prior gives to the grid, whenever the fixes were taken, so that by itself it tells
nothing about their times. Proofs in docs/leaks.md.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from jaxpriv.errors import InputError
from jaxpriv.jobs.designing import Noise
from jaxpriv.jobs.noise import ReleasedPoints
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.prior_sources import PriorSource
from jaxpriv.mechanisms.grid_release import LARGEST_TAU
from jaxpriv.precision import double_precision
from jaxpriv.report.record import Report
from jaxpriv.report.rounding import given, significant
from jaxpriv.traces.instants import format_instant


MAX_ROWS = 5000
_LARGEST = 2.0**53
#: What is shared states this τ: the exact one counts the fixes.
LARGEST_SHARED_TAU = 2 * float(LARGEST_TAU)


@dataclass(frozen=True)
class GridRequest:
    """A regular grid of times: a step in seconds, and the window, in microseconds since 1970, or None."""

    step_s: float
    start_us: int | None = None
    end_us: int | None = None

    def __post_init__(self) -> None:
        step = self.step_s * 1e6
        if not (math.isfinite(step) and step >= 1 and abs(step - round(step)) < 1e-6 * step):
            raise InputError("--grid: the step must be a positive time of whole microseconds")
        if self.start_us is not None and self.end_us is not None and self.end_us <= self.start_us:
            raise InputError("--to is not after --from")

    @property
    def step_us(self) -> int:
        """The step in microseconds."""
        return round(self.step_s * 1e6)

    def times(self, first_us: int, last_us: int) -> np.ndarray:
        """The instants (m,) in microseconds since 1970.

        From `start_us` in steps up to `end_us`; where one is missing, the nearest multiple of the step since 1970 (UTC)
        that is not after the first fix, or not before the last. Raises `InputError` for fewer than two instants, or
        more than 5,000.
        """
        step = self.step_us
        start = first_us // step * step if self.start_us is None else self.start_us
        end = -(-last_us // step) * step if self.end_us is None else self.end_us
        count = (end - start) // step + 1
        if count < 2:
            raise InputError("--grid: the window holds fewer than two steps; name a finer step or a longer window")
        if count > MAX_ROWS:
            raise InputError(f"--grid: that makes more than {MAX_ROWS} rows; name a coarser step or a shorter window")
        return start + step * np.arange(count, dtype=np.int64)


@dataclass(frozen=True)
class OnGrid:
    """What is published on a grid: instants (m,) and points, and what a reader of the report should know of it."""

    time_us: np.ndarray = field(repr=False)
    points: ReleasedPoints
    sentences: tuple[str, ...]


def draw_on_grid(
    request: GridRequest,
    time_us: np.ndarray,
    noise: Noise,
    source: PriorSource,
    released: ReleasedPoints,
    rng: np.random.Generator | None = None,
) -> OnGrid:
    """Draw the path on the grid from the released points of the fixes at `time_us` (n,); no position comes in.

    The prior of each coordinate is one that its set alone determines (`drawing_prior`): which of them is worst, or any
    other choice that looks at the noise, would depend on when the fixes were taken. For the same reason the points
    state a τ that is no smaller than that of any release. Without `rng` the draw is seeded from the operating system;
    it need not be secret.
    """
    rng = np.random.default_rng(secrets.randbits(128)) if rng is None else rng
    grid = request.times(int(time_us[0]), int(time_us[-1]))
    seconds = (time_us - time_us[0]) / 1e6
    at = (grid - time_us[0]) / 1e6
    integers, spread = [], 0.0
    for i, (axis, members) in enumerate(zip((noise.east, noise.north), source.axes, strict=True)):
        mean, covariance = path_given_release(
            drawing_prior(members.choices),
            np.asarray(axis.design.mechanism.covariance, dtype=np.float64),
            seconds,
            released.metres[:, i],
            at,
            4.0**released.exponent / 12,
        )
        values, vectors = np.linalg.eigh(covariance)
        drawn = mean + vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(values)))
        units = np.floor(np.ldexp(drawn, -released.exponent) + 0.5)
        if not np.all(np.abs(units) < _LARGEST):
            raise InputError("--grid: the path on the grid does not fit in the output; pass another --origin")
        integers.append(tuple(int(value) for value in units))
        spread += float(np.trace(covariance)) / len(grid)
    tau = None if released.tau is None else LARGEST_SHARED_TAU
    points = ReleasedPoints(integers[0], integers[1], released.exponent, tau)
    return OnGrid(grid, points, _sentences(request, grid, spread))


def drawing_prior(choices: Sequence[PriorChoice]) -> PriorChoice:
    """The member of a set whose length scale is in the middle, the upper one of two; the first of equal ones."""
    return sorted(choices, key=lambda one: one.lengthscale_s)[len(choices) // 2]


def grid_report(report: Report, drawn: OnGrid) -> Report:
    """The report of a release, with what a grid changes of it."""
    times = (
        "When the fixes were taken is not published, and by itself, under the prior, the grid tells nothing of it. The "
        "promise is about places for an attacker who knows those times, or whose belief about them has nothing to do "
        "with the places.",
    )
    kept = tuple(text for text in report.not_claimed if not text.startswith("Times are published in clear"))
    return replace(
        report,
        rows_written=len(drawn.time_us),
        cleaning=(*report.cleaning, *drawn.sentences),
        not_claimed=(*times, *kept),
    )


def path_given_release(
    prior: PriorChoice, noise: np.ndarray, seconds: np.ndarray, released: np.ndarray, at: np.ndarray, rounding: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (m,) and covariance (m, m) of one coordinate's path at times `at` (m,), given released values (n,).

    In metres; `noise` (n, n) is its covariance, `seconds` (n,) are those of the fixes, `rounding` the variance that
    the output grid adds. The mean of the prior is unknown, with a flat law, and the nugget belongs to the fixes, not
    to the path.
    """
    n = len(seconds)
    both = np.concatenate([seconds, at])
    distinct, back = np.unique(both, return_inverse=True)
    with double_precision():
        process = prior.process_prior(distinct)
        covariance = np.asarray(process.covariance, dtype=np.float64) - prior.nugget_m**2 * np.eye(len(distinct))
    covariance = covariance[np.ix_(back, back)]
    total = covariance[:n, :n] + noise + (prior.nugget_m**2 + rounding) * np.eye(n)
    factor = cho_factor(total, lower=True)
    gain = cho_solve(factor, covariance[:n, n:]).T
    weights = cho_solve(factor, np.ones(n))
    precision = float(np.sum(weights))
    centre = float(weights @ released) / precision
    missing = 1.0 - gain @ np.ones(n)
    mean = centre + gain @ (released - centre)
    left = covariance[n:, n:] - gain @ covariance[:n, n:] + np.outer(missing, missing) / precision
    return mean, (left + left.T) / 2


def _sentences(request: GridRequest, grid: np.ndarray, spread: float) -> tuple[str, ...]:
    first, last = format_instant(int(grid[0])), format_instant(int(grid[-1]))
    found = [
        f"Published at {len(grid)} regular times, every {given(request.step_s)} s from {first} to {last}, not at the "
        "times of the fixes. The path at these times was drawn from the release and the prior alone; under that prior "
        f"a row lies {significant(math.sqrt(2.0 * spread), 3, 'up')} m (root mean square) from where the path was.",
    ]
    open_ends = [name for name, end in (("--from", request.start_us), ("--to", request.end_us)) if end is None]
    if open_ends:
        found.append(
            "The window was taken from the first and last fix, rounded outward to a whole step, and tells that much of "
            f"when the recording began or ended; name it in advance by {' and '.join(open_ends)}."
        )
    return tuple(found)
