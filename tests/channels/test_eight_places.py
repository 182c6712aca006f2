"""The map of eight places: every known answer of PIVE and of the two repairs, to the digits printed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jaxpriv.channels.channel_audit import audit, audit_channel, audit_union
from jaxpriv.channels.exponential import exponential_channel
from jaxpriv.channels.hilbert import hilbert_order, hilbert_values
from jaxpriv.channels.inference import prior_error
from jaxpriv.channels.level_bounds import refined_pair_bounds
from jaxpriv.channels.partitions import piece_cost
from jaxpriv.channels.personalized import personalized_mechanism
from jaxpriv.channels.published_pive import pive
from jaxpriv.channels.sensitivity import uniform_mechanism
from jaxpriv.channels.set_errors import set_error, worst_set_error
from jaxpriv.channels.table import IntegerTable


TIGHT = 1e-12  # float64 sums of eight terms; the answers are printed with sixteen digits


@pytest.fixture(scope="module")
def designs(eight, eight_order):
    return {
        "pive": pive(eight, 1.0, 0.2, order=eight_order, reach=8),
        "uniform": uniform_mechanism(eight, 1.0, 0.2, order=eight_order, reach=8),
        "personalized": personalized_mechanism(eight, 1.0, 0.2, order=eight_order, condition="paper"),
    }


def _mask(members):
    return np.isin(np.arange(8), members)


def test_order(eight, known):
    np.testing.assert_array_equal(hilbert_values(np.array(known["locations"]), 3), known["hilbert_values"])
    np.testing.assert_array_equal(hilbert_order(eight.locations, 3, (0.0, 0.0, 8.0)), known["order"])


def test_map(eight, known):
    assert eight.distances.max() == pytest.approx(known["map_diameter"], rel=TIGHT)
    assert float(prior_error(eight)) == pytest.approx(known["prior_error"], rel=TIGHT)
    for members, value in known["set_errors"]:
        assert float(set_error(eight, _mask(members))) == pytest.approx(value, rel=TIGHT)
    for members, value in known["worst_set_errors"]:
        # Two are printed with sixteen digits, one with ten.
        assert float(worst_set_error(eight, _mask(members), 1.0)) == pytest.approx(value, rel=2e-10)


def test_protection_sets(designs, known):
    assert [np.flatnonzero(row).tolist() for row in designs["pive"].sets] == known["sets"]
    np.testing.assert_allclose(designs["pive"].diameters, known["diameters"], rtol=TIGHT)
    assert designs["pive"].broken and not designs["uniform"].broken


def test_partition(designs, known):
    sets = sorted(np.flatnonzero(row).tolist() for row in designs["personalized"].sets)
    assert sets == sorted(known["partition"])
    row = np.asarray(designs["personalized"].channel.matrix)[0]
    np.testing.assert_allclose(row, known["personalized_row_0"], atol=6e-11)  # the first is printed with ten digits


@pytest.mark.parametrize("name", ["pive", "uniform", "personalized"])
def test_every_entry_of_the_table(designs, known, name):
    report = audit(designs[name])
    for quantity, value in known[name].items():
        found = getattr(report, quantity)
        assert getattr(found, "value", found) == pytest.approx(value, rel=TIGHT), quantity


def test_what_the_audits_say(designs):
    words = "\n".join(audit(designs["pive"]).sentences())
    assert "The claimed level fails on" in words and "1 is claimed and 1.94972 is real on locations 1, 2" in words
    assert "The claimed least error fails: 0.2 is claimed" in words
    good = audit(designs["personalized"])
    assert "fails" not in "\n".join(good.sentences())
    assert good.certified_error is not None and 0.2 <= good.certified_error <= good.least_conditional_error
    assert audit(designs["uniform"]).certified_error is None
    assert all(part.holds for part in good.sets)


def test_audit_of_what_is_released(designs):
    """The table's levels are its own: close to the design's, certified, and the report says which it is."""
    design = designs["personalized"]
    report = audit(design, IntegerTable.from_channel(design.channel))
    assert report.arithmetic == "the exact integer table"
    assert report.real_level == pytest.approx(0.596697951198474, rel=1e-12)
    coarse = audit(design, IntegerTable.from_channel(design.channel, 8))
    assert coarse.real_level != pytest.approx(0.596697951198474, rel=1e-4)


def test_audit_against_other_adversaries(designs, eight):
    design = designs["personalized"]
    plane = audit(design, guesses="plane")
    assert plane.guess_set == "guesses anywhere in the plane" and plane.least_conditional_error < 2.1357
    assert plane.certified_error is not None and plane.certified_error <= plane.least_conditional_error
    sure = np.full(8, 0.01 / 7)
    sure[0] = 0.99
    other = audit(design, adversary_prior=sure)
    assert "another prior" in other.prior
    # A belief of 0.99 in one place leaves next to nothing, whatever the design promised under its own prior.
    assert other.least_conditional_error < 0.2
    assert any("below 0.2" in line for line in other.sentences())


def test_quality_loss_with_a_larger_error(eight, eight_order, known):
    for condition, value in known["quality_loss_at_quarter"].items():
        design = personalized_mechanism(eight, 1.0, 0.25, order=eight_order, condition=condition)
        assert audit(design).quality_loss == pytest.approx(value, rel=5e-11)


def test_budgets_of_sets(eight, known):
    labels = np.empty(8, dtype=int)
    for number, members in enumerate(known["partition"]):
        labels[members] = number
    answers = known["budgets"]
    design = personalized_mechanism(eight, np.array(answers["epsilons"]), 0.2, labels=labels)
    report = audit(design)
    np.testing.assert_allclose([part.level.value for part in report.sets], answers["levels"], rtol=2e-10)
    assert report.quality_loss == pytest.approx(answers["quality_loss"], rel=TIGHT)
    assert report.expected_error == pytest.approx(answers["expected_error"], rel=TIGHT)
    level, bound = audit_union(design, 0, 1)
    refined = np.asarray(refined_pair_bounds(eight.distances, design.rates))
    across = max(refined[x, y] for x in known["partition"][0] for y in known["partition"][1])
    np.testing.assert_allclose([level.value, across, bound], answers["union_0_1"], rtol=2e-9)


def test_best_partition_among_all(eight, eight_order, known):
    """All 128 contiguous partitions by brute force, and all set partitions: feasibility, counts and the best loss."""
    threshold, pi, d = np.exp(1.0) * 0.2, eight.probabilities, eight.distances

    def value(pieces):
        cost = 0.0
        for members in pieces:
            mask = _mask(members)
            if len(members) < 2 or np.min(d @ (pi * mask)) / pi[mask].sum() < threshold:
                return None
            cost += piece_cost(pi[mask], d[mask], 1.0 / (2.0 * d[np.ix_(mask, mask)].max()))
        return cost

    runs = []
    for cuts in itertools.product([False, True], repeat=7):
        ends = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), 8]
        runs.append(value([eight_order[a:b].tolist() for a, b in itertools.pairwise(ends)]))
    feasible = [cost for cost in runs if cost is not None]
    assert len(feasible) == known["feasible_contiguous_partitions"]
    assert min(feasible) == pytest.approx(known["personalized"]["quality_loss"], rel=TIGHT)
    costs = [cost for pieces in _set_partitions(list(range(8))) if (cost := value(pieces)) is not None]
    best = known["best_set_partition"]
    assert len(costs) == best["count"] and min(costs) == pytest.approx(best["quality_loss"], rel=TIGHT)
    labelled = personalized_mechanism(eight, 1.0, 0.2, labels=np.array(best["labels"]), condition="paper")
    assert audit(labelled).quality_loss == pytest.approx(best["quality_loss"], rel=TIGHT)


def _set_partitions(items):
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for pieces in _set_partitions(rest):
        yield [[first], *pieces]
        for k in range(len(pieces)):
            yield [*pieces[:k], [first, *pieces[k]], *pieces[k + 1 :]]


@pytest.mark.parametrize("row", range(4))
def test_pive_breaks_on_a_line(line, known, row):
    """Three places 0, g, g + 1: the closed form of the real level, and an error below the promised 0.15 from g = 16."""
    gap, level, error = known["pive_on_a_line"][row]
    design = pive(line([0.0, gap, gap + 1.0]), 1.0, 0.15, order=np.arange(3))
    assert [np.flatnonzero(m).tolist() for m in design.sets] == [[0, 1], [1, 2], [1, 2]]
    report = audit(design)
    one, two, three = np.exp(-gap / 2), np.exp(-0.5), np.exp(-(gap + 1) / (2 * gap))
    closed = gap / 2 + np.log((1 + one + two) / (1 + two + three))
    assert report.real_level == pytest.approx(closed, rel=1e-13) and report.real_level == pytest.approx(
        level, rel=TIGHT
    )
    # Printed with eight or more significant digits.
    assert report.least_narrowed_error == pytest.approx(error, rel=1e-8)
    assert (report.least_narrowed_error < 0.15) == (gap >= 16)
    if gap == 4:
        np.testing.assert_allclose(design.channel.matrix, known["pive_on_a_line_rows"], atol=5e-11)


def test_audit_of_a_plain_channel(eight):
    report = audit_channel(exponential_channel(eight.distances, 0.3), eight)
    assert report.sets == () and report.real_level == report.map_level.value
    assert report.least_narrowed_error == report.least_conditional_error
    assert report.sentences()
