"""Slips of other programs in the arithmetic of privacy: scales, zeros, dimensions, repeated releases, headers."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.baselines import smallest_uniform
from jaxpriv.errors import InputError
from jaxpriv.traces.files import read_trace, sanitised_text


TIMES = np.arange(8.0)
PRIOR = jp.ProcessPrior(jp.kernels.matern32(3.0, sd=10.0), TIMES, noise_sd=1.0)


def test_more_sensitivity_takes_more_noise_and_more_epsilon_less():
    # https://github.com/WICG/attribution-reporting-api/issues/1329: epsilon / sensitivity for sensitivity / epsilon
    alone = jp.GaussianPrior(5.0 * np.eye(3))

    def variance(radius, epsilon):
        return smallest_uniform(alone, jp.Secret([1], radius), epsilon).floor_sd ** 2

    # Gaussian noise at order 2: c = r^2 / epsilon.
    assert variance(10.0, 2.0) == pytest.approx(50.0, rel=1e-8)
    assert variance(20.0, 2.0) == pytest.approx(200.0, rel=1e-8)
    assert variance(10.0, 4.0) == pytest.approx(25.0, rel=1e-8)


@pytest.mark.parametrize("epsilon", [0.0, -0.0, -1.0, np.nan, np.inf, -np.inf])
def test_epsilon_is_positive_and_finite(epsilon):
    # https://github.com/DataResponsibly/DataSynthesizer/issues/8: zero meant "off", and divided
    with pytest.raises(InputError, match="epsilon"):
        jp.design(PRIOR, jp.Secret([3], 5.0), epsilon=epsilon)
    with pytest.raises(InputError, match="epsilon"):
        smallest_uniform(PRIOR, jp.Secret([3], 5.0), epsilon)


def test_the_loss_of_a_place_is_not_divided_by_its_coordinates(rng):
    # https://github.com/opendp/smartnoise-sdk/issues/472: noise divided by the number of attributes
    one = np.asarray(PRIOR.covariance)
    factor = rng.standard_normal((8, 8))
    noise = factor @ factor.T + np.eye(8)
    both = jp.GaussianPrior(np.kron(one, np.eye(2)))
    place, coordinate = jp.Secret.at_times([3], 5.0, dims=2), jp.Secret([3], 5.0)
    loss = float(jp.cip_loss(both, place, np.kron(noise, np.eye(2))))
    # By hand: the conditional law of all 16 numbers given the two of the place, and the worst shift of length 5.
    joint, at = np.kron(one, np.eye(2)), [6, 7]
    mean_map = joint[:, at] @ np.linalg.inv(joint[np.ix_(at, at)])
    spread = joint - mean_map @ joint[at] + np.kron(noise, np.eye(2))
    gain = mean_map.T @ np.linalg.solve(spread, mean_map)
    assert loss == pytest.approx(25.0 * np.linalg.eigvalsh(gain)[-1], rel=1e-9)
    assert loss == pytest.approx(float(jp.cip_loss(jp.GaussianPrior(one), coordinate, noise)), rel=1e-9)


def test_the_worst_shift_has_the_largest_difference_of_an_uneven_range():
    # https://github.com/IBM/differential-privacy-library/issues/104: the lower end of (-1, 5) taken for the larger
    noise = smallest_uniform(jp.GaussianPrior(np.eye(1)), jp.Secret([0], 5.0 - -1.0), 1.0)
    # Two values of the range differ by 6 at most, whichever end is larger in size.
    assert noise.floor_sd**2 == pytest.approx(36.0, rel=1e-8)


def test_noise_does_not_average_out_unnoticed():
    # https://github.com/mjaakko/NeoStumbler/issues/1197: repeated traces reveal the centre
    mechanism = smallest_uniform(PRIOR, jp.Secret([3], 5.0), 0.5)
    alone = jp.certify_releases(PRIOR, jp.Secret([3], 5.0), [mechanism]).epsilon
    together = jp.certify_releases(PRIOR, jp.Secret([3], 5.0), [mechanism] * 4).epsilon
    noise = np.asarray(mechanism.covariance)
    # Four releases are one with a quarter of the noise; the bound is certified from above.
    averaged = float(jp.cip_loss(PRIOR, jp.Secret([3], 5.0), noise / 4))
    assert averaged <= together <= averaged * (1 + 1e-6)
    assert together > 1.5 * alone


ALLOWED = {"gpx", "trk", "name", "trkseg", "trkpt", "time"}


def test_nothing_of_a_recorded_header_is_copied(real_data):
    # https://github.com/PimpinPumpkin/Vela/pull/292: the ends trimmed, the destination left in the header
    path = real_data / "gpx/gpxpy/gpx1.1_with_all_fields.gpx"
    text = path.read_text(encoding="utf-8-sig")
    trace = read_trace(path, track="all")
    written = sanitised_text(trace, trace.latitude, trace.longitude, "jaxpriv")
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(written).iter()}
    assert tags <= ALLOWED
    original = ElementTree.fromstring(text)
    words = {
        (element.text or "").strip()
        for element in original.iter()
        if element.tag.rpartition("}")[2] not in ("time",) and len((element.text or "").strip()) > 3
    }
    assert len(words) > 20
    assert not [word for word in words if f">{word}<" in written]
