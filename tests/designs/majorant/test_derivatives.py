"""Envelope and implicit derivatives against central differences, forward and reverse."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv.designs.majorant.derivatives import least_noise, least_scale, least_trace
from jaxpriv.designs.majorant.stack import FloorStack, inference_stack


N = 12
TIGHT = {"tolerance": 1e-11, "max_steps": 8000}


@jax.jit
def floors(lengthscale: jax.Array | float, targets: jax.Array | float = 1.0) -> FloorStack:
    """Secrets 2, 5, 9 at targets (2, 3, 4) times `targets` under an RBF prior, in the other tests' shape."""
    i = jnp.arange(N)
    covariance = jnp.exp(-((i[:, None] - i) ** 2) / (2 * lengthscale**2)) + 1e-3 * jnp.eye(N)
    secrets = jnp.array([2, 5, 9] + [0] * 8)
    cross = jnp.zeros((11, N, 2)).at[:, :, 0].set(covariance[:, secrets].T)
    variance = jnp.broadcast_to(jnp.eye(2), (11, 2, 2)).at[:, 0, 0].set(covariance[secrets, secrets])
    mask = np.zeros((11, 2), bool)
    mask[:3, 0] = True
    goal = targets * jnp.array([2.0, 3.0, 4.0] + [1.0] * 8)
    return inference_stack(jnp.stack([covariance] * 11), range(11), cross, variance, goal, mask=mask)


def central(f, x: tuple[float, ...], i: int, h: float) -> float:
    up, down = list(x), list(x)
    up[i] += h
    down[i] -= h
    return (float(f(*up)) - float(f(*down))) / (2 * h)


def test_envelope_of_the_least_trace():
    def trace(lengthscale, targets, noise_floor):
        return least_trace(floors(lengthscale, targets), noise_floor=noise_floor, **TIGHT)

    x = (2.0, 1.0, 0.0)
    value, gradient = jax.value_and_grad(trace, argnums=(0, 1, 2))(*x)
    assert float(value) == pytest.approx(3.002078118098, rel=1e-10)
    # An interior-point method's central difference; ours has the square root of the gap, 3e-6, times a small factor.
    assert float(gradient[0]) == pytest.approx(1.17408196, abs=1e-6)
    # Three secrets: noise of rank 3, so raising the floor is paid in the nine other directions.
    assert float(gradient[2]) == pytest.approx(9.0, abs=1e-5)
    for i, (entry, h) in enumerate(zip(gradient[:2], (1e-4, 1e-4), strict=True)):
        # The error of differences at h = 1e-4 is about 1e-7.
        assert float(entry) == pytest.approx(central(trace, x, i, h), rel=1e-6)


def test_envelope_of_the_least_scale():
    def scale(lengthscale, budget, noise_floor):
        # The last floor is empty; called fixed, the problem has the static shape of the other budget tests.
        stack = dataclasses.replace(floors(lengthscale), fixed=(10,))
        return least_scale(stack, budget, noise_floor=noise_floor, **TIGHT)

    x = (2.0, 1.0, 0.01)
    gradient = jax.grad(scale, argnums=(0, 1, 2))(*x)
    for i, (entry, h) in enumerate(zip(gradient, (1e-4, 1e-4, 1e-5), strict=True)):
        assert float(entry) == pytest.approx(central(scale, x, i, h), rel=1e-5)


def test_implicit_rule_of_the_least_noise(rng):
    weights = jnp.asarray(rng.normal(size=(N, N)))

    @jax.jit
    @jax.value_and_grad
    def weighted(lengthscale):
        return jnp.sum(weights * least_noise(floors(lengthscale).dense()[:3], 1e-11))

    # Differences at 1e-3 and 5e-4 extrapolated to h = 0; the rule's own error is about 1e-7.
    h = 1e-3
    wide, narrow = (central(lambda x: weighted(x)[0], (2.0,), 0, step) for step in (h, h / 2))
    assert float(weighted(2.0)[1]) == pytest.approx((4 * narrow - wide) / 3, rel=2e-6)
