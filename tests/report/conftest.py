"""A made-up day with three secrets, its release and its report, small enough for every test."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from jaxpriv.jobs.demo_trace import ORIGIN, demo_day
from jaxpriv.jobs.odds import odds_record
from jaxpriv.report.claims import guarantee, not_claimed
from jaxpriv.report.page.details import ReleaseDetails, SecretDetails, covariance_rows
from jaxpriv.report.record import (
    AxisRecord,
    IndependentRecord,
    PriorRecord,
    ReleasesRecord,
    Report,
    SecretNumbers,
    SecretRecord,
)
from jaxpriv.traces.cleaning import clean
from jaxpriv.traces.csv_format import read_csv
from jaxpriv.traces.instants import format_instant


ORDER, DELTA = 2.0, 0.01
NUGGET_M = 5.0

_VOID = {"meta", "br", "hr", "img", "link", "input", "base", "source"}
_RUNNING_OR_LOADING = {
    "iframe", "frame", "object", "embed", "form", "base", "link", "img", "video", "audio", "source", "use",
    "foreignobject", "animate", "set", "applet", "portal", "template",
}  # fmt: skip


class Page(HTMLParser):
    """Elements in order, as (tag, attributes, text inside), and the text of the whole page."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.source, self.elements, self.open, self.text = source, [], [], ""
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert len(dict(attributes)) == len(attributes), "an attribute was given twice"
        item = [tag, dict(attributes), ""]
        self.elements.append(item)
        if tag not in _VOID:
            self.open.append(item)

    def handle_startendtag(self, tag, attributes):
        assert self.open[-1][0] != "html"
        self.elements.append([tag, dict(attributes), ""])

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if not any(item[0] in ("style", "script") for item in self.open):
            self.text += data
        for item in self.open:
            item[2] += data

    def find(self, tag, **wanted):
        return [item for item in self.elements if item[0] == tag and wanted.items() <= item[1].items()]

    def by_id(self, identity):
        """The one element of that identity."""
        (item,) = [item for item in self.elements if item[1].get("id") == identity]
        return item

    def inside(self, identity):
        """Elements of one figure."""
        start = self.elements.index(self.by_id(identity))
        rest = enumerate(self.elements[start + 1 :], start + 1)
        return self.elements[start : next((i for i, item in rest if item[0] in ("ul", "p", "div", "table")), None)]

    def rows(self, identity):
        """The cells of a table, row by row, without its head."""
        (table,) = self.find("table", id=identity)
        found, inside = [], False
        for item in self.elements[self.elements.index(table) + 1 :]:
            if item[0] == "table":
                break
            inside = inside or item[0] == "tbody"
            if inside and item[0] == "tr":
                found.append([])
            elif inside and item[0] in ("th", "td"):
                found[-1].append(item[2])
        return found

    @property
    def ids(self):
        return [item[1]["id"] for item in self.elements if "id" in item[1]]

    def assert_closed(self):
        """Nothing is loaded, sent or run but a script that the page's own policy names by its digest."""
        assert not {item[0] for item in self.elements} & _RUNNING_OR_LOADING
        for tag, attributes, _ in self.elements:
            loading = {"src", "srcset", "action", "ping", "formaction"}
            assert not [name for name in attributes if name.startswith("on") or name in loading]
            target = attributes.get("href", "#")
            data = re.fullmatch(r"data:image/png;base64,[A-Za-z0-9+/=]+", target)
            assert target == "#" or (target.startswith("#") if tag == "a" else data), (tag, target[:60])
            for value in attributes.values():
                assert all(match.startswith("#") for match in re.findall(r"url\(([^)]*)", value or ""))
        style = "".join(item[2] for item in self.find("style"))
        assert "url" not in style
        assert "@import" not in style
        (policy,) = self.find("meta", **{"http-equiv": "Content-Security-Policy"})
        wanted = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'"
        scripts = [item[2] for item in self.find("script") if item[1].get("type") != "application/json"]
        for script in scripts:
            wanted += f"; script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        assert len(scripts) <= 1
        assert policy[1]["content"] == wanted
        assert self.source.count("Content-Security-Policy") == 1

    def assert_without_addresses(self):
        """Not even a namespace: no address of any kind is in the file."""
        without_data = re.sub(r"base64,[A-Za-z0-9+/=]+", "", self.source)
        assert re.findall(r"(?i)https?:|//|www\.|mailto:|xmlns", without_data) == []

    def assert_accessible(self):
        """Headings step down by one, figures have titles, tables have captions and heads, references have targets."""
        assert self.find("html", lang="en")
        assert self.find("meta", name="viewport")
        levels = [int(item[0][1]) for item in self.elements if re.fullmatch("h[1-6]", item[0])]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))
        assert len(self.find("main")) == 1
        for i, (tag, attributes, _) in enumerate(self.elements):
            if tag == "svg" and attributes.get("aria-hidden") != "true":
                assert attributes["role"] == "img"
                assert self.elements[i + 1][0] == "title"
                assert self.elements[i + 1][2] == attributes["aria-label"]
            if tag == "table":
                assert self.elements[i + 1][0] == "caption"
            if tag == "th":
                assert attributes.get("scope") in ("col", "row")
            if tag == "input":
                assert [label for label in self.find("label") if label[1].get("for") == attributes["id"]]
            for name in ("aria-labelledby", "aria-describedby", "for", "list"):
                if name in attributes:
                    assert attributes[name] in self.ids
        assert len(self.ids) == len(set(self.ids))


