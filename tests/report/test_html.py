"""The report as a page, read with the standard library's HTML parser: complete, closed to the outside, and true."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from jaxpriv.report.html import report_html


SECTIONS = (
    "secrets", "map", "time", "losses", "cost", "noise", "file", "releases", "limits", "certificate", "parameters",
)  # fmt: skip


@pytest.fixture(scope="module")
def parsed(parse, page):
    return parse(report_html(*page))


def test_nothing_outside_is_addressed_and_nothing_runs(parsed):
    parsed.assert_closed()
    parsed.assert_without_addresses()
    assert not parsed.find("script")


def test_ids_are_unique_and_every_reference_has_its_target(parsed, page):
    _, details = page
    assert len(parsed.ids) == len(set(parsed.ids))
    wanted = {"prior", "simulated", "result", "warnings", *SECTIONS, "loss-table", "cost-table", "parameter-table"}
    wanted |= {"map-figure", "series-figure", "cost-figure", "noise-figure"}
    wanted |= {f"{kind}-{i + 1}" for kind in ("secret", "close-up") for i in range(len(details.secrets))}
    assert wanted <= set(parsed.ids)
    references = [item[1]["href"][1:] for item in parsed.find("a")]
    references += [
        name
        for item in parsed.elements
        for value in item[1].values()
        for name in re.findall(r"url\(#(.*?)\)", value or "")
    ]
    assert len(references) > 10
    assert set(references) <= set(parsed.ids)


def test_the_prior_comes_first_and_the_result_is_one_sentence(parsed, page):
    report, _ = page
    body = next(i for i, item in enumerate(parsed.elements) if item[0] == "body")
    first = next(item for item in parsed.elements[body:] if item[2].strip() and item[0] == "p")
    assert first[1]["id"] == "prior"
    assert report.prior.source in first[2]
    (result,) = parsed.find("h1")
    # The worst ε is 0.887: its exact factor on odds is 14.2, rounded up.
    assert re.search(
        r"3 protected times.* factor of 15, except with a probability of 1 %; .*displaced by 407 m", result[2]
    )
    assert result[2].count(".") == 1
    assert "SIMULATED" in parsed.find("p", id="simulated")[0][2]


def test_every_parameter_is_shown(parsed, page):
    report, _ = page
    content = json.loads(report.to_json())
    rows = {}
    (table,) = parsed.find("table", id="parameter-table")
    start = parsed.elements.index(table)
    cells = [item for item in parsed.elements[start:] if item[0] in ("th", "td")]
    for name, value in zip(cells[::2], cells[1::2], strict=True):
        rows[name[2]] = value[2]

    def check(name, value):
        if isinstance(value, dict):
            for key, part in value.items():
                check(f"{name}.{key}".lstrip("."), part)
        elif isinstance(value, list):
            for i, part in enumerate(value):
                check(f"{name}.{i}", part)
        else:
            while name not in rows:  # values of one list share a row
                name = name.rpartition(".")[0]
                assert name, value
            said = "none" if value is None else ("no", "yes")[value] if isinstance(value, bool) else value
            assert str(said).removesuffix(".0") in rows[name], name

    for name, value in content.items():
        if name in {"format", "format_version"}:
            continue
        if name in {"warnings", "not_claimed", "cleaning", "odd", "guarantee"}:
            for sentence in [value] if isinstance(value, str) else value:
                assert sentence in parsed.text
        else:
            check(name, value)


HOSTILE = "</p><script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x' &amp; \u202e http://203.0.113.1/x"


def test_texts_of_the_caller_are_escaped(parse, page):
    report, details = page
    secrets = tuple(dataclasses.replace(secret, label=HOSTILE) for secret in details.secrets)
    labels = tuple(f"{HOSTILE}{i}" for i in range(len(details.prior_labels)))
    details = dataclasses.replace(details, secrets=secrets, prior_labels=labels, worst_priors=(labels[0], labels[1]))
    report = dataclasses.replace(
        report,
        prior=dataclasses.replace(report.prior, source=HOSTILE, kernel=HOSTILE),
        warnings=(HOSTILE,),
        not_claimed=(HOSTILE,),
        cleaning=(HOSTILE,),
        odd=(HOSTILE,),
        guarantee=HOSTILE,
        jaxpriv_version=HOSTILE,
    )
    source = report_html(report, details)
    parsed = parse(source)
    parsed.assert_closed()
    for item in parsed.find("h3"):
        assert HOSTILE in item[2]
    for identity in ("prior", "warnings", "limits", "certificate", "losses", "parameters", "time", "file"):
        assert any(HOSTILE in item[2] for item in parsed.elements if item[1].get("id") == identity), identity
