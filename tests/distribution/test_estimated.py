"""Levels from counts: the intervals cover, and no distribution within them is told apart by more than is said."""

import numpy as np
import pytest
from scipy import optimize, stats

from jaxpriv.distribution.coupling import coupling_mechanism
from jaxpriv.distribution.estimated import _most, confidence_intervals, estimated_level
from jaxpriv.errors import InputError


CELLS = np.abs(np.arange(5.0)[:, None] - np.arange(5.0))


def test_intervals_are_those_of_the_binomial():
    lower, upper = confidence_intervals([[30, 70]], 0.9)
    # Two cells, two sides: an error of 0.025 each.
    expected = stats.binomtest(30, 100).proportion_ci(0.95, method="exact")
    assert lower[0, 0] == pytest.approx(expected.low, rel=1e-8) and upper[0, 0] == pytest.approx(
        expected.high, rel=1e-8
    )
    lower, upper = confidence_intervals([[0, 10]])
    assert lower[0, 0] == 0.0 and upper[0, 1] == 1.0


def test_extremes_against_linear_programs():
    rng = np.random.default_rng(0)
    for _ in range(20):
        low = rng.uniform(0, 0.15, size=5)
        high = low + rng.uniform(0.1, 0.5, size=5)
        matrix = rng.dirichlet(np.ones(3), size=5)
        found = _most(low, high, matrix)
        for column in range(3):
            solved = optimize.linprog(
                -matrix[:, column], A_eq=np.ones((1, 5)), b_eq=[1.0], bounds=np.stack([low, high], axis=1)
            )
            assert found[column] == pytest.approx(-solved.fun, abs=1e-12)


def test_truths_within_the_intervals_stay_within_the_level():
    rng = np.random.default_rng(3)
    true = rng.dirichlet(np.full(5, 3.0), size=2)
    held = 0
    for _ in range(100):
        counts = np.stack([rng.multinomial(2000, law) for law in true])
        known = (counts + 1) / (counts + 1).sum(axis=1, keepdims=True)
        mechanism = coupling_mechanism(known, known.mean(axis=0), CELLS)
        level = estimated_level(mechanism, counts, 0.9)
        if np.all((level.lower <= true) & (true <= level.upper)):
            held += 1
            outputs = mechanism.outputs(true)
            assert np.max(np.abs(np.log(outputs[0] / outputs[1]))) <= level.epsilon
            assert 0.5 * np.sum(np.abs(outputs[0] - outputs[1])) <= level.total_variation
    # At least 90 expected; five standard deviations below is 75.
    assert held >= 75


def test_more_data_say_less():
    law = np.array([[0.3, 0.2, 0.2, 0.2, 0.1], [0.1, 0.2, 0.2, 0.2, 0.3]])
    mechanism = coupling_mechanism(law, law.mean(axis=0), CELLS)
    levels = [estimated_level(mechanism, size * law).epsilon for size in (1_000, 10_000, 1_000_000)]
    assert levels[0] > levels[1] > levels[2] and levels[2] < 0.02


def test_wrong_counts():
    mechanism = coupling_mechanism(np.full((2, 5), 0.2), np.full(5, 0.2), CELLS)
    for wrong, message in (
        (np.ones((2, 4)), "shape"),
        (np.full((2, 5), 0.5), "whole"),
        (np.array([[1, 1, 1, 1, 1], [0, 0, 0, 0, 0]]), "group 1 has no observation"),
        (np.full((2, 5), -1), "negative"),
    ):
        with pytest.raises(InputError, match=message):
            estimated_level(mechanism, wrong)
    with pytest.raises(InputError, match="confidence"):
        confidence_intervals([[1, 2]], 1.0)
