"""What a protection set can promise: E, its exact worst case E*, their windows, and the order of the places."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.exponential import exponential_channel
from jaxpriv.channels.hilbert import checked_order, hilbert_order, hilbert_values
from jaxpriv.channels.inference import conditional_error, narrowed_error
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.set_errors import robust_set_error, set_error, worst_error_margin, worst_set_error
from jaxpriv.channels.windows import relative_margin, scan_windows, tight_margins, window_epsilons
from jaxpriv.errors import InputError


def _mask(prior, members):
    return np.isin(np.arange(prior.size), members)


def _worst_by_program(prior, members, epsilon, guesses):
    """min over g and r in [1, e^ε] of Σ π r d/Σ π r by Charnes and Cooper's linear program for each guess."""
    pi = np.asarray(prior.probabilities)[members]
    best = math.inf
    for guess in guesses:
        d = np.hypot(*(np.asarray(prior.locations)[members] - guess).T)
        k = len(members)
        # Variables s = r t and t, with Σ π s = 1 and t ≤ s ≤ e^ε t.
        upper = np.concatenate(
            [np.c_[np.eye(k), np.full(k, -math.exp(epsilon))], np.c_[-np.eye(k), np.ones(k)]], axis=0
        )
        solved = optimize.linprog(
            np.append(pi * d, 0.0), A_ub=upper, b_ub=np.zeros(2 * k), A_eq=[np.append(pi, 0.0)], b_eq=[1.0]
        )
        best = min(best, solved.fun)
    return best


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_worst_error_is_the_value_of_a_linear_program(random_map, rng, epsilon):
    prior = random_map(7)
    members = np.sort(rng.choice(7, size=5, replace=False))
    for guesses in (None, rng.uniform(size=(4, 2)) * 10):
        places = np.asarray(prior.locations) if guesses is None else guesses
        ours = float(worst_set_error(prior, _mask(prior, members), epsilon, guesses))
        assert ours == pytest.approx(_worst_by_program(prior, members, epsilon, places), rel=1e-9)
        assert math.exp(-epsilon) * float(set_error(prior, _mask(prior, members), guesses)) <= ours
        assert ours <= float(set_error(prior, _mask(prior, members), guesses))


def test_worst_error_is_attained_by_a_channel_of_two_outputs(random_map):
    """f(z|x) = c r(x), c small, and the rest on another output: ε-DP in the limit, conditional error exactly E*."""
    prior, epsilon = random_map(6), 1.0
    everyone = np.ones(6, dtype=bool)
    exact = float(worst_set_error(prior, everyone, epsilon))
    pi, d = np.asarray(prior.probabilities), prior.distances
    ratios = []
    for row in d:
        for k in range(1, 7):
            r = np.where(np.isin(np.arange(6), np.argsort(row)[:k]), math.e, 1.0)
            ratios.append((pi @ (r * row) / (pi @ r), r))
    value, r = min(ratios, key=lambda item: item[0])
    assert value == pytest.approx(exact, rel=1e-13)
    channel = Channel.from_matrix(np.stack([0.01 * r, 1.0 - 0.01 * r], axis=1))
    assert float(jnp.min(conditional_error(channel, prior))) == pytest.approx(exact, rel=1e-12)


def test_margin_has_the_sign_of_the_condition(random_map, rng):
    for _ in range(5):
        prior = random_map(6)
        mask = rng.uniform(size=6) < 0.7
        mask[:2] = True
        exact = float(worst_set_error(prior, mask, 0.8))
        for share in (0.99, 1.01):
            margin = float(worst_error_margin(prior, mask, 0.8, share * exact))
            weights = np.where(mask, prior.probabilities, 0.0)
            assert (margin >= 0.0) == (share < 1.0)
            assert (relative_margin(weights, prior.distances, 0.8, share * exact) >= 0.0) == (share < 1.0)


def test_prior_error_is_not_monotone_in_the_set():
    prior = DiscretePrior(np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.0]]), np.array([0.1, 0.1, 0.8]))
    assert float(set_error(prior, _mask(prior, [0, 1]))) == pytest.approx(1.0)
    assert float(set_error(prior, _mask(prior, [0, 1, 2]))) == pytest.approx(0.2)
    assert float(set_error(prior, _mask(prior, [1]))) == 0.0


