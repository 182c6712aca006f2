"""Designs for several secrets, priors and requirements: known answers, other solvers, and what a certificate shows."""

from __future__ import annotations

import numpy as np
import pytest

import jaxpriv as jp


N = 12


def _rbf(lengthscale, n=N, nugget=1e-3, sd=1.0):
    i = np.arange(n)
    return sd**2 * np.exp(-((i[:, None] - i) ** 2) / (2 * lengthscale**2)) + nugget * np.eye(n)


def _prior(*args, **options):
    return jp.GaussianPrior(_rbf(*args, **options))


def _secret(positions, target):
    """A secret whose target at ε = 1 and order 2 is the loss `target`: t = 1/(s r²)."""
    return jp.Secret(positions, radius=1.0 / np.sqrt(target * len(positions)))


SPREAD = (0.5, 0.75, 1.0, 1.5, 2.0)
CASES = {
    "three secrets": ([2.0], [([2], 2), ([5], 3), ([9], 4)], 3.002078118098),
    "five length scales": ([2 * f for f in SPREAD], [([5], 3)], 1.914583742595),
    "neighbours and a pair": ([2.0], [([3], 2), ([4], 2), ([7, 8], 5)], 4.160088361842),
    "three secrets, three length scales": (
        [2 * f for f in (0.5, 1.0, 2.0)],
        [([2], 2), ([5, 6], 4), ([9], 3)],
        22.90625249614,
    ),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name == "neighbours and a pair" else name for name in CASES],
)
def test_least_noise_for_many_floors(name):
    """Known answers: least traces certified by a primal–dual method from both sides, to the digits given."""
    lengths, secrets, expected = CASES[name]
    d = jp.design([_prior(x) for x in lengths], [_secret(*one) for one in secrets], epsilon=1.0, floor_sd=0.0)
    assert d.result is jp.DesignResult.optimal
    assert d.gap <= 1e-6
    # The reached cost is within the gap above the optimum, the bound within it below.
    assert expected * (1 - 1e-6) <= d.lower_bound <= expected * (1 + 1e-9)
    assert expected * (1 - 1e-9) <= d.cost <= expected * (1 + 1e-6)
    assert d.epsilons.shape == (len(secrets), len(lengths))
    assert np.max(d.epsilons) == d.epsilon <= 1.0


@pytest.mark.parametrize(("name", "scale"), [("three secrets", 2.681301380), ("five length scales", 1.731399427)])
def test_least_epsilon_for_a_budget(name, scale):
    """Known answers: the least common scale of the targets at a total trace of 1."""
    lengths, secrets, _ = CASES[name]
    d = jp.design([_prior(x) for x in lengths], [_secret(*one) for one in secrets], budget=1.0, floor_sd=0.0)
    assert d.cost <= 1.0
    assert d.gap <= 1e-6
    assert scale * (1 - 1e-6) <= d.lower_bound <= scale * (1 + 1e-9)
    assert scale * (1 - 1e-9) <= d.epsilon <= scale * (1 + 1e-6)


def test_an_epsilon_for_each_secret():
    """Nine of ten targets differ; the answer for every point i at target 1 + 0.3 i is 5.08909936043."""
    secrets = [jp.Secret([i], 1.0) for i in range(10)]
    epsilons = [1 + 0.3 * i for i in range(10)]
    d = jp.design(_prior(2.0, n=10), secrets, epsilon=epsilons, floor_sd=0.0)
    assert d.cost == pytest.approx(5.08909936043, rel=2e-6)
    assert np.all(d.epsilons[:, 0] <= epsilons)


def test_several_designs_protect_what_single_ones_do_not():
    secrets = [jp.Secret([3], 0.5), jp.Secret([8], 0.5)]
    joint = jp.design(_prior(2.0), secrets, epsilon=0.5)
    alone = jp.design(_prior(2.0), secrets[0], epsilon=0.5)
    assert np.max(jp.certify(_prior(2.0), secrets, alone.mechanism).epsilons) > 0.5
    assert joint.cost >= alone.cost
    more = jp.design([_prior(2.0), _prior(3.0)], secrets, epsilon=0.5)
    assert more.cost >= joint.cost * (1 - 1e-6)


