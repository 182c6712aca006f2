"""Greedy spanners against tabulated edge counts and shortest paths by another algorithm."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from small_maps import EIGHT, eight_places, grid

from jaxpriv.channels.limits import geo_limits, largest_excess, set_limits
from jaxpriv.channels.spanner import greedy_spanner
from jaxpriv.errors import InputError


def floyd(distances, pairs):
    paths = np.full(distances.shape, np.inf)
    np.fill_diagonal(paths, 0.0)
    for x, y in pairs:
        paths[x, y] = paths[y, x] = distances[x, y]
    for k in range(len(paths)):
        paths = np.minimum(paths, paths[:, [k]] + paths[[k]])
    return paths


@pytest.mark.parametrize(("stretch", "edges", "dilation"), [row[:3] for row in EIGHT["spanners"]])
def test_edges_and_measured_dilation_on_eight_places(stretch, edges, dilation):
    spanner = greedy_spanner(np.asarray(eight_places().distances), stretch)
    assert len(spanner.pairs) == edges
    # The table has five decimals.
    assert spanner.dilation == pytest.approx(dilation, abs=5e-6)
    assert spanner.dilation <= stretch * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_dilation_is_that_of_the_shortest_paths(seed):
    places = np.random.default_rng(seed).random((25, 2))
    d = np.linalg.norm(places[:, None] - places[None], axis=-1)
    spanner = greedy_spanner(d, 1.2)
    paths = floyd(d, spanner.pairs)
    off = ~np.eye(25, dtype=bool)
    measured = np.max(paths[off] / d[off])
    assert measured <= spanner.dilation <= measured * (1 + 1e-12)


def test_on_a_grid_an_exact_spanner_keeps_the_steps_without_a_common_divisor():
    prior = grid(4, 5, 0)
    spanner = greedy_spanner(np.asarray(prior.distances), 1.0)
    steps = np.asarray(prior.locations)
    expected = {
        (x, y)
        for x, y in itertools.combinations(range(20), 2)
        if math.gcd(*(abs(int(v)) for v in steps[x] - steps[y])) == 1
    }
    assert {tuple(pair) for pair in spanner.pairs.tolist()} == expected


def test_a_reach_is_paid_for_in_the_dilation():
    d = np.asarray(grid(5, 5, 0).distances)
    near = greedy_spanner(d, 1.0, reach=1.5)
    assert np.all(d[near.pairs[:, 0], near.pairs[:, 1]] <= 1.5)
    # Steps of a king on a square grid: 1/cos(22.5°) at worst, attained in the direction (1, √2 − 1) only in the limit.
    assert 1.07 < near.dilation < 1.0 / math.cos(math.pi / 8)


def test_strict_limits_imply_every_limit_and_relaxed_ones_do_not():
    d = np.asarray(eight_places().distances)
    strict = geo_limits(d, 0.3, 1.2, stricter=True)
    graph = np.zeros((8, 8))
    graph[strict.pairs[:, 0], strict.pairs[:, 1]] = graph[strict.pairs[:, 1], strict.pairs[:, 0]] = strict.levels
    implied = floyd(graph, strict.pairs)
    assert np.all(implied <= 0.3 * d * (1 + 1e-12))
    relaxed = geo_limits(d, 0.3, 1.2)
    assert np.any(floyd(0.3 * d, relaxed.pairs) > 0.3 * d * (1 + 1e-6))
    np.testing.assert_allclose(relaxed.allowed, 0.3 * d, rtol=1e-15)


def test_overlapping_sets_limit_each_other_through_shared_members():
    limits = set_limits(5, [[0, 1], [1, 2]], [0.5, 0.25])
    assert limits.allowed[0, 2] == 0.75
    assert np.isinf(limits.allowed[0, 3])


def test_largest_excess_counts_a_zero_beside_a_positive_probability_as_infinite():
    allowed = np.array([[0.0, 1.0], [1.0, 0.0]])
    with np.errstate(divide="ignore"):
        assert largest_excess(np.log(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])), allowed) == np.inf
        inside = largest_excess(np.log(np.array([[0.6, 0.4, 0.0], [0.4, 0.6, 0.0]])), allowed)
    assert inside == pytest.approx(np.log(1.5) - 1.0, abs=1e-14)
    assert inside >= np.log(1.5) - 1.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda d: greedy_spanner(d, 0.9), "stretch is 0.9"),
        (lambda d: greedy_spanner(d, 1.1, reach=0.1), "no path"),
        (lambda d: greedy_spanner(np.zeros((3, 3)), 1.1), "coincide"),
        (lambda d: geo_limits(d, 0.0), "epsilon is 0"),
        (lambda d: geo_limits(np.where(d > 0, 1e-12, 0.0), 1.0), "Merge them"),
        (lambda d: set_limits(4, [], 1.0), "no sets"),
        (lambda d: set_limits(4, [[0, 0]], 1.0), "set 0"),
        (lambda d: set_limits(4, [[0, 1]], [1.0, 2.0]), "1 sets need 1"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call(np.asarray(grid(2, 2, 0).distances))
