"""The optimal noise when every point of the trace is a secret of its own: the shape of the prior."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.shapes import Scalar


_EQUAL = 1e-9  # relative spread of prior variances that still counts as equal


def prior_shaped_noise(covariance: Float[Array, "n n"], loss: Scalar, variance: Scalar) -> Float[Array, "n n"]:
    """Σ/(t v): each point of variance v then has loss exactly t, and no noise of less trace gives that.

    Every noise has loss at least 1/G_ii at point i, so n/t is the least trace; with this noise the neighbours tell
    nothing more. Derived here; proof in docs/design.md.
    """
    return jnp.asarray(covariance) / (jnp.asarray(loss) * variance)


def equal_variance(covariance: np.ndarray, dims: int) -> float:
    """The common prior variance of all points, for which `prior_shaped_noise` is optimal.

    Raises:
        InputError: points whose covariance (dims, dims) is not the same multiple of the identity.
    """
    n = covariance.shape[0]
    variances = np.diagonal(covariance)
    largest = float(np.max(variances))
    blocks = [covariance[i : i + dims, i : i + dims] for i in range(0, n, dims)]
    spread = max(float(np.max(np.abs(block - largest * np.eye(dims)))) for block in blocks)
    if spread > _EQUAL * largest:
        raise InputError(
            "the closed form for every point needs the same prior variance everywhere and uncorrelated coordinates; "
            f"variances go from {float(np.min(variances)):.4g} to {largest:.4g}."
        )
    return largest