@pytest.fixture(scope="session")
def parse():
    """Read a page."""
    return Page


def _matern32(seconds, lengthscale, sd=2500.0):
    lag = math.sqrt(3) * np.abs(seconds[:, None] - seconds[None]) / lengthscale
    return sd**2 * (1 + lag) * np.exp(-lag) + NUGGET_M**2 * np.eye(len(seconds))


def _loss(covariance, noise, index):
    """Gain in precision about one fix (1/m²)."""
    left = covariance[index, index] - covariance[index] @ np.linalg.solve(covariance + noise, covariance[:, index])
    return 1 / left - 1 / covariance[index, index]


def make_page(points=120, wanted=(("clinic", 111, 500.0), ("home", 40, 300.0), ("work", 300, 800.0))):
    """Report and details of a made-up day. The noise is a smooth bump around each secret: not optimal, but real."""
    trace = clean(read_csv(demo_day(points).csv))
    seconds, n = trace.seconds, trace.n_points
    true = trace.mean_by_point(ORIGIN.to_metres(trace.latitude, trace.longitude))
    indices = [int(np.argmin(np.abs(seconds / 60 - minute))) for _, minute, _ in wanted]
    noise = 4.0 * np.eye(n)
    for index, (_, _, radius) in zip(indices, wanted, strict=True):
        bump = 1.1 * radius * np.exp(-(((seconds - seconds[index]) / 2400) ** 2))
        noise += np.outer(bump, bump)
    lengthscales = (900.0, 1800.0, 3600.0)
    priors = [_matern32(seconds, lengthscale) for lengthscale in lengthscales]
    radii = [radius for _, _, radius in wanted]
    losses = np.array([[_loss(prior, noise, index) for prior in priors] for index in indices])
    epsilons = ORDER / 2 * np.array(radii)[:, None] ** 2 * losses
    worst = int(np.argmax(epsilons.max(axis=0)))
    gain = np.linalg.solve(priors[worst] + noise, priors[worst]).T
    rng = np.random.default_rng(3)
    released = true + np.linalg.cholesky(noise) @ rng.normal(size=(n, 2))
    left = np.sqrt(np.diag(priors[worst]) - np.einsum("ij,ji->i", gain, priors[worst]))
    rows = covariance_rows(n, indices)
    block = noise[np.ix_(rows, rows)]
    secrets = tuple(
        SecretDetails(
            label=label,
            first_us=int(trace.time_us[index]),
            last_us=int(trace.time_us[index]),
            indices=(index,),
            radius_m=radius,
            epsilon=float(epsilons[i].max()),
            odds_factor=odds_record(float(epsilons[i].max()), ORDER, DELTA).exact_factor,
            before_m=(2500.0, 2500.0),
            after_m=(float(left[index]), float(left[index])),
            independent_epsilon=40.0 + i,
        )
        for i, (index, (label, _, radius)) in enumerate(zip(indices, wanted, strict=True))
    )
    details = ReleaseDetails(
        time_us=trace.time_us,
        true_m=true,
        released_m=released,
        believed_m=gain @ released,
        halfwidth_m=np.stack([left, left], axis=1),
        secrets=secrets,
        prior_labels=tuple(f"Matérn-3/2, {lengthscale / 60:.0f} min" for lengthscale in lengthscales),
        worst_priors=(f"Matérn-3/2, {lengthscales[worst] / 60:.0f} min",) * 2,
        epsilons=epsilons,
        covariance_rows=rows,
        covariances=np.stack([block, block]),
    )
    return _report(trace, details, noise, radii, lengthscales, losses), details


