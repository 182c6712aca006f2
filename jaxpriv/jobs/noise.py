"""Where noise is drawn: the one place that sees both the positions and the mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import numpy as np

from jaxpriv.errors import InfeasibleError
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.precision import double_precision


@dataclass(frozen=True)
class ReleasedPoints:
    """What is released: whole multiples of the public step 2^`exponent` metres, east and north, (n,) each."""

    east: tuple[int, ...]
    north: tuple[int, ...]
    exponent: int
    simulated: bool

    @property
    def metres(self) -> np.ndarray:
        """Metres east and north, (n, 2)."""
        return np.stack([np.array(self.east, float), np.array(self.north, float)], axis=1) * 2.0**self.exponent


def grid_exponent(floor_sd: float) -> int:
    """Exponent of the largest power of two that is at most the floor; a public number."""
    if not floor_sd > 0:
        raise InfeasibleError("the design has no noise floor, so its output has no grid; ask for a positive resolution")
    return math.frexp(floor_sd)[1] - 1


def draw_release(east: GaussianMechanism, north: GaussianMechanism, metres: np.ndarray, seed: int) -> ReleasedPoints:
    """Draw a simulated release of positions (n, 2) in metres, reproducible from `seed`: never private.

    The noisy positions are rounded to the public grid, halves up.
    """
    exponent = grid_exponent(min(float(east.floor_sd), float(north.floor_sd)))
    with double_precision():
        keys = jax.random.split(jax.random.key(seed))
        noisy = [
            np.asarray(mechanism.simulate(key, metres[:, axis]).values, dtype=np.float64)
            for axis, (mechanism, key) in enumerate(zip((east, north), keys, strict=True))
        ]
    units = [np.floor(np.ldexp(values, -exponent) + 0.5) for values in noisy]
    if any(not np.all(np.abs(values) < 2.0**53) for values in units):
        raise InfeasibleError("the noise is too large for the output grid; ask for less: a larger epsilon or radius")
    return ReleasedPoints(
        tuple(int(value) for value in units[0]), tuple(int(value) for value in units[1]), exponent, simulated=True
    )
