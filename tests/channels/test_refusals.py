"""What designs and audits refuse, in words that say what to do."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.channel_audit import audit, audit_channel
from jaxpriv.channels.exponential import exponential_mechanism
from jaxpriv.channels.obfuscation import UnattainableError
from jaxpriv.channels.personalized import personalized_mechanism
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.published_pive import pive
from jaxpriv.channels.sensitivity import uniform_mechanism
from jaxpriv.errors import InfeasibleError, InputError


DESIGNS = (pive, uniform_mechanism, personalized_mechanism)


@pytest.mark.parametrize(
    ("locations", "probabilities", "words"),
    [
        ([[0.0, np.nan], [1.0, 0.0]], [0.5, 0.5], "location 0 has a coordinate that is not finite"),
        ([[0.0, 0.0], [1.0, 0.0]], [1.5, -0.5], "probability 1 is negative"),
        ([[0.0, 0.0], [1.0, 0.0]], [0.5, np.inf], "probability 1 is not finite"),
        ([[0.0, 0.0], [1.0, 0.0]], [0.5, 0.4], "sum to 0.9, not to 1"),
        ([[0.0, 0.0], [1.0, 0.0]], [0.5, 0.3, 0.2], "expected \\(2,\\)"),
        ([[0.0, 0.0]], [1.0], "at least two places"),
        ([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], [0.5, 0.5], "expected \\(n, 2\\)"),
    ],
)
def test_maps(locations, probabilities, words):
    with pytest.raises(InputError, match=words):
        DiscretePrior(np.array(locations), np.array(probabilities))


def test_counts():
    places = np.zeros((2, 2))
    with pytest.raises(InputError, match="all counts are zero"):
        DiscretePrior.from_counts(places, np.zeros(2))
    with pytest.raises(InputError, match="non-negative"):
        DiscretePrior.from_counts(places, np.array([1.0, -1.0]))
    with pytest.raises(InputError, match="names for"):
        DiscretePrior.from_counts(places, np.ones(2), names=["one"])
    with pytest.raises(InputError, match="keep at least two"):
        DiscretePrior.from_counts(places, np.ones(2)).top(1)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(
    ("epsilon", "error", "words"),
    [
        (0.0, 0.2, "epsilon is 0.0; expected a positive"),
        (np.inf, 0.2, "epsilon is inf"),
        (np.nan, 0.2, "epsilon is nan"),
        (1.0, -0.1, "least inference error is -0.1"),
        (1.0, np.nan, "least inference error is nan"),
    ],
)
def test_numbers(eight, design, epsilon, error, words):
    with pytest.raises(InputError, match=words):
        design(eight, epsilon, error)


@pytest.mark.parametrize("design", [pive, uniform_mechanism])
def test_an_error_out_of_reach_names_the_place_and_the_largest(eight, eight_order, design):
    with pytest.raises(UnattainableError, match=r"tightest is location 3.*at most 1\.38771") as caught:
        design(eight, 1.0, 2.5, order=eight_order)
    assert isinstance(caught.value, InfeasibleError) and caught.value.location == 3
    design(eight, 1.0, caught.value.largest_error, order=eight_order)


def test_an_error_out_of_reach_of_a_given_set(eight):
    labels = np.array([2, 0, 0, 3, 3, 1, 2, 1])
    with pytest.raises(
        UnattainableError, match=r"set 1 \(location 5 and 1 more\) promises an error of at most 0\.305817"
    ):
        personalized_mechanism(eight, 1.0, 0.4, labels=labels)
    with pytest.raises(UnattainableError, match=r"0\.222969"):
        personalized_mechanism(eight, 1.0, 0.4, labels=labels, condition="paper")
    with pytest.raises(UnattainableError, match="raise longest"):
        personalized_mechanism(eight, 1.0, 1.0, longest=2)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 0, 1, 1], "for each of 8 places"),
        ([0, 0, 0, 0, 2, 2, 2, 2], "set 1 is empty"),
        ([0, 0, 0, 0, -1, 1, 1, 1], "label -1 of place 4"),
        ([0.0] * 8, "whole number"),
        ([0, 0, 0, 0, 0, 0, 0, 1], "set 1 is location 7 alone"),
    ],
)
def test_labels(eight, labels, words):
    with pytest.raises(InputError, match=words):
        personalized_mechanism(eight, 1.0, 0.0, labels=np.array(labels))


def test_coincident_places():
    prior = DiscretePrior(np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 0.0], [4.0, 0.0]]), np.full(4, 0.25))
    with pytest.raises(InputError, match=r"set 0 .* coincide"):
        personalized_mechanism(prior, 1.0, 0.0, labels=np.array([0, 0, 1, 1]))
    # A search passes such sets by, even when no error is asked for.
    design = personalized_mechanism(prior, 1.0, 0.0, order=np.arange(4))
    assert np.all(design.diameters > 0.0)
    assert np.all(pive(prior, 1.0, 0.0, order=np.arange(4)).diameters > 0.0)
    with pytest.raises(UnattainableError, match="coincide"):
        personalized_mechanism(DiscretePrior(np.zeros((3, 2)), np.full(3, 1 / 3)), 1.0, 0.0)


def test_options(eight):
    cases = [
        (lambda: pive(eight, 1.0, 0.2, reach=0), "reach is 0"),
        (lambda: pive(eight, 1.0, 0.2, rotations=5), "rotations is 1 to 4"),
        (lambda: pive(eight, np.ones(8), 0.2), "one epsilon for all"),
        (lambda: pive(eight, 1.0, 0.2, guesses="plane"), 'designs take None, "half"'),
        (lambda: personalized_mechanism(eight, np.ones(3), 0.2), "expected one number or 8"),
        (lambda: personalized_mechanism(eight, np.zeros(8), 0.2), "epsilon number 0 is 0.0"),
        (lambda: personalized_mechanism(eight, 1.0, 0.2, condition="tight"), "condition"),
        (lambda: personalized_mechanism(eight, 1.0, 0.2, search="best"), "search"),
        (lambda: personalized_mechanism(eight, 1.0, 0.2, longest=0), "longest window"),
        (lambda: personalized_mechanism(eight, 1.0, 0.2, labels=np.zeros(8, int), longest=3), "leave out order"),
        (lambda: personalized_mechanism(eight, np.ones(2), 0.2, labels=np.zeros(8, int)), "expected one number or 1"),
        (lambda: personalized_mechanism(eight, 1.0, 0.2, outputs=np.zeros((3, 3))), "outputs have shape"),
        (lambda: personalized_mechanism(eight, 1.0, 0.2, guesses=np.zeros((3, 3))), "guesses have shape"),
        (lambda: exponential_mechanism(eight.distances, 1.0, 0.0), "a set of one place"),
        (lambda: exponential_mechanism(eight.distances, -1.0, 2.0), "epsilon must be positive"),
    ]
    for call, words in cases:
        with pytest.raises(InputError, match=words):
            call()
    with pytest.raises(InputError, match="outside jit"):
        jax.jit(lambda e: pive(eight, e, 0.2).channel.log_matrix)(1.0)


def test_audits(eight):
    channel = Channel.constant(np.full(8, 0.125), 8)
    cases = [
        (lambda: audit_channel(channel, eight, sets=np.ones((2, 7), dtype=bool)), "sets have shape"),
        (lambda: audit_channel(channel, eight, sets=np.zeros((1, 8), dtype=bool)), "set 0 is empty"),
        (lambda: audit_channel(channel, eight, np.ones((1, 8), dtype=bool), np.ones(2)), "2 levels for 1 sets"),
        (lambda: audit_channel(Channel.constant(np.full(3, 1 / 3), 8), eight), "outputs="),
        (lambda: audit_channel(Channel.from_matrix(np.eye(7)), eight), "do not fit|does not fit"),
        (lambda: audit_channel(channel, eight, adversary_prior=np.full(8, 0.1)), "sum to"),
    ]
    for call, words in cases:
        with pytest.raises(InputError, match=words):
            call()


def test_float32_priors_are_taken_for_what_they_are(eight):
    single = DiscretePrior(eight.locations.astype(np.float32), eight.probabilities.astype(np.float32))
    report = audit(personalized_mechanism(single, 1.0, 0.2))
    exact = audit(personalized_mechanism(eight, 1.0, 0.2))
    # Probabilities of 24 bits.
    assert report.quality_loss == pytest.approx(exact.quality_loss, rel=1e-6)
