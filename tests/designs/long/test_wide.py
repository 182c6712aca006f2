"""Clusters on windows too wide for matrices: the same noise and bounds as with matrices, and no further than them."""

from __future__ import annotations

import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.designs.long import clusters
from jaxpriv.designs.long.cluster_bound import floor_value
from jaxpriv.designs.long.dispatch import without_matrix
from jaxpriv.designs.long.wide_design import wide_floor_value
from jaxpriv.designs.long.windows import window_covariance
from jaxpriv.priors.quasiseparable import QuasiseparablePrior


N = 400
TIMES = np.cumsum(np.random.default_rng(0).uniform(0.5, 1.5, N))
PRIORS = [
    QuasiseparablePrior(kernel(scale, 300.0), TIMES, nugget)
    for kernel, scale in ((jp.kernels.matern32, 15.0), (jp.kernels.matern52, 25.0))
    for nugget in (2.0, 4.0)
]
SECRETS = [jp.Secret((180,), 100.0), jp.Secret((195,), 60.0)]


@pytest.fixture
def narrow(monkeypatch):
    """No window has a matrix."""
    monkeypatch.setattr(clusters, "LARGEST_WINDOW", 64)
    monkeypatch.setattr(clusters, "MATRIX_WINDOW", 64)


@pytest.mark.parametrize("goal", [{"epsilon": 1.0}, {"budget": N * 400.0}])
def test_the_same_design_as_with_matrices(goal, monkeypatch):
    dense = jp.design(PRIORS, SECRETS, resolution=0.5, **goal)
    monkeypatch.setattr(clusters, "MATRIX_WINDOW", 64)
    wide = jp.design(PRIORS, SECRETS, resolution=0.5, **goal)
    # The same steps in other arithmetic: they part by the solves' rounding, far below the solver's gap of 1e-4.
    assert wide.cost == pytest.approx(dense.cost, rel=1e-6)
    assert wide.epsilon == pytest.approx(dense.epsilon, rel=1e-6)
    assert wide.lower_bound == pytest.approx(dense.lower_bound, rel=1e-6)
    assert wide.stats["largest_window"] > 64 and wide.gap < 3e-3
    # What it claims holds by matrices. These are of the rounded kernel: with sd 300 and 70 left, that moves losses by
    # some 1e-7 at most.
    matrices = [jp.GaussianPrior(prior.covariance) for prior in PRIORS]
    assert jp.certify(matrices, SECRETS, wide.mechanism).epsilon <= wide.epsilon * (1 + 1e-6)


def test_one_secret_of_two_fixes(narrow):
    design = jp.design(PRIORS[::2], jp.Secret((200, 202), 100.0), epsilon=1.0, resolution=0.5)
    assert design.epsilon <= 1.0 and design.gap < 2e-2
    matrices = [jp.GaussianPrior(prior.covariance) for prior in PRIORS[::2]]
    assert jp.certify(matrices, jp.Secret((200, 202), 100.0), design.mechanism).epsilon <= 1.0 + 1e-6


def test_the_value_of_a_floor_is_that_by_matrices_and_never_above_the_exact_one():
    rng = np.random.default_rng(1)
    prior, here = PRIORS[0], np.array([180])
    covariance = window_covariance(prior, 0, N)
    cross = covariance[:, here]
    for _ in range(5):
        columns = rng.standard_normal((N, 1)) * np.exp(-np.abs(np.arange(N) - 180) / 20.0)[:, None]
        columns /= np.linalg.norm(columns)
        found = wide_floor_value(prior, here, 1e-4, columns)
        other = floor_value(covariance, cross, cross[here], 1e-4, columns)
        # Both take off a bound of their rounding: 1e-11 of terms of up to ‖Σ‖ ~ 3e6.
        assert found == pytest.approx(other, abs=1e-3)
        along = cross / cross[180, 0]
        floor = along @ along.T * (cross[180, 0] + 1e4) - covariance
        assert found <= float((columns.T @ floor @ columns)[0, 0]) + 1e-6


def test_secrets_of_a_wide_window_stay_together(narrow):
    found = clusters.clusters_of(PRIORS, SECRETS)
    assert len(found) == 1 and found[0].secrets == (0, 1)
    # Too many coordinates for one problem are cut.
    many_secrets = [jp.Secret((100 + 4 * i,), 50.0) for i in range(20)]
    assert all(len(one.secrets) <= 16 for one in clusters.clusters_of(PRIORS, many_secrets))


def test_a_window_of_a_smooth_prior_may_not_be_wide(narrow):
    smooth = [jp.GridPrior(jp.kernels.rbf(scale, 10.0), 1.0, 600, 1.0) for scale in (20.0, 40.0)]
    with pytest.raises(jp.InputError, match="at most 64 fit into a window"):
        jp.design(smooth, jp.Secret((300,), 5.0), epsilon=1.0)


def test_when_matrices_are_left_out_for_speed():
    times = np.arange(1_200.0)
    priors = [jp.ProcessPrior(jp.kernels.matern32(scale, 100.0), times, noise_sd=1.0) for scale in (10.0, 20.0)]
    secret = jp.Secret((600,), 50.0)
    found = without_matrix(priors, secret)
    assert found is not None and all(isinstance(one, QuasiseparablePrior) for one in found)
    smooth = [jp.ProcessPrior(jp.kernels.rbf(scale, 100.0), times, noise_sd=1.0) for scale in (10.0, 20.0)]
    shuffled = [jp.ProcessPrior(one.kernel, times[::-1], noise_sd=1.0) for one in priors]
    short = [jp.ProcessPrior(one.kernel, times[:900], noise_sd=1.0) for one in priors]
    assert without_matrix(priors[:1], secret) is None  # a closed form
    assert without_matrix(smooth, secret) is None and without_matrix(shuffled, secret) is None
    assert without_matrix(short, secret) is None
    assert without_matrix(priors, jp.EveryPoint(50.0)) is None
    assert without_matrix(priors, [jp.Secret((i,), 50.0) for i in range(100, 120)]) is None
