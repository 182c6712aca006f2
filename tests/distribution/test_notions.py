"""Levels of channels, lifted relations and the composition rules, with the counterexamples that bound them."""

import itertools
import math

import numpy as np
import pytest

from jaxpriv.channels.channel import Channel
from jaxpriv.distribution.composition import Guarantee, composed, lifted, post_processed, pre_processed
from jaxpriv.distribution.notions import distribution_level, point_level
from jaxpriv.distribution.relations import (
    check_relation,
    diameter,
    from_pairs,
    is_lifted,
    is_lifted_optimally,
    missing_mass,
    within,
)
from jaxpriv.distribution.transport import optimal_coupling, wasserstein
from jaxpriv.errors import InputError


LINE = np.abs(np.arange(5.0)[:, None] - np.arange(5.0))
LEFT, RIGHT = np.array([0.4, 0.3, 0.2, 0.1, 0.0]), np.array([0.1, 0.2, 0.3, 0.2, 0.2])
DIVERGENCES = {
    "kl": lambda p, q: float(np.sum(p * np.log(p / q))),
    "max": lambda p, q: float(np.max(np.log(p / q))),
    "total_variation": lambda p, q: 0.5 * float(np.sum(np.abs(p - q))),
    "hellinger": lambda p, q: 1.0 - float(np.sum(np.sqrt(p * q))),
    "chi_squared": lambda p, q: float(np.sum(p**2 / q)) - 1.0,
}


def geometric(scale=0.5):
    weights = np.exp(-scale * LINE)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("name", "actual", "transported", "bound"),
    [
        ("kl", 0.0867361044, 0.1714994114, 0.2716900100),
        ("total_variation", 0.1790347246, 0.1790347246, 0.2909847688),
        ("chi_squared", 0.1793955988, 0.3924392313, 0.9224472246),
        ("hellinger", 0.0217570590, 0.0420033376, 0.0634596655),
    ],
)
def test_extended_privacy_of_distributions_known_answers(name, actual, transported, bound):
    # Ten printed digits each: the divergence of the outputs, the transport bound, and ε W_1.
    channel = Channel.from_matrix(geometric())
    found = distribution_level(channel, [(LEFT, RIGHT)], name, both_orders=False)
    assert found.epsilon == pytest.approx(actual, abs=1e-10)
    matrix = geometric()
    cost = np.array([[DIVERGENCES[name](a, b) for b in matrix] for a in matrix])
    assert optimal_coupling(LEFT, RIGHT, np.maximum(cost, 0.0)).cost == pytest.approx(transported, abs=1e-9)
    everywhere = np.ones((5, 5), bool)
    epsilon = point_level(channel, everywhere, name, distance=LINE).epsilon
    assert epsilon * wasserstein(LEFT, RIGHT, LINE) == pytest.approx(bound, abs=1e-9)


def test_max_divergence_needs_the_largest_distance():
    channel = Channel.from_matrix(geometric())
    assert wasserstein(LEFT, RIGHT, LINE) == pytest.approx(1.2, abs=1e-14)
    level = distribution_level(channel, [(LEFT, RIGHT)], both_orders=False)
    assert level.epsilon == pytest.approx(0.5779409172, abs=1e-10)
    epsilon = point_level(channel, np.ones((5, 5), bool), distance=LINE).epsilon
    assert epsilon * 2.0 == pytest.approx(1.3679412315, abs=1e-10)
    # Relative to W_1 the statement is false.
    e = math.e**2
    response = Channel.from_matrix(np.array([[e, 1.0], [1.0, e]]) / (e + 1.0))
    outputs = distribution_level(response, [(np.array([0.9, 0.1]), np.array([1.0, 0.0]))])
    assert outputs.epsilon == pytest.approx(0.4940287080, abs=1e-10)
    assert outputs.epsilon > 2.0 * wasserstein([0.9, 0.1], [1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]])


def test_auxiliary_inputs_and_the_extended_notion():
    rng = np.random.default_rng(1)
    channels = [Channel.from_matrix(rng.dirichlet(np.ones(4), size=3)) for _ in range(2)]
    p, q = rng.dirichlet(np.ones(3), size=2)
    found = distribution_level(channels, [((0, p), (1, q))], "kl", both_orders=False)
    first, second = p @ np.asarray(channels[0].matrix), q @ np.asarray(channels[1].matrix)
    assert found.epsilon == pytest.approx(DIVERGENCES["kl"](first, second), rel=1e-12)
    with pytest.raises(InputError, match="auxiliary"):
        distribution_level(channels, [((0, p), (2, q))])
    same = Channel.from_matrix(np.array([[1.0, 0.0], [0.0, 1.0]]))
    apart = distribution_level(same, [(p[:2] / p[:2].sum(), q[:2] / q[:2].sum())], "kl", distance=lambda a, b: 0.0)
    assert apart.epsilon == np.inf
    with pytest.raises(InputError, match="no pair"):
        distribution_level(same, [])


