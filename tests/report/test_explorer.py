"""The explorer as a page: complete without a script, closed to the outside, and the same values in both."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.jobs.odds import odds_record
from jaxpriv.report.explorer import MAX_SECRETS, explorer_html
from jaxpriv.report.page.document import data_block
from jaxpriv.report.page.exploration import Exploration, Rung
from jaxpriv.report.record import IndependentRecord


EPSILONS = (0.1, 0.3, 1.0, 3.0)
IDS = (
    "prior", "simulated", "result", "explore", "secrets", "ladder", "method", "limits", "control", "epsilon",
    "epsilon-now", "epsilon-marks", "epsilon-help", "safer", "exact", "words", "fact-moved", "fact-odds", "fact-left",
    "fact-independent", "explorer-map", "example-path", "profile-figure", "profile-path", "independent-level",
    "trade-figure", "trade-mark", "secrets-table", "ladder-table", "explorer-data", "secret-1-after", "secret-1-bar",
    "believed-1",
)  # fmt: skip
HOSTILE = "</script><script>alert(1)</script><!-- \u2028 \u2029 ]]> & \" ' \u202e"


def _rung(page, epsilon, label=None):
    """What a release would say at an ε: noise that falls as its square root grows."""
    report, details = page
    size = 400 / math.sqrt(epsilon)
    odds = odds_record(epsilon, report.order, 0.01)
    secrets = tuple(
        dataclasses.replace(
            secret,
            label=label or secret.label,
            epsilon=epsilon,
            odds_factor=odds.exact_factor,
            after_m=(2500 / math.sqrt(1 + 9 * epsilon) - i, 2400 / math.sqrt(1 + 9 * epsilon)),
        )
        for i, secret in enumerate(details.secrets)
    )
    moved = details.true_m + size * (details.released_m - details.true_m) / 400
    return Rung(
        dataclasses.replace(
            report,
            epsilon=epsilon,
            epsilon_asked=epsilon,
            odds=odds,
            rms_noise_m=size,
            rms_lower_bound_m=0.9 * size,
            largest_noise_m=3 * size,
            independent=IndependentRecord(5 * size, 40.0, 1e9),
        ),
        dataclasses.replace(details, secrets=secrets, released_m=moved),
        np.full(len(details.time_us), size),
    )


@pytest.fixture(scope="module")
def found(page):
    rungs = tuple(_rung(page, epsilon) for epsilon in EPSILONS)
    return Exploration(rungs, 2, ("Left out: ε = 0.01, too small.",), ("A limit.",))


@pytest.fixture(scope="module")
def parsed(parse, found):
    return parse(explorer_html(found))


@pytest.fixture(scope="module")
def data(parsed):
    return json.loads(parsed.by_id("explorer-data")[2])


def test_it_is_complete_closed_and_accessible(parsed):
    parsed.assert_closed()
    parsed.assert_without_addresses()
    parsed.assert_accessible()
    assert set(IDS) <= set(parsed.ids)
    assert "SIMULATED" in parsed.by_id("simulated")[2]
    assert "not a release" in parsed.by_id("explore")[2]
    assert "Private" in parsed.text
    assert parsed.by_id("words")[1]["role"] == "status"
    assert "Left out: ε = 0.01" in parsed.by_id("warnings")[2]


def test_without_a_script_it_shows_the_start_and_hides_the_slider(parsed, data):
    assert "hidden" in parsed.by_id("control")[1]
    assert parsed.find("noscript")
    assert data["start"] == 2
    for identity, values in data["texts"].items():
        assert parsed.by_id(identity)[2] == values[2], identity
    for identity, changing in data["attributes"].items():
        for name, values in changing.items():
            assert parsed.by_id(identity)[1][name.lower()] == values[2], (identity, name)


def test_every_position_of_the_slider_has_its_value(parsed, data):
    slider = parsed.by_id("epsilon")[1]
    assert (slider["min"], slider["max"], slider["step"], slider["value"]) == ("0", "3", "1", "2")
    changing = [*data["texts"].values(), data["spoken"]]
    changing += [values for one in data["attributes"].values() for values in one.values()]
    assert {len(values) for values in changing} == {len(EPSILONS)}
    assert "nan" not in json.dumps(data).lower()
    for epsilon, said in zip(EPSILONS, data["spoken"], strict=True):
        assert said.startswith(f"ε = {epsilon:g}:")


def _number(text):
    return float(re.search(r"\d+(\.\d+)?", text)[0])


def test_noise_falls_and_odds_rise_along_the_ladder(parsed, data):
    columns = [list(column) for column in zip(*parsed.rows("ladder-table"), strict=True)]
    assert [float(value) for value in columns[0]] == list(EPSILONS)
    moved, least, independent, odds, guess, left = ([_number(text) for text in column] for column in columns[1:])
    for falling in (moved, least, independent, left):
        assert np.all(np.diff(falling) < 0)
    for rising in (odds, guess):
        assert np.all(np.diff(rising) > 0)
    # The slider says the same as the table.
    assert [_number(text) for text in data["texts"]["fact-moved"]] == moved
    assert [_number(text) for text in data["texts"]["fact-odds"]] == odds
    assert [_number(text) for text in data["texts"]["fact-left"]] == left
    assert [_number(text) for text in data["texts"]["fact-independent"]] == independent
    bars = [float(width) for width in data["attributes"]["secret-1-bar"]["width"]]
    np.testing.assert_allclose(np.array(bars) / bars[0], _left_of(data["texts"]["secret-1-after"]), rtol=0.02)


def _left_of(texts):
    """The smaller half-width of each text, relative to the first."""
    values = [min(float(number) for number in re.findall(r"±([\d.]+)", text)) for text in texts]
    return [value / values[0] for value in values]


def test_drawings_follow_the_numbers(found, data):
    heights = [float(value) for value in data["attributes"]["trade-mark"]["cy"]]
    sizes = [math.log10(rung.report.rms_noise_m) for rung in found.rungs]
    # Up the page is more, on a logarithmic scale; coordinates are written to a hundredth.
    slope = np.diff(heights) / np.diff(sizes)
    np.testing.assert_allclose(slope, slope[0], rtol=1e-2)
    assert slope[0] < 0
    radii = [float(value) for value in data["attributes"]["believed-1"]["rx"]]
    after = [rung.details.secrets[0].after_m[0] for rung in found.rungs]
    np.testing.assert_allclose(np.array(radii) / radii[0], np.array(after) / after[0], rtol=1e-2)
    assert len(set(data["attributes"]["example-path"]["d"])) == len(EPSILONS)


def test_texts_of_the_caller_cannot_leave_their_place(parse, page):
    rungs = tuple(_rung(page, epsilon, HOSTILE) for epsilon in EPSILONS)
    source = explorer_html(Exploration(rungs, 0, (HOSTILE,), (HOSTILE,)))
    parsed = parse(source)
    parsed.assert_closed()
    assert len(parsed.find("script")) == 2
    assert HOSTILE in parsed.by_id("secrets")[2]
    assert HOSTILE in parsed.by_id("limits")[2]


def test_a_block_of_data_holds_any_text():
    content = {HOSTILE: [HOSTILE, 1.5, None]}
    written = data_block("x", content)
    inside = written.partition(">")[2].rpartition("</script>")[0]
    assert json.loads(inside) == content
    assert not set("<>&\u2028\u2029") & set(inside)
    with pytest.raises(ValueError, match="JSON compliant"):
        data_block("x", math.nan)


def test_of_many_secrets_the_worst_are_followed(parse, page):
    report, details = page
    many = tuple(
        dataclasses.replace(details.secrets[0], label=f"secret number {i}", epsilon=0.01 * (i + 1)) for i in range(30)
    )
    details = dataclasses.replace(details, secrets=many, epsilons=np.full((30, len(details.prior_labels)), 0.3))
    rung = Rung(dataclasses.replace(report, epsilon_asked=1.0), details, np.ones(len(details.time_us)))
    parsed = parse(explorer_html(Exploration((rung,), 0, (), ())))
    rows = [row[0] for row in parsed.rows("secrets-table")]
    assert rows == [f"{i + 1}. secret number {i}" for i in range(30 - MAX_SECRETS, 30)]
    assert "The 12 of 30 secrets" in parsed.by_id("secrets")[2]


def test_what_was_known_before_is_that_of_each_epsilon(parse, found):
    """The prior that leaves least afterwards may be another one at another ε, and so may what it knew before."""
    last = found.rungs[-1]
    secrets = tuple(dataclasses.replace(one, before_m=(700.0, 700.0)) for one in last.details.secrets)
    changed = dataclasses.replace(last, details=dataclasses.replace(last.details, secrets=secrets))
    parsed = parse(explorer_html(dataclasses.replace(found, rungs=(*found.rungs[:-1], changed))))
    data = json.loads(parsed.by_id("explorer-data")[2])
    assert [_number(text) for text in data["texts"]["secret-1-before"]] == [2500, 2500, 2500, 700]
    bars = [float(width) for width in data["attributes"]["secret-1-before-bar"]["width"]]
    assert bars[-1] / bars[0] == pytest.approx(700 / 2500, rel=1e-3)


def test_a_series_has_its_own_unit_and_no_map(parse, page):
    report, details = page
    secrets = tuple(dataclasses.replace(one, before_m=(9.0,), after_m=(4.0,)) for one in details.secrets)
    one = {name: getattr(details, name)[:, :1] for name in ("true_m", "released_m", "believed_m", "halfwidth_m")}
    details = dataclasses.replace(
        details, **one, secrets=secrets, worst_priors=details.worst_priors[:1], covariances=details.covariances[:1],
        axes=("heart rate",), unit="bpm",
    )  # fmt: skip
    report = dataclasses.replace(report, unit="bpm", epsilon_asked=1.0)
    rung = Rung(report, details, np.ones(len(details.time_us)))
    parsed = parse(explorer_html(Exploration((rung,), 0, (), ())))
    assert "explorer-map" not in parsed.ids
    assert parsed.by_id("fact-left")[2] == "±4 bpm"
    assert " m " not in parsed.by_id("words")[2]


def test_what_does_not_fit_is_refused(found):
    first, second = found.rungs[:2]
    for rungs, start in (((), 0), ((first,), 1), ((second, first), 0), ((first, first), 0)):
        with pytest.raises(InputError, match="epsilon"):
            Exploration(rungs, start, (), ())
    with pytest.raises(InputError, match="one trace"):
        Exploration((first, dataclasses.replace(second, spread=np.ones(3))), 0, (), ())
