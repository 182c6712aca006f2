"""Independent, banded and block noise, and compound secrets under the product bound: against cone programs."""

from __future__ import annotations

import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.certificates.steepness import steepest
from jaxpriv.designs.certified import certify
from jaxpriv.designs.design import design
from jaxpriv.designs.structured.pattern import Pattern


N = 9
# Both solvers stop at a relative gap of about 1e-7, and what they propose is shaded by up to 1e-7 until it certifies.
GAP, AGREEMENT = 1e-6, 2e-6
STRUCTURES = {
    "diagonal": {"structure": "diagonal"},
    "banded": {"structure": "banded", "bandwidth": 2},
    "block": {"structure": "block"},
}


def rbf(scale: float, n: int = N, nugget: float = 1e-2) -> np.ndarray:
    i = np.arange(n)
    return np.exp(-((i[:, None] - i) ** 2) / (2 * scale**2)) + nugget * np.eye(n)


PRIORS = [jp.GaussianPrior(rbf(1.5)), jp.GaussianPrior(rbf(2.5))]
SECRETS = [jp.Secret([2], 0.8), jp.Secret([4, 5, 7], 0.5)]


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("bound", ["ball", "product"])
@pytest.mark.parametrize("goal", [{"epsilon": [1.0, 2.0]}, {"budget": 3.0}], ids=["targets", "budget"])
def test_least_structured_noise_is_that_of_the_cone_program(name, bound, goal):
    options = {**STRUCTURES[name], "bound": bound, **goal}
    ours = design(PRIORS, SECRETS, **options)
    cone = design(PRIORS, SECRETS, **options, method="convex")
    assert ours.result is jp.DesignResult.optimal
    assert ours.gap <= GAP
    assert cone.gap <= 10 * GAP
    assert ours.certificate.bound == bound
    assert (ours.stats["method"], cone.stats["method"]) == ("majorant", "convex")
    if "budget" in goal:
        assert ours.cost <= 3.0
        assert ours.epsilon == pytest.approx(cone.epsilon, rel=AGREEMENT)
    else:
        assert np.all(ours.epsilons <= np.array([[1.0], [2.0]]))
        assert ours.cost == pytest.approx(cone.cost, rel=AGREEMENT)


def test_noise_has_its_structure():
    factor = np.asarray(design(PRIORS[0], SECRETS, epsilon=1.0, **STRUCTURES["diagonal"]).mechanism.factor)
    assert np.array_equal(factor, np.diag(np.diagonal(factor)))
    factor = np.asarray(design(PRIORS[0], SECRETS, epsilon=1.0, **STRUCTURES["banded"]).mechanism.factor)
    assert np.array_equal(factor, np.tril(np.triu(factor, -2)))
    assert np.any(np.diagonal(factor, -2) != 0.0)
    noise = np.asarray(design(PRIORS[0], SECRETS, epsilon=1.0, **STRUCTURES["block"]).mechanism.covariance)
    inside, rest = [2, 4, 5, 7], [0, 1, 3, 6, 8]
    assert noise[np.ix_(inside, inside)] == pytest.approx(noise[2, 2] * np.eye(4), rel=1e-12, abs=1e-12)
    assert np.all(noise[np.ix_(inside, rest)] == 0.0)


