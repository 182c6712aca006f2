"""Entropic couplings whose output law is the target exactly, however far Sinkhorn's iteration got.

A channel C that sends λ to o instead of μ is followed by: keep y with probability a_y = min(1, μ_y/o_y), otherwise draw
from w ∝ (μ − a o). The output law is then μ, and as this is post-processing, no log ratio grows. Derived here; proof in
docs/distribution.md. Host code, in float64.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jaxpriv.channels.channel import Channel
from jaxpriv.distribution.coupling import CouplingMechanism, coupling_mechanism
from jaxpriv.distribution.sinkhorn import entropic_coupling
from jaxpriv.errors import InputError
from jaxpriv.precision import double_precision


def redirected(
    rows: Float[np.ndarray, "n m"], law: Float[np.ndarray, " n"], target: Float[np.ndarray, " m"]
) -> Float[np.ndarray, "n m"]:
    """The channel `rows`, its outputs redirected so that `law` is sent to `target`, up to rounding.

    At most twice the total variation between the present output law and the target is moved. Every level of the channel
    (differential privacy, geo-indistinguishability) stays or falls.
    """
    reached = law @ rows
    kept = np.minimum(1.0, target / np.where(reached > 0.0, reached, 1.0))
    missing = np.maximum(target - kept * reached, 0.0)
    if not np.sum(missing) > 0.0:
        return rows
    sent = rows * kept + (rows @ (1.0 - kept))[:, None] * (missing / np.sum(missing))
    return sent / np.sum(sent, axis=1, keepdims=True)


def entropic_mechanism(
    known: Any, target: Any, distance: Any, scale: float, *, max_steps: int = 2_000
) -> CouplingMechanism:
    """The entropic kind of `coupling_mechanism` for any scale: what is left of the iteration's error is redirected.

    Small scales need many steps; here they end at `max_steps`, and the rest costs distance, not level: outputs have the
    target's law up to rounding, and rows are (2/scale)-geo-indistinguishable where the distance is a metric.

    Raises InputError as `coupling_mechanism`.
    """
    if not (np.isfinite(scale) and scale > 0.0):
        raise InputError(f"scale is {scale}; expected a positive, finite distance.")
    blank = coupling_mechanism(known, target, distance, kind="independent")
    channels, losses, worst = [], [], []
    for law in blank.known:
        with double_precision():
            found = _log_channel(
                jnp.asarray(blank.distance), jnp.asarray(law), jnp.asarray(blank.target), scale, max_steps
            )
            rows = np.exp(np.asarray(found))
        rows = redirected(rows, law, blank.target)
        channels.append(Channel.from_matrix(rows / np.sum(rows, axis=1, keepdims=True)))
        losses.append(float(np.sum(law[:, None] * rows * blank.distance)))
        worst.append(float(np.max(blank.distance[(law[:, None] * rows) > 0.0])))
    return replace(
        blank,
        channels=tuple(channels),
        kind="entropic",
        losses=np.array(losses),
        worst=np.array(worst),
        scale=float(scale),
    )


@partial(jax.jit, static_argnums=(4,))
def _log_channel(cost, first, second, scale, max_steps: int):
    # One program for all groups.
    return entropic_coupling(cost, first, second, scale, tolerance=1e-11, max_steps=max_steps).log_channel
