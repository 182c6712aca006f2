"""Where noise is drawn: the one place that sees both the positions and the mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import numpy as np

from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.mechanisms.grid_release import release
from jaxpriv.precision import double_precision


@dataclass(frozen=True)
class ReleasedPoints:
    """What is released: whole multiples of the public step 2^`exponent` metres, east and north, (n,) each.

    `tau` bounds the total variation distance of both coordinates together from the ideal release, whose loss is
    certified; None for a simulated trace, about which nothing is claimed.
    """

    east: tuple[int, ...] = field(repr=False)
    north: tuple[int, ...] = field(repr=False)
    exponent: int
    tau: float | None

    @property
    def simulated(self) -> bool:
        """Whether the points come from a seeded generator and are not a release."""
        return self.tau is None

    @property
    def metres(self) -> np.ndarray:
        """Metres east and north, (n, 2)."""
        return np.stack([np.array(self.east, float), np.array(self.north, float)], axis=1) * 2.0**self.exponent


def grid_exponent(floor_sd: float) -> int:
    """Exponent of the largest power of two that is at most the floor; a public number."""
    if not floor_sd > 0:
        raise InfeasibleError("the design has no noise floor, so its output has no grid; ask for a positive resolution")
    return math.frexp(floor_sd)[1] - 1


def draw_release(mechanisms: Sequence[GaussianMechanism], metres: np.ndarray, resolution: float) -> ReleasedPoints:
    """Release positions (n, 2) in metres, one mechanism for each coordinate, on one public grid.

    Exact arithmetic and the operating system's randomness: there is no seed, and every call is another release. The
    coordinates are drawn independently, so that their distances from the ideal release add. Raises `InputError` for a
    floor below twice the resolution (metres) and, with texts that hold nothing of the positions, for positions that
    cannot be released.
    """
    exponent = _common_exponent(mechanisms, resolution)
    drawn = [
        release(metres[:, i], np.asarray(one.factor), float(one.floor_sd), resolution=resolution, exponent=exponent)
        for i, one in enumerate(mechanisms)
    ]
    east, north = (tuple(one.integers.tolist()) for one in drawn)
    return ReleasedPoints(east, north, exponent, math.nextafter(math.fsum(one.tau for one in drawn), math.inf))


def simulate_release(
    mechanisms: Sequence[GaussianMechanism], metres: np.ndarray, resolution: float, seed: int
) -> ReleasedPoints:
    """Draw a simulated release of positions (n, 2) in metres, reproducible from `seed`: never private.

    The noisy positions are rounded to the public grid, halves up. Raises as `draw_release` does.
    """
    exponent = _common_exponent(mechanisms, resolution)
    with double_precision():
        keys = jax.random.split(jax.random.key(seed))
        noisy = [
            np.asarray(one.simulate(key, metres[:, i]).values, dtype=np.float64)
            for i, (one, key) in enumerate(zip(mechanisms, keys, strict=True))
        ]
    units = [np.floor(np.ldexp(values, -exponent) + 0.5) for values in noisy]
    if any(not np.all(np.abs(values) < 2.0**53) for values in units):
        raise InfeasibleError("the noise is too large for the output grid; ask for less: a larger epsilon or radius")
    east, north = (tuple(int(value) for value in values) for values in units)
    return ReleasedPoints(east, north, exponent, tau=None)


def _common_exponent(mechanisms: Sequence[GaussianMechanism], resolution: float) -> int:
    floor = min(float(one.floor_sd) for one in mechanisms)
    exponent = grid_exponent(floor)
    if floor < 2 * resolution:
        raise InputError(
            f"the noise floor of {floor:g} m is below twice the resolution of {resolution:g} m: the steps of the file "
            "would show through the noise; ask for a floor of at least twice the resolution"
        )
    return exponent