def test_wider_bands_cost_less_down_to_any_noise():
    costs = [
        design(PRIORS[0], SECRETS, epsilon=1.0, structure="banded", bandwidth=width).cost for width in (0, 1, 4, N - 1)
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == pytest.approx(design(PRIORS[0], SECRETS, epsilon=1.0, structure="diagonal").cost, rel=GAP)
    assert costs[-1] == pytest.approx(design(PRIORS[0], SECRETS, epsilon=1.0).cost, rel=AGREEMENT)
    assert costs[0] > 1.5 * costs[-1]


@pytest.mark.parametrize("goal", [{"epsilon": 1.0}, {"budget": 3.0}], ids=["target", "budget"])
def test_one_block_secret_by_newton_and_by_its_closed_form(goal):
    closed = design(PRIORS[0], SECRETS[1], structure="block", **goal)
    newton = design(PRIORS[0], SECRETS[1], structure="block", method="majorant", **goal)
    assert (closed.stats["method"], newton.stats["method"]) == ("block", "majorant")
    assert newton.cost == pytest.approx(closed.cost, rel=AGREEMENT)
    assert newton.epsilon == pytest.approx(closed.epsilon, rel=AGREEMENT)


def test_weights_and_requirements_with_a_structure():
    weights = np.linspace(1.0, 4.0, N)
    requirement = jp.GeoIndistinguishability(0.3, 0.5, moving="point")
    options = {"epsilon": 1.5, "weights": weights, "requirements": [requirement], **STRUCTURES["banded"]}
    ours = design(PRIORS, SECRETS, **options)
    cone = design(PRIORS, SECRETS, **options, method="convex")
    assert ours.gap <= GAP
    assert ours.cost == pytest.approx(cone.cost, rel=AGREEMENT)
    covariance = np.asarray(ours.mechanism.covariance)
    # G ⪰ v e eᵀ for every point: the inverse has a diagonal of at most 1/v.
    assert np.max(np.diagonal(np.linalg.inv(covariance))) <= 1 / requirement.variance * (1 + 1e-9)
    budget = design(PRIORS, SECRETS, **{**options, "epsilon": None, "budget": 2 * ours.cost})
    assert budget.gap <= GAP
    with pytest.raises(jp.InfeasibleError, match="other requirements") as caught:
        design(PRIORS, SECRETS, **{**options, "epsilon": None, "budget": 0.5})
    assert caught.value.smallest_feasible == pytest.approx(float(np.sum(weights)) * requirement.variance, rel=0.01)


def test_no_structured_noise_beats_the_bound(rng):
    """Random noise of the family, scaled until it meets the targets, never costs less than the certified bound."""
    best = design(PRIORS[0], SECRETS, epsilon=1.0, **STRUCTURES["banded"])
    factor = np.asarray(best.mechanism.factor)
    prior, cheapest = rbf(1.5), np.inf

    def loss(noise: np.ndarray, secret: jp.Secret) -> float:
        at = list(secret.indices)
        cross, own = prior[:, at], prior[np.ix_(at, at)]
        left = own - cross.T @ np.linalg.solve(prior + noise, cross)
        gain = np.linalg.inv(left) - np.linalg.inv(own)
        return len(at) * float(secret.radius) ** 2 * float(np.linalg.eigvalsh(gain)[-1])

    for size in (1e-3, 1e-2, 0.1, 0.5):
        for _ in range(10):
            moved = factor + size * np.abs(factor).max() * np.triu(np.tril(rng.standard_normal((N, N))), -2)
            low, high = 0.2, 5.0
            for _ in range(30):
                middle = np.sqrt(low * high)
                worst = max(loss(middle**2 * moved @ moved.T + 1e-9 * np.eye(N), one) for one in SECRETS)
                low, high = (middle, high) if worst > 1.0 else (low, middle)
            cheapest = min(cheapest, high**2 * float(np.sum(moved**2)))
    assert best.lower_bound < cheapest < 1.01 * best.lower_bound


@pytest.mark.parametrize("width", [0, 1, 3, 7])
def test_steepest_banded_noise(width, rng):
    """The most that tr(KQ) can be over banded noise of weighted trace one, by its own dual: all windows of λW − Q
    positive semidefinite (a banded partial matrix then has a positive semidefinite completion, Grone et al. 1984)."""
    columns, weights = rng.standard_normal((8, 3)), rng.uniform(0.5, 2.0, 8)
    found = steepest(columns, "banded", weights, None, width)
    best = 0.0
    for start in range(8 - width):
        window = slice(start, start + width + 1)
        root = columns[window] / np.sqrt(weights[window])[:, None]
        best = max(best, np.linalg.norm(root, 2) ** 2)
    assert best <= found <= best * (1 + 1e-12)
    for _ in range(200):
        factor = np.triu(np.tril(rng.standard_normal((8, 8))), -width)
        noise = factor @ factor.T
        assert np.sum(noise * (columns @ columns.T)) <= found * np.sum(weights * np.diagonal(noise))
    with pytest.raises(jp.InputError, match="bandwidth"):
        steepest(columns, "banded", None, None)


@pytest.mark.parametrize(
    "pattern", [Pattern.banded(6, 0), Pattern.banded(6, 2), Pattern.banded(40, 20), Pattern.block(6, [1, 4])]
)
def test_traces_and_products_of_a_pattern(pattern, rng):
    def member(m):
        return pattern.matrix(np.eye(pattern.count)[m])

    first, second = (one + one.T for one in rng.standard_normal((2, pattern.size, pattern.size)))
    traces, products = pattern.traces(first), pattern.products(first, second)
    for m in rng.integers(0, pattern.count, 12):
        assert traces[m] == pytest.approx(np.sum(member(m) * first), rel=1e-12)
        for other in rng.integers(0, pattern.count, 6):
            expected = np.trace(first @ member(m) @ second @ member(other))
            # Patterns that are symmetrised: tr(A B C B') and tr(C B A B') are equal for symmetric matrices.
            assert products[m, other] == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_too_many_numbers_are_refused():
    prior = jp.GaussianPrior(np.eye(200))
    with pytest.raises(jp.InputError, match="Lower the bandwidth"):
        design(prior, [jp.Secret([3], 1.0), jp.Secret([9], 1.0)], epsilon=1.0, structure="block")
    window = jp.LinearSecret(np.ones((1, 200)) / 200, 1.0)
    with pytest.raises(jp.InputError, match="made of fixes"):
        design(prior, [jp.Secret([3], 1.0), window], epsilon=1.0, structure="block")


class TestProductBound:
    """Any noise, with the d of each secret optimised along."""

    @pytest.mark.parametrize(
        "goal",
        [{"epsilon": [1.0, 2.0]}, pytest.param({"budget": 3.0}, marks=pytest.mark.slow)],
        ids=["targets", "budget"],
    )
    def test_agrees_with_the_cone_program(self, goal):
        ours = design(PRIORS, SECRETS, bound="product", **goal)
        cone = design(PRIORS, SECRETS, bound="product", method="convex", **goal)
        ball = design(PRIORS, SECRETS, **goal)
        assert ours.gap <= GAP
        assert ours.certificate.bound == "product"
        measure = (lambda one: one.epsilon) if "budget" in goal else (lambda one: one.cost)
        assert measure(ours) == pytest.approx(measure(cone), rel=AGREEMENT)
        assert measure(ours) <= measure(ball) * (1 + GAP)

    def test_a_design_is_within_twice_the_exact_loss(self):
        """One coordinate a time: the exact loss is that of the worst vector of signs; the bound is within π/2 of it."""
        found = design(PRIORS[0], SECRETS[1], epsilon=1.0, bound="product", floor_sd=0.0)
        at, prior = list(SECRETS[1].indices), rbf(1.5)
        cross, own = prior[:, at], prior[np.ix_(at, at)]
        left = own - cross.T @ np.linalg.solve(prior + np.asarray(found.mechanism.covariance), cross)
        gain = np.linalg.inv(left) - np.linalg.inv(own)
        signs = np.array([(1, a, b) for a in (1, -1) for b in (1, -1)])
        exact = 0.5**2 * np.max(np.einsum("pi,ij,pj->p", signs, gain, signs))
        # The comparison formula inverts twice: about 1e-12.
        assert found.epsilon / 2 <= exact <= found.epsilon * (1 + 1e-9)
        assert certify(PRIORS[0], SECRETS[1], found.mechanism).epsilon > found.epsilon

    def test_two_coordinates_share_each_time(self):
        covariance = np.kron(rbf(2.0, 4), np.array([[1.0, 0.2], [0.2, 0.7]]))
        secret = jp.Secret.at_times([1, 2, 3], 0.6, dims=2)
        found = design(jp.GaussianPrior(covariance), secret, epsilon=1.0, bound="product", structure="diagonal")
        cone = design(
            jp.GaussianPrior(covariance), secret, epsilon=1.0, bound="product", structure="diagonal", method="convex"
        )
        assert found.gap <= GAP
        assert found.cost == pytest.approx(cone.cost, rel=AGREEMENT)

    def test_one_time_has_its_closed_form(self):
        found = design(PRIORS[0], SECRETS[0], epsilon=1.0, bound="product")
        assert found.stats["method"] == "spectral"
        assert found.epsilon == design(PRIORS[0], SECRETS[0], epsilon=1.0).epsilon
