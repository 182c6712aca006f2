"""The largest loss over its target, as a smooth function of the noise."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.designs.structured.requirements import GainLimit
from jaxpriv.losses.precision_gain import gain
from jaxpriv.searches.factors import AbstractFactor
from jaxpriv.searches.smoothing import smooth_max, spectrum
from jaxpriv.secrets.conditional import Conditional, from_joint
from jaxpriv.shapes import Scalar


class WorstGain(eqx.Module):
    """max_j of the loss of floor j over its target; convex in the noise covariance.

    Attributes:
        parts: H_j and C_j.
        targets: t_j, (J,), in inverse squared units.
    """

    parts: tuple[Conditional, ...]
    targets: Float[Array, " J"]

    @classmethod
    def of(cls, covariances: Sequence[np.ndarray], limits: Sequence[GainLimit]) -> WorstGain:
        """The floors of a problem, `covariances` (n, n) those of its priors."""
        parts = []
        for limit in limits:
            assert limit.variance is not None
            covariance = jnp.asarray(covariances[limit.prior])
            parts.append(from_joint(covariance, jnp.asarray(limit.cross), jnp.asarray(limit.variance)))
        return cls(tuple(parts), jnp.asarray([limit.target for limit in limits]))

    def gains(self, noise: Float[Array, "n n"]) -> list[Float[Array, "k k"]]:
        """The precision gain of each floor's secret under its prior."""
        return [gain(part, noise) for part in self.parts]

    def values(self, gains: Sequence[Float[Array, "k k"]]) -> Float[Array, " m"]:
        """What the maximum is over: all eigenvalues, over targets."""
        return jnp.concatenate([spectrum(matrix) / t for matrix, t in zip(gains, self.targets, strict=True)])

    def __call__(self, noise: AbstractFactor) -> Float[Array, ""]:
        """The largest loss over its target."""
        return jnp.max(self.values(self.gains(noise.covariance)))

    def smoothed(self, noise: AbstractFactor, temperature: Scalar) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The smoothed maximum and the maximum."""
        values = self.values(self.gains(noise.covariance))
        return smooth_max(values, temperature), jnp.max(values)
