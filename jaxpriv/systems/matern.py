"""Matérn processes on a regular grid as linear systems, so that filters and aggregation take them."""

from __future__ import annotations

import math
from typing import Literal

import jax.numpy as jnp

from jaxpriv.errors import InputError
from jaxpriv.priors.state_space import LinearSystem
from jaxpriv.shapes import Scalar


def matern_system(
    kernel: Literal["matern12", "matern32"], lengthscale: Scalar, sd: Scalar, step: Scalar
) -> LinearSystem:
    """The process of `kernels.matern12` or `kernels.matern32` sampled every `step`, exactly.

    Args:
        kernel: which of the two.
        lengthscale: in a unit of time.
        step: in the same unit.
        sd: standard deviation of the process, in its own unit.

    Returns:
        One state for matern12 (the value: an AR(1) with a = exp(−step/lengthscale)), two for matern32 (the value and
        its rate of change, Hartikainen and Särkkä, 2010); what is measured is the value. Its stationary covariance is
        diagonal, and the outputs have the kernel's covariance. Differentiable in all three numbers.

    Raises:
        InputError: another kernel, or a number that is not positive.
    """
    for name, value in (("lengthscale", lengthscale), ("sd", sd), ("step", step)):
        if isinstance(value, (int, float)) and not (value > 0 and math.isfinite(value)):
            raise InputError(f"{name} is {value}; expected a positive, finite number.")
    if kernel == "matern12":
        ratio = jnp.asarray(step, float) / lengthscale
        disturbance = -(jnp.asarray(sd, float) ** 2) * jnp.expm1(-2.0 * ratio)
        return LinearSystem(jnp.exp(-ratio)[None, None], disturbance[None, None])
    if kernel != "matern32":
        raise InputError(f"kernel is {kernel!r}; expected matern12 or matern32.")
    rate = math.sqrt(3.0) / jnp.asarray(lengthscale, float)
    x = rate * step
    decay, variance = jnp.exp(-x), jnp.asarray(sd, float) ** 2
    A = decay * jnp.array([[1.0 + x, step], [-rate * x, 1.0 - x]])
    # Q = P − A P Aᵀ; its smallest entry is 4x³/3 and keeps all but about log10(x⁻²) digits.
    fall = -jnp.expm1(-2.0 * x)
    square = jnp.exp(-2.0 * x)
    position = fall - 2.0 * square * x * (1.0 + x)
    velocity = fall + 2.0 * square * x * (1.0 - x)
    mixed = 2.0 * square * x * x * rate
    Q = variance * jnp.array([[position, mixed], [mixed, rate**2 * velocity]])
    return LinearSystem(A, Q, jnp.array([[1.0, 0.0]]))
