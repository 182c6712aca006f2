"""The verb: certified designs against formulas, against each other, and what it refuses."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxpriv as jp


def _rbf(n, lengthscale, nugget=1e-3):
    i = np.arange(n)
    return np.exp(-((i[:, None] - i) ** 2) / (2 * lengthscale**2)) + nugget * np.eye(n)


COVARIANCE = _rbf(12, 2.0)
PRIOR = jp.GaussianPrior(COVARIANCE)
SECRETS = {
    "basic": jp.Secret([5], 0.7),
    "compound": jp.Secret([5, 6], 0.7),
    "two dimensions": jp.Secret.at_times([2, 4], 0.7, dims=2),
    "mean of a window": jp.LinearSecret(np.r_[np.zeros(4), np.full(3, 1 / 3), np.zeros(5)], 0.7),
}


def _loss(covariance, cross, variance, noise):
    """λ_max(P⁻¹ − Cov(T)⁻¹) from the posterior of the secret, the other formula for the loss."""
    left = variance - cross.T @ np.linalg.solve(covariance + noise, cross)
    return np.linalg.eigvalsh(np.linalg.inv(left) - np.linalg.inv(variance))[-1]


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("target", [{"epsilon": 0.3}, {"budget": 2.0}])
def test_design_is_certified_and_optimal(name, target):
    secret = SECRETS[name]
    d = jp.design(PRIOR, secret, **target)
    assert d.result is jp.DesignResult.optimal
    assert 0.0 <= d.gap <= 1e-6
    cross, variance = (np.asarray(part) for part in secret.joint(PRIOR))
    loss = _loss(COVARIANCE, cross, variance, np.asarray(d.mechanism.covariance))
    epsilon = 0.5 * 2.0 * secret.n_times * 0.49 * loss
    # The formula loses about eight digits to cancellation at this conditioning.
    np.testing.assert_allclose(d.epsilon, epsilon, rtol=1e-7)
    np.testing.assert_allclose(d.cost, np.trace(d.mechanism.covariance), rtol=1e-12)
    if "epsilon" in target:
        assert d.epsilon <= 0.3
        assert d.epsilon == pytest.approx(0.3, rel=1e-7)
    else:
        assert d.cost <= 2.0
        assert d.cost == pytest.approx(2.0, rel=1e-10)
    assert d.epsilons.shape == (1, 1)
    assert np.linalg.matrix_rank(d.mechanism.factor) <= secret.size


@pytest.mark.parametrize("name", SECRETS)
def test_target_and_budget_are_two_readings_of_one_curve(name):
    d = jp.design(PRIOR, SECRETS[name], budget=1.5, floor_sd=0.01)
    back = jp.design(PRIOR, SECRETS[name], epsilon=d.epsilon, floor_sd=0.01)
    assert back.cost == pytest.approx(1.5, rel=1e-7)  # targets are shaded by 1e-9


def test_one_number_is_the_smoothers_weights():
    d = jp.design(PRIOR, jp.Secret([5], 1.0), budget=1.0, floor_sd=0.0)
    direction = np.linalg.solve(COVARIANCE + np.eye(12), COVARIANCE[:, 5])
    expected = np.outer(direction, direction) / (direction @ direction)
    np.testing.assert_allclose(d.mechanism.covariance, expected, atol=1e-10)
    # Known answer for this prior and secret: t = 2.8518336575, and ε = t at order 2 and radius 1.
    assert d.epsilon == pytest.approx(2.8518336575, rel=1e-10)


@pytest.mark.parametrize("name", [pytest.param("basic", marks=pytest.mark.slow), "compound"])
def test_block_structure_is_what_it_says_and_costs_more(name):
    secret = SECRETS[name]
    block = jp.design(PRIOR, secret, budget=2.0, structure="block")
    joint = jp.design(PRIOR, secret, budget=2.0)
    assert joint.epsilon <= block.epsilon * (1 + 1e-9)
    assert block.gap <= 1e-6
    noise, inside = np.asarray(block.mechanism.covariance), list(secret.indices)
    outside = np.setdiff1d(np.arange(12), inside)
    assert not np.any(noise[np.ix_(inside, outside)])
    np.testing.assert_allclose(noise[np.ix_(inside, inside)], noise[inside[0], inside[0]] * np.eye(len(inside)))
    target = jp.design(PRIOR, secret, epsilon=block.epsilon, structure="block", floor_sd=block.mechanism.floor_sd)
    assert target.cost == pytest.approx(2.0, rel=1e-7)
    assert target.gap <= 1e-6
    lemma = jp.direct_and_inferential(PRIOR, secret, noise)
    assert float(lemma.total) * len(inside) * 0.49 == pytest.approx(block.epsilon, rel=1e-7)


@pytest.mark.parametrize("form", ["vector", "matrix"])
def test_weights_are_a_change_of_units(form, rng):
    scales = np.linspace(0.5, 2.0, 12)
    weights = scales**2 if form == "vector" else np.diag(scales**2)
    d = jp.design(PRIOR, jp.Secret([5, 6], 0.7), epsilon=0.3, weights=weights, floor_sd=0.0)
    # The same trace in other units, each coordinate scaled: error is then unweighted.
    scaled = jp.GaussianPrior(scales[:, None] * COVARIANCE * scales)
    # Two times at 0.7 each reach as far as one vector of length 0.7 √2.
    secret = jp.LinearSecret(np.eye(12)[[5, 6]] / scales, 0.7 * np.sqrt(2))
    other = jp.design(scaled, secret, epsilon=0.3, floor_sd=0.0)
    assert d.cost == pytest.approx(other.cost, rel=1e-7)
    assert d.cost == pytest.approx(np.sum(scales**2 * np.diagonal(d.mechanism.covariance)), rel=1e-10)
    assert d.gap <= 1e-6


def test_a_full_weight_matrix_is_a_rotation(rng):
    basis, _ = np.linalg.qr(rng.standard_normal((12, 12)))
    weights = basis @ np.diag(np.linspace(0.5, 2, 12)) @ basis.T
    weights = 0.5 * (weights + weights.T)
    d = jp.design(PRIOR, jp.Secret([5], 0.7), budget=3.0, weights=weights)
    rotated = jp.GaussianPrior(basis.T @ COVARIANCE @ basis)
    secret = jp.LinearSecret(basis[5], 0.7)
    other = jp.design(rotated, secret, budget=3.0, weights=np.linspace(0.5, 2, 12))
    assert d.epsilon == pytest.approx(other.epsilon, rel=1e-6)  # the two default floors are rounded differently
    assert d.gap <= 1e-6


def test_a_query_is_released_with_its_own_floor():
    query = np.kron(np.eye(4), np.full((1, 3), 1 / 3))  # means of three
    prior, secret = jp.linear_query(PRIOR, jp.Secret([5], 0.7), query)
    d = jp.design(prior, secret, epsilon=0.3, floor_sd=0.0)
    floor = query @ np.asarray(jp.cip_floor(PRIOR, jp.Secret([5], 0.7), 0.3 / 0.49)) @ query.T
    assert d.cost == pytest.approx(np.maximum(np.linalg.eigvalsh(floor), 0).sum(), rel=1e-7)


@pytest.mark.parametrize("dims", [1, 2])
def test_every_point_is_prior_shaped(dims):
    covariance = np.kron(_rbf(10, 2.0), np.eye(dims))
    prior = jp.GaussianPrior(covariance)
    for target in ({"epsilon": 0.5}, {"budget": 4.0}):
        d = jp.design(prior, jp.EveryPoint(0.7, dims), **target)
        assert d.gap <= 1e-6
        assert d.epsilons.shape == (10, 1)
        np.testing.assert_allclose(d.epsilons, d.epsilon, rtol=1e-6)
        shape = np.asarray(d.mechanism.covariance) - d.mechanism.floor_sd**2 * np.eye(10 * dims)
        np.testing.assert_allclose(shape / shape[0, 0], covariance / covariance[0, 0], atol=1e-9)
    # n/t is the least trace: 10 dims points at t = 2ε/(λ r²).
    target = jp.design(prior, jp.EveryPoint(0.7, dims), epsilon=0.5)
    assert target.cost == pytest.approx(10 * dims * 0.49 / 0.5, rel=1e-6)


def test_default_floor_costs_next_to_nothing_and_follows_the_resolution():
    fine = jp.design(PRIOR, SECRETS["basic"], epsilon=0.3)
    bare = jp.design(PRIOR, SECRETS["basic"], epsilon=0.3, floor_sd=0.0)
    assert fine.mechanism.floor_sd > 0.0
    assert 0.0 <= fine.cost / bare.cost - 1.0 <= 2e-8
    coarse = jp.design(PRIOR, SECRETS["basic"], epsilon=0.3, resolution=0.05)
    assert coarse.mechanism.floor_sd == pytest.approx(0.1)
    assert np.linalg.eigvalsh(coarse.mechanism.covariance)[0] >= 0.01 * (1 - 1e-9)
    assert coarse.gap <= 1e-6


def test_a_floor_that_is_enough_by_itself():
    d = jp.design(PRIOR, SECRETS["compound"], epsilon=1e3, floor_sd=1.0)
    assert d.cost == pytest.approx(12.0, rel=1e-9)
    assert d.gap <= 1e-6


def test_no_noise_where_none_is_needed():
    prior, secret = jp.GaussianPrior(np.eye(3)), jp.ExternalSecret(np.array([[0.1], [0.0], [0.0]]), [[1.0]], 1.0)
    d = jp.design(prior, secret, epsilon=5.0)
    # Publishing everything leaves the secret a variance of 0.99: a gain of 1/99.
    assert d.epsilon == pytest.approx(1 / 99, rel=1e-12)
    assert d.cost == d.lower_bound == d.gap == 0.0
    assert d.result is jp.DesignResult.optimal


@pytest.mark.parametrize("target", [1e-4, 1.0, 1e4, 1e8])
def test_power_of_one_number_is_the_positive_part(target):
    for lengthscale, nugget in ((2.0, 1e-3), (6.1, 1e-6), (0.5, 1e-2)):
        prior, secret = jp.GaussianPrior(_rbf(30, lengthscale, nugget)), jp.Secret([15], 1.0)
        d = jp.design(prior, secret, epsilon=target, floor_sd=0.0)
        floor = np.asarray(jp.cip_floor(prior, secret, target))
        # The eigenvalue route loses what is small against the prior: 1e-14 of unit variance.
        assert d.cost == pytest.approx(np.linalg.eigvalsh(floor)[-1], rel=1e-7, abs=1e-12)


def test_a_prior_without_a_nugget_needs_a_floor():
    singular = jp.GaussianPrior(np.kron(np.ones((2, 2)), _rbf(4, 2.0, nugget=0.0)))
    assert np.isfinite(jp.design(singular, jp.Secret([1], 1.0), budget=1.0).epsilon)
    bare = jp.design(singular, jp.Secret([1], 1.0), budget=1.0, floor_sd=0.0)
    assert np.isinf(bare.epsilon)
    assert bare.result is jp.DesignResult.not_certified


def test_order_enters_through_its_ratio_with_epsilon():
    second = jp.design(PRIOR, SECRETS["compound"], epsilon=0.3, order=2.0)
    fifth = jp.design(PRIOR, SECRETS["compound"], epsilon=0.75, order=5.0)
    np.testing.assert_allclose(second.mechanism.covariance, fifth.mechanism.covariance, rtol=1e-6, atol=1e-9)


def test_infeasible_budget_names_the_smallest_feasible_one():
    with pytest.raises(jp.InfeasibleError, match="floor") as caught:
        jp.design(PRIOR, SECRETS["basic"], budget=0.1, resolution=0.5)
    assert caught.value.smallest_feasible == pytest.approx(12.0)
    kept = jp.design(PRIOR, SECRETS["basic"], budget=0.1, resolution=0.5, throw=False)
    assert kept.result is jp.DesignResult.budget_infeasible


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: jp.design(PRIOR, SECRETS["basic"]), "exactly one"),
        (lambda: jp.design(PRIOR, SECRETS["basic"], epsilon=1.0, budget=1.0), "exactly one"),
        *[
            (lambda bad=bad: jp.design(PRIOR, SECRETS["basic"], epsilon=bad), "epsilon")
            for bad in (0.0, -1.0, np.nan, np.inf, "one")
        ],
        (lambda: jp.design(PRIOR, SECRETS["basic"], budget=-1.0), "budget"),
        (lambda: jp.design(PRIOR, SECRETS["basic"], epsilon=1.0, order=1.0), "order"),
        (lambda: jp.design(PRIOR, SECRETS["basic"], epsilon=1.0, structure="sparse"), "structure"),
        (lambda: jp.design(PRIOR, SECRETS["basic"], epsilon=1.0, structure="banded"), "bandwidth"),
        (lambda: jp.design(PRIOR, SECRETS["basic"], epsilon=1.0, structure="banded", bandwidth=12), "from 0"),
        (lambda: jp.design(PRIOR, SECRETS["basic"], epsilon=1.0, bandwidth=2), "banded"),
        (lambda: jp.design(PRIOR, SECRETS["basic"], epsilon=1.0, bound="exact"), "bound"),
        (lambda: jp.design(PRIOR, SECRETS["basic"], epsilon=1.0, method="magic"), "method"),
        (lambda: jp.design(PRIOR, SECRETS["basic"], epsilon=1.0, floor_sd=-1.0), "floor_sd"),
        (lambda: jp.design(PRIOR, SECRETS["basic"], epsilon=1.0, floor_sd=0.1, resolution=0.1), "twice"),
        (lambda: jp.design(PRIOR, SECRETS["basic"], epsilon=1.0, weights=np.ones(3)), "weights"),
        (lambda: jp.design(PRIOR, SECRETS["basic"], epsilon=1.0, weights=-np.ones(12)), "not positive"),
        (lambda: jp.design(PRIOR, jp.Secret([12], 1.0), epsilon=1.0), "outside"),
        (lambda: jp.design(PRIOR, SECRETS["mean of a window"], epsilon=1.0, structure="block"), "fixes"),
        (lambda: jp.design(np.eye(3), SECRETS["basic"], epsilon=1.0), "prior"),
        (lambda: jp.design(jp.GaussianPrior(np.ones((3, 3))), jp.Secret([0, 1], 1.0), epsilon=1.0), "correlated"),
        (
            lambda: jax.jit(lambda c: jp.design(jp.GaussianPrior(c), jp.Secret([1], 1.0), epsilon=1.0))(COVARIANCE),
            "jit",
        ),
    ],
)
def test_bad_requests_are_refused_before_any_work(call, words):
    with pytest.raises(jp.InputError, match=words):
        call()


def test_global_precision_does_not_matter():
    code = (
        "import numpy as np, jax, jaxpriv as jp\n"
        "i = np.arange(12); c = np.exp(-(i[:, None] - i) ** 2 / 8.0) + 1e-3 * np.eye(12)\n"
        "d = jp.design(jp.GaussianPrior(c), jp.Secret([5], 0.7), epsilon=0.3)\n"
        "assert not jax.config.jax_enable_x64 and d.mechanism.factor.dtype == np.float64\n"
        "print(repr(d.epsilon), repr(d.cost))\n"
        "p = jp.ProcessPrior(jp.kernels.matern32(60.0, 300.0), 10.0 * np.arange(12), noise_sd=1.0)\n"
        "d = jp.design(p, jp.Secret([5], 200.0), epsilon=1.0)\n"
        "print(repr(d.epsilon), repr(d.gap))\n"
    )
    lines = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split("\n")
    epsilon, cost = (float(x) for x in lines[0].split())
    here = jp.design(PRIOR, SECRETS["basic"], epsilon=0.3)
    assert (epsilon, cost) == (pytest.approx(here.epsilon, rel=1e-12), pytest.approx(here.cost, rel=1e-12))
    epsilon, gap = (float(x) for x in lines[1].split())
    assert 1.0 - 1e-7 <= epsilon <= 1.0
    assert gap <= 1e-6


def test_gradient_through_the_optimum_is_the_envelope():
    @jax.jit
    def cost(lengthscale, radius):
        times = jnp.arange(8.0)
        prior = jp.ProcessPrior(jp.kernels.rbf(lengthscale), times, 0.05)
        target = 2.0 * 0.3 / (2.0 * radius**2)
        return jp.least_trace(prior, jp.Secret([3], 1.0), target)

    gradient = jax.jit(jax.grad(cost, argnums=(0, 1)))(2.0, 0.7)
    for i, (up, down) in enumerate([((2.0 + 1e-5, 0.7), (2.0 - 1e-5, 0.7)), ((2.0, 0.7 + 1e-5), (2.0, 0.7 - 1e-5))]):
        np.testing.assert_allclose(gradient[i], (cost(*up) - cost(*down)) / 2e-5, rtol=1e-6)


def test_new_values_do_not_recompile():
    from jaxpriv.designs import proposal

    jp.design(PRIOR, jp.Secret([5], 0.7), epsilon=0.3)
    before = proposal._joint_for_loss._cache_size()
    for position, epsilon, lengthscale in ((1, 0.1, 2.1), (7, 2.0, 3.0)):
        jp.design(jp.GaussianPrior(_rbf(12, lengthscale)), jp.Secret([position], 0.5), epsilon=epsilon, order=3.0)
    assert proposal._joint_for_loss._cache_size() == before


def test_release_of_a_design(rng):
    d = jp.design(PRIOR, SECRETS["basic"], epsilon=0.3, resolution=0.01)
    x = rng.standard_normal(12)
    released = d.mechanism.release(x)
    assert released.exponent == -6  # the largest power of two that is at most the floor of 0.02
    assert np.all(np.abs(released.values - x) < 10.0 * np.sqrt(np.diagonal(d.mechanism.covariance)) + 0.02)
    assert not np.array_equal(released.integers, d.mechanism.release(x).integers)
    with pytest.raises(jp.InputError, match=r"^[^0-9]*$"):
        d.mechanism.release(np.round(x, 1))  # recorded to 0.1, declared as 0.01
    with pytest.raises(jp.InputError, match="resolution"):
        d.mechanism.release(x, resolution=0.05)
    with pytest.raises(jp.InputError, match="floor"):
        jp.design(PRIOR, SECRETS["basic"], epsilon=0.3, floor_sd=0.0).mechanism.release(x)
