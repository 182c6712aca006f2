"""What the page says of each secret, in plain words and in figures."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest

from jaxpriv.report.html import report_html


@pytest.fixture(scope="module")
def parsed(parse, page):
    return parse(report_html(*page))


def test_losses_are_rounded_up_and_the_worst_is_marked(parsed, page):
    _, details = page
    (table,) = parsed.find("table", id="loss-table")
    start = parsed.elements.index(table)
    rows = [item[2] for item in parsed.elements[start:] if item[0] == "tr"][1 : 1 + len(details.secrets)]
    for row, values, secret in zip(rows, details.epsilons, details.secrets, strict=True):
        shown = [float(text) for text in re.findall(r"\d\.\d{3}", row)]
        assert secret.label in row
        for text, value in zip(shown, values, strict=True):
            assert 0 <= text - value < 1e-3
        assert row.count("▲") == 1
        assert float(re.search(r"▲ (\d\.\d+)", row)[1]) == max(shown)


def test_many_priors_are_rows_and_infinite_losses_are_words(parse, page):
    report, details = page
    epsilons = np.tile(details.epsilons, (1, 8))
    epsilons[1, 5] = math.inf
    labels = tuple(f"prior number {i}" for i in range(24))
    details = dataclasses.replace(details, epsilons=epsilons, prior_labels=labels, worst_priors=labels[:2])
    parsed = parse(report_html(report, details))
    rows = [item[2] for item in parsed.find("tr") if item[2].startswith("prior number")]
    assert len(rows) == 24
    assert "▲ unlimited" in rows[5]


@pytest.mark.parametrize(("epsilon", "percent"), [(0.1, 57), (0.25, 60), (0.5, 64), (1, 70), (2, 77), (4, 85)])
def test_best_guess_agrees_with_the_documentation(parse, page, epsilon, percent):
    # The table of docs/claims.md, whose column was computed apart from this code.
    report, details = page
    secrets = tuple(dataclasses.replace(secret, epsilon=float(epsilon)) for secret in details.secrets)
    text = parse(report_html(report, dataclasses.replace(details, secrets=secrets))).text
    assert set(re.findall(r"right at most (\d+) % of the time", text)) == {str(percent)}


def test_certain_attackers_are_not_called_uncertain(parse, page):
    report, details = page
    secrets = (dataclasses.replace(details.secrets[0], epsilon=math.inf, odds_factor=None), *details.secrets[1:])
    text = parse(report_html(report, dataclasses.replace(details, secrets=secrets))).text
    assert "right at most 100 % of the time" in text
    assert "more than a million (no useful limit)" in text
    assert "ε = unlimited nats" in text


def test_places_between_fixes_and_secrets_of_many_fixes(parse, page):
    report, details = page
    first, _, third = details.secrets
    between = dataclasses.replace(
        first, indices=(), first_us=first.first_us + 60 * 10**6, last_us=first.first_us + 60 * 10**6
    )
    span = tuple(range(third.indices[0] - 4, third.indices[0] + 5))
    many = dataclasses.replace(
        third, indices=span, first_us=int(details.time_us[span[0]]), last_us=int(details.time_us[span[-1]])
    )
    details = dataclasses.replace(details, secrets=(between, details.secrets[1], many))
    parsed = parse(report_html(report, details))
    articles = [item[2] for item in parsed.find("article")]
    assert "a place between two fixes" in articles[0]
    assert "9 fixes together" in articles[2]
    place = details.place(between, details.true_m)
    low, high = sorted([details.true_m[first.indices[0]].tolist(), details.true_m[first.indices[0] + 1].tolist()])
    assert low[0] - 1e-9 <= place[0] <= high[0] + 1e-9
