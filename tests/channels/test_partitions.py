"""Partitions: the best one against brute force, feasibility, the greedy one, and where each claim ends."""

from __future__ import annotations

import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.channel_audit import audit
from jaxpriv.channels.inference import conditional_error, optimal_remap, prior_error, quality_loss
from jaxpriv.channels.obfuscation import UnattainableError
from jaxpriv.channels.partitions import largest_promise, piece_cost, unsplittable
from jaxpriv.channels.personalized import personalized_mechanism
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.published_pive import pive, protection_sets
from jaxpriv.channels.sensitivity import uniform_mechanism
from jaxpriv.channels.set_errors import set_error, worst_set_error


def _runs(order):
    for cuts in itertools.product([False, True], repeat=len(order) - 1):
        ends = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), len(order)]
        yield [order[a:b] for a, b in itertools.pairwise(ends)]


def _best_by_brute_force(prior, order, epsilons, min_error, condition, output_distances=None):
    d = prior.distances
    costs = d if output_distances is None else output_distances
    memo: dict[tuple[int, ...], float] = {}

    def cost(members):
        key = tuple(members)
        if key not in memo:
            epsilon = float(np.min(np.broadcast_to(epsilons, (prior.size,))[members]))
            mask = np.isin(np.arange(prior.size), members)
            diameter = d[np.ix_(members, members)].max()
            if condition == "paper":
                feasible = float(set_error(prior, mask)) >= math.exp(epsilon) * min_error
            else:
                feasible = float(worst_set_error(prior, mask, epsilon)) >= min_error
            memo[key] = (
                piece_cost(prior.probabilities[members], costs[members], epsilon / (2 * diameter))
                if feasible and diameter > 0
                else math.inf
            )
        return memo[key]

    return min(sum(cost(members) for members in pieces) for pieces in _runs(order))


@pytest.mark.parametrize("condition", ["exact", "paper"])
@pytest.mark.parametrize("size", [5, 9])
def test_the_best_partition_is_that_of_brute_force(random_map, rng, condition, size):
    prior, order = random_map(size), rng.permutation(size)
    everything = np.ones(size, dtype=bool)
    error = (
        0.4 * float(worst_set_error(prior, everything, 1.0))
        if condition == "exact"
        else 0.15 * float(set_error(prior, everything))
    )
    design = personalized_mechanism(prior, 1.0, error, order=order, condition=condition)
    best = _best_by_brute_force(prior, order, 1.0, error, condition)
    assert audit(design).quality_loss == pytest.approx(best, rel=1e-12)
    greedy = personalized_mechanism(prior, 1.0, error, order=order, condition=condition, search="greedy")
    assert audit(greedy).quality_loss >= best * (1 - 1e-12)
    assert float(jnp.min(conditional_error(design.channel, prior))) >= error


def test_budgets_of_places_and_other_outputs(random_map, rng):
    """A piece takes the smallest budget of its places; outputs elsewhere change the costs, not the feasible pieces."""
    prior, order = random_map(7), rng.permutation(7)
    budgets, outputs = rng.uniform(0.5, 2.0, size=7), rng.uniform(size=(5, 2)) * 10
    error = 0.3 * float(worst_set_error(prior, np.ones(7, dtype=bool), budgets.min()))
    design = personalized_mechanism(prior, budgets, error, order=order, outputs=outputs)
    costs = np.hypot(*(prior.locations[:, None] - outputs[None]).transpose(2, 0, 1))
    best = _best_by_brute_force(prior, order, budgets, error, "exact", costs)
    report = audit(design)
    assert report.quality_loss == pytest.approx(best, rel=1e-12)
    assert all(part.holds for part in report.sets) and report.certified_error >= error
    for number, members in enumerate(design.sets):
        assert design.epsilons[number] == budgets[members].min()