def test_merging_disjoint_sets_keeps_the_smaller_promise(random_map, rng):
    for _ in range(40):
        prior = random_map(7, 0.5)
        labels = rng.integers(0, 3, size=7)
        first, second = labels == 0, labels == 1
        if not (first.any() and second.any()):
            continue
        for epsilon in (0.0, 1.0):
            parts = [float(worst_set_error(prior, mask, epsilon)) for mask in (first, second)]
            assert float(worst_set_error(prior, first | second, epsilon)) >= min(parts) - 1e-13


def test_guesses_away_from_the_places(line):
    """With guesses elsewhere a single place has a positive error, above what the heaviest point allows."""
    prior = line([0.0, 3.0])
    assert float(set_error(prior, _mask(prior, [0]), np.array([[5.0, 0.0]]))) == 5.0


def test_a_triangle_promises_less_to_an_adversary_at_its_centre():
    corners = DiscretePrior(np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]]), np.full(3, 1 / 3))
    everyone = np.ones(3, dtype=bool)
    promised = math.exp(-0.1) * float(set_error(corners, everyone))
    assert promised == pytest.approx(0.60322, abs=5e-6)
    plane = math.exp(-0.1) * float(set_error(corners, everyone, "plane"))
    assert plane == pytest.approx(math.exp(-0.1) / np.sqrt(3), rel=1e-7)
    assert plane <= float(worst_set_error(corners, everyone, 0.1, "plane")) <= 1 / np.sqrt(3)
    assert float(worst_set_error(corners, everyone, 0.1, "half")) <= 1 / np.sqrt(3)


def test_a_wrong_prior_within_a_factor(eight, known, rng):
    """E*(Φ, ε + 2β) bounds the error of every adversary whose belief is within factors e^±β; plain E* does not."""
    labels = np.empty(8, dtype=int)
    for number, members in enumerate(known["partition"]):
        labels[members] = number
    diameters = np.array([prior_diameter(eight, members) for members in known["partition"]])
    channel = exponential_channel(eight.distances, 1.0 / (2.0 * diameters[labels]))
    for beta, found in ((0.5, 1.3713), (1.0, 0.6802), (2.0, 0.1079)):
        bound = min(float(robust_set_error(eight, _mask(eight, m), 1.0, beta)) for m in known["partition"])
        assert bound <= found
        for _ in range(20):
            belief = eight.probabilities * np.exp(beta * rng.uniform(-1, 1, size=8))
            least = float(jnp.min(conditional_error(channel, eight, None, belief / belief.sum())))
            assert least >= bound


def prior_diameter(prior, members):
    return float(prior.distances[np.ix_(members, members)].max())


def test_derivatives_and_batches(random_map):
    prior = random_map(6)
    masks = np.array([[1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 1, 1]], dtype=bool)
    slope = jax.jit(jax.grad(lambda e: worst_set_error(prior, masks[1], e)))(1.0)
    difference = (
        float(worst_set_error(prior, masks[1], 1.0 + 1e-6)) - float(worst_set_error(prior, masks[1], 1.0 - 1e-6))
    ) / 2e-6
    assert float(slope) == pytest.approx(difference, rel=1e-6)
    mapped = jax.vmap(lambda mask: worst_set_error(prior, mask, 1.0))(masks)
    np.testing.assert_allclose(mapped, [worst_set_error(prior, mask, 1.0) for mask in masks], rtol=1e-14)
    error = jax.jit(jax.grad(lambda p: set_error(DiscretePrior(prior.locations, p), masks[0])))
    gradient = error(jnp.asarray(prior.probabilities))
    assert np.all(np.isfinite(gradient)) and np.all(np.asarray(gradient)[3:] == 0.0)
    empty = DiscretePrior(np.asarray(prior.locations)[:3], np.array([1.0, 0.0, 0.0]))
    assert float(set_error(empty, np.array([False, True, True]))) == np.inf
    assert np.isfinite(jax.grad(lambda e: worst_set_error(empty, np.array([True, True, True]), e))(1.0))


def test_windows_are_the_sets_they_stand_for(random_map, rng):
    prior = random_map(9)
    order = rng.permutation(9)
    budgets = rng.uniform(0.5, 2.0, size=9)
    windows = scan_windows(prior, order, prior.distances, 6)
    epsilons = window_epsilons(budgets, order, 6)
    margins = tight_margins(prior, order, prior.distances, epsilons, 1.2)
    for start in range(9):
        for index in range(6):
            if start + index >= 9:
                assert not windows.inside[start, index] and margins[start, index] == -np.inf
                continue
            members = windows.members(start, index + 1)
            np.testing.assert_array_equal(members, order[start : start + index + 1])
            assert windows.errors[start, index] == pytest.approx(
                float(set_error(prior, _mask(prior, members))), rel=1e-12, abs=1e-14
            )
            assert windows.diameters[start, index] == prior_diameter(prior, members)
            assert epsilons[start, index] == budgets[members].min()
            exact = float(worst_set_error(prior, _mask(prior, members), epsilons[start, index]))
            assert (margins[start, index] >= 0.0) == (exact >= 1.2)