def test_levels_against_direct_evaluation():
    rng = np.random.default_rng(5)
    matrix = rng.dirichlet(np.ones(4), size=3)
    relation = from_pairs([(0, 1), (1, 2)], 3)
    for name, function in DIVERGENCES.items():
        expected = max(function(matrix[a], matrix[b]) for a, b in ((0, 1), (1, 0), (1, 2), (2, 1)))
        found = point_level(Channel.from_matrix(matrix), relation, name)
        assert found.epsilon == pytest.approx(expected, abs=1e-13)
        if name == "max":
            assert found.epsilon >= expected
    zero = point_level(Channel.from_matrix([[0.5, 0.5], [1.0, 0.0]]), np.ones((2, 2), bool))
    assert zero.epsilon == np.inf
    delta = point_level(Channel.from_matrix([[0.5, 0.5], [1.0, 0.0]]), np.ones((2, 2), bool), delta=0.5)
    assert delta.epsilon == pytest.approx(math.log(0.5 / 0.5), abs=1e-14)


def test_liftings_are_exact():
    relation = from_pairs([(0, 1), (1, 2)], 3)
    assert is_lifted([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], relation)
    assert not is_lifted([1.0, 0.0, 0.0], [0.0, 0.0, 1.0], relation)
    assert missing_mass([0.75, 0.25, 0.0], [0.0, 0.25, 0.75], relation) == pytest.approx(0.5)
    # Without the diagonal hardly any pair would be lifted; it is added.
    swap = np.array([[False, True], [True, False]])
    assert is_lifted([0.5, 0.5], [0.625, 0.375], swap)
    one = np.ones((3, 3)) - np.eye(3)
    assert is_lifted([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], from_pairs([(0, 1), (1, 2)], 3, symmetric=False))
    assert not is_lifted_optimally(
        [0.5, 0.5, 0.0], [0.0, 0.5, 0.5], from_pairs([(0, 1), (1, 2)], 3, symmetric=False), one
    )
    assert is_lifted_optimally([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], np.ones((3, 3), bool), one)
    assert np.array_equal(within(LINE, 1.0), LINE <= 1.0)
    assert diameter([1.0, 0, 0, 0, 0], [0, 0.5, 0, 0, 0.5], LINE) == 4.0


def test_transport_bound_needs_the_optimal_coupling_inside():
    one = np.ones((3, 3)) - np.eye(3)
    bern = np.array([[0.5, 0.5], [0.6, 0.4], [0.7, 0.3]])
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5])
    relation = from_pairs([(0, 1), (1, 2)], 3, symmetric=False)
    channel = Channel.from_matrix(bern)
    epsilon = point_level(channel, relation, "kl", both_orders=False).epsilon
    assert epsilon == pytest.approx(0.0225824, abs=5e-8)
    actual = distribution_level(channel, [(p, q)], "kl", both_orders=False).epsilon
    assert actual == pytest.approx(0.0212117, abs=5e-8)
    assert actual > epsilon * wasserstein(p, q, one)


def test_relations_are_checked():
    for wrong, message in (
        (np.zeros((2, 2), bool), "no pair"),
        (np.ones((2, 3), bool), "shape"),
        (np.full((2, 2), 0.5), "booleans"),
    ):
        with pytest.raises(InputError, match=message):
            check_relation(wrong)
    with pytest.raises(InputError, match="outside"):
        from_pairs([(0, 5)], 3)


@pytest.mark.parametrize("name", DIVERGENCES)
def test_composition_with_the_same_input_holds_on_random_cases(name):
    rng = np.random.default_rng(0)
    tightest = 0.0
    for _ in range(3000):
        first = rng.dirichlet(np.full(2, 2.0), size=2)
        second = rng.dirichlet(np.full(2, 2.0), size=(2, 2))  # (x, y0, y1)
        budget = composed(
            Guarantee(DIVERGENCES[name](*first), name),
            Guarantee(max(DIVERGENCES[name](second[0, y], second[1, y]) for y in (0, 1)), name),
            "same input",
        )
        joint = [(first[x][:, None] * second[x]).ravel() for x in (0, 1)]
        actual = DIVERGENCES[name](*joint)
        assert actual <= budget.epsilon + 1e-12
        tightest = max(tightest, actual / max(budget.epsilon, 1e-12))
    assert tightest > 0.95


