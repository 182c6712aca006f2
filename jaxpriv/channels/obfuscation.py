"""What a design by protection sets returns, and the checks that all of them make first."""

from __future__ import annotations

import math

import equinox as eqx
import numpy as np
from jax.core import Tracer
from jaxtyping import Bool, Float, Int

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.geometry import pairwise_distances
from jaxpriv.channels.inference import Guesses
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.precision import host_array


class UnattainableError(InfeasibleError):
    """The promised inference error is out of reach. `largest_error` is the largest that can be promised instead.

    `location` is the position of the place that has no protection set, or None when the whole map is too easy to guess.
    """

    def __init__(self, message: str, largest_error: float, location: int | None = None):
        super().__init__(message)
        self.largest_error = largest_error
        self.location = location


class Obfuscation(eqx.Module):
    """A channel on a map together with the protection sets it was designed for.

    `sets` (K, n) are the protection sets, `own_set` (n,) is the one whose diameter each place's noise was scaled with,
    `epsilons` (K,) and `diameters` (K,) are the nominal level and the diameter of each. `promise` says what the method
    claims and for whom; `broken` marks a method whose claims are false. `audit` says what is true.
    """

    channel: Channel
    prior: DiscretePrior
    sets: Bool[np.ndarray, "K n"]
    own_set: Int[np.ndarray, " n"]
    epsilons: Float[np.ndarray, " K"]
    diameters: Float[np.ndarray, " K"]
    rates: Float[np.ndarray, " n"]
    min_error: float = eqx.field(static=True)
    outputs: Float[np.ndarray, "m 2"]
    guesses: Guesses
    method: str = eqx.field(static=True)
    promise: str = eqx.field(static=True)
    disjoint: bool = eqx.field(static=True)
    broken: bool = eqx.field(static=True, default=False)


def checked_prior(prior: DiscretePrior) -> DiscretePrior:
    """The prior with float64 NumPy arrays. Raises InputError for traced values: designs run on the host."""
    if not isinstance(prior, DiscretePrior):
        raise InputError("expected a DiscretePrior: places and their probabilities.")
    locations = host_array(prior.locations, "locations", 2)
    probabilities = host_array(prior.probabilities, "probabilities", 1)
    if abs(float(np.sum(probabilities)) - 1.0) > 1e-9:
        # Probabilities of a smaller format passed their own check; in float64 they are rescaled once, openly, here.
        probabilities = probabilities / np.sum(probabilities)
    return DiscretePrior(locations, probabilities, prior.plane, prior.names)


def checked_epsilon(epsilon: float | np.ndarray, count: int | None = None) -> float | np.ndarray:
    """A positive finite budget, or `count` of them. Raises InputError otherwise."""
    if isinstance(epsilon, Tracer):
        raise InputError("epsilon is a traced JAX value; a search for protection sets runs on the host, outside jit.")
    if np.ndim(epsilon) == 0:
        value = float(np.asarray(epsilon))
        if not (math.isfinite(value) and value > 0.0):
            raise InputError(f"epsilon is {value}; expected a positive finite number.")
        return value
    values = host_array(epsilon, "epsilon", 1)
    if count is not None and len(values) != count:
        raise InputError(f"epsilon has {len(values)} values; expected one number or {count}.")
    if np.any(values <= 0.0):
        first = int(np.argmax(values <= 0.0))
        raise InputError(f"epsilon number {first} is {values[first]}; expected positive numbers.")
    return values


def checked_min_error(min_error: float) -> float:
    """A finite, non-negative error in the unit of the locations. Raises InputError otherwise."""
    value = float(min_error)
    if not (math.isfinite(value) and value >= 0.0):
        raise InputError(f"the least inference error is {value}; expected a finite number that is not negative.")
    return value


def design_guesses(prior: DiscretePrior, guesses: Guesses) -> tuple[np.ndarray, float]:
    """Distances (g, n) from the adversary's guesses, and the factor by which errors against them shrink.

    For "half" the distances are those of the prior's places and the factor is 1/2. Raises InputError for "plane": a
    search over thousands of sets uses the safe factor; the audit takes the plane.
    """
    if isinstance(guesses, str):
        if guesses != "half":
            raise InputError(f'guesses is {guesses!r}; designs take None, "half" (guesses anywhere) or places (g, 2).')
        return np.asarray(prior.distances), 0.5
    if guesses is None:
        return np.asarray(prior.distances), 1.0
    places = host_array(guesses, "guesses", 2)
    if places.shape[1] != 2:
        raise InputError(f"guesses have shape {places.shape}; expected (g, 2).")
    return np.asarray(pairwise_distances(places, np.asarray(prior.locations))), 1.0


def checked_outputs(prior: DiscretePrior, outputs: np.ndarray | None) -> Float[np.ndarray, "m 2"]:
    """The published places, (m, 2): the prior's own unless given. Raises InputError for another shape."""
    if outputs is None:
        return np.asarray(prior.locations)
    places = host_array(outputs, "outputs", 2)
    if places.shape[1] != 2:
        raise InputError(f"outputs have shape {places.shape}; expected (m, 2).")
    return places
