"""The plain sentences: known texts, and numbers on the safe side."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import norm

from jaxpriv.jobs.odds import odds_record
from jaxpriv.report.plain import best_guess, bet, bet_sentence, in_cases, place_sentence


def test_known_sentences():
    assert place_sentence((2500.0, 2500.0), (489.9, 489.9)) == (
        "Before the release, someone who knows your habits could place you to within ±2500 m east and north; after it, "
        "to no better than ±489 m east and north (68 % in each direction)."
    )
    assert place_sentence((300.0, 210.0), (99.99, 80.0)).endswith(
        "within ±300 m east and ±210 m north; after it, to no better than ±99.9 m east and ±80 m north (68 % in each "
        "direction)."
    )
    assert place_sentence((12.0,), (3.456,), ("heart rate",), "bpm") == (
        "Before the release, someone who knows your habits could know the value to within ±12 bpm; after it, to no "
        "better than ±3.45 bpm (68 %)."
    )
    assert bet_sentence(200.0, 17.2, 0.01) == (
        "If they suspected two places 200 m apart equally, after seeing the release they would bet at most 18 : 1 on "
        "either, except in 1 of 100 cases."
    )
    assert "two values 5 apart equally" in bet_sentence(5.0, 2.0, 0.01, "")
    assert "no useful limit" in bet_sentence(200.0, None, 0.01)
    assert bet(1e7) == "no useful limit"


@pytest.mark.parametrize(
    ("delta", "words"),
    [(0.01, "1 of 100 cases"), (0.5, "1 of 2 cases"), (1e-6, "1 of 1000000 cases"), (0.03, "3 % of cases"),
     (0.9, "90 % of cases")],
)  # fmt: skip
def test_probabilities_are_said_in_cases(delta, words):
    assert in_cases(delta) == words


@given(st.floats(1.0, 9e5), st.floats(0.1, 1e5))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_bets_are_rounded_up_and_what_is_left_down(factor, left):
    assert float(bet(factor).removesuffix(" : 1")) >= factor
    said = place_sentence((2 * left,), (left,), ("x",), "").partition("no better than ±")[2].split()[0]
    assert float(said) <= left


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0])
def test_bets_hold_as_often_as_they_say(epsilon):
    """Of Gaussian log-odds at most the stated share is beyond the bet, on either side."""
    order, delta = 2.0, 0.01
    factor = odds_record(epsilon, order, delta).exact_factor
    said = math.log(float(bet(factor).removesuffix(" : 1")))
    mu = math.sqrt(2 * epsilon / order)
    # Under either of two places the log-odds are normal with mean ±μ²/2 and variance μ².
    exceeding = norm.sf(said, mu**2 / 2, mu) + norm.cdf(-said, mu**2 / 2, mu)
    assert exceeding <= delta
    # The best guess between two equally likely places is the sign of the log-odds.
    assert float(best_guess(epsilon, order)) / 100 >= norm.sf(0.0, mu**2 / 2, mu)
