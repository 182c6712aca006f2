"""What an adversary believes about where somebody is, on a finite map."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Real

from jaxpriv.channels.channel import row_sum_tolerance
from jaxpriv.channels.geometry import pairwise_distances
from jaxpriv.errors import InputError
from jaxpriv.traces.projection import LocalPlane


class DiscretePrior(eqx.Module):
    """Places and the probability of each.

    Args:
        locations: (n, 2), metres east and north of a local plane, or any plane unit (grid steps): distances, and all
            errors and losses, come in that unit.
        probabilities: (n,), non-negative, summing to 1. They are checked and never rescaled. A probability of zero is
            allowed: such a place still has a row in every channel and is protected like the others.
        plane: where the local plane lies, if the locations came from degrees.
        names: a name for each place (cell, county), if there is one.

    Raises:
        InputError: shapes that do not fit, fewer than two places, values that are not finite, a negative probability,
            or a sum that differs from 1 by more than 1e-9 (64 rounding units for smaller formats).
    """

    locations: Float[Array | np.ndarray, "n 2"]
    probabilities: Float[Array | np.ndarray, " n"]
    plane: LocalPlane | None = eqx.field(static=True)
    names: tuple[str, ...] | None = eqx.field(static=True)

    def __init__(
        self,
        locations: Float[Array | np.ndarray, "n 2"],
        probabilities: Float[Array | np.ndarray, " n"],
        plane: LocalPlane | None = None,
        names: Iterable[str] | None = None,
    ):
        self.locations = _array(locations)
        self.probabilities = _array(probabilities)
        self.plane = plane
        self.names = None if names is None else tuple(str(name) for name in names)
        check_locations(self.locations)
        check_probabilities(self.probabilities, self.locations.shape[0])
        if self.names is not None and len(self.names) != self.size:
            raise InputError(f"{len(self.names)} names for {self.size} places.")

    @classmethod
    def from_counts(
        cls,
        locations: Float[Array | np.ndarray, "n 2"],
        counts: Real[np.ndarray, " n"] | Sequence[int | float],
        plane: LocalPlane | None = None,
        names: Iterable[str] | None = None,
    ) -> DiscretePrior:
        """Probabilities proportional to counts (n,), such as visits or inhabitants, in float64.

        Raises InputError: a negative or non-finite count, or no positive one.
        """
        numbers = np.asarray(counts, dtype=np.float64)
        if numbers.ndim != 1 or not np.all(np.isfinite(numbers)) or np.any(numbers < 0.0):
            raise InputError("counts must be one non-negative finite number for each place.")
        if not np.sum(numbers) > 0.0:
            raise InputError("all counts are zero: there is no prior in them.")
        return cls(locations, numbers / np.sum(numbers), plane, names)

    @property
    def size(self) -> int:
        """n, the number of places."""
        return self.locations.shape[0]

    @property
    def distances(self) -> Float[Array | np.ndarray, "n n"]:
        """Euclidean distances between the places, (n, n), in the unit of the locations."""
        return pairwise_distances(self.locations)

    def top(self, count: int) -> DiscretePrior:
        """The `count` likeliest places (ties: the earlier one), in their present order, conditioned on being there."""
        if not 2 <= count <= self.size:
            raise InputError(f"cannot keep {count} of {self.size} places; keep at least two.")
        weights = np.asarray(self.probabilities, dtype=np.float64)
        kept = np.sort(np.argsort(-weights, kind="stable")[:count])
        names = None if self.names is None else tuple(self.names[i] for i in kept)
        return DiscretePrior.from_counts(np.asarray(self.locations)[kept], weights[kept], self.plane, names)


def check_locations(locations: Float[Array | np.ndarray, "n 2"]) -> None:
    """Raise InputError unless `locations` are at least two finite places of the plane, (n, 2)."""
    if locations.ndim != 2 or locations.shape[1] != 2:
        raise InputError(f"locations have shape {locations.shape}; expected (n, 2).")
    if locations.shape[0] < 2:
        raise InputError("a map needs at least two places; one place alone cannot be hidden.")
    if not isinstance(locations, Tracer) and not np.all(np.isfinite(np.asarray(locations))):
        bad = np.argwhere(~np.isfinite(np.asarray(locations)))[0][0]
        raise InputError(f"location {int(bad)} has a coordinate that is not finite.")


def check_probabilities(probabilities: Float[Array | np.ndarray, "*batch n"], size: int) -> None:
    """Raise InputError unless `probabilities` (..., n) are distributions over `size` places. Traced values pass."""
    if probabilities.ndim < 1 or probabilities.shape[-1] != size:
        raise InputError(f"probabilities have shape {probabilities.shape}; expected ({size},).")
    if isinstance(probabilities, Tracer):
        return
    host = np.asarray(probabilities)
    values = host.astype(np.float64)
    if not np.all(np.isfinite(values)):
        raise InputError(f"probability {int(np.argwhere(~np.isfinite(values))[0][-1])} is not finite.")
    if np.any(values < 0.0):
        raise InputError(f"probability {int(np.argwhere(values < 0.0)[0][-1])} is negative.")
    sums = np.sum(values, axis=-1)
    if np.any(np.abs(sums - 1.0) > row_sum_tolerance(host.dtype)):
        raise InputError(
            f"the probabilities sum to {float(np.ravel(sums)[0])!r}, not to 1; counts go to DiscretePrior.from_counts."
        )


def _array(value: object) -> Array | np.ndarray:
    if isinstance(value, jax.Array):
        return value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(float)
    try:
        array = np.asarray(value)
        return array if np.issubdtype(array.dtype, np.floating) else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("locations and probabilities must be arrays of real numbers.") from error
