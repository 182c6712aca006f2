"""A node's noise under the exact criterion, and against listeners who keep every output."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from jaxpriv.aggregation.node import AggregationNode
from jaxpriv.designs.leakage.general import least_noise_above
from jaxpriv.designs.leakage.water_filling import least_leakage_noise
from jaxpriv.errors import CertificateError
from jaxpriv.systems.leakage import state_information
from jaxpriv.systems.scalar_noise import filter_noise, smoother_noise


_LARGEST = 2.0**40  # times the static noise


def exact_noise(node: AggregationNode, stationary: np.ndarray, information: float) -> np.ndarray:
    """The least tr(L Θ Lᵀ) with log det(I + Θ⁻¹K) ≤ τ and Θ ⪰ Θ₀: water-filling, or the general program beside Θ₀."""
    C = np.asarray(node.system.C)
    signal = C @ stationary @ C.T
    signal = 0.5 * (signal + signal.T)
    filled = np.asarray(least_leakage_noise(jnp.asarray(signal), information, weights=jnp.asarray(node.gram)).noise)
    if np.linalg.eigvalsh(filled - node.noise_floor)[0] >= 0.0:
        return filled
    return node.noise_floor + least_noise_above(signal, node.noise_floor, information, weights=node.gram).noise


def listener_noise(node: AggregationNode, static: np.ndarray, information: float, observer: str) -> np.ndarray:
    """Noise that keeps the information of an observer of many outputs within τ/2.

    The least for a scalar node, the least multiple of the static design otherwise; never below Θ₀.
    """
    system = node.system
    if system.states == 1 and system.outputs == 1:
        least = filter_noise if observer == "filter" else smoother_noise
        value = float(least(system.A[0, 0], system.Q[0, 0], information, system.C[0, 0]))
        return np.maximum(np.array([[value]]), node.noise_floor)

    def excess(log_factor: float) -> float:
        found = _information(system, np.exp(log_factor) * static, observer)
        return min(2.0 * float(found) - information, 1e9)

    if excess(0.0) <= 0.0:
        return static
    top = 1.0
    while excess(top) > 0.0:
        top *= 2.0
        if top > np.log(_LARGEST):
            raise CertificateError("no multiple of the static noise was found to be enough; nothing is claimed.")
    root = float(brentq(excess, 0.0, top, xtol=1e-13))  # pyright: ignore[reportArgumentType]
    # The root is approached from both sides; more noise is the safe one.
    return np.exp(root + 1e-10) * static


@partial(jax.jit, static_argnames="observer")
def _information(system, noise, observer):
    return state_information(system, noise, observer)