def test_a_repeated_secret_changes_nothing():
    secret = jp.Secret([5], 0.5)
    once = jp.design(_prior(2.0), secret, epsilon=0.5, floor_sd=0.0)
    twice = jp.design([_prior(2.0), _prior(2.0)], [secret, secret], epsilon=0.5, floor_sd=0.0)
    assert twice.cost == pytest.approx(once.cost, rel=2e-6)


def test_every_point_under_unequal_variances_is_solved():
    scales = np.linspace(0.5, 2.0, 8)
    prior = jp.GaussianPrior(scales[:, None] * _rbf(2.0, n=8) * scales)
    d = jp.design(prior, jp.EveryPoint(1.0), epsilon=1.0)
    assert d.epsilons.shape == (8, 1)
    assert d.epsilon <= 1.0
    assert d.gap <= 1e-6
    assert d.cost >= 8.0 * (1 - 1e-12)  # each G_ii is at least 1/t


def test_uncertainty_is_left_under_every_prior():
    priors = [_prior(2.0 * f, sd=s) for f in (0.5, 1.0, 2.0) for s in (1.0, 1.5)]
    secrets = [jp.Secret([3], 1.0), jp.Secret([8], 1.0)]
    d = jp.design(priors, secrets, uncertainty=0.7)
    left = np.array([[np.asarray(jp.posterior(p, d.mechanism).covariance)[i, i] for p in priors] for i in (3, 8)])
    assert np.min(left) >= 0.49 * (1 - 1e-9)  # the posterior formula rounds to about 1e-13 relative
    assert np.min(left) <= 0.49 * (1 + 1e-5)
    assert d.gap <= 1e-6
    with pytest.raises(jp.InfeasibleError, match="before any release") as caught:
        jp.design(priors, secrets, uncertainty=1.2)
    assert caught.value.smallest_feasible == pytest.approx(np.sqrt(1.001))
    with pytest.raises(jp.InputError, match="one number"):
        jp.design(priors, jp.Secret([3, 4], 1.0), uncertainty=0.5)


@pytest.mark.parametrize("form", ["vector", "matrix"])
def test_weights_with_several_secrets(form, rng):
    from jaxpriv.convex.majorant import least_majorant

    weights = np.linspace(0.5, 3.0, 8)
    if form == "matrix":
        root = rng.standard_normal((8, 8))
        weights = root @ root.T / 8 + np.eye(8)
        weights = 0.5 * (weights + weights.T)
    prior, secrets = _prior(2.0, n=8), [jp.Secret([2], 1.0), jp.Secret([4, 5], 1.0)]
    d = jp.design(prior, secrets, epsilon=1.0, weights=weights, floor_sd=0.0)
    assert d.gap <= 1e-6
    floors = [np.asarray(jp.cip_floor(prior, secret, jp.target_loss(1.0, secret, 2.0))) for secret in secrets]
    exact = least_majorant([*floors], weights=weights)
    assert d.cost == pytest.approx(exact.cost, rel=1e-5)  # the solver's repair costs up to 1e-6 relative
    budget = jp.design(prior, secrets, budget=d.cost, weights=weights, floor_sd=0.0)
    assert budget.epsilon == pytest.approx(1.0, rel=2e-6)


REQUIREMENTS = {
    "whole trace": jp.GeoIndistinguishability(0.5, 1.0, moving="trace"),
    "one point": jp.GeoIndistinguishability(0.8, 1.0, moving="point"),
    "every point": jp.GeoIndistinguishability(0.2, 1.0, moving="every point"),
    "ellipsoid": jp.SensitivityEllipsoid(np.linspace(0.1, 1.0, 8)[:, None], rho=0.5),
    "side information": jp.SideInformation(jp.Secret([4], 0.7), [0, 7], epsilon=0.8),
}


