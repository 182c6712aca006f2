"""Privacy levels: brute force over exact fractions, infinities, every pair of a set, tables."""

from __future__ import annotations

from fractions import Fraction

import flint
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.exact_levels import ExactRows, exact_geo_level, exact_set_level, log_up
from jaxpriv.channels.exponential import exponential_channel, exponential_mechanism, score_sensitivity
from jaxpriv.channels.geometry import check_metric
from jaxpriv.channels.level_bounds import map_bound, refined_pair_bounds, union_bound
from jaxpriv.channels.levels import geo_level, pair_levels, set_level
from jaxpriv.channels.permutations import permute_and_flip
from jaxpriv.channels.table import IntegerTable
from jaxpriv.errors import InputError


def _brute(channel_or_table):
    """The exact log-ratios of all (x, y, z) as balls of 200 bits, by loops over exact fractions."""
    if isinstance(channel_or_table, IntegerTable):
        rows = [[Fraction(int(w)) for w in row] for row in channel_or_table.weights]
    else:
        rows = [[Fraction(float(p)) for p in row] for row in np.exp(np.asarray(channel_or_table.log_matrix))]
    rows = [[p / sum(row) for p in row] for row in rows]
    with flint.ctx.workprec(200):
        return {
            (x, y, z): flint.arb(flint.fmpq(ratio.numerator, ratio.denominator)).log()
            for x in range(len(rows))
            for y in range(len(rows))
            for z in range(len(rows[0]))
            if x != y and (ratio := rows[x][z] / rows[y][z])
        }


@pytest.mark.parametrize("kind", ["matrix", "table"])
def test_levels_bound_the_exact_ones_and_touch_them(random_map, rng, kind):
    prior = random_map(5)
    channel = Channel.from_log_weights(rng.normal(size=(5, 4)) * 3.0)
    subject = channel if kind == "matrix" else IntegerTable.from_channel(channel, 20)
    rows, logs = ExactRows.of(subject), _brute(subject)
    members = np.array([1, 0, 1, 1, 0], dtype=bool)
    inside = max(float(v) for (x, y, _), v in logs.items() if members[x] and members[y])
    level = exact_set_level(rows, members)
    with flint.ctx.workprec(200):
        assert all(level.value >= v for (x, y, _), v in logs.items() if members[x] and members[y])
    assert level.value == pytest.approx(inside, rel=1e-15)
    assert level.pair is not None
    assert float(logs[(*level.pair, level.output)]) == pytest.approx(inside, rel=1e-15)
    d = prior.distances
    slope = exact_geo_level(rows, d)
    with flint.ctx.workprec(200):
        for (x, y, _), v in logs.items():
            away = [flint.arb(float(a)) - flint.arb(float(b)) for a, b in zip(*prior.locations[[x, y]], strict=True)]
            assert slope.value * (away[0] ** 2 + away[1] ** 2).sqrt() >= v
    steepest = max(float(v) / d[x, y] for (x, y, _), v in logs.items())
    assert slope.value == pytest.approx(steepest, rel=4e-15)


def test_logarithms_are_rounded_up():
    with flint.ctx.workprec(300):
        for value in (Fraction(3, 2), Fraction(1, 7), Fraction(10**40 + 1, 10**40), Fraction(2**900)):
            exact = flint.arb(flint.fmpq(value.numerator, value.denominator)).log()
            assert log_up(value) >= exact
            assert np.nextafter(np.nextafter(log_up(value), -np.inf), -np.inf) <= exact


def test_a_zero_beside_a_positive_entry_is_infinite_and_two_zeros_are_nothing(line):
    prior = line([0.0, 1.0, 2.0])
    channel = Channel.from_matrix(np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.5, 0.25, 0.25]]))
    rows = ExactRows.of(channel)
    pair, everyone = np.array([1, 1, 0], dtype=bool), np.ones(3, dtype=bool)
    assert exact_set_level(rows, pair).value == pytest.approx(np.log(2.0))
    assert exact_set_level(rows, everyone).value == np.inf and exact_set_level(rows, everyone).output == 2
    assert exact_geo_level(rows, prior.distances).value == np.inf
    assert float(set_level(channel, pair)) == pytest.approx(np.log(2.0))
    assert float(set_level(channel, everyone)) == np.inf
    assert float(geo_level(channel, prior.distances)) == np.inf
    assert not np.any(np.isnan(pair_levels(channel)))