def test_windows_of_tiny_mass_do_not_cancel(line):
    """Differences of running sums would give 0.66674, or 0/0 at 1e-18; sums from each start do not."""
    for tiny in (1e-12, 1e-18):
        prior = line([0.0, 50.0, 51.0, 52.0], [1.0 - 3 * tiny, tiny, tiny, tiny])
        windows = scan_windows(prior, np.arange(4), prior.distances)
        assert windows.errors[1, 2] == pytest.approx(2 / 3, rel=1e-14)
    nothing = scan_windows(line([0.0, 1.0, 2.0], [1.0, 0.0, 0.0]), np.arange(3), np.eye(3))
    assert nothing.errors[1, 1] == np.inf


def _recursive_curve(order):
    """The Hilbert curve by its construction from four smaller ones: visits of a 2^order grid, independent code."""
    if order == 0:
        return [(0, 0)]
    side = 2 ** (order - 1)
    before = _recursive_curve(order - 1)
    first = [(y, x) for x, y in before]
    second = [(x, y + side) for x, y in before]
    third = [(x + side, y + side) for x, y in before]
    fourth = [(2 * side - 1 - y, side - 1 - x) for x, y in before]
    return first + second + third + fourth


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_hilbert_curve(order):
    visits = np.array(_recursive_curve(order))
    np.testing.assert_array_equal(hilbert_values(visits, order), np.arange(4**order))
    assert np.all(np.abs(np.diff(visits, axis=0)).sum(axis=1) == 1)
    assert tuple(visits[0]) == (0, 0) and tuple(visits[-1]) == (2**order - 1, 0)


def test_hilbert_visits_of_order_two():
    expected = ["00", "10", "11", "01", "02", "03", "13", "12", "22", "23", "33", "32", "31", "21", "20", "30"]
    values = hilbert_values(np.array([[int(c) for c in cell] for cell in expected]), 2)
    np.testing.assert_array_equal(values, np.arange(16))


def test_hilbert_order_of_coordinates(rng):
    places = rng.uniform(size=(50, 2))
    order = hilbert_order(places)
    np.testing.assert_array_equal(order, hilbert_order(places * 1000.0 + 17.0))
    np.testing.assert_array_equal(hilbert_order(np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])), [0, 1, 2])
    corner = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    # A quarter turn of the curve: it now starts in another corner.
    assert {int(hilbert_order(corner, 1, rotation=turn)[0]) for turn in range(4)} == {0, 1, 2, 3}
    np.testing.assert_array_equal(hilbert_order(np.zeros((3, 2))), [0, 1, 2])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: hilbert_values(np.array([[0, 2]]), 1), "outside the grid"),
        (lambda: hilbert_values(np.array([[0.5, 1.0]]), 1), "whole numbers"),
        (lambda: hilbert_values(np.array([[0, 1]]), 0), "order"),
        (lambda: hilbert_order(np.array([[0.0, np.nan]])), "not finite"),
        (lambda: hilbert_order(np.array([[0.0, 9.0]]), 3, (0.0, 0.0, 8.0)), "location 0 lies outside"),
        (lambda: hilbert_order(np.array([[0.0, 1.0]]), 3, (0.0, 0.0, 0.0)), "no extent"),
        (lambda: hilbert_order(np.array([[0.0, 1.0]]), rotation=4), "rotation"),
        (lambda: checked_order(np.array([0, 0]), np.zeros((2, 2))), "permutation"),
    ],
)
def test_curves_that_are_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_narrowed_error_keeps_the_lemma(eight, known):
    """ε-DP on a set with ratio e^ε keeps e^-ε E: the step from levels to errors, on all sets of the known design."""
    channel = exponential_channel(eight.distances, 1.0 / (2 * 7.280109889280518))
    for members in known["sets"]:
        mask = _mask(eight, members)
        assert float(jnp.min(narrowed_error(channel, eight, mask))) >= math.exp(-1.0) * float(set_error(eight, mask))