@pytest.mark.parametrize(
    ("goal", "name"),
    [
        *(({"epsilon": 1.0}, name) for name in REQUIREMENTS),
        *(({"budget": 12.0}, name) for name in ("whole trace", "every point", "side information")),
        *(pytest.param({"budget": 12.0}, name, marks=pytest.mark.slow) for name in ("one point", "ellipsoid")),
    ],
)
def test_requirements_are_met_and_cost_no_more_than_they_must(goal, name):
    prior, secret, requirement = _prior(2.0, n=8), jp.Secret([2], 0.7), REQUIREMENTS[name]
    d = jp.design(prior, secret, requirements=[requirement], **goal)
    noise = np.asarray(d.mechanism.covariance)
    assert d.gap <= 1e-6
    if isinstance(requirement, jp.SideInformation):
        assert float(jp.loss_given(prior, requirement.secret, noise, requirement.known)) <= 0.8 * (1 + 1e-9)
    elif isinstance(requirement, jp.SensitivityEllipsoid):
        shift = np.linspace(0.1, 1.0, 8)
        # μ-Gaussian differential privacy with ρ = μ²/2 = 0.5.
        assert shift @ np.linalg.solve(noise, shift) <= 1.0 * (1 + 1e-9)
    else:
        values = {"trace": 0.25, "point": 0.64, "every point": 8 * 0.04}
        least = values[requirement.moving]  # λ r²/(2ε) = r², times the number of points for all of them at once
        if requirement.moving == "point":
            # Loss of one point when all others are known: the inverse of the noise.
            assert np.max(np.diagonal(np.linalg.inv(noise))) <= 1 / least * (1 + 1e-9)
        else:
            assert np.linalg.eigvalsh(noise)[0] >= least * (1 - 1e-9)
    bare = jp.design(prior, secret, **goal)
    assert (d.cost if "epsilon" in goal else d.epsilon) >= (bare.cost if "epsilon" in goal else bare.epsilon) * (
        1 - 1e-6
    )


def test_requirements_that_a_budget_cannot_pay():
    prior, secret = _prior(2.0, n=8), jp.Secret([2], 0.7)
    with pytest.raises(jp.InfeasibleError, match="floor") as caught:
        jp.design(prior, secret, budget=1.0, requirements=[jp.GeoIndistinguishability(1.0, 1.0, moving="point")])
    assert caught.value.smallest_feasible >= 8.0 * (1 - 1e-6)
    with pytest.raises(jp.InputError, match="requirement"):
        jp.design(prior, secret, epsilon=1.0, requirements=[3.0])


def test_independent_axes_share_one_promise():
    east, north = [_prior(2.0, n=8), _prior(3.0, n=8)], [_prior(2.0, n=8, sd=1.5)]
    secret = jp.Secret([3], 0.7)
    target = jp.design_axes([east, north], secret, epsilon=0.4)
    assert target.epsilon <= 0.4
    assert target.cost == pytest.approx(sum(one.cost for one in target.axes))
    assert target.gap <= 1e-6
    budget = jp.design_axes([east, north], secret, budget=target.cost)
    assert budget.cost <= target.cost
    assert budget.epsilon == pytest.approx(0.4, rel=5e-6)
    assert budget.gap <= 1e-5
    assert [one.epsilon for one in budget.axes] == pytest.approx([budget.epsilon] * 2, rel=1e-6)
    # The unrolled trace, with coordinates adjacent and one two-dimensional secret, is the same problem.
    unrolled = [
        jp.GaussianPrior(np.kron(a.covariance, np.diag([1.0, 0.0])) + np.kron(north[0].covariance, np.diag([0.0, 1.0])))
        for a in east
    ]
    whole = jp.design(unrolled, jp.Secret.at_times([3], 0.7, dims=2), epsilon=0.4)
    assert whole.cost == pytest.approx(target.cost, rel=2e-6)


