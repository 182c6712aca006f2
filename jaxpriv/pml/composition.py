"""The leakage of several Gaussian releases about the same data.

All rules here are for releases whose noises are independent of each other and of the data, and that are chosen before
any output is seen. With noises that are not independent nothing like them holds: X + V and X − V publish X. Later
releases chosen after earlier outputs are outside all formulas here. Proofs in docs/leakage.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.pml.profile import leakage_epsilon
from jaxpriv.shapes import Scalar


def compose_releases(informations: Sequence[Scalar], ranks: Sequence[int], delta: Scalar) -> Float[Array, ""]:
    """Upper bound of ε(δ) of all releases together: Σ I_i + ½ q_l(δ) with l = Σ l_i.

    Information and rank of the stacked release are at most the sums. Where the stacked release can be evaluated itself,
    that is exact, and smaller.
    """
    if not informations or len(informations) != len(ranks) or any(rank < 0 for rank in ranks):
        raise InputError(
            f"{len(informations)} informations and {len(ranks)} ranks were given; expected one of each, at least 0, "
            "for each release."
        )
    return leakage_epsilon(_sum(informations), delta, sum(ranks))


def compose_same(informations: Sequence[Scalar], rank: int, delta: Scalar) -> Float[Array, ""]:
    """Upper bound of ε(δ) of one and the same Z released several times with new noise: Σ I_i + ½ q_l(δ).

    The rank stays that of Z, so that the χ² term is paid once.
    """
    if not informations:
        raise InputError("no release was given.")
    return leakage_epsilon(_sum(informations), delta, rank)


def compose_guarantees(
    epsilons: Sequence[Scalar], deltas: Sequence[Scalar]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """(Σ ε_i, Σ δ_i): what releases of which nothing else is known keep together (a union bound)."""
    if not epsilons or len(epsilons) != len(deltas):
        raise InputError(f"{len(epsilons)} epsilons and {len(deltas)} deltas; expected as many, and at least one.")
    return _sum(epsilons), jnp.minimum(_sum(deltas), 1.0)


def _sum(values: Sequence[Scalar]) -> Float[Array, ""]:
    return jnp.sum(jnp.stack([jnp.asarray(value, float) for value in values]))
