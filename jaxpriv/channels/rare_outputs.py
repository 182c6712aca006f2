"""Outputs that are almost never published: merged into others, so that no claim hangs on them.

A linear program leaves columns of mass 1e-12 whose conditional error is zero, and a certificate over all outputs would
report that zero. Merging outputs is post-processing: no level rises, and no error against a merged output falls below
the mass-weighted mean of its parts. Dropping columns and rescaling rows would change the levels; this does not.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.errors import InputError


def merge_rare_outputs(
    channel: Channel,
    prior: DiscretePrior,
    least_mass: float = 1e-9,
    output_distances: Float[np.ndarray, "m m"] | None = None,
) -> tuple[Channel, Int[np.ndarray, " k"]]:
    """The channel with every output of probability below `least_mass` merged into the nearest output above it.

    Returns the channel (n, k) and the positions of the kept outputs, (k,). `output_distances` (m, m) say what is
    nearest; by default the outputs are the prior's places. Host code, float64. Audit the result: it is what is claimed.

    Raises InputError: a mass outside [0, 1), shapes that do not fit, or no output that would be kept.
    """
    if not 0.0 <= least_mass < 1.0:
        raise InputError(f"least_mass is {least_mass}; expected a probability below 1.")
    d = np.asarray(prior.distances if output_distances is None else output_distances, dtype=np.float64)
    if d.shape != (channel.n_outputs, channel.n_outputs):
        raise InputError(f"distances between outputs have shape {d.shape}; expected {(channel.n_outputs,) * 2}.")
    matrix = np.exp(np.asarray(channel.log_matrix, dtype=np.float64))
    masses = np.asarray(prior.probabilities, dtype=np.float64) @ matrix
    kept = np.flatnonzero((masses >= least_mass) & (masses > 0.0))
    if len(kept) == 0:
        raise InputError(f"no output has a probability of {least_mass:g}; choose a smaller mass.")
    targets = np.argmin(d[:, kept], axis=1)
    targets[kept] = np.arange(len(kept))
    return channel.then(Channel.deterministic(targets, len(kept))), kept
