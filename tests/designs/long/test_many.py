"""Many secrets on a long trace: clusters, windows with known edges, the sum of the noises, and its bounds."""

from __future__ import annotations

import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.certificates.structured import structured_loss_bounds
from jaxpriv.designs.long.cluster_bound import DualBlock, cost_lower, floor_value, joined, steepness
from jaxpriv.designs.long.clusters import Cluster, clusters_of, fading_lag
from jaxpriv.designs.long.reduction import lift, smooth_basis
from jaxpriv.designs.long.window_certificate import cluster_losses
from jaxpriv.designs.long.windows import beliefs, window_covariance
from jaxpriv.errors import InputError
from jaxpriv.priors import kernels
from jaxpriv.priors.quasiseparable import QuasiseparablePrior
from jaxpriv.priors.regular_grid import GridPrior


LENGTH = 5.0


def times(size: int, seed: int = 0) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).exponential(1.0, size))


def gain(covariance: np.ndarray, cross: np.ndarray, variance: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """P⁻¹ − V⁻¹ for an adversary who sees the trace with that noise, by textbook formulas."""
    posterior = variance - cross.T @ np.linalg.solve(covariance + noise, cross)
    return np.linalg.inv(posterior) - np.linalg.inv(variance)


def dense_loss(prior, indices, noise: np.ndarray) -> float:
    covariance = np.asarray(prior.covariance)
    here = list(indices)
    cross = covariance[:, here]
    return float(np.linalg.eigvalsh(gain(covariance, cross, cross[here], noise))[-1])


def scan_for(size: int, places: list[int], priors):
    return clusters_of(priors, [jp.Secret([i], 1.0) for i in places])


def test_far_secrets_are_apart_and_near_ones_together():
    prior = QuasiseparablePrior(kernels.matern52(LENGTH), np.arange(2000.0), 0.01)
    lag = fading_lag(prior, 1e-4)
    # (1 + x + x²/3) exp(−x) = 1e-4 at x = 13.66 = √5 · 6.11; the lags tried are 9 % apart.
    assert 6.1 * LENGTH <= lag <= 6.7 * LENGTH
    found = scan_for(2000, [100, 110, 400, 430, 470], [prior])
    assert [one.secrets for one in found] == [(0, 1), (2, 3), (4,)]
    for one in found:
        assert one.size % 64 == 0 and 0 <= one.start < one.stop <= 2000
    with pytest.raises(InputError, match="sorted"):
        scan_for(20, [3, 4], [QuasiseparablePrior(kernels.matern52(LENGTH), np.arange(20.0)[::-1].copy(), 0.01)])
    with pytest.raises(InputError, match="correlated with"):
        scan_for(5000, [2500], [GridPrior(kernels.periodic(24.0, 1.0), 1.0, 5000, 0.1)])
    with pytest.raises(InputError, match="other times"):
        scan_for(20, [3], [prior, QuasiseparablePrior(kernels.matern52(LENGTH), np.arange(2000.0) + 0.5, 0.01)])


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.matern12(LENGTH),
        kernels.matern32(LENGTH, 2.0),
        kernels.matern52(LENGTH) + kernels.matern12(2.0),
        kernels.matern32(LENGTH) * kernels.matern12(9.0),
    ],
    ids=["matern12", "matern32", "sum", "product"],
)
def test_known_edges_bound_every_release_outside(kernel):
    """Whatever is released outside, exact values included, tells less than the edges' states do."""
    t = times(60)
    prior = QuasiseparablePrior(kernel, t, 0.1)
    start, stop, local = 20, 40, np.array([8, 11])
    (known,) = beliefs(prior, start, stop, [local])
    rng = np.random.default_rng(1)
    root = rng.standard_normal((20, 3))
    inside = 0.1 * np.eye(20) + root @ root.T
    with_edges = gain(known.covariance, known.cross, known.variance, inside) + known.gained
    covariance = np.asarray(prior.covariance)
    cross = covariance[:, start + local]
    own = cross[start + local]
    for outside in (0.0, 1e-3, 1.0, 1e6):
        noise = outside * np.eye(60)
        noise[start:stop, start:stop] = inside
        actual = gain(covariance, cross, own, noise)
        # Rounding: the gains are of size 1 to 10 and the systems are well conditioned.
        assert np.linalg.eigvalsh(with_edges - actual)[0] >= -1e-9
    # For the Ornstein-Uhlenbeck process the state is the value itself: exact neighbours tell as much as that.
    if kernel.__class__.__name__ == "Product" and len(prior.terms) == 1 and prior.terms[0].states == 1:
        exact = QuasiseparablePrior(kernel, t, 0.0)
        (edge,) = beliefs(exact, start, stop, [local])
        noise = np.zeros((60, 60))
        noise[start:stop, start:stop] = inside
        actual = gain(
            np.asarray(exact.covariance),
            np.asarray(exact.covariance)[:, start + local],
            np.asarray(exact.covariance)[np.ix_(start + local, start + local)],
            noise,
        )
        np.testing.assert_allclose(
            gain(edge.covariance, edge.cross, edge.variance, inside) + edge.gained, actual, rtol=1e-8, atol=1e-8
        )


