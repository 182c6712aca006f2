"""The linear program behind every optimal channel: what it costs, what it hides, what an adversary must not infer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from jaxpriv.channels.geometry import pairwise_distances
from jaxpriv.channels.inference import Guesses
from jaxpriv.channels.limits import Limits, geo_limits, set_limits
from jaxpriv.channels.obfuscation import (
    UnattainableError,
    checked_min_error,
    checked_outputs,
    checked_prior,
    design_guesses,
)
from jaxpriv.channels.prior import DiscretePrior, check_probabilities
from jaxpriv.errors import InputError
from jaxpriv.precision import host_array


@dataclass(frozen=True)
class ChannelProblem:
    """min Σ cost[x, z] K[x, z] over channels K within `limits` with Σ_x errors[g, x] K[x, z] >= 0 for all g, z.

    * `cost` (n, m): π(x) loss(x, z), in the unit of the loss.
    * `belief` (n,): q, what the adversary thinks; `guess_distances` (g, n): from each guess to each place (halved where
      the adversary may guess anywhere); `min_error`: E_m, 0 for none.
    * `prior_error`: min over g of Σ_x q(x) d(g, x): the largest E_m that any channel attains.
    """

    prior: DiscretePrior
    outputs: Float[np.ndarray, "m 2"] | None = field(repr=False)
    cost: Float[np.ndarray, "n m"] = field(repr=False)
    limits: Limits
    belief: Float[np.ndarray, " n"] = field(repr=False)
    guess_distances: Float[np.ndarray, "g n"] = field(repr=False)
    min_error: float
    prior_error: float

    @property
    def errors(self) -> Float[np.ndarray, "g n"] | None:
        """B[g, x] = q(x)(d(g, x) − E_m), (g, n); None where no inference error is required.

        A column K[·, z] has Σ_x B[g, x] K[x, z] >= 0 for every g exactly if its conditional error is at least E_m.
        """
        if self.min_error <= 0.0:
            return None
        return self.belief[None, :] * (self.guess_distances - self.min_error)

    @property
    def rows(self) -> int:
        """Constraints of the linear program: two for each pair and output, one for each input, one for each guess
        and output where an error is required."""
        n, m = self.cost.shape
        guesses = 0 if self.min_error <= 0.0 else len(self.guess_distances)
        return (2 * len(self.limits.pairs) + guesses) * m + n

    def with_limits(self, limits: Limits) -> ChannelProblem:
        """The same problem under other limits."""
        return replace(self, limits=limits)


def channel_problem(
    prior: DiscretePrior,
    epsilon: float | Sequence[float],
    *,
    sets: Sequence[Sequence[int]] | None = None,
    min_error: float = 0.0,
    outputs: Float[np.ndarray, "m 2"] | None = None,
    loss: Float[np.ndarray, "n m"] | None = None,
    guesses: Guesses = None,
    adversary_prior: Float[np.ndarray, " n"] | None = None,
    stretch: float | None = None,
    stricter: bool = False,
) -> ChannelProblem:
    """Check everything a user can ask for and write it as a linear program.

    Without `sets`: ε-geo-indistinguishability, ε in nats for each unit of distance; `stretch` picks a spanner
    (`geo_limits`). With `sets` (lists of positions): ε-differential privacy inside each, in nats, one or one for each.
    `loss` (n, m) replaces the distance from a place to the published one; `outputs` (m, 2) are the published places
    where they are not the map's own; `adversary_prior` (n,) is the adversary's belief where it is not the prior.

    Raises:
        InputError: a wrong shape, value or set.
        UnattainableError: min_error above the error an adversary makes before anything is published. It names the
            guess and, as `largest_error`, what can be attained. (Any smaller error can be: by a constant channel.)
    """
    host = checked_prior(prior)
    required = checked_min_error(min_error)
    places = checked_outputs(host, outputs)
    if loss is None:
        losses = np.asarray(pairwise_distances(np.asarray(host.locations), places))
    else:
        losses = host_array(loss, "loss", 2)
        if losses.shape[0] != host.size or (outputs is not None and losses.shape[1] != len(places)):
            raise InputError(f"loss has shape {losses.shape}; expected {host.size} inputs and one column an output.")
        if losses.shape[1] != len(places):
            places = None
    belief = np.asarray(host.probabilities)
    if adversary_prior is not None:
        belief = host_array(adversary_prior, "adversary_prior", 1)
        check_probabilities(belief, host.size)
    distances, factor = design_guesses(host, guesses)
    blind = factor * (distances @ belief)
    best, limit = int(np.argmin(blind)), float(np.min(blind))
    if required > limit * (1.0 + 1e-12):
        raise UnattainableError(
            f"an inference error of {required:g} is out of reach: whoever always guesses place {best} errs by only "
            f"{limit:.10g} on average before anything is published, whatever the channel. Ask for at most {limit:.10g}",
            largest_error=limit,
            location=best,
        )
    if sets is None:
        if np.ndim(epsilon) != 0:
            raise InputError("epsilon must be one number for geo-indistinguishability; several need sets.")
        asked = geo_limits(np.asarray(host.distances), float(np.asarray(epsilon)), stretch, stricter=stricter)
    else:
        if stretch is not None:
            raise InputError("a spanner replaces distances; with sets there are none to replace. Drop one of the two.")
        asked = set_limits(host.size, sets, epsilon)
    cost = np.asarray(host.probabilities)[:, None] * losses
    return ChannelProblem(host, places, cost, asked, belief, factor * distances, required, limit)
