"""Derivatives of optimal cost, loss and noise against differences, known answers and closed forms."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.designs.majorant.budget import clip_budget
from jaxpriv.designs.majorant.stack import inference_stack
from jaxpriv.designs.sensitivity import NOISE_SIZE, optimal_cost, optimal_loss, optimal_noise
from jaxpriv.errors import InputError


N = 8
LOSSES = jnp.array([2.0, 5.0])
SECRETS = [jp.Secret([2], 1.0), jp.Secret([5, 6], 1.0)]
DIRECTION = jnp.asarray(np.random.default_rng(5).normal(size=(N, N)))
IDLE = {size: jp.GaussianPrior(np.eye(size)) for size in (8, 9, NOISE_SIZE + 1)}
X = (2.0, 1.0, 1.0, 0.01, 1.0)  # length scale, targets, budget, floor, weight of the middle


def priors(lengthscale, size=N):
    i = jnp.arange(size)
    squares = (i[:, None] - i) ** 2
    covariances = [jnp.exp(-squares / (2 * (lengthscale * x) ** 2)) + 1e-2 * jnp.eye(size) for x in (1.0, 1.5)]
    return [jp.GaussianPrior(one) for one in covariances]


def weights_of(middle):
    return jnp.linspace(0.8, 1.2, N).at[4].mul(middle)


def everything(lengthscale, targets, budget, floor, middle):
    """Cost and loss under two priors, and two numbers of the noise under one, as a vector."""
    options = {"floor_variance": floor, "weights": weights_of(middle)}
    belief, losses = priors(lengthscale), targets * LOSSES
    cost = optimal_cost(belief, SECRETS, losses, **options)
    loss = optimal_loss(belief, SECRETS, budget, losses=losses, **options)
    noise = optimal_noise(belief[0], SECRETS, losses=losses, budget=budget, **options)
    return jnp.stack([cost, loss, jnp.sum(DIRECTION * noise), weights_of(middle) @ jnp.diagonal(noise)])


@jax.jit
def noise_by_ascent(lengthscale, targets, budget, floor, middle):
    """The third of those numbers by another solver, which is exact to rounding for few well-separated floors."""
    weights = weights_of(middle)
    covariance = priors(lengthscale)[0].covariance
    root = jnp.sqrt(weights)
    cross = jnp.zeros((2, N, 2)).at[0, :, 0].set(covariance[:, 2]).at[1].set(covariance[:, 5:7])
    variance = jnp.stack([jnp.diag(jnp.array([1.01, 1.0])), covariance[5:7, 5:7]])
    mask = np.array([[True, False], [True, True]])
    weighted = root[:, None] * (covariance + floor * jnp.eye(N)) * root
    stack = inference_stack(weighted[None], [0, 0], root[:, None] * cross, variance, targets * LOSSES, mask=mask)
    found = clip_budget(stack, budget - floor * jnp.sum(weights), tolerance=1e-13, max_steps=20000)
    factor = found.factor / root[:, None]
    return jnp.sum(DIRECTION * (factor @ factor.T + floor * jnp.eye(N)))


@pytest.fixture(scope="module")
def compiled():
    @jax.jit
    def values_and_rows(*x):
        values, back = jax.vjp(everything, *x)
        return values, [back(jnp.eye(4)[i]) for i in range(4)]

    return values_and_rows


def extrapolated(f, k, step):
    """Central differences at three steps, extrapolated: the error falls from h² to h⁶."""

    def difference(h):
        up, down = list(X), list(X)
        up[k], down[k] = X[k] + h, X[k] - h
        return (np.asarray(f(*up)) - np.asarray(f(*down))) / (2 * h)

    wide, middle, narrow = (difference(step / n) for n in (1, 2, 4))
    return (16 * (4 * narrow - middle) / 3 - (4 * middle - wide) / 3) / 15


@pytest.mark.slow
def test_gradients_against_differences(compiled):
    values, rows = compiled(*X)
    # The budget is spent, whatever the parameters: an identity of the derivative too.
    assert float(values[3]) == pytest.approx(X[2], rel=1e-9)
    assert np.asarray(rows[3]) == pytest.approx([0.0, 0.0, 1.0, 0.0, 0.0], abs=2e-6)
    assert float(values[2]) == pytest.approx(float(noise_by_ascent(*X)), abs=1e-7)
    # The ascent's noise is good to about 1e-8, so its steps are wide; the optimum is smooth on this scale.
    wide = (0.06, 0.03, 0.03, 5e-3, 0.06)
    for k, at in enumerate(X):
        computed = np.array([float(row[k]) for row in rows])
        expected = extrapolated(lambda *x: compiled(*x)[0], k, 0.02 * at)
        assert computed[:2] == pytest.approx(expected[:2], rel=1e-5, abs=1e-9)
        if k != 1:  # a common factor of the targets moves neither budget nor noise
            assert computed[2] == pytest.approx(extrapolated(noise_by_ascent, k, wide[k]), rel=1e-5)
    assert float(rows[2][1]) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_infeasible_and_singular_are_infinite(compiled):
    poor, rows = compiled(X[0], X[1], 0.05, X[3], X[4])
    assert np.isinf(poor[1]) and np.isfinite(poor[0])
    # The last column also holds what the test's own fourth number makes of infinite noise.
    assert np.all(np.isfinite(np.array(rows)[1, :4]))
    # An endless length scale: equal values everywhere, and the pair of fixes is one.
    same, rows = compiled(1e9, *X[1:])
    assert not np.any(np.isnan(same[:2])) and np.all(np.isfinite(np.array(rows)[:2]))


def test_one_secret_is_the_closed_form():
    """The positive part of one floor, and hᵀ(C + bI)⁻¹h: value and slope in the length scale."""
    secret = jp.Secret([3], 1.0)

    @jax.jit
    def both(lengthscale):
        prior = priors(lengthscale)[0]
        return jnp.stack(
            [
                optimal_cost(prior, secret, 3.0, floor_variance=0.01)
                - jp.least_trace(prior, secret, 3.0, floor_variance=0.01),
                optimal_loss(prior, secret, 1.0, floor_variance=0.01)
                - jp.least_loss(prior, secret, 1.0, floor_variance=0.01),
            ]
        )

    value, slope = jax.jvp(both, (2.0,), (1.0,))
    # Relative gap 1e-10 of values near 1 and 2; within a budget the duals are not centred and about 1e-6 off.
    assert np.abs(value) == pytest.approx(0.0, abs=1e-8)
    assert np.abs(slope) == pytest.approx(0.0, abs=5e-6)


@pytest.mark.slow
def test_known_answers():
    """RBF with nugget 1e-3, length scale 2, n = 12: three secrets, and one secret under five priors; certified values
    from an interior-point method and, to 1e-8, from a general conic solver."""
    i = jnp.arange(12)
    squares = (i[:, None] - i) ** 2

    def prior(lengthscale):
        return jp.GaussianPrior(jnp.exp(-squares / (2 * lengthscale**2)) + 1e-3 * jnp.eye(12))

    three = [jp.Secret([k], 1.0) for k in (2, 5, 9)]
    targets = jnp.array([2.0, 3.0, 4.0])
    value, slope = jax.value_and_grad(lambda x: optimal_cost(prior(x), three, targets))(2.0)
    assert float(value) == pytest.approx(3.002078118098, rel=1e-9)
    assert float(slope) == pytest.approx(1.17408196, rel=1e-6)


@pytest.mark.slow
def test_known_answers_within_a_budget():
    i = jnp.arange(12)
    squares = (i[:, None] - i) ** 2
    beliefs = [
        jp.GaussianPrior(jnp.exp(-squares / (2 * (2 * x) ** 2)) + 1e-3 * jnp.eye(12)) for x in (0.5, 0.75, 1, 1.5, 2)
    ]
    assert float(optimal_cost(beliefs, jp.Secret([5], 1.0), 3.0)) == pytest.approx(1.914583743, rel=1e-8)
    assert float(optimal_loss(beliefs, jp.Secret([5], 1.0), 1.0, losses=3.0)) == pytest.approx(1.731399427, rel=1e-8)


@pytest.mark.slow
def test_batches_and_larger_sizes():
    """vmap is a loop; above the interior method's size the ascent takes over, and its slope is right too."""
    secrets = [jp.Secret([k], 1.0) for k in (8, 20, 30)]

    def cost(lengthscale):
        return optimal_cost(priors(lengthscale, 40)[0], secrets, 3.0)

    slope = jax.jit(jax.grad(cost))(2.0)
    h = 1e-3
    run = jax.jit(cost)
    assert float(slope) == pytest.approx((float(run(2.0 + h)) - float(run(2.0 - h))) / (2 * h), rel=1e-5)
    small = jax.jit(lambda x: optimal_cost(priors(x)[0], SECRETS, LOSSES))
    scales = jnp.array([1.0, 2.0, 3.0])
    assert np.asarray(jax.vmap(small)(scales)) == pytest.approx([float(small(x)) for x in scales], rel=1e-9)