@pytest.mark.parametrize("kind", ["markov", "grid"])
def test_the_windowed_certificate_contains_the_dense_loss(kind):
    n = 1500
    prior = (
        QuasiseparablePrior(kernels.matern32(LENGTH), times(n), 0.05)
        if kind == "markov"
        else GridPrior(kernels.rbf(LENGTH), 1.0, n, 0.05)
    )
    secrets = [jp.Secret([700], 1.0), jp.Secret([760, 761], 1.0)]
    clusters = [Cluster((0,), 640, 768), Cluster((1,), 700, 828)]
    noise, factors = 1e-4 * np.eye(n), []
    for cluster, secret in zip(clusters, secrets, strict=True):
        window = slice(cluster.start, cluster.stop)
        covariance = window_covariance(prior, cluster.start, cluster.stop)
        here = np.array(secret.indices) - cluster.start
        factors.append(np.linalg.solve(covariance + 0.5 * np.eye(128), covariance[:, here]))
        noise[window, window] += factors[-1] @ factors[-1].T
    for c, secret in enumerate(secrets):
        (bound,) = cluster_losses(prior, secrets, clusters, factors, c, 1e-4, 60.0)
        truth = dense_loss(prior, secret.indices, noise)
        # Measured: the dense value lies inside even where the bounds are 1e-12 apart; ten times that for another BLAS.
        assert bound.lower * (1.0 - 1e-11) <= truth <= bound.upper * (1.0 + 1e-11)
        # Measured: at most 1.3e-9 apart, for the pair on the grid, whose kernel the window cuts off.
        assert bound.upper <= bound.lower * (1.0 + 1e-8)
        # What is not seen must be in the bound: it is right without any reach beyond the window, too.
        (short,) = cluster_losses(prior, secrets, clusters, factors, c, 1e-4, 0.0)
        assert truth <= short.upper * (1.0 + 1e-11)
        whole = structured_loss_bounds(prior, [secret.indices], np.linalg.cholesky(noise), 0.0)
        assert whole[0].lower <= bound.upper


def test_lifting_meets_every_floor():
    t = times(80)
    priors = [QuasiseparablePrior(kernels.matern32(s), t, 0.1) for s in (3.0, 9.0)]
    covariances = [np.asarray(prior.covariance) for prior in priors]
    roots, floors = [], []
    for covariance in covariances:
        cross, own = covariance[:, [40]], covariance[40, 40]
        roots.append([cross / own * np.sqrt(own + 1.0)])
        floors.append(roots[-1][0] @ roots[-1][0].T - covariance)
    factor = 0.3 * np.random.default_rng(0).standard_normal((80, 2))
    added = lift(factor, 1e-3, covariances, roots)
    noise = factor @ factor.T + added @ added.T + 1e-3 * np.eye(80)
    # Rounding of a problem of size 1 to 10.
    assert all(np.linalg.eigvalsh(noise - floor)[0] > -1e-9 for floor in floors)
    nothing = lift(np.concatenate([factor, added], axis=1), 1e-3, covariances, roots)
    assert np.sum(nothing**2) < 1e-5 * np.sum(added**2)


def test_the_basis_is_orthonormal_and_holds_the_secret():
    t = times(400)
    basis = smooth_basis(t, np.array([200]), 10.0)
    assert basis is not None and basis.shape == (400, 128)
    kept = basis[:, np.linalg.norm(basis, axis=0) > 0.5]
    # Rounding of 400 terms of size 1/20; measured 4e-15 and 1e-15.
    np.testing.assert_allclose(kept.T @ kept, np.eye(kept.shape[1]), atol=1e-13)
    np.testing.assert_allclose(basis @ basis[200], np.eye(400)[200], atol=1e-13)
    assert smooth_basis(t[:100], np.array([50]), 10.0) is None


