"""The set of priors that a design must withstand."""

from __future__ import annotations

import numpy as np
import pytest

from jaxpriv import InputError
from jaxpriv.fitting.fit import Fit, Settings, fit
from jaxpriv.fitting.robust import PriorSet, prior_set


TIMES = np.arange(0.0, 225.0, 5.0)


def made(kernel: str, loglik: float, lower: float | None = 0.2) -> Fit:
    parameters = {"sd": 50.0, "lengthscale": 60.0, "noise_sd": 0.7}
    return Fit(Settings(kernel), parameters, lower, loglik, (loglik,), (), True, 45, 220.0, 40.0)


FITS = [made("matern32", -120.0), made("matern52", -119.0, 0.03)]


def test_the_default_set(oracle):
    members = prior_set(TIMES, fits=FITS, resolution=0.5)
    assert isinstance(members, PriorSet)
    assert len(members) == 12
    expected = [
        (kernel, 60.0 * scale, noise)
        for kernel, low in (("matern32", 0.2), ("matern52", 0.03))
        for scale in (0.5, 1.0, 2.0)
        for noise in (low, 1.0)
    ]
    for prior, lattice, (kernel, length, noise) in zip(members, members.lattice, expected, strict=True):
        matrix = oracle.covariance(kernel, {"sd": 50.0, "lengthscale": length}, TIMES) + noise**2 * np.eye(TIMES.size)
        np.testing.assert_allclose(prior.covariance, matrix, rtol=1e-12)
        assert lattice == (noise == 1.0)
    assert members.labels[0] == "matern32, length scale x0.5, noise_sd 0.2 m"
    assert members[-1].nugget == 1.0
    assert list(members)[3] is members[3]


def test_wide_adds_four_and_exact_keeps_the_best():
    assert [label.split(",")[1] for label in prior_set(TIMES, fits=FITS, which="wide").labels[:4]] == [
        " length scale x0.5", " length scale x1", " length scale x2", " length scale x4",
    ]  # fmt: skip
    exact = prior_set(TIMES, fits=FITS, which="exact")
    assert exact.labels == ("matern52, length scale x1, noise_sd 0.03 m",)
    assert prior_set(TIMES, fits=FITS[0], which="exact", resolution=0.5).labels[1].endswith("noise_sd 1 m")


def test_a_member_is_not_repeated_when_its_nugget_is_large_enough():
    members = prior_set(TIMES, fits=[made("matern32", 0.0, lower=0.5)], resolution=0.2)
    assert len(members) == 3
    assert all(members.lattice)
    # Without a lower limit the fitted nugget itself is what there is.
    assert prior_set(TIMES, fits=[made("matern32", 0.0, lower=None)])[0].nugget == pytest.approx(0.49)


def test_fitting_both_axes_gives_a_set_for_each(oracle, rng):
    values = np.stack(
        [oracle.draw("matern32", {"sd": sd, "lengthscale": 60.0}, 0.5, TIMES, rng) for sd in (40.0, 80.0)], axis=1
    )
    sets = prior_set(TIMES, values, resolution=0.5)
    assert [len(one) for one in sets] == [12, 12]
    single = prior_set(TIMES, values[:, 1], resolution=0.5)
    assert single.labels == sets[1].labels
    own = fit(TIMES, values[:, 1])
    assert isinstance(own, Fit)
    assert float(single[2].nugget) == pytest.approx(own.noise_sd_lower**2, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fits": FITS, "which": "narrow"}, "which='narrow' is not one of default, wide, exact"),
        ({"fits": FITS, "resolution": -1.0}, "resolution must be a number >= 0"),
        ({}, "either values.*or fits"),
        ({"fits": FITS, "values": TIMES}, "not both"),
        ({"fits": []}, "fits is empty"),
        ({"fits": [FITS[0], fit(TIMES, 30.0 * np.cos(TIMES / 20.0), mean="zero", confidence=None)], "which": "exact"},
         "different means"),
    ],
)  # fmt: skip
def test_bad_requests_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        prior_set(TIMES, **options)
