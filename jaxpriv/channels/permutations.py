"""Permute-and-flip (McKenna and Sheldon, NeurIPS 2020): the exponential mechanism's budget, never a larger loss."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from jaxpriv.channels.channel import Channel
from jaxpriv.errors import InputError
from jaxpriv.precision import host_array


def permute_and_flip(distances: Float[np.ndarray, "n m"], rates: Float[np.ndarray, " n"] | float) -> Channel:
    """Visit the outputs in random order and publish z with probability q_z = e^{−a (d[x, z] − min d)}, until one is.

    f(z|x) = q_z ∫₀¹ Π_{w ≠ z} (1 − t q_w) dt (an output's place in a random order is a uniform time), a polynomial
    integrated exactly by a Gauss–Legendre rule of ⌈m/2⌉ points. With rates ε/(2Δ) it is ε-DP on a set of sensitivity Δ,
    as the exponential mechanism is. The slope and union bounds of the exponential mechanism are proved for that alone:
    certify this one by its audit.

    Raises InputError: distances or rates that are not finite, or a rate that is negative.
    """
    d = host_array(distances, "distances", 2)
    a = np.broadcast_to(host_array(np.atleast_1d(rates), "rates", 1), (d.shape[0],))
    if np.any(a < 0.0):
        raise InputError("a rate of permute-and-flip is negative.")
    flips = np.exp(-a[:, None] * (d - np.min(d, axis=1, keepdims=True)))
    nodes, weights = np.polynomial.legendre.leggauss(max((d.shape[1] + 1) // 2, 1))
    times, weights = (nodes + 1.0) / 2.0, weights / 2.0
    integrals = np.zeros_like(flips)
    for time, weight in zip(times, weights, strict=True):
        stay = np.log1p(-time * flips)
        integrals += weight * np.exp(np.sum(stay, axis=1, keepdims=True) - stay)
    with np.errstate(divide="ignore"):
        return Channel.from_log_weights(np.log(flips * integrals))
