"""Mechanisms without a prior: levels, sums, integrals, and the optimum on a line."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.exact_levels import ExactRows, exact_geo_level
from jaxpriv.channels.exponential import exponential_channel
from jaxpriv.channels.geometric import truncated_geometric
from jaxpriv.channels.geometry import pairwise_distances
from jaxpriv.channels.inference import optimal_remap, quality_loss
from jaxpriv.channels.planar import planar_geometric, planar_laplace
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.errors import InputError


GRID = np.stack(np.meshgrid(np.arange(4.0), np.arange(3.0), indexing="ij"), axis=-1).reshape(-1, 2)


def _after_remap(channel, prior):
    remap = np.asarray(optimal_remap(channel, prior))
    return float(quality_loss(channel.then(Channel.deterministic(remap, prior.size)), prior))


def test_the_geometric_mechanism_on_a_line(line):
    """5/9 on three places and 49/60 on five at ε = ln 2: the optima of the linear programs, rational by hand."""
    for count, value in ((3, 5 / 9), (5, 49 / 60)):
        prior, channel = line(np.arange(float(count))), truncated_geometric(count, np.log(2.0))
        np.testing.assert_allclose(np.asarray(channel.matrix).sum(axis=1), 1.0, rtol=1e-14)
        assert float(quality_loss(channel, prior)) == pytest.approx(value, rel=1e-14)
        assert exact_geo_level(ExactRows.of(channel), prior.distances).value == pytest.approx(np.log(2.0), rel=1e-14)


@pytest.mark.parametrize(
    ("epsilon", "plain", "remapped"),
    [(0.5, 0.7824571568, 0.6414213562), (1.0, 0.7059401220, 0.6260252331), (2.0, 0.5455511485, 0.5353591986)],
)
def test_the_exponential_mechanism_on_a_square(epsilon, plain, remapped):
    square = DiscretePrior(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([0.4, 0.3, 0.2, 0.1]))
    channel = exponential_channel(square.distances, epsilon / 2)
    assert float(quality_loss(channel, square)) == pytest.approx(plain, abs=1e-10)
    assert _after_remap(channel, square) == pytest.approx(remapped, abs=1e-10)
    # On a square every row has the same normaliser, so the slope is the rate itself, not twice it.
    slope = exact_geo_level(ExactRows.of(channel), square.distances).value
    assert slope == pytest.approx(epsilon / 2, rel=1e-14)


@pytest.mark.parametrize("mechanism", [planar_geometric, planar_laplace])
@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_planar_mechanisms_keep_their_slope(mechanism, epsilon):
    made = mechanism(GRID, epsilon, 1.0)
    assert made.moved == 0.0
    np.testing.assert_allclose(made.outputs, GRID)
    level = exact_geo_level(ExactRows.of(made.channel), pairwise_distances(GRID)).value
    # 1e-10: the accuracy of the integrals of the Laplace density; the geometric sums are right to rounding.
    assert 0.9 * epsilon < level <= epsilon * (1 + 1e-10)


def test_planar_laplace_is_the_integral_of_its_density():
    """Entries of an inner place against adaptive quadrature; a border cell against one over its half-plane part."""
    epsilon, size = 0.8, (1.0, 0.7)
    places = GRID * np.array(size)
    matrix = np.asarray(planar_laplace(places, epsilon, size).channel.matrix)
    own = 4  # cell (1, 1)

    def mass(left, right, low, high):
        def density(y, x):
            return epsilon**2 / (2 * np.pi) * np.exp(-epsilon * np.hypot(x, y))

        value, _ = integrate.dblquad(density, left, right, low, high, epsabs=1e-13, epsrel=1e-11)
        return value

    quarter = 4 * mass(0, size[0] / 2, 0, size[1] / 2)
    assert matrix[own, own] == pytest.approx(quarter, rel=1e-8)
    right = mass(size[0] / 2, 3 * size[0] / 2, -size[1] / 2, size[1] / 2)
    assert matrix[own, 7] == pytest.approx(right, rel=1e-9)
    border = mass(3 * size[0] / 2, 60.0, -size[1] / 2, size[1] / 2)
    assert matrix[own, 10] == pytest.approx(border, rel=1e-8)


def test_planar_mechanisms_on_places_off_the_grid(rng):
    places = GRID + 0.2 * rng.uniform(-1, 1, size=GRID.shape)
    made = planar_geometric(places, 0.7, 1.0)
    assert 0.0 < made.moved <= np.sqrt(0.5) and made.channel.n_inputs == 12
    prior = DiscretePrior(places, np.full(12, 1 / 12))
    assert _after_remap(made.channel, prior) <= float(quality_loss(made.channel, prior, made.outputs)) + 0.4


def test_one_row_of_cells_takes_both_sides():
    made = planar_geometric(np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]), 1.0, 1.0)
    steps = np.arange(-60, 61)
    law = np.exp(-np.hypot(steps[:, None], steps[None, :]))
    expected = law[60].sum() / law.sum()
    # e^-60 is what the finite sums of this test leave out.
    assert float(made.channel.matrix[1, 1]) == pytest.approx(expected, rel=1e-13)


def test_baselines_that_are_refused():
    cases = [
        (lambda: planar_geometric(GRID, 0.0, 1.0), "epsilon is 0.0"),
        (lambda: planar_geometric(GRID, 1.0, 0.0), "spacing"),
        (lambda: planar_geometric(GRID, 1.0, (1.0, 1.0, 1.0)), "spacing"),
        (lambda: planar_geometric(GRID, 1e-3, 1.0), "coarser spacing"),
        (lambda: planar_laplace(GRID, 9.0, 1.0), "above 4"),
        (lambda: truncated_geometric(1, 1.0), "at least two"),
        (lambda: truncated_geometric(3, -1.0), "positive"),
    ]
    for call, words in cases:
        with pytest.raises(InputError, match=words):
            call()