def test_certificate_of_several_priors_is_the_worst_of_each():
    priors, secrets = [_prior(2.0), _prior(4.0)], [jp.Secret([5], 0.7), jp.Secret([1, 2], 0.7)]
    mechanism = jp.baselines.uniform(N, 3.0)
    together = jp.certify(priors, secrets, mechanism)
    assert together.epsilons.shape == (2, 2)
    for p, prior in enumerate(priors):
        for j, secret in enumerate(secrets):
            assert together.epsilons[j, p] == jp.certify(prior, secret, mechanism).epsilon
            assert together.epsilons[j, p] == pytest.approx(float(jp.cip_loss(prior, secret, mechanism)), rel=1e-9)


def test_effort_and_tolerance_are_honest():
    priors = [_prior(2.0 * f) for f in SPREAD]
    rough = jp.design(priors, jp.Secret([5], 1.0), epsilon=0.1, effort="low", tolerance=1e-2)
    fine = jp.design(priors, jp.Secret([5], 1.0), epsilon=0.1)
    assert rough.stats["steps"] <= fine.stats["steps"]
    assert rough.lower_bound <= fine.cost
    assert fine.lower_bound <= rough.cost


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: jp.design([], jp.Secret([1], 1.0), epsilon=1.0), "no prior"),
        (lambda: jp.design(_prior(2.0), [], epsilon=1.0), "no secret"),
        (lambda: jp.design([_prior(2.0), _prior(2.0, n=5)], jp.Secret([1], 1.0), epsilon=1.0), "same"),
        (
            lambda: jp.design(_prior(2.0), [jp.Secret([1], 1.0), jp.Secret([2], 1.0)], epsilon=[1.0, 2.0, 3.0]),
            "3 values",
        ),
        (lambda: jp.design(_prior(2.0), [jp.Secret([1], 1.0)] * 2, epsilon=[1.0, -2.0]), "epsilon"),
        (lambda: jp.design(_prior(2.0), [jp.Secret([1], 1.0)] * 2, epsilon=1.0, structure="sparse"), "structure"),
        (lambda: jp.design(_prior(2.0), [jp.Secret([1], 1.0)] * 2, epsilon=1.0, effort="huge"), "effort"),
        (lambda: jp.design(_prior(2.0), [jp.Secret([1], 1.0)] * 2, epsilon=1.0, tolerance=0.0), "tolerance"),
        (lambda: jp.design(_prior(2.0), [jp.Secret([1], 1.0), 3], epsilon=1.0), "not a secret"),
        (lambda: jp.design_axes([], jp.Secret([1], 1.0), epsilon=1.0), "no axis"),
        (lambda: jp.design_axes([_prior(2.0)], jp.Secret([1], 1.0), budget=-1.0), "budget"),
        (lambda: jp.GeoIndistinguishability(1.0, 0.0), "epsilon"),
        (lambda: jp.GeoIndistinguishability(1.0, 1.0, moving="house"), "moving"),
        (lambda: jp.SensitivityEllipsoid(np.eye(3)), "exactly one"),
        (lambda: jp.SideInformation(jp.Secret([1], 1.0), [1], 1.0), "known"),
    ],
)
def test_bad_requests_are_refused(call, words):
    with pytest.raises(jp.InputError, match=words):
        call()


@pytest.mark.slow
@pytest.mark.parametrize("secrets", [[25], [15, 25, 26]])
def test_default_set_of_priors(secrets):
    """Two smoothnesses, three length scales, two nuggets: twelve priors at fifty points."""
    times = 10.0 * np.arange(50)
    priors = [
        jp.ProcessPrior(kernel(scale * factor, 300.0), times, noise_sd=nugget)
        for kernel, scale in ((jp.kernels.matern32, 120.0), (jp.kernels.matern52, 60.0))
        for factor in (0.5, 1.0, 2.0)
        for nugget in (0.05, 1.0)
    ]
    d = jp.design(priors, [jp.Secret([i], 200.0) for i in secrets], epsilon=1.0, resolution=0.5)
    assert d.gap <= 1e-6
    assert d.epsilon <= 1.0
