"""Secrets made of fixes of the trace."""

from __future__ import annotations

from collections.abc import Iterable

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.radius import checked_radius
from jaxpriv.shapes import Scalar


class Secret(eqx.Module):
    """The positions of a trace whose values must stay uncertain together.

    One time is a basic secret; several times are a compound secret, protected jointly: any two hypotheses that differ
    by at most `radius` at each of its times (Meehan and Chaudhuri, AISTATS 2021, definitions of section 2).

    Args:
        indices: positions in the unrolled trace (time-major: x0, y0, x1, y1, … when dims is 2), k of them, distinct.
        radius: the largest separation of two hypotheses at one time, in the unit of the trace. It is a distance
            between two places: for all places inside a circle it is the circle's diameter.
        dims: coordinates at a time in the unrolled trace; decides how many times the positions belong to.

    Raises:
        InputError: no index, a negative or repeated one, a radius that is not positive.
    """

    indices: tuple[int, ...] = eqx.field(static=True)
    radius: Float[Array | np.ndarray, ""]
    dims: int = eqx.field(static=True)

    def __init__(self, indices: Iterable[int], radius: Scalar, dims: int = 1):
        raw = list(np.atleast_1d(np.asarray(indices if isinstance(indices, np.ndarray) else list(listed(indices)))))
        if not raw:
            raise InputError("a secret needs at least one position.")
        if not all(float(i) == int(i) for i in raw):
            raise InputError("the positions of a secret are whole numbers.")
        positions = tuple(int(i) for i in raw)
        if min(positions) < 0:
            raise InputError(f"secret position {min(positions)} is negative; count from 0 at the start of the trace.")
        if len(set(positions)) < len(positions):
            repeated = next(i for i in positions if positions.count(i) > 1)
            raise InputError(f"secret position {repeated} is given twice.")
        if not (isinstance(dims, int) and dims >= 1):
            raise InputError(f"dims is {dims!r}; expected the number of coordinates at a time, at least 1.")
        self.indices = positions
        self.radius = checked_radius(radius)
        self.dims = dims

    @classmethod
    def at_times(cls, times: Iterable[int], radius: Scalar, dims: int = 1) -> Secret:
        """The secret of all `dims` coordinates at the given time positions (0 is the first time of the trace)."""
        return cls([time * dims + axis for time in listed(times) for axis in range(dims)], radius, dims)

    @property
    def size(self) -> int:
        """k, the number of coordinates."""
        return len(self.indices)

    @property
    def n_times(self) -> int:
        """s, the number of distinct times."""
        return len({index // self.dims for index in self.indices})

    def joint(self, prior: Prior) -> tuple[Float[Array | np.ndarray, "n k"], Float[Array | np.ndarray, "k k"]]:
        """Covariance of the trace with the secret, Σ[:, S], and of the secret with itself, Σ[S, S]."""
        if max(self.indices) >= prior.size:
            raise InputError(f"secret position {max(self.indices)} is outside the trace of {prior.size} coordinates.")
        positions = np.array(self.indices)
        cross = prior.covariance[:, positions]
        return cross, cross[positions]


class EveryPoint(eqx.Module):
    """Every time of the trace a basic secret, each protected (not all jointly).

    Args:
        radius: the largest separation of two hypotheses at a time, in the unit of the trace.
        dims: coordinates at a time.
    """

    radius: Float[Array | np.ndarray, ""]
    dims: int = eqx.field(static=True)

    def __init__(self, radius: float, dims: int = 1):
        self.radius = checked_radius(radius)
        if not (isinstance(dims, int) and dims >= 1):
            raise InputError(f"dims is {dims!r}; expected the number of coordinates at a time, at least 1.")
        self.dims = dims

    def secrets(self, prior: Prior) -> list[Secret]:
        """One basic secret for each time of `prior`."""
        if prior.size % self.dims:
            raise InputError(f"a trace of {prior.size} coordinates does not divide into times of {self.dims}.")
        return [Secret.at_times([time], self.radius, self.dims) for time in range(prior.size // self.dims)]


def listed(values: Iterable[int] | int) -> list[int]:
    if isinstance(values, (int, np.integer)):
        return [int(values)]
    return list(values)
