"""The measured step of recorded data against the step they were made with."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.mechanisms.data_resolution import measured_resolution, refuse_coarse_data


def on_a_lattice(step: float, count: int, seed: int, span: int = 10**4) -> np.ndarray:
    """Multiples of `step` whose differences have no common factor (the first two integers are neighbours)."""
    whole = np.random.default_rng(seed).integers(-span, span, count)
    whole[1] = whole[0] + 1
    return whole * step


@pytest.mark.parametrize("step", [1e-5, 1e-6, 0.01, 0.05, 2.5e-3, 1.0, 3.0, 100.0, 0.1, 1.2])
@pytest.mark.parametrize("origin", [0.0, 116.3, -0.7])
def test_a_decimal_step_is_found_whatever_the_origin(step, origin):
    """Equal to a few roundings of the data; subtracting an origin afterwards rounds every value once more."""
    for seed in range(5):
        x = on_a_lattice(step, 50, seed) + origin
        assert measured_resolution(x) == pytest.approx(step, rel=1e-12)
        assert measured_resolution(x - 116.3) == pytest.approx(step, rel=1e-12)


@pytest.mark.parametrize("step", [2.0**-20, 0.25, 3 * 2.0**-9, 2.0**30, 2.0**-900])
def test_a_binary_step_is_found_exactly(step):
    for seed in range(5):
        x = on_a_lattice(step, 50, seed)
        assert measured_resolution(x) == measured_resolution(x + 1000 * step) == step


def test_single_precision_data_have_the_step_of_their_smallest_exponent():
    x = np.random.default_rng(1).uniform(1, 2, 50).astype(np.float32)
    assert measured_resolution(x) == 2.0**-23
    refuse_coarse_data(x, 2.0**-23)
    with pytest.raises(InputError, match="coarser steps"):
        refuse_coarse_data(x, 2.0**-24)


def test_continuous_data_have_no_step_worth_the_name():
    for seed in range(50):
        x = np.random.default_rng(seed).normal(size=30) * 10.0**seed / 1e25
        assert measured_resolution(x) < 1e-13 * np.max(np.abs(x))


@pytest.mark.parametrize("x", [[1.0], [0.0, 0.0], [7.5] * 9, [[1.0, 1.0], [1.0, 1.0]]])
def test_equal_values_have_none(x):
    assert measured_resolution(np.array(x)) == 0.0


def test_ends_of_the_range():
    assert measured_resolution(np.array([0.0, 5e-324, 1e-323])) == 5e-324
    assert measured_resolution(np.array([-1.7e308, 1.7e308])) == math.inf
    assert measured_resolution(np.array([0, 2, 6])) == 2.0
    with np.errstate(all="raise"):
        assert measured_resolution(np.array([1e300, 2e300, 3.5])) == 0.5


def test_declared_resolution_is_accepted_when_it_is_that_of_the_data():
    x = on_a_lattice(1e-5, 200, 3)
    refuse_coarse_data(x, 1e-5)
    with pytest.raises(InputError, match="coarser steps"):
        refuse_coarse_data(x, 0.9e-5)
