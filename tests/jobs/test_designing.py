"""The noise before anything is drawn, and its comparison with independent noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jaxpriv.baselines import smallest_uniform
from jaxpriv.errors import InfeasibleError
from jaxpriv.jobs import independent
from jaxpriv.jobs.designing import design_noise
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.prior_sources import AxisPriors, PriorSource
from jaxpriv.jobs.secret_choice import SecretTime
from jaxpriv.jobs.secret_sources import ChosenSecret, ChosenSecrets
from jaxpriv.jobs.target import Target
from jaxpriv.report.record import SecretRecord
from jaxpriv.secrets.secret import Secret


N = 10
SECONDS = 30.0 * np.arange(N)
CHOICES = (PriorChoice("matern32", 90.0, 300.0, 1.0), PriorChoice("matern52", 60.0, 200.0, 2.0))


def _axis(*choices):
    return AxisPriors(choices, tuple(one.kernel for one in choices), (True,) * len(choices))


def _source(east=CHOICES, north=CHOICES):
    return PriorSource((_axis(*east), _axis(*north)), "given", False, ())


def _secrets(*positions):
    times = [SecretTime(0, i, SECONDS[i], SecretRecord("", "", 0.0)) for i in positions]
    return ChosenSecrets(tuple(ChosenSecret((one,)) for one in times), ())


def _priors():
    return [one.process_prior(SECONDS) for one in CHOICES]


def _loss(sigma, noise, i):
    left = sigma[i, i] - sigma[i] @ np.linalg.solve(sigma + noise, sigma[:, i])
    return 1 / left - 1 / sigma[i, i]


def test_the_least_independent_noise_is_that_of_the_library():
    secrets = [Secret([i], 150.0) for i in (0, 4, 9)]
    found = independent.compare([_priors()], secrets, 0.7, 50.0**2, 2.0)
    expected = float(smallest_uniform(_priors(), secrets, 0.7, 2.0).floor_sd)
    # Both are raised by 1e-9 of the variance until a certificate holds.
    assert found.rms_m == pytest.approx(math.sqrt(2) * expected, rel=1e-8)
    covariances = [np.asarray(prior.covariance) for prior in _priors()]
    for secret, epsilon in zip((0, 4, 9), found.epsilons, strict=True):
        worst = max(_loss(sigma, 50.0**2 * np.eye(N), secret) for sigma in covariances) * 150.0**2
        assert epsilon == pytest.approx(worst, rel=1e-9)
    assert found.epsilon == max(found.epsilons)
    assert found.skipped is None


def test_a_comparison_that_takes_too_long_is_left_out(monkeypatch):
    secrets = [Secret([4], 150.0)]
    monkeypatch.setattr(independent, "_LONGEST_S", 0.18)  # two certificates, and no root
    part = independent.compare([_priors()], secrets, 0.7, 50.0**2, 2.0)
    assert part.rms_m is None and part.epsilon is not None
    assert "How much independent noise the same ε takes was left out" in part.skipped
    monkeypatch.setattr(independent, "_LONGEST_S", 0.0)
    nothing = independent.compare([_priors()], secrets, 0.7, 50.0**2, 2.0)
    assert (nothing.rms_m, nothing.epsilon, nothing.epsilons) == (None, None, (None,))
    assert "10 points, 1 secrets and 2 priors" in nothing.skipped


def test_equal_coordinates_are_designed_once_and_half_widths_hold_under_each_prior():
    noise = design_noise(SECONDS, _secrets(2, 7), Target(150.0, 1.0), _source())
    assert noise.north is noise.east
    covariance = np.asarray(noise.east.design.mechanism.covariance)
    for p, prior in enumerate(_priors()):
        sigma = np.asarray(prior.covariance)
        for j, i in enumerate((2, 7)):
            left = sigma[i, i] - sigma[i] @ np.linalg.solve(sigma + covariance, sigma[:, i])
            assert noise.east.after_m[j, p] == pytest.approx(math.sqrt(left), rel=1e-9)
            assert noise.east.before_m[j, p] == pytest.approx(math.sqrt(sigma[i, i]), rel=1e-12)
    assert noise.east.worst == int(np.argmax(noise.east.design.epsilons.max(axis=0)))
    rows = np.array([1, 5])
    np.testing.assert_allclose(noise.east.noise_block(rows), covariance[np.ix_(rows, rows)], rtol=1e-12)
    assert noise.rms_m == pytest.approx(
        math.sqrt(2 * np.trace(covariance) / N + 4.0**noise.grid_exponent / 6), rel=1e-9
    )


def test_beliefs_are_those_of_a_prior_whose_mean_is_that_of_the_release():
    noise = design_noise(SECONDS, _secrets(4), Target(150.0, 1.0), _source(CHOICES[:1], CHOICES[1:])).north
    released = 5000.0 + np.sin(np.arange(N)) * 100.0
    mean, halfwidth = noise.believed_path(released)
    sigma, covariance = np.asarray(_priors()[1].covariance), np.asarray(noise.design.mechanism.covariance)
    gain = sigma @ np.linalg.inv(sigma + covariance)
    np.testing.assert_allclose(mean, released.mean() + gain @ (released - released.mean()), rtol=1e-9)
    np.testing.assert_allclose(halfwidth, np.sqrt(np.diag(sigma - gain @ sigma)), rtol=1e-7)
    shifted, _ = noise.believed_path(released - 5000.0)
    np.testing.assert_allclose(shifted, mean - 5000.0, atol=1e-8)


def test_what_cannot_be_met_names_the_smallest_that_can_in_metres():
    with pytest.raises(InfeasibleError, match=r"not above the 1\.48 m") as budget:
        design_noise(SECONDS, _secrets(4), Target(150.0, budget_m=1.4), _source())
    # A floor of 1 m in both coordinates, and a grid of 1 m.
    assert budget.value.smallest_feasible == pytest.approx(math.sqrt(2 + 1 / 6), rel=1e-12)
    found = design_noise(SECONDS, _secrets(4), Target(150.0, budget_m=1.49), _source(CHOICES[:1], CHOICES[:1]))
    assert found.rms_m <= 1.49
    with pytest.raises(InfeasibleError, match="±200 m before any release") as known:
        design_noise(SECONDS, _secrets(4), Target(150.0, uncertainty_m=250.0), _source())
    # The narrower prior: 200 m and a nugget of 2 m.
    assert known.value.smallest_feasible == pytest.approx(math.hypot(200, 2), rel=1e-12)