def test_the_cost_bound_is_below_any_noise_that_protects():
    n = 160
    prior = QuasiseparablePrior(kernels.matern32(LENGTH), times(n), 0.1)
    covariance = window_covariance(prior, 0, n)
    clusters = [Cluster((0,), 0, 100), Cluster((1,), 60, 160)]
    places = [50, 100]
    rng = np.random.default_rng(3)
    dense = jp.design(jp.GaussianPrior(covariance), [jp.Secret([i], 1.0) for i in places], epsilon=1.0, floor_sd=0.01)
    for width in (1, 2):
        blocks = []
        for c, i in enumerate(places):
            window = slice(clusters[c].start, clusters[c].stop)
            column = np.linalg.solve(covariance + 3.0 * np.eye(n), covariance[:, [i]])[window]
            columns = np.concatenate([column, 0.05 * rng.standard_normal((100, width - 1))], axis=1)
            blocks.append(DualBlock(c, 0, c, columns / np.linalg.norm(column)))
        found = joined(blocks, clusters)
        wide = np.zeros((n, 2 * width))
        for c, block in enumerate(found):
            wide[clusters[c].start : clusters[c].stop, c * width : (c + 1) * width] = block.columns
        steep = steepness(found, clusters)
        assert np.linalg.norm(wide, 2) ** 2 <= steep
        values = []
        for c, block in enumerate(found):
            window = np.arange(clusters[c].start, clusters[c].stop)
            cross = covariance[window][:, [places[c]]]
            own = covariance[places[c], places[c]].reshape(1, 1)
            value = floor_value(covariance[np.ix_(window, window)], cross, own, 1.0, block.columns)
            regression = cross / own[0, 0]
            floor = regression @ (own + 1.0) @ regression.T - covariance[np.ix_(window, window)]
            exact = np.trace(block.columns.T @ floor @ block.columns)
            assert value <= exact <= value + 1e-9
            values.append(value)
        lower = cost_lower(values, found, steep, 1e-4, n)
        assert lower <= dense.cost
        if width == 1:
            assert lower > 0.9 * dense.cost


def test_the_sum_over_clusters_protects_each():
    n = 300
    prior = QuasiseparablePrior(kernels.matern32(2.0), times(n), 0.1)
    secrets = [jp.Secret([80], 1.0), jp.Secret([220], 1.0)]
    found = jp.design(prior, secrets, epsilon=1.0)
    assert found.stats["clusters"] == 2 and found.gap < 1e-6  # the default tolerance; measured 1e-7
    checked = jp.certify(jp.GaussianPrior(np.asarray(prior.covariance)), secrets, found.mechanism)
    assert np.all(checked.epsilons <= 1.0)
    # Two certificates of one mechanism, each within its rounding of the loss; measured 1e-13 apart.
    np.testing.assert_allclose(checked.epsilons, found.epsilons, rtol=1e-12)


@pytest.mark.slow
def test_the_sum_over_clusters_against_the_dense_design():
    n = 700
    t = times(n)
    priors = [QuasiseparablePrior(kernels.matern52(LENGTH * s), t, 0.05) for s in (0.5, 1.0)]
    secrets = [jp.Secret([150], 1.0), jp.Secret([158], 2.0), jp.Secret([500], 1.0)]
    found = jp.design(priors, secrets, epsilon=[1.0, 2.0, 0.5])
    assert found.stats["method"] == "clusters" and found.stats["clusters"] == 2
    assert np.all(found.epsilons <= np.array([[1.0], [2.0], [0.5]]))
    dense = [jp.GaussianPrior(np.asarray(prior.covariance)) for prior in priors]
    checked = jp.certify(dense, secrets, found.mechanism)
    # The two certificates bound the same losses, of matrices that differ by rounding.
    np.testing.assert_allclose(checked.epsilons, found.epsilons, rtol=1e-6)
    best = jp.design(dense, secrets, epsilon=[1.0, 2.0, 0.5])
    assert found.lower_bound <= best.cost and best.lower_bound <= found.cost
    assert found.gap < 1e-3


@pytest.mark.slow
def test_a_budget_for_many_secrets():
    n = 400
    prior = QuasiseparablePrior(kernels.matern32(3.0), times(n), 0.1)
    secrets = [jp.Secret([100], 1.0), jp.Secret([300], 1.0)]
    found = jp.design(prior, secrets, budget=4.0)
    assert found.cost <= 4.0
    assert 0.0 < found.lower_bound <= found.epsilon and found.gap < 1e-2
    best = jp.design(jp.GaussianPrior(np.asarray(prior.covariance)), secrets, budget=4.0)
    np.testing.assert_allclose(found.epsilon, best.epsilon, rtol=1e-3)
    assert found.lower_bound <= best.epsilon


@pytest.mark.parametrize("seed", [4, 5])
def test_a_first_fix_far_away_does_not_raise_the_lower_bound(seed):
    """Lags are rounded once, not twice: no bound above the cost of a mechanism that meets both targets."""
    times = np.sort(np.random.default_rng(seed).uniform(0, 4, 64))
    times[0] = -1e11
    prior = jp.QuasiseparablePrior(jp.kernels.matern12(1.0, 1.0), times, 0.1)
    secrets = [jp.Secret((30,), radius=1.0), jp.Secret((31,), radius=1e-3)]
    bound = jp.design(prior, secrets, epsilon=1.0, floor_sd=0.0, effort="high").lower_bound
    # The second secret's radius is so small that noise for the first one hides it, too.
    single = jp.certify(prior, secrets, jp.design(prior, secrets[0], epsilon=1.0, floor_sd=0.0).mechanism)
    assert single.epsilon <= 1.0
    assert bound <= single.cost
