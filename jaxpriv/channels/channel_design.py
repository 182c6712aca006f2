"""What a search for a good channel returns, and the last steps that make it exact."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.limits import Limits, largest_excess
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.problem import ChannelProblem
from jaxpriv.channels.repair import (
    errors_met,
    inner_limits,
    mix,
    remapped,
    settled,
    top_up,
    without_small_outputs,
)
from jaxpriv.errors import CertificateError


@dataclass(frozen=True)
class ChannelDesign:
    """A channel within its limits, what it costs, and what no channel within them can beat.

    * `channel` (n, m): every limit holds for its stored logarithms, rounding included (`excess`, nats, is a rigorous
      upper bound on the largest log ratio beyond its limit, at most 0).
    * `quality_loss`: Σ π(x) f(z|x) loss(x, z), in the unit of the loss.
    * `lower_bound`: no channel within the same limits (and error requirement) loses less; rounding included.
    * `min_error`: least conditional expected inference error over the published outputs, in the unit of the map; the
      requirement was `required_error` (0: none).
    * `moved`: probability mass that the last repair moved, at most 1.
    * `published`: number of outputs that are used at all; outputs below `dropped_below` were merged into others.
    * `method`, `status`, `seconds`, `rows`, `steps`: how it was found; `rows` counts constraints of the program solved.
    """

    channel: Channel
    prior: DiscretePrior
    outputs: Float[np.ndarray, "m 2"] | None = field(repr=False)
    limits: Limits = field(repr=False)
    quality_loss: float
    lower_bound: float
    min_error: float
    required_error: float
    excess: float
    moved: float
    published: int
    dropped_below: float
    method: str
    status: str
    seconds: float
    rows: int
    steps: int

    @property
    def gap(self) -> float:
        """(quality_loss − lower_bound)/quality_loss: how much, at most, a better channel would save."""
        if self.quality_loss <= 0.0:
            return 0.0
        return max(0.0, (self.quality_loss - self.lower_bound) / self.quality_loss)


def within_limits(
    problem: ChannelProblem, matrix: Float[np.ndarray, "n m"], drop: float
) -> tuple[Float[np.ndarray, "n m"], float]:
    """A channel within the problem's limits and error requirement near a given matrix, and the mass that was moved.

    The matrix may have small negative entries, rows that sum to about 1 and violated limits. Outputs that no input
    uses with more than `drop` are merged into others. Time O(n² m).
    """
    matrix = np.maximum(np.asarray(matrix, dtype=np.float64), 0.0)
    start = matrix / np.sum(matrix, axis=1, keepdims=True)
    inner = inner_limits(problem.limits.allowed)
    columns = settled(remapped(start, problem.cost), inner)
    columns = without_small_outputs(columns, problem.cost, drop)
    channel, moved = top_up(columns, inner, problem.cost)
    if problem.errors is not None:
        channel = errors_met(channel, problem.errors, problem.cost)
    channel = remapped(channel, problem.cost)
    used = np.max(channel, axis=0) > 0.0
    if np.any(channel[:, used] <= 0.0):
        # Limits beyond the range of doubles: a little of the channel's own marginal makes every entry positive.
        marginal = np.mean(channel, axis=0)
        reached = np.isfinite(problem.limits.allowed[:, 0])
        if np.all(reached):
            channel = mix(channel, marginal / np.sum(marginal), 1e-12)
    return channel, moved


def finished(
    problem: ChannelProblem,
    matrix: Float[np.ndarray, "n m"],
    *,
    asked: Limits,
    lower_bound: float,
    moved: float,
    drop: float,
    method: str,
    status: str,
    seconds: float,
    steps: int = 0,
) -> ChannelDesign:
    """Audit a channel against the limits that were `asked` and write it up. Raises CertificateError if it fails."""
    with np.errstate(divide="ignore"):
        log_matrix = np.log(matrix)
    excess = largest_excess(log_matrix, asked.allowed)
    if not excess <= 0.0:
        raise CertificateError(
            f"the channel exceeds a limit by {excess:.3g} nats after its repair; nothing is claimed. "
            "This should not happen: please report the prior, epsilon and sets that led here"
        )
    error = least_error(problem, matrix)
    if error < problem.min_error * (1.0 - 1e-9):
        raise CertificateError(
            f"an output lets the adversary guess within {error:.6g}, not {problem.min_error:.6g}, after the repair; "
            "nothing is claimed. This should not happen: please report the input that led here"
        )
    return ChannelDesign(
        channel=Channel(log_matrix),
        prior=problem.prior,
        outputs=problem.outputs,
        limits=asked,
        quality_loss=float(np.sum(problem.cost * matrix)),
        lower_bound=lower_bound,
        min_error=error,
        required_error=problem.min_error,
        excess=excess,
        moved=moved,
        published=int(np.count_nonzero(np.max(matrix, axis=0) > 0.0)),
        dropped_below=drop,
        method=method,
        status=status,
        seconds=seconds,
        rows=problem.rows,
        steps=steps,
    )


def least_error(problem: ChannelProblem, matrix: Float[np.ndarray, "n m"]) -> float:
    """Least conditional expected error over outputs that are published; inf if the belief reaches none of them."""
    weights = problem.belief[:, None] * matrix
    mass = np.sum(weights, axis=0)
    errors = np.min(problem.guess_distances @ weights, axis=0)
    seen = mass > 0.0
    return float(np.min(errors[seen] / mass[seen])) if np.any(seen) else float("inf")
