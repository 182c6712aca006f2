"""The uniform sensitivity approach of Zhang et al. (arXiv:2101.12602): PIVE's sets, one common noise scale."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from jaxpriv.channels.exponential import exponential_channel
from jaxpriv.channels.geometry import pairwise_distances
from jaxpriv.channels.inference import Guesses
from jaxpriv.channels.obfuscation import Obfuscation, checked_outputs, checked_prior
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.published_pive import protection_sets


UNIFORM_PROMISE = (
    "epsilon-DP on every set of diameter at most the largest protection set's, and at most epsilon d/D_max between any "
    "two places; the least error holds only against an adversary who conditions on the secret being in a protection "
    "set, not for the plain conditional error, and not if it leaks which set was used"
)


def uniform_mechanism(
    prior: DiscretePrior,
    epsilon: float,
    min_error: float,
    order: Int[np.ndarray, " n"] | None = None,
    reach: int | None = None,
    rotations: int = 1,
    guesses: Guesses = None,
    outputs: Float[np.ndarray, "m 2"] | None = None,
) -> Obfuscation:
    """Every place publishes with f ∝ exp(−ε d/(2 D_max)), D_max the largest diameter of the sets of `protection_sets`.

    Proved: ε-DP on every set of diameter ≤ D_max; |log f(z|x) − log f(z|y)| ≤ ε d(x, y)/D_max for all pairs (the slope
    is twice the nominal ε/(2 D_max), and tight); hence ε D(X)/D_max on the map; the narrowed error of each protection
    set is at least `min_error`. Not proved, and not true in general: a bound on the conditional error itself.

    Arguments and errors as in `protection_sets`. The smallest D for each place is also the best choice for D_max.
    """
    host = checked_prior(prior)
    sets = protection_sets(host, epsilon, min_error, order, reach, rotations, guesses)
    places = checked_outputs(host, outputs)
    rates = np.full(host.size, float(np.asarray(epsilon)) / (2.0 * np.max(sets.diameters)))
    return Obfuscation(
        channel=exponential_channel(np.asarray(pairwise_distances(np.asarray(host.locations), places)), rates),
        prior=host,
        sets=sets.members,
        own_set=np.arange(host.size),
        epsilons=np.full(host.size, float(np.asarray(epsilon))),
        diameters=np.full(host.size, np.max(sets.diameters)),
        rates=rates,
        min_error=float(min_error),
        outputs=places,
        guesses=guesses,
        method="uniform sensitivity",
        promise=UNIFORM_PROMISE,
        disjoint=False,
    )