def _report(trace, details, noise, radii, lengthscales, losses):
    records = tuple(
        PriorRecord("made up for this test", "matern32", lengthscale, None, 2500.0, NUGGET_M)
        for lengthscale in lengthscales
    )
    epsilon = float(details.epsilons.max())
    rms = math.sqrt(2 * np.trace(noise) / trace.n_points)
    spread = np.sqrt(2 * np.diag(noise))
    table = tuple(tuple(row) for row in details.epsilons.tolist())
    axes = tuple(AxisRecord(name, records, table, float(losses.max()), 2.0) for name in ("east", "north"))
    return Report(
        prior=records[0],
        secrets=tuple(
            SecretRecord(format_instant(secret.first_us), format_instant(secret.first_us), 0.0)
            for secret in details.secrets
        ),
        axes=axes,
        simulated=True,
        tau=None,
        releases=ReleasesRecord(1, 0),
        guarantee=guarantee(None),
        radius_m=max(radii),
        plane_radius_m=max(radii) * 1.0003,
        order=ORDER,
        epsilon=epsilon,
        epsilon_asked=2.0,
        epsilon_east=epsilon,
        epsilon_north=epsilon,
        odds=odds_record(epsilon, ORDER, DELTA),
        prior_halfwidth_east_m=2500.0,
        prior_halfwidth_north_m=2500.0,
        posterior_halfwidth_east_m=details.secrets[0].after_m[0],
        posterior_halfwidth_north_m=details.secrets[0].after_m[1],
        rms_noise_m=rms,
        largest_noise_m=float(spread.max()),
        smallest_noise_m=float(spread.min()),
        rms_lower_bound_m=0.8 * rms,
        gap=0.36,
        independent=IndependentRecord(4.6 * rms, 41.5, 1.9e9),
        floor_sd_m=2.0,
        grid_m=1.0,
        grid_exponent=0,
        resolution_m=0.5,
        origin=(45.0, -30.0),
        points=trace.n_points,
        rows_read=trace.n_rows,
        rows_written=trace.n_rows,
        cleaning=("1 row dropped: no time.",),
        warnings=("A warning that somebody must read.",),
        not_claimed=not_claimed(True),
        jaxpriv_version="0.1.0",
        by_secret=tuple(
            SecretNumbers(
                one.label, one.epsilon, one.odds_factor, (2500.0, 2500.0), (one.after_m[0], one.after_m[1]), None
            )
            for one in details.secrets
        ),
        odd=("2 gaps of more than ten median steps: kept with their true times.",),
    )


@pytest.fixture(scope="session")
def page():
    return make_page()
