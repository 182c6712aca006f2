"""Every public loss under jit, vmap and grad, against finite differences, without recompilation for new values."""

from __future__ import annotations

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxpriv as jp


N = 5


def _spd(seed):
    root = np.random.default_rng(seed).standard_normal((N, N))
    return jnp.asarray(root @ root.T / N + 0.3 * np.eye(N))


SECRET, PAIR = jp.Secret([2], 0.7), jp.Secret([1, 3], 0.7)
PRIOR = jp.GaussianPrior(_spd(1))


def _block(matrix):
    """Keep the noise of positions 1 and 3 independent of the rest, as the printed formula asks."""
    mask = np.ones((N, N))
    mask[np.ix_([1, 3], [0, 2, 4])] = mask[np.ix_([0, 2, 4], [1, 3])] = 0.0
    return matrix * mask


# name: a scalar function of one positive definite (N, N) matrix, through the public loss.
LOSSES = {
    "precision_gain": lambda g: jnp.sum(jp.precision_gain(PRIOR, PAIR, g)),
    "posterior": lambda g: jnp.sum(jp.posterior(PRIOR, g).covariance),
    "mu_squared": lambda g: jp.mu_squared(PRIOR, PAIR, g, "product"),
    "mu_squared_of_gain": lambda g: jp.mu_squared_of_gain(g, 0.3, 5, "product"),
    "cip_loss": lambda g: jp.cip_loss(PRIOR, PAIR, g, 3.0),
    "given": lambda g: jnp.sum(jp.given(jp.GaussianPrior(g), [0]).covariance),
    "loss_given": lambda g: jp.loss_given(PRIOR, PAIR, g, [0, 4]),
    "direct_and_inferential": lambda g: jp.direct_and_inferential(PRIOR, PAIR, _block(g)).total,
    "independent_dimensions": lambda g: jp.independent_dimensions([g, 2 * g], 0.4, 5),
    "dimension_sum": lambda g: jp.dimension_sum([g, 2 * g], 0.4, 5),
    "several_traces": lambda g: jnp.sum(jp.several_traces([g, g])),
    "misspecified_loss": lambda g: (
        jp.misspecified_loss(PRIOR, jp.GaussianPrior(1.1 * PRIOR.covariance), SECRET, g).bound
    ),
    "misspecified_bound": lambda g: jp.misspecified_bound(2.0, g[0, 0], g[1, 1], g[2, 2]),
    "odds_bound": lambda g: jp.odds_bound(g[0, 0], 2.0, 0.01),
    "gaussian_delta": lambda g: jp.gaussian_delta(g[0, 0], 0.3),
    "gaussian_epsilon": lambda g: jp.gaussian_epsilon(g[0, 0], 0.01),
    "renyi_equal_covariance": lambda g: jp.renyi_equal_covariance(jnp.arange(N) * 0.1, g, 2.0),
    "renyi_gaussian": lambda g: jp.renyi_gaussian(jnp.arange(N) * 0.1, g, 1.2 * g + jnp.eye(N), 1.5),
    "kl_gaussian": lambda g: jp.kl_gaussian(jnp.arange(N) * 0.1, g, _spd(3)),
    "renyi_discrete": lambda g: jp.renyi_discrete(jnp.diagonal(g) / jnp.trace(g), jnp.full(N, 1 / N), 3.0),
    "cip_floor": lambda g: jnp.sum(jp.cip_floor(jp.GaussianPrior(g), SECRET, 0.5)),
    "target_loss": lambda g: jp.target_loss(g[0, 0], SECRET, 2.0),
    "least_trace": lambda g: jp.least_trace(jp.GaussianPrior(g), PAIR, 0.5),
    "least_trace_noise": lambda g: jnp.sum(jp.least_trace_noise(jp.GaussianPrior(g), PAIR, 0.5)),
    "least_loss": lambda g: jp.least_loss(jp.GaussianPrior(g), PAIR, 2.0, floor_variance=0.01),
    "least_loss_noise": lambda g: jnp.sum(jp.least_loss_noise(jp.GaussianPrior(g), PAIR, 2.0, floor_variance=0.01)),
    "least_trace_block": lambda g: jp.least_trace_block(jp.GaussianPrior(g), PAIR, 0.5),
    "least_loss_block": lambda g: jp.least_loss_block(jp.GaussianPrior(g), PAIR, 2.0),
    "least_above_two": lambda g: jnp.sum(jp.least_above_two(g, _spd(4))),
    "prior_shaped_noise": lambda g: jnp.sum(jp.prior_shaped_noise(g, 0.5, 1.0)),
}


def test_every_public_differentiable_function_is_here():
    modules = ("jaxpriv.losses", "jaxpriv.floors", "jaxpriv.designs.spectral", "jaxpriv.designs.block",
               "jaxpriv.designs.two_floors", "jaxpriv.designs.every_point")  # fmt: skip
    public = {
        name
        for name, value in ((name, getattr(jp, name)) for name in dir(jp))
        if inspect.isfunction(value) and value.__module__.startswith(modules) and not name.startswith("_")
    }
    assert public - {"design"} == set(LOSSES) - (set(LOSSES) - public)
    assert public <= set(LOSSES)


