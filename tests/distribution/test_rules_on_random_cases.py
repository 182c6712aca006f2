"""The rules that carry a guarantee over, each on 3,000 random cases, and what they rest on."""

import math

import numpy as np
import pytest
from scipy import integrate

from jaxpriv.distribution.approximate import audit_coupling
from jaxpriv.distribution.composition import Guarantee, lifted, post_processed, pre_processed
from jaxpriv.distribution.coupling import coupling_mechanism
from jaxpriv.distribution.divergences import kl
from jaxpriv.distribution.transport import optimal_coupling, wasserstein


CASES = 3000
DIVERGENCES = {
    "kl": lambda p, q: float(np.sum(p * np.log(p / q))),
    "max": lambda p, q: float(np.max(np.log(p / q))),
    "total_variation": lambda p, q: 0.5 * float(np.sum(np.abs(p - q))),
    "hellinger": lambda p, q: 1.0 - float(np.sum(np.sqrt(p * q))),
    "chi_squared": lambda p, q: float(np.sum(p**2 / q)) - 1.0,
}
LINE = np.abs(np.arange(3.0)[:, None] - np.arange(3.0))
# Rounding of sums of a few terms of order one.
ROUNDING = 1e-12


@pytest.mark.parametrize("name", DIVERGENCES)
def test_post_processing(name):
    rng = np.random.default_rng(10)
    function, tightest = DIVERGENCES[name], 0.0
    pairs, maps = rng.dirichlet(np.ones(3), size=(CASES, 2)), rng.dirichlet(np.full(3, 0.3), size=(CASES, 3))
    for (p, q), after in zip(pairs, maps + 1e-9, strict=True):
        before = function(p, q)
        kept = post_processed(Guarantee(max(before, 0.0), name)).epsilon
        reached = function(p @ after / after.sum(axis=1)[0], q @ after / after.sum(axis=1)[0])
        assert reached <= kept + ROUNDING + 1e-8 * abs(before)
        tightest = max(tightest, reached / before)
    assert tightest > 0.99


@pytest.mark.parametrize("name", DIVERGENCES)
def test_lifting_of_a_relation(name):
    rng = np.random.default_rng(11)
    function, tightest = DIVERGENCES[name], 0.0
    allowed = LINE <= 1.0
    for channel in rng.dirichlet(np.ones(3), size=(CASES, 3)):
        level = max(function(channel[x], channel[y]) for x in range(3) for y in range(3) if allowed[x, y])
        plan = np.where(allowed, rng.dirichlet(np.full(9, 0.2)).reshape(3, 3), 0.0)
        plan /= plan.sum()
        outputs = plan.sum(axis=1) @ channel, plan.sum(axis=0) @ channel
        assert function(*outputs) <= lifted(Guarantee(level, name)).epsilon + ROUNDING
        tightest = max(tightest, function(*outputs) / level)
    assert tightest > 0.9


@pytest.mark.parametrize("name", ["max", "total_variation", "hellinger"])
def test_pre_processing_in_steps(name):
    rng = np.random.default_rng(12)
    function = DIVERGENCES[name]
    channels = rng.dirichlet(np.ones(3), size=(CASES, 4))
    for laws, channel in zip(rng.dirichlet(np.ones(4), size=(CASES, 3)), channels, strict=True):
        a, b, c = laws @ channel
        # The pairs (0, 1) and (1, 2) are covered; a map of the input takes some pair to (0, 2), two steps apart.
        step = max(function(a, b), function(b, c))
        assert (
            function(a, c) <= pre_processed(Guarantee(step, name, "distributions"), 2, kind="steps").epsilon + ROUNDING
        )


def _distance(p, q, largest: bool) -> float:
    """W_1 and W_∞ on the places 0, 1, 2, from distribution functions."""
    first, second = np.cumsum(p)[:2], np.cumsum(q)[:2]
    if not largest:
        return float(np.sum(np.abs(first - second)))
    if np.max(np.abs(first - second)) == 0.0:
        return 0.0
    return 1.0 if first[0] <= second[1] and second[0] <= first[1] else 2.0


@pytest.mark.parametrize("name", DIVERGENCES)
def test_pre_processing_that_stretches_distances(name):
    rng = np.random.default_rng(13)
    function, largest, tightest = DIVERGENCES[name], name == "max", 0.0
    for k in range(CASES):
        channel, move = rng.dirichlet(np.full(3, 2.0), size=3), rng.dirichlet(np.full(3, 0.5), size=3)
        p, q = rng.dirichlet(np.ones(3), size=2)
        slope = max(function(channel[x], channel[y]) / LINE[x, y] for x in range(3) for y in range(3) if x != y)
        whole = lifted(Guarantee(slope, name, extended="point distance"))
        apart, moved = _distance(p, q, largest), _distance(p @ move, q @ move, largest)
        bound = pre_processed(whole, moved / apart, kind="distance").epsilon * apart
        reached = function(p @ move @ channel, q @ move @ channel)
        assert reached <= bound + ROUNDING, k
        tightest = max(tightest, reached / bound)
    # One law over three places is seldom near a pair of points, where the bound is attained.
    assert tightest > 0.3


def test_loss_under_approximate_knowledge_stays_within_the_factor():
    rng = np.random.default_rng(14)
    for _ in range(200):
        known, target = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3))
        true = known * np.exp(rng.uniform(-0.4, 0.4, size=3))
        true /= true.sum()
        made = coupling_mechanism([known], target, LINE)
        audit = audit_coupling(made, [true])
        factor, best = math.exp(audit.knowledge[0]), wasserstein(known, target, LINE)
        assert best / factor - ROUNDING <= audit.losses[0] <= best * factor + ROUNDING


@pytest.mark.parametrize("ratio", [0.1, 1.0, 3.0])
def test_laplace_noise(ratio):
    # KL of Laplace laws r scales apart is r − 1 + e^−r, below r: the mechanism is KL-private relative to the distance.
    def density(x):
        return 0.5 * np.exp(-abs(x))

    integral = integrate.quad(
        lambda x: density(x) * (abs(x - ratio) - abs(x)), -40.0, 40.0, points=[0.0, ratio], epsabs=1e-13
    )[0]
    assert integral == pytest.approx(ratio - 1.0 + math.exp(-ratio), abs=1e-11)
    # On a grid of a thousandth the library's sum is the same to the square of the step.
    grid = np.arange(-30.0, 30.0, 1e-3)
    first, second = (np.exp(-np.abs(grid - shift)) for shift in (0.0, ratio))
    found = float(kl(first / first.sum(), second / second.sum()))
    assert found == pytest.approx(integral, abs=1e-6) and found < ratio


def test_derivative_of_the_transport_cost_is_the_potential():
    rng = np.random.default_rng(15)
    for _ in range(20):
        n, m = rng.integers(3, 7, size=2)
        first, second, cost = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m)), rng.uniform(size=(n, m))
        u, v = optimal_coupling(first, second, cost).potentials
        a, b = rng.normal(size=n), rng.normal(size=m)
        a, b = 1e-6 * (a - a.mean()), 1e-6 * (b - b.mean())
        # Piecewise linear in the masses: generic ones are inside a piece, and differences are exact but for rounding.
        ahead, behind = (wasserstein(first + s * a, second + s * b, cost) for s in (1, -1))
        assert (ahead - behind) / 2e-6 == pytest.approx((u @ a + v @ b) / 1e-6, abs=1e-7)
