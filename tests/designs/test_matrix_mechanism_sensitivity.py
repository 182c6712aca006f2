"""Participations and the verified bounds of the matrix mechanism, by brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from jaxpriv.designs.matrix_mechanism import sensitivity as module
from jaxpriv.designs.matrix_mechanism.bounds import lower_bound, structured_lower_bound, total_error_upper
from jaxpriv.designs.matrix_mechanism.participations import Participations
from jaxpriv.designs.matrix_mechanism.sensitivity import sensitivity
from jaxpriv.errors import InputError


CASES = [(1, 1), (2, 1), (2, 3), (3, 2), (3, 4), (9, 2), (4, 9)]


def brute_sets(size, count, separation, exact=False):
    every = [
        set(one)
        for length in range(1, count + 1)
        for one in itertools.combinations(range(size), length)
        if all((b - a == separation) if exact else (b - a >= separation) for a, b in itertools.pairwise(one))
    ]
    return {tuple(sorted(one)) for one in every if not any(one < other for other in every)}


@pytest.mark.parametrize(("count", "separation"), CASES)
def test_sets_are_all_the_largest_ones(count, separation):
    for size in (1, 4, 7):
        sharing = Participations(count, separation)
        found = sharing.sets(size)
        assert len(found) == len(set(found)) and set(found) == brute_sets(size, count, separation)
        assert max(map(len, found)) == sharing.most(size)
        exact = Participations(count, separation, "exact").sets(size)
        assert len(exact) == len(set(exact)) and set(exact) == brute_sets(size, count, separation, exact=True)


def brute_sensitivity(strategy, count, separation):
    size = strategy.shape[1]
    return max(
        np.linalg.norm(strategy[:, list(steps)] @ np.array(signs))
        for steps in brute_sets(size, count, separation)
        for signs in itertools.product((1.0, -1.0), repeat=len(steps))
    )


@pytest.mark.parametrize(("count", "separation"), CASES)
def test_sensitivity_is_that_of_all_signs_and_sets(rng, count, separation):
    strategy = rng.standard_normal((6, 7))
    bounds = sensitivity(strategy, Participations(count, separation))
    exact = brute_sensitivity(strategy, count, separation)
    assert exact <= bounds.scalar <= exact * (1 + 1e-12)
    assert bounds.vector >= bounds.scalar
    changes = Participations(count, separation).changes(7)
    listed = sensitivity(strategy, changes=changes)
    assert exact * (1 - 1e-15) <= listed.scalar <= exact * (1 + 1e-12)


def test_vectors_never_move_the_answers_further_than_claimed(rng):
    strategy = rng.standard_normal((5, 6))
    sharing = Participations(3, 1)
    bound = sensitivity(strategy, sharing).vector
    for steps in sharing.sets(6):
        vectors = rng.standard_normal((50, len(steps), 4))
        vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
        moved = np.einsum("ri,bid->brd", strategy[:, list(steps)], vectors)
        assert np.max(np.linalg.norm(moved, axis=(1, 2))) <= bound


def test_too_many_sets_fall_back_to_a_bound_that_is_exact_for_banded_strategies(rng, monkeypatch):
    monkeypatch.setattr(module, "MOST_SETS", 1)
    strategy = rng.standard_normal((7, 7))
    lag = np.subtract.outer(np.arange(7), np.arange(7))
    banded = np.where((lag >= 0) & (lag < 3), strategy, 0.0)
    exact = brute_sensitivity(banded, 2, 3)
    assert exact <= sensitivity(banded, Participations(2, 3)).scalar <= exact * (1 + 1e-12)
    assert sensitivity(strategy, Participations(3, 2)).scalar >= brute_sensitivity(strategy, 3, 2)


def test_lower_bound_holds_for_any_trial_and_is_tight_at_the_optimum(rng):
    # For A = I and one contribution the identity is optimal: total error n.
    for trial in (*rng.standard_normal((20, 4, 4)), np.diag([1.0, 0, 0, 0])):
        assert lower_bound(np.eye(4), trial, None, 1.0) <= 4.0
    # Rounded down by 1e-12 for the sums.
    assert lower_bound(np.eye(4), np.eye(4), None, 1.0) == pytest.approx(4.0, rel=1e-11)
    assert lower_bound(np.eye(4), np.eye(4), None, 2.0) == pytest.approx(1.0, rel=1e-11)


def test_structured_bound_holds_for_any_trial(rng):
    # Diagonal strategies for prefix sums: each column of the workload is answered on its own, 3 + 2 + 1.
    free = np.eye(3, dtype=bool)
    for trial in rng.standard_normal((20, 3, 3)):
        assert structured_lower_bound(np.tri(3), trial, free, 1.0) <= 6.0
    assert structured_lower_bound(np.tri(3), np.tri(3).T, free, 1.0) == pytest.approx(6.0, rel=1e-11)


def test_total_error_is_rounded_up(rng):
    left, right = rng.standard_normal((2, 5, 5))
    exact = np.sum((left.astype(np.longdouble) @ right.astype(np.longdouble)) ** 2)
    assert exact <= total_error_upper(left, right) <= exact * (1 + 1e-12)


@pytest.mark.parametrize("arguments", [(0, 1), (1, 0), (1.5, 1), (True, 1), (1, 1, "some")])
def test_participations_that_are_refused(arguments):
    with pytest.raises(InputError):
        Participations(*arguments)


def test_too_many_changes_are_refused_with_a_way_out():
    with pytest.raises(InputError, match="banded"):
        Participations(4, 128).changes(512)
    with pytest.raises(InputError, match="banded"):
        Participations(16, 1, "exact").changes(64)
    assert Participations(4, 128).number_of_sets(512) == sum(math.comb(512 - 127 * (j - 1), j) for j in range(1, 5))