@pytest.mark.slow
def test_weights_price_the_noise():
    """∂cost/∂W_i = G_ii, and the least loss in a budget falls in proportion."""
    prior, weights = priors(2.0)[0], jnp.linspace(0.5, 2.0, N)

    @jax.jit
    def cost(weights):
        return optimal_cost(prior, SECRETS, LOSSES, weights=weights)

    noise = optimal_noise(prior, SECRETS, losses=LOSSES, weights=weights)
    assert np.asarray(jax.grad(cost)(weights)) == pytest.approx(np.diagonal(noise), abs=1e-7)


@pytest.mark.slow
def test_singular_secrets_are_infinite():
    flat = jp.GaussianPrior(jnp.ones((N, N)))
    assert np.isinf(optimal_cost(flat, SECRETS, LOSSES))
    noise = np.asarray(optimal_noise(flat, SECRETS, losses=LOSSES))
    assert np.all(np.isinf(np.diagonal(noise))) and not np.any(np.isnan(noise))
    poor = np.asarray(optimal_noise(priors(2.0)[0], SECRETS, budget=0.05, floor_variance=0.01))
    assert np.all(np.isinf(np.diagonal(poor))) and not np.any(np.isnan(poor))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: optimal_cost([], SECRETS, 1.0), "no prior"),
        (lambda: optimal_cost([IDLE[8], IDLE[9]], SECRETS, 1.0), "8, 9"),
        (lambda: optimal_cost(IDLE[8], SECRETS, [1.0, 2.0, 3.0]), "losses has shape"),
        (lambda: optimal_noise(IDLE[NOISE_SIZE + 1], SECRETS), "at most 64"),
        (lambda: optimal_cost(IDLE[8], [], 1.0), "no secret"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.slow
def test_document():
    """The examples of the document run, in order, and their assertions hold."""
    text = (Path(__file__).parents[2] / "docs" / "differentiable_designs.md").read_text(encoding="utf-8")
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "differentiable_designs.md", "exec"), names)
    assert names["estimated"][:2] in ([4, 6], [6, 4])