@pytest.mark.parametrize("name", DIVERGENCES)
def test_composition_with_independent_inputs_holds_on_random_cases(name):
    rng = np.random.default_rng(1)
    for _ in range(3000):
        channels = rng.dirichlet(np.full(2, 2.0), size=(2, 2))
        laws = [[p @ channels[m] for p in rng.dirichlet(np.ones(2), size=2)] for m in (0, 1)]
        parts = [Guarantee(DIVERGENCES[name](*pair), name, "distributions") for pair in laws]
        budget = composed(parts[0], parts[1], "independent inputs")
        joint = [np.outer(laws[0][k], laws[1][k]).ravel() for k in (0, 1)]
        assert DIVERGENCES[name](*joint) <= budget.epsilon + 1e-12


def test_composition_with_the_same_input_is_refused_for_distributions():
    # Two bits, each through randomised response. Each output hides whether the bits agree.
    inputs = list(itertools.product((0, 1), repeat=2))
    first = np.array([[0.75, 0.25] if a == 0 else [0.25, 0.75] for a, _ in inputs])
    second = np.array([[0.75, 0.25] if b == 0 else [0.25, 0.75] for _, b in inputs])
    agree, differ = np.array([0.5, 0, 0, 0.5]), np.array([0, 0.5, 0.5, 0])
    for one in (first, second):
        level = distribution_level(Channel.from_matrix(one), [(agree, differ)])
        assert level.epsilon == pytest.approx(0.0, abs=1e-13)
    joint = Channel.from_matrix(np.einsum("xa,xb->xab", first, second).reshape(4, 4))
    assert distribution_level(joint, [(agree, differ)], "kl").epsilon == pytest.approx(0.1277064060, abs=1e-10)
    assert distribution_level(joint, [(agree, differ)]).epsilon == pytest.approx(math.log(5 / 3), abs=1e-12)
    part = Guarantee(0.0, "kl", "distributions")
    with pytest.raises(InputError, match="do not compose"):
        composed(part, part, "same input")


def test_preprocessing_in_steps_is_refused_for_kl():
    steps = [np.array([p, 1 - p]) for p in (0.5, 0.6, 0.7)]
    values = [DIVERGENCES["kl"](steps[0], steps[1]), DIVERGENCES["kl"](steps[1], steps[2])]
    assert values == pytest.approx([0.0204109973, 0.0225824211], abs=1e-10)
    assert DIVERGENCES["kl"](steps[0], steps[2]) == pytest.approx(0.0871766936, abs=1e-10)
    assert DIVERGENCES["kl"](steps[0], steps[2]) > 2 * max(values)
    with pytest.raises(InputError, match="triangle"):
        pre_processed(Guarantee(max(values), "kl"), 2, kind="steps")
    rng = np.random.default_rng(3)
    for name in ("max", "total_variation", "hellinger"):
        for _ in range(1000):
            a, b, c = rng.dirichlet(np.ones(3), size=3)
            function = DIVERGENCES[name]
            step = max(function(a, b), function(b, c))
            assert function(a, c) <= pre_processed(Guarantee(step, name), 2, kind="steps").epsilon + 1e-12


def test_lifting_chooses_the_distance():
    assert lifted(Guarantee(1.0, "kl", extended="point distance")).extended == "W1"
    assert lifted(Guarantee(1.0, "max", extended="point distance")).extended == "W_infinity"
    assert lifted(Guarantee(1.0, "max", delta=0.1)).delta == 0.1
    with pytest.raises(InputError, match="δ > 0"):
        lifted(Guarantee(1.0, "max", delta=0.1, extended="point distance"))
    with pytest.raises(InputError, match="already"):
        lifted(Guarantee(1.0, "kl", "distributions"))
    kept = post_processed(lifted(Guarantee(1.0, "kl")))
    assert kept.epsilon == 1.0 and len(kept.because) == 2 and "data processing" in kept.because[-1]


def test_guarantees_are_checked():
    for wrong in (
        {"epsilon": -1.0, "divergence": "kl"},
        {"epsilon": 1.0, "divergence": "jensen"},
        {"epsilon": 1.0, "divergence": "kl", "delta": 0.1},
        {"epsilon": 1.0, "divergence": "renyi"},
        {"epsilon": 1.0, "divergence": "kl", "extended": "W1"},
    ):
        with pytest.raises(InputError):
            Guarantee(**wrong)
    with pytest.raises(InputError, match="differ in divergence"):
        composed(Guarantee(1.0, "kl"), Guarantee(1.0, "max"), "same input")
    with pytest.raises(InputError, match="add up to 1"):
        composed(Guarantee(1.0, "max", delta=0.6), Guarantee(1.0, "max", delta=0.6), "same input")
    with pytest.raises(InputError, match="distance"):
        composed(
            Guarantee(1.0, "kl", "distributions", "W1"),
            Guarantee(1.0, "kl", "distributions", "W1"),
            "independent inputs",
        )
    with pytest.raises(InputError, match="whole"):
        pre_processed(Guarantee(1.0, "max"), 1.5, kind="steps")
    assert pre_processed(Guarantee(1.0, "kl", extended="point distance"), 1.5, kind="distance").epsilon == 1.5
