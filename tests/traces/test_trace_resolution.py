"""The step to which positions are rounded, from data whose step is known."""

from __future__ import annotations

import numpy as np
import pytest

from jaxpriv.traces.resolution import METRES_PER_DEGREE, measured_step


@pytest.fixture
def walk(rng):
    return 40 + np.cumsum(rng.normal(0, 3e-4, 60)), 7 + np.cumsum(rng.normal(0, 3e-4, 60))


@pytest.mark.parametrize("decimals", [4, 5, 6, 7])
def test_decimal_steps(walk, decimals):
    lat, lon = (np.round(values, decimals) for values in walk)
    expected = 10.0**-decimals * METRES_PER_DEGREE
    assert measured_step(lat, lon, decimals) == pytest.approx(expected, rel=1e-9)
    # Zeros printed after the step do not make it finer.
    assert measured_step(lat, lon, decimals + 3) == pytest.approx(expected, rel=1e-6)


def test_minutes_of_arc_printed_as_decimals(walk):
    lat, lon = (np.round(np.round(values * 60, 3) / 60, 6) for values in walk)
    # A thousandth of a minute of arc is 1.855 m, though six decimals look like 0.11 m.
    assert measured_step(lat, lon, 6) == pytest.approx(METRES_PER_DEGREE / 60_000, rel=1e-9)


def test_single_precision(walk):
    lat, lon = (values.astype(np.float32).astype(float) for values in (walk[0], walk[1] - 120))
    step = np.spacing(np.float32(113.0)) * METRES_PER_DEGREE * np.cos(np.radians(40))
    assert measured_step(lat, lon, 14) == pytest.approx(step, rel=1e-3)


def test_unrounded_positions_have_no_step_to_speak_of(walk):
    assert measured_step(*walk, 16) < 1e-4


def test_few_values_count_printed_decimals():
    two = np.array([40.0, 40.5])
    assert measured_step(two, two, 6) == pytest.approx(1e-6 * METRES_PER_DEGREE)


def test_a_constant_coordinate_says_nothing():
    assert measured_step(np.full(5, 40.0), np.full(5, 7.0), 1) == 0.0
