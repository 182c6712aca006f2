"""Bounds over boxes of kernel parameters: the order of kernels, and the loss of every prior between."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

import jaxpriv as jp
from jaxpriv.designs.robust.cover import can_enclose, cover
from jaxpriv.designs.robust.families import KERNELS, StationaryFamily
from jaxpriv.designs.robust.region import Region
from jaxpriv.errors import InputError


N = 14
TIMES = np.sort(np.random.default_rng(3).uniform(0.0, 10.0, N))
BOX = {"lengthscale": (1.0, 2.5), "sd": (1.0, 1.7), "noise_sd": (0.05, 0.1)}
FULL = np.full((N, N), 0.05) + np.diag(np.linspace(0.2, 1.0, N))
SECRETS = {
    "one fix": [jp.Secret([6], 1.0)],
    "adjacent fixes": [jp.Secret([6, 7], 0.5)],
    "mean of a window": [jp.LinearSecret(np.eye(N)[3:7].mean(axis=0), 1.0)],
    "displacements": [jp.LinearSecret(np.eye(N)[[4, 5]] - np.eye(N)[[3, 4]], 1.0)],
    "several": [jp.Secret([2], 1.0), jp.Secret([6, 7], 0.5), jp.Secret([11], 2.0)],
}


def family(kernel="rbf"):
    period = 4.0 if kernel == "periodic" else None
    return StationaryFamily(kernel, TIMES, noise_sd=0.05, period=period)


def covered(secrets, box, kernel="rbf", goal=0.0, max_boxes=1):
    mechanism = jp.GaussianMechanism(np.linalg.cholesky(FULL), 0.01)
    targets = np.ones(len(secrets))
    region = Region.of(box)
    return mechanism, cover([family(kernel)], region, secrets, mechanism, targets, 2.0, goal, max_boxes, always=True)


def corners_and_random(box, rng, count):
    low, high = np.array(list(box.values())).T
    inside = rng.uniform(size=(count, len(box))) * (high - low) + low
    return [dict(zip(box, theta, strict=True)) for theta in [low, high, *inside]]


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_covariance_of_a_box_lies_within_the_bounds(kernel, rng):
    low, high = ({name: ends[i] for name, ends in BOX.items()} for i in (0, 1))
    bounds = family(kernel).enclosure(low, high)
    for theta in corners_and_random(BOX, rng, 20):
        scaled = np.asarray(family(kernel)(**theta).covariance) * (low["sd"] / theta["sd"]) ** 2
        # The bounds give way by n 2^-48; eigenvalues of matrices of norm 14 are computed to about 1e-14.
        assert np.linalg.eigvalsh(scaled - bounds.lower)[0] > -1e-13
        assert np.linalg.eigvalsh(bounds.upper - scaled)[0] > -1e-13
        assert np.all(np.diagonal(scaled) <= bounds.variances)


def test_the_factor_between_kernels_cannot_be_improved():
    """At lags beyond every length scale the sum over a dense grid is the spectral density at 0, which is l times it."""
    dense = StationaryFamily("matern32", np.arange(160) * 0.25)
    one, two = dense.correlation(1.0), dense.correlation(2.0)
    middle = np.ones(160)
    ratio = (middle @ one @ middle) / (middle @ two @ middle)
    assert ratio == pytest.approx(0.5, abs=0.02)
    assert np.linalg.eigvalsh(one - 0.55 * two)[0] < -1e-3


@pytest.mark.parametrize("kernel", KERNELS)
def test_host_correlations_are_those_of_the_prior(kernel):
    theta = {"lengthscale": 1.3, "sd": 1.0, "noise_sd": 0.0}
    computed = np.asarray(family(kernel)(**theta).covariance)
    # Half of the 2^-48 that the bounds allow each evaluation.
    assert np.max(np.abs(computed - family(kernel).correlation(1.3))) < 2.0**-49


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("kernel", ["rbf", "matern12"])
def test_one_box_bounds_every_prior_in_it(name, kernel, rng):
    box = {"lengthscale": (1.0, 1.3), "sd": (1.0, 1.2), "noise_sd": (0.05, 0.07)}
    mechanism, found = covered(SECRETS[name], box, kernel)
    assert found.count == 1 and found.whole
    for theta in corners_and_random(box, rng, 12):
        certificate = jp.certify(family(kernel)(**theta), SECRETS[name], mechanism)
        assert np.all(certificate.epsilon_lower[:, 0] <= found.epsilons)


@pytest.mark.parametrize("name", SECRETS)
def test_a_thin_box_costs_nothing(name):
    theta = {"lengthscale": 1.7, "sd": 1.2, "noise_sd": 0.06}
    box = {key: (value, value * (1.0 + 1e-12)) for key, value in theta.items()}
    mechanism, found = covered(SECRETS[name], box)
    certificate = jp.certify(family()(**theta), SECRETS[name], mechanism)
    # Width 1e-12 times the condition of the problem, about 1e4.
    assert found.epsilons == pytest.approx(certificate.epsilons[:, 0], rel=1e-7)
    assert np.all(found.epsilons >= certificate.epsilon_lower[:, 0])


@pytest.mark.parametrize("name", ["one fix", "adjacent fixes"])
def test_boxes_close_in_on_the_true_maximum(name):
    box = {"lengthscale": (1.0, 2.5)}
    secrets = SECRETS[name]
    mechanism = covered(secrets, box)[0]

    def loss(lengthscale):
        return jp.certify(family()(lengthscale=lengthscale), secrets, mechanism).epsilon

    grid = np.linspace(1.0, 2.5, 31)
    best = grid[np.argmax([loss(one) for one in grid])]
    true = -optimize.minimize_scalar(
        lambda x: -loss(x), bounds=(max(1.0, best - 0.1), min(2.5, best + 0.1)), method="bounded"
    ).fun
    true = max(true, loss(1.0), loss(2.5))
    coarse = covered(secrets, box, goal=1.2 * true, max_boxes=4000)[1]
    fine = covered(secrets, box, goal=1.02 * true, max_boxes=4000)[1]
    assert coarse.count < fine.count < 4000
    assert true <= fine.epsilons[0] <= 1.02 * true * (1.0 + 1e-6) < coarse.epsilons[0]


def test_what_cannot_be_enclosed():
    region = Region.of({"lengthscale": (1.0, 2.0)})
    assert can_enclose([family()], region, SECRETS["several"])
    assert not can_enclose([lambda lengthscale: family()(lengthscale)], region, SECRETS["several"])
    assert not can_enclose([family()], region, [jp.UnsampledSecret(0.5, 1.0)])
    assert not can_enclose([family()], Region.of([(1.0, 2.0)]), SECRETS["several"])
    with pytest.raises(InputError, match="period"):
        family().enclosure({"period": 1.0}, {"period": 2.0})
    with pytest.raises(InputError, match="lengthscale"):
        family().enclosure({"sd": 1.0}, {"sd": 2.0})


def test_without_nugget_nothing_is_claimed():
    """Ten fixes a tenth of a length scale apart: prior plus noise is singular, so no finite bound is given."""
    bare = StationaryFamily("rbf", np.arange(10) * 0.1)
    mechanism = jp.GaussianMechanism(np.ones((10, 1)), 0.0)
    region = Region.of({"lengthscale": (1.0, 2.0)})
    found = cover([bare], region, [jp.Secret([4], 1.0)], mechanism, np.ones(1), 2.0, 1.0, 8, always=True)
    assert np.isinf(found.epsilons[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cubic", TIMES), "kernel is 'cubic'"),
        (("periodic", TIMES), "period"),
        (("rbf", [0.0, np.inf]), "not finite"),
        (("rbf", []), "at least 1"),
    ],
)
def test_bad_families(arguments, message):
    with pytest.raises(InputError, match=message):
        StationaryFamily(*arguments)
    with pytest.raises(InputError, match="sd is -1"):
        StationaryFamily("rbf", TIMES, sd=-1.0)