def test_coincident_places_need_the_same_law():
    d = np.array([[0.0, 0.0], [0.0, 0.0]])
    assert exact_geo_level(ExactRows.of(Channel.from_matrix(np.array([[0.5, 0.5], [0.4, 0.6]]))), d).value == np.inf
    assert exact_geo_level(ExactRows.of(Channel.from_matrix(np.full((2, 2), 0.5))), d).value == 0.0


def test_a_constant_channel_has_level_zero(random_map):
    rows = ExactRows.of(Channel.constant(np.array([0.3, 0.7]), 40))
    assert exact_geo_level(rows, random_map(40).distances).value == 0.0
    assert exact_set_level(rows, np.ones(40, dtype=bool)).value == 0.0


def test_many_ties_are_still_bounded(random_map):
    """Where more entries tie than are compared exactly, the answer is above the truth by the error of logarithms."""
    d = np.abs(np.arange(60.0)[:, None] - np.arange(60.0)[None, :])
    steps = np.concatenate([np.arange(40), np.arange(60)])
    channel = exponential_channel(np.abs(np.arange(60.0)[:, None] - steps[None, :]), 0.5)
    level = exact_geo_level(ExactRows.of(channel), d)
    assert float(geo_level(channel, d)) <= level.value <= float(geo_level(channel, d)) + 1e-11


def test_probabilities_below_the_range_are_not_taken_for_zeros():
    channel = Channel.from_log_weights(np.array([[0.0, -800.0], [0.0, -790.0]]))
    with pytest.raises(InputError, match="IntegerTable"):
        ExactRows.of(channel)
    table = ExactRows.of(IntegerTable.from_channel(channel, bits=1000))
    # Both tiny entries are rounded up to one unit: the table's level is its own, finite and not the channel's ten.
    assert exact_set_level(table, np.ones(2, dtype=bool)).value <= 1e-12


def test_every_pair_of_a_set_counts(line):
    """A set can pass for each of its members' pairs with the secret and fail for a pair of the others."""
    prior = line([0.0, 6.0, 9.0, 10.0])
    rates = 1.0 / (2.0 * np.array([6.0, 3.0, 3.0, 10.0]))
    sets = [[0, 1], [1, 2], [1, 2], [0, 1, 2, 3]]
    channel = exponential_channel(prior.distances, rates)
    pairs = np.asarray(pair_levels(channel))
    star = max(max(pairs[x, y], pairs[y, x]) for x, members in enumerate(sets) for y in members)
    clique = max(float(set_level(channel, np.isin(np.arange(4), members))) for members in sets)
    assert star == pytest.approx(0.9897353447, abs=1e-10)
    assert clique == pytest.approx(1.5627020263, abs=1e-10)


def test_slope_of_the_exponential_mechanism_is_twice_its_rate_at_most(line):
    prior = line([0.0, 4.0, 5.0])
    channel = exponential_mechanism(prior.distances, 1.0, 4.0)
    slope = float(geo_level(channel, prior.distances))
    assert slope == pytest.approx(0.1625622985, abs=1e-10) and 0.125 < slope <= 0.25
    # The factor two is tight: one place and many at distance one from it and next to each other.
    for count, share in ((10, 0.9063), (1000, 0.99896)):
        d = np.ones((count + 1, count + 1)) - np.eye(count + 1)
        d[1:, 1:] = 0.0
        near = exponential_channel(d, 0.5)
        # The printed shares have four and five digits, of 2 · rate · d = 1.
        assert float(set_level(near, np.arange(count + 1) < 2)) == pytest.approx(share, abs=6e-5)


def test_sensitivity_is_the_diameter_only_for_distances_to_outputs_that_contain_the_set(line, rng):
    places = rng.uniform(size=(5, 2))
    near = np.hypot(*(places[:, None] - places[None]).T).T
    everyone = np.ones(5, dtype=bool)
    assert float(score_sensitivity(-near, everyone)) == pytest.approx(near.max())
    assert float(score_sensitivity(-near, np.arange(5) == 2)) == 0.0
    squared = line([0.0, 1.0, 10.0]).distances ** 2
    pair = np.array([1, 1, 0], dtype=bool)
    # Scores −d² with rate 1/(2·1), the diameter of {0, 1}: the real level is not 1 but 9.5.
    assert float(set_level(exponential_channel(squared, 0.5), pair)) == pytest.approx(9.5, abs=1e-3)
    assert float(score_sensitivity(-squared, pair)) == pytest.approx(19.0)