@pytest.mark.parametrize("name", LOSSES)
def test_jit_vmap_and_grad(name):
    """The gradient is the finite difference, vmap is the loop, and new values do not recompile."""
    loss = jax.jit(eqx.debug.assert_max_traces(LOSSES[name], max_traces=1))
    rng, matrix = np.random.default_rng(7), _spd(2)
    direction = rng.standard_normal((N, N))
    direction = jnp.asarray(direction + direction.T)
    slope = jnp.sum(jax.jit(jax.grad(LOSSES[name]))(matrix) * direction)
    step = 1e-5
    difference = (loss(matrix + step * direction) - loss(matrix - step * direction)) / (2 * step)
    # Central differences err by step² and by rounding/step: 1e-6 relative covers both for these sizes.
    np.testing.assert_allclose(slope, difference, rtol=2e-6, atol=1e-8)
    stack = jnp.stack([_spd(seed) for seed in (2, 5, 6)])
    looped = jnp.stack([loss(one) for one in stack])
    np.testing.assert_allclose(jax.jit(jax.vmap(LOSSES[name]))(stack), looped, rtol=1e-9)


@pytest.mark.parametrize("name", ["precision_gain", "cip_loss", "mu_squared", "posterior"])
def test_gradient_at_white_noise_and_at_repeated_eigenvalues(name):
    """At G = c I, the starting point of every search, and for a prior whose gain has a repeated eigenvalue."""
    prior = jp.GaussianPrior(jnp.eye(N))
    functions = {
        "precision_gain": lambda g: jnp.sum(jp.precision_gain(prior, PAIR, g)),
        "cip_loss": lambda g: jp.cip_loss(prior, PAIR, g),
        "mu_squared": lambda g: jp.mu_squared(prior, PAIR, g, "product"),
        "posterior": lambda g: jnp.trace(jp.posterior(prior, g).covariance),
    }
    # At a tie the two branches differ in their second derivatives, so the difference errs in proportion to the step.
    rng, step = np.random.default_rng(3), 1e-7
    direction = rng.standard_normal((N, N))
    direction = jnp.asarray(direction + direction.T)
    function = functions[name]
    slope = jnp.sum(jax.grad(function)(0.5 * jnp.eye(N)) * direction)
    up, down = (function(0.5 * jnp.eye(N) + s * direction) for s in (step, -step))
    np.testing.assert_allclose(slope, (up - down) / (2 * step), rtol=1e-5)


def test_gradients_in_kernel_parameters_and_radius():
    times = jnp.arange(6.0) * 10

    def loss(lengthscale, noise_sd, radius):
        prior = jp.ProcessPrior(jp.kernels.matern32(lengthscale, 3.0), times, noise_sd)
        return 0.5 * 2.0 * radius**2 * jp.precision_gain(prior, SECRET, jnp.eye(6))[0, 0]

    point = (jnp.asarray(25.0), jnp.asarray(0.1), jnp.asarray(2.0))
    gradient = jax.grad(loss, argnums=(0, 1, 2))(*point)
    for i, step in enumerate((1e-3, 1e-5, 1e-5)):
        shifted = [[p + (s * step if i == j else 0.0) for j, p in enumerate(point)] for s in (1, -1)]
        np.testing.assert_allclose(gradient[i], (loss(*shifted[0]) - loss(*shifted[1])) / (2 * step), rtol=1e-5)


def test_losses_keep_the_dtype_of_the_caller():
    prior, noise = jp.GaussianPrior(PRIOR.covariance.astype(jnp.float32)), jnp.eye(N, dtype=jnp.float32)
    for value in (jp.cip_loss(prior, PAIR, noise), jp.mu_squared(prior, PAIR, noise, "product")):
        assert value.dtype == jnp.float32
        np.testing.assert_allclose(value, jp.cip_loss(PRIOR, PAIR, jnp.eye(N)), rtol=1e-3)
    assert jp.precision_gain(prior, PAIR, noise).dtype == jnp.float32
    assert jp.posterior(prior, noise).covariance.dtype == jnp.float32


def test_a_mechanism_stands_for_its_covariance():
    mechanism = jp.GaussianMechanism(np.linalg.cholesky(np.asarray(_spd(2))), 0.5)
    expected = np.asarray(_spd(2)) + 0.25 * np.eye(N)
    np.testing.assert_allclose(mechanism.covariance, expected, rtol=1e-12)
    np.testing.assert_allclose(jp.cip_loss(PRIOR, SECRET, mechanism), jp.cip_loss(PRIOR, SECRET, expected), rtol=1e-10)


def test_simulation_has_the_covariance_and_repeats(rng):
    mechanism = jp.GaussianMechanism(rng.standard_normal((3, 2)), 0.5)
    x = jnp.zeros((40_000, 3))
    draws = jax.jit(lambda key: mechanism.simulate(key, x))(jax.random.key(1)).values
    # The entries of an empirical covariance of 40,000 draws have a relative error of about 1 %.
    np.testing.assert_allclose(np.cov(draws.T), mechanism.covariance, atol=0.06 * np.max(mechanism.covariance))
    # Compiled and op-by-op products may be rounded differently.
    np.testing.assert_allclose(draws, mechanism.simulate(jax.random.key(1), x).values, atol=1e-12)
    with pytest.raises(jp.InputError, match="shape"):
        mechanism.simulate(jax.random.key(1), jnp.zeros(4))
