"""Losses of several coordinates and of several traces."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.spectral import largest_eigenvalue
from jaxpriv.losses.compound import Bound, mu_squared_of_gain
from jaxpriv.losses.precision_gain import Noise
from jaxpriv.mechanisms.gaussian import noise_covariance
from jaxpriv.shapes import Scalar


def independent_dimensions(
    gains: Sequence[Float[Array, "s s"]],
    radius: Scalar,
    n_times: int,
    bound: Bound = "ball",
) -> Float[Array, ""]:
    """μ² of one secret whose coordinates are independent a priori and in the noise, from the gain of each coordinate.

    Under "ball" it is s r² times the largest eigenvalue of any coordinate. Under "product" one D = diag(d_1, …, d_s)
    must dominate the gains of all coordinates at once: the largest of the coordinates' own values would be unsound
    (gains diag(1, 0) and diag(0, 1) give 1 each and 2 together).
    """
    gains = _same_shape(gains, n_times)
    dims = len(gains)
    # Unrolled by time, as `mu_squared_of_gain` expects: coordinate c of time i at i * dims + c.
    joint = jnp.zeros((n_times * dims, n_times * dims), gains[0].dtype)
    for axis, matrix in enumerate(gains):
        joint = joint.at[axis::dims, axis::dims].set(matrix)
    return mu_squared_of_gain(joint, radius, n_times, bound)


def dimension_sum(gains: Sequence[Float[Array, "s s"]], radius: Scalar, n_times: int) -> Float[Array, ""]:
    """μ² by Corollary 7.2.1 of Meehan and Chaudhuri (AISTATS 2021): the sum over coordinates of s r² λ_max.

    It is valid for hypotheses inside the enclosing ball, where the largest coordinate alone (`independent_dimensions`)
    already is; it is not a bound for the square that the paper's proof speaks of.
    """
    gains = _same_shape(gains, n_times)
    squared = jnp.asarray(radius, gains[0].dtype) ** 2
    return n_times * squared * jnp.sum(jnp.stack([largest_eigenvalue(matrix) for matrix in gains]))


def several_traces(noises: Sequence[Noise]) -> Float[Array, "m m"]:
    """The noise covariance of several traces released with independent noises, for a joint prior over all of them.

    Corollary 3.4.1 of Meehan and Chaudhuri (AISTATS 2021): the loss of several traces is the loss of the concatenated
    trace under the joint prior covariance with this block-diagonal noise. With independent traces it is the largest of
    their losses; with correlated ones evaluate `cip_loss` on the joint prior. Releases of one and the same trace are
    another matter: their losses do not add, and can exceed any sum.
    """
    if not noises:
        raise InputError("several_traces needs at least one noise covariance.")
    return block_diag(*(jnp.asarray(noise_covariance(noise)) for noise in noises))


def _same_shape(gains: Sequence[Float[Array, "s s"]], n_times: int) -> list[Float[Array, "s s"]]:
    if not gains:
        raise InputError("no coordinate was given.")
    arrays = [jnp.asarray(matrix) for matrix in gains]
    for axis, matrix in enumerate(arrays):
        if matrix.shape != (n_times, n_times):
            raise InputError(
                f"the gain of coordinate {axis} has shape {matrix.shape}; expected ({n_times}, {n_times})."
            )
    return arrays