def test_a_union_of_sets_with_different_budgets(line):
    """The cross-set term alone is below the real level of a union; the maximum with the budgets is not."""
    prior = line([0.0, 1.0, 2.0, 4.0, 7.0])
    rates = np.array([1 / 14, 0.05 / 6, 1 / 14, 0.05 / 6, 1 / 14])
    channel = exponential_channel(prior.distances, rates)
    real = float(set_level(channel, np.ones(5, dtype=bool)))
    epsilons, diameters = np.array([1.0, 0.05]), np.array([7.0, 3.0])
    cross = 0.5 * 7.0 * float(np.sum(epsilons / diameters))
    assert cross == pytest.approx(0.5583333333) and real == pytest.approx(0.5988565986, abs=1e-10)
    assert real <= float(union_bound(epsilons, diameters, 7.0)) == 1.0
    far = np.concatenate([[0.0], 1.0 + 0.001 * np.arange(100) / 99, [0.5, 1.0005]])
    d = np.abs(far[:, None] - far[None, :])
    rates = np.concatenate([np.full(101, 1.0 / (2 * 1.001)), np.full(2, 0.01 / (2 * 0.5005))])
    real = float(set_level(exponential_channel(d, rates), np.ones(103, dtype=bool)))
    assert real == pytest.approx(0.98451, abs=1e-5)


def test_bounds_are_in_order(random_map, rng):
    for _ in range(5):
        prior = random_map(6)
        epsilons, diameters = rng.uniform(0.1, 2.0, size=6), rng.uniform(1.0, 5.0, size=6)
        rates = epsilons / (2 * diameters)
        channel = exponential_channel(prior.distances, rates)
        refined = np.asarray(refined_pair_bounds(prior.distances, rates))
        assert np.all(np.asarray(pair_levels(channel)) <= refined + 1e-13)
        assert refined.max() <= float(map_bound(epsilons, diameters, prior.distances.max())) + 1e-13


def test_permute_and_flip_has_the_same_level_and_loses_less(random_map):
    prior = random_map(6)
    d, diameter = prior.distances, float(prior.distances.max())
    flipped, plain = permute_and_flip(d, 1.0 / (2 * diameter)), exponential_channel(d, 1.0 / (2 * diameter))
    assert float(set_level(flipped, np.ones(6, dtype=bool))) <= 1.0
    assert np.all((np.asarray(flipped.matrix) * d).sum(1) <= (np.asarray(plain.matrix) * d).sum(1) + 1e-14)


def test_permute_and_flip_by_its_definition(rng):
    """By enumeration of the orders in which four outputs are visited."""
    import itertools

    d = rng.uniform(size=(1, 4))
    d[0, 2] = 0.0
    q = np.exp(-1.7 * d[0])
    law = np.zeros(4)
    for order in itertools.permutations(range(4)):
        left = 1.0 / 24.0
        for z in order:
            law[z] += left * q[z]
            left *= 1.0 - q[z]
    np.testing.assert_allclose(np.asarray(permute_and_flip(d, 1.7).matrix)[0], law, rtol=1e-12)


def test_derivatives_of_levels(random_map, rng):
    prior = random_map(5)
    start, direction = rng.normal(size=(5, 5)), rng.normal(size=(5, 5))
    members = np.array([1, 1, 0, 1, 0], dtype=bool)

    @jax.jit
    def total(weights):
        channel = Channel.from_log_weights(weights)
        return set_level(channel, members) + geo_level(channel, prior.distances)

    slope = float(jnp.vdot(jax.jit(jax.grad(total))(jnp.asarray(start)), direction))
    difference = float(total(start + 1e-6 * direction) - total(start - 1e-6 * direction)) / 2e-6
    assert slope == pytest.approx(difference, rel=1e-6)
    mapped = jax.vmap(lambda inside: set_level(Channel.from_log_weights(start), inside))(
        np.eye(5, dtype=bool) | members
    )
    looped = [set_level(Channel.from_log_weights(start), inside) for inside in np.eye(5, dtype=bool) | members]
    np.testing.assert_allclose(mapped, looped, rtol=1e-14)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.zeros((2, 3)), "expected \\(n, n\\)"),
        (np.array([[0.0, -1.0], [-1.0, 0.0]]), "negative"),
        (np.array([[1.0, 1.0], [1.0, 0.0]]), "to itself"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), "not symmetric"),
        (np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [3.0, 1.0, 0.0]]), "d\\(0, 2\\) exceeds d\\(0, 1\\)"),
    ],
)
def test_matrices_that_are_no_metric(matrix, words):
    with pytest.raises(InputError, match=words):
        check_metric(matrix)