def test_pieces_that_split_are_never_needed(random_map, rng):
    feasible = rng.uniform(size=(12, 12)) < 0.4
    feasible &= np.arange(12)[:, None] + np.arange(1, 13)[None] <= 12
    for start in range(12):  # closed under merging, as feasible pieces are
        for first, second in itertools.product(range(12), repeat=2):
            if start + first + 1 < 12 and first + second + 1 < 12:
                feasible[start, first + second + 1] |= feasible[start, first] and feasible[start + first + 1, second]
    needed = unsplittable(feasible)
    for start, index in np.argwhere(feasible):
        splits = any(feasible[start, k] and feasible[start + k + 1, index - k - 1] for k in range(index))
        assert needed[start, index] != splits


def test_feasible_exactly_when_the_whole_map_is(random_map, rng):
    """The largest error that is attainable is that of the whole map as one set; both searches find something at it."""
    for condition in ("exact", "paper"):
        prior = random_map(8, 0.5)
        largest = largest_promise(prior, 1.0, None, condition)
        for search in ("optimal", "greedy"):
            design = personalized_mechanism(prior, 1.0, largest, condition=condition, search=search)
            assert audit(design).certified_error >= largest
            with pytest.raises(UnattainableError, match="largest possible") as caught:
                personalized_mechanism(prior, 1.0, largest * 1.001, condition=condition, search=search)
            assert caught.value.largest_error == largest and caught.value.location is None


def test_a_window_may_promise_what_no_partition_does():
    """Places (0,0), (2,0), (1,0) with .1, .1, .8: the window of the first two has error 1, the map only 0.2."""
    prior = DiscretePrior(np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.0]]), np.array([0.1, 0.1, 0.8]))
    assert largest_promise(prior, 1e-3, None, "paper") == pytest.approx(0.2 * math.exp(-1e-3))
    with pytest.raises(UnattainableError, match=r"promises 0\.1998"):
        personalized_mechanism(prior, 1e-3, 0.3, order=np.arange(3), condition="paper")


def test_greedy_merges_back_as_far_as_it_must(line):
    """The leftover, a heavy point, spoils the piece before it; only the whole map is feasible."""
    prior = line([0.0, 1.0, 10.0, 11.0, 11.5], [0.1, 0.1, 0.1, 0.1, 0.6])
    design = personalized_mechanism(prior, 0.1, 0.8, order=np.arange(5), search="greedy", condition="paper")
    assert len(design.sets) == 1
    assert float(set_error(prior, np.arange(5) >= 2)) < math.exp(0.1) * 0.8


def test_the_best_partition_after_a_remap_may_be_another(line):
    prior = line([0.0, 1.0, 3.0, 5.0, 8.0], np.array([3, 1, 2, 7, 1]) / 14)

    def losses(labels):
        channel = personalized_mechanism(prior, 2.0, 0.01, labels=np.array(labels)).channel
        remap = channel.then(Channel.deterministic(np.asarray(optimal_remap(channel, prior)), 5))
        return float(quality_loss(channel, prior)), float(quality_loss(remap, prior))

    np.testing.assert_allclose(losses([0, 0, 0, 1, 1]), [1.6471080098, 1.4471377534], rtol=1e-9)
    np.testing.assert_allclose(losses([0, 0, 1, 1, 1]), [1.6843657616, 1.3103859308], rtol=1e-9)
    found = personalized_mechanism(prior, 2.0, 0.01, order=np.arange(5))
    np.testing.assert_array_equal(found.own_set, [0, 0, 0, 1, 1])


def test_a_narrowed_promise_may_exceed_the_prior_error_and_is_no_plain_promise():
    """The uniform approach is feasible with an error above the prior error; plain conditional errors fall below it."""
    prior = DiscretePrior(np.array([[3.0, 0.0], [4.0, 0.0], [3.0, 7.0]]), np.array([0.4, 0.4, 0.2]))
    assert float(prior_error(prior)) == pytest.approx(1.8)
    design = uniform_mechanism(prior, 0.1, 2.0, order=np.array([0, 2, 1]))
    report = audit(design)
    assert report.least_narrowed_error == pytest.approx(2.2788618324, abs=1e-10)
    errors = np.sort(conditional_error(design.channel, prior))
    np.testing.assert_allclose(errors, [1.7658750, 1.7682082, 1.8677057], atol=6e-8)
    assert "conditions on the secret being in a protection set" in design.promise
    assert any("below 2" in line for line in report.sentences())
    with pytest.raises(UnattainableError):
        personalized_mechanism(prior, 0.1, 2.0)


def test_who_learns_which_overlapping_set_was_used_may_learn_the_place(eight, eight_order):
    """Four of the eight sets of the known map are the set of one place only; pieces of a partition never are."""
    sets = protection_sets(eight, 1.0, 0.2, order=eight_order).members
    users = [int(np.sum(np.all(sets == row, axis=1))) for row in sets]
    assert [x for x, count in enumerate(users) if count == 1] == [1, 2, 3, 6]
    design = personalized_mechanism(eight, 1.0, 0.2, order=eight_order)
    assert all(
        np.array_equal(np.flatnonzero(design.own_set == k), np.flatnonzero(m)) for k, m in enumerate(design.sets)
    )


def test_places_without_prior_mass_are_protected_too(line):
    prior = line([0.0, 1.0, 2.0, 3.0], [0.5, 0.5, 0.0, 0.0])
    design = personalized_mechanism(prior, 1.0, 0.05, order=np.arange(4))
    assert all(part.holds for part in audit(design).sets)
    assert np.all(np.isfinite(design.channel.log_matrix))
    assert audit(design).certified_error >= 0.05


def test_guesses_anywhere_are_paid_for(random_map):
    prior = random_map(8)
    error = 0.4 * largest_promise(prior, 1.0, "half")
    design = personalized_mechanism(prior, 1.0, error, guesses="half")
    assert audit(design, guesses="plane").least_conditional_error >= error
    assert audit(design).quality_loss >= audit(personalized_mechanism(prior, 1.0, error)).quality_loss - 1e-12


def test_turned_curves_never_give_larger_sets(random_map):
    prior = random_map(20)
    plain = protection_sets(prior, 1.0, 0.3)
    turned = protection_sets(prior, 1.0, 0.3, rotations=4)
    assert np.all(turned.diameters <= plain.diameters * (1 + 1e-12))
    assert np.all(turned.members[np.arange(20), np.arange(20)])


def test_protection_sets_are_the_smallest_windows(random_map, rng):
    """Algorithm 1 by its definition: all windows around a place, those with enough error, the least diameter."""
    prior, order, reach = random_map(10), rng.permutation(10), 4
    found = protection_sets(prior, 1.0, 0.3, order=order, reach=reach)
    ranks = np.argsort(order)
    for x in range(10):
        best = math.inf
        for left, right in itertools.product(range(reach + 1), repeat=2):
            begin, end = ranks[x] - left, ranks[x] + right
            if begin < 0 or end > 9 or begin == end:
                continue
            mask = np.isin(np.arange(10), order[begin : end + 1])
            if float(set_error(prior, mask)) >= math.e * 0.3:
                best = min(best, prior.distances[np.ix_(mask, mask)].max())
        assert found.diameters[x] == best and found.members[x, x]
        assert prior.distances[np.ix_(found.members[x], found.members[x])].max() == best


def test_the_order_of_the_designs(random_map):
    """The pattern of the paper's figures: all held to equation 25, PIVE loses least and breaks, uniform loses most."""
    losses, levels = [], []
    for _ in range(2):
        prior = random_map(25, 0.7)
        reports = [audit(pive(prior, 1.0, 0.2)), audit(personalized_mechanism(prior, 1.0, 0.2, condition="paper"))]
        reports.append(audit(uniform_mechanism(prior, 1.0, 0.2)))
        losses.append([report.quality_loss for report in reports])
        levels.append([report.real_level for report in reports])
    means, worst = np.mean(losses, axis=0), np.max(levels, axis=0)
    assert means[0] < means[1] < means[2]
    assert worst[0] > 1.0 and np.all(worst[1:] <= 1.0)
