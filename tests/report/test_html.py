"""The report as a page, read with the standard library's HTML parser: complete, closed to the outside, and true."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import math
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from jaxpriv.errors import InputError
from jaxpriv.report.html import report_html
from jaxpriv.report.page.details import covariance_rows
from jaxpriv.report.page.scales import clock_ticks, length_text, round_below, ticks
from jaxpriv.report.record import IndependentRecord


_VOID = {"meta", "br", "hr", "img", "link", "input", "base", "source"}
_RUNNING_OR_LOADING = {
    "script", "iframe", "frame", "object", "embed", "form", "base", "link", "img", "video", "audio", "source", "use",
    "foreignobject", "animate", "set", "applet", "portal", "template",
}  # fmt: skip
SECTIONS = ("map", "time", "secrets", "losses", "cost", "noise", "limits", "certificate", "parameters")


class Page(HTMLParser):
    """Elements in order, as (tag, attributes, text inside), and the text of the whole page."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.text = [], [], ""
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
        if not any(item[0] == "style" for item in self.open):
            self.text += data
        for item in self.open:
            item[2] += data

    def find(self, tag, **wanted):
        return [item for item in self.elements if item[0] == tag and wanted.items() <= item[1].items()]

    @property
    def ids(self):
        return [item[1]["id"] for item in self.elements if "id" in item[1]]


@pytest.fixture(scope="module")
def source(page):
    return report_html(*page)


@pytest.fixture(scope="module")
def parsed(source):
    return Page(source)


def _assert_closed(parsed, source):
    assert not {item[0] for item in parsed.elements} & _RUNNING_OR_LOADING
    for tag, attributes, _ in parsed.elements:
        assert not [name for name in attributes if name.startswith("on") or name in {"src", "srcset", "action", "ping"}]
        target = attributes.get("href", "#")
        inside = (
            target.startswith("#") if tag == "a" else re.fullmatch(r"data:image/png;base64,[A-Za-z0-9+/=]+", target)
        )
        assert inside or target == "#", (tag, target[:60])
        for value in attributes.values():
            assert all(match.startswith("#") for match in re.findall(r"url\(([^)]*)", value or ""))
    style = "".join(item[2] for item in parsed.find("style"))
    assert "url" not in style
    assert "@import" not in style
    (policy,) = parsed.find("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy[1]["content"].startswith("default-src 'none'")
    assert source.count("Content-Security-Policy") == 1


def test_nothing_outside_is_addressed(parsed, source):
    _assert_closed(parsed, source)
    without_data = re.sub(r"base64,[A-Za-z0-9+/=]+", "", source)
    # Not even a namespace: no address of any kind is in the file.
    assert re.findall(r"(?i)https?:|//|www\.|mailto:|xmlns", without_data) == []


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
        if name in {"warnings", "not_claimed", "cleaning", "guarantee"}:
            for sentence in [value] if isinstance(value, str) else value:
                assert sentence in parsed.text
        else:
            check(name, value)


HOSTILE = "</p><script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x' &amp; \u202e http://203.0.113.1/x"


def test_texts_of_the_caller_are_escaped(page):
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
        guarantee=HOSTILE,
        jaxpriv_version=HOSTILE,
    )
    source = report_html(report, details)
    parsed = Page(source)
    _assert_closed(parsed, source)
    for item in parsed.find("h3"):
        assert HOSTILE in item[2]
    for identity in ("prior", "warnings", "limits", "certificate", "losses", "parameters", "time"):
        assert any(HOSTILE in item[2] for item in parsed.elements if item[1].get("id") == identity), identity


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


def test_many_priors_are_rows_and_infinite_losses_are_words(page):
    report, details = page
    epsilons = np.tile(details.epsilons, (1, 8))
    epsilons[1, 5] = math.inf
    labels = tuple(f"prior number {i}" for i in range(24))
    details = dataclasses.replace(details, epsilons=epsilons, prior_labels=labels, worst_priors=labels[:2])
    parsed = Page(report_html(report, details))
    rows = [item[2] for item in parsed.find("tr") if item[2].startswith("prior number")]
    assert len(rows) == 24
    assert "▲ unlimited" in rows[5]


@pytest.mark.parametrize(("epsilon", "percent"), [(0.1, 57), (0.25, 60), (0.5, 64), (1, 70), (2, 77), (4, 85)])
def test_best_guess_agrees_with_the_documentation(page, epsilon, percent):
    # The table of docs/claims.md, whose column was computed apart from this code.
    report, details = page
    secrets = tuple(dataclasses.replace(secret, epsilon=float(epsilon)) for secret in details.secrets)
    text = Page(report_html(report, dataclasses.replace(details, secrets=secrets))).text
    assert set(re.findall(r"right at most (\d+) % of the time", text)) == {str(percent)}


def test_certain_attackers_are_not_called_uncertain(page):
    report, details = page
    secrets = (dataclasses.replace(details.secrets[0], epsilon=math.inf, odds_factor=None), *details.secrets[1:])
    text = Page(report_html(report, dataclasses.replace(details, secrets=secrets))).text
    assert "right at most 100 % of the time" in text
    assert "more than a million (no useful limit)" in text
    assert "ε = unlimited nats" in text


def _inside(parsed, identity):
    """Elements of one figure."""
    (start,) = [i for i, item in enumerate(parsed.elements) if item[1].get("id") == identity]
    stop = next(
        (i for i, item in enumerate(parsed.elements[start + 1 :], start + 1) if item[0] in ("ul", "p", "div", "table")),
        None,
    )
    return parsed.elements[start:stop]


def _metres(label):
    number, unit = label.split()
    return float(number) * (1000 if unit == "km" else 1)


@pytest.mark.parametrize("identity", ["map-figure", "close-up-1", "close-up-2", "close-up-3"])
def test_radii_and_beliefs_are_drawn_to_the_scale_of_the_bar(parsed, page, identity):
    _, details = page
    items = _inside(parsed, identity)
    bars = [re.fullmatch(r"M([\d.]+) [\d.]+V[\d.]+H([\d.]+)V[\d.]+", item[1].get("d", "")) for item in items]
    x0, x1 = (float(value) for value in next(match for match in bars if match).groups())
    label = [item[2] for item in items if item[0] == "text" and item[1].get("class") == "halo"][-1]
    scale = (x1 - x0) / _metres(label)
    shown = details.secrets if identity == "map-figure" else [details.secrets[int(identity[-1]) - 1]]
    rings = [item[1] for item in items if item[0] == "circle" and "stroke-dasharray" in item[1]]
    ellipses = [item[1] for item in items if item[0] == "ellipse"]
    assert len(rings) == len(ellipses) == len(shown)
    places = []
    for secret, ring, ellipse in zip(shown, rings, ellipses, strict=True):
        # Coordinates are written to a hundredth, bars to a tenth of a pixel.
        assert float(ring["r"]) == pytest.approx(secret.radius_m * scale, rel=5e-3)
        assert float(ellipse["rx"]) == pytest.approx(secret.after_m[0] * scale, rel=5e-3)
        true, believed = details.true_m[secret.indices[0]], details.believed_m[secret.indices[0]]
        moved = [float(ellipse[f"c{axis}"]) - float(ring[f"c{axis}"]) for axis in "xy"]
        # East is to the right and north is up.
        np.testing.assert_allclose(moved, (believed - true) * scale * [1, -1], rtol=5e-3, atol=0.2)
        places.append((float(ring["cx"]), float(ring["cy"]), *true))
    for (x, y, east, north), (x2, y2, east2, north2) in pairwise(places):
        np.testing.assert_allclose([x2 - x, y - y2], [(east2 - east) * scale, (north2 - north) * scale], rtol=5e-3)


def _numbers(path):
    return np.array([float(value) for value in re.findall(r"-?[\d.]+", path)]).reshape(-1, 2)


def test_bands_surround_the_best_guess(parsed, page):
    _, details = page
    items = _inside(parsed, "series-figure")
    for axis in (0, 1):
        band = [_numbers(item[1]["d"]) for item in items if item[0] == "path" and item[1].get("d", "").endswith("Z")][
            axis
        ]
        believed, halfwidth = details.believed_m[:, axis], details.halfwidth_m[:, axis]
        edges = np.concatenate([believed + halfwidth, believed - halfwidth])
        # Heights on the page are a linear function of the values at the band's extremes.
        assert np.argmin(band[:, 1]) < len(band) / 2 < np.argmax(band[:, 1])
        widest = int(np.argmax(halfwidth))
        x = np.interp(details.time_us[widest], details.time_us[[0, -1]], [band[:, 0].min(), band[:, 0].max()])
        at = band[np.abs(band[:, 0] - x) < 0.3]
        unit = np.ptp(band[:, 1]) / np.ptp(edges)
        assert np.ptp(at[:, 1]) == pytest.approx(2 * halfwidth[widest] * unit, rel=0.01)


def test_bars_are_as_long_as_their_numbers(parsed, page):
    report, _ = page
    items = _inside(parsed, "cost-figure")
    lengths = [float(item[1]["width"]) for item in items if item[0] == "rect"]
    values = [report.rms_lower_bound_m, report.rms_noise_m, report.independent.rms_noise_m]
    np.testing.assert_allclose(np.array(lengths) / lengths[0], np.array(values) / values[0], rtol=1e-3)


def test_unknown_comparisons_are_left_out(page):
    report, details = page
    report = dataclasses.replace(
        report, rms_lower_bound_m=None, gap=None, independent=IndependentRecord(None, None, None), warnings=()
    )
    parsed = Page(report_html(report, details))
    assert len([item for item in _inside(parsed, "cost-figure") if item[0] == "rect"]) == 1
    assert "None" not in parsed.text
    assert "warnings" not in parsed.ids


def test_the_heat_map_shows_size_and_sign(page):
    report, details = page
    k = len(details.covariance_rows)
    north = np.diag(np.full(k, 100.0))
    north[0, k - 1] = north[k - 1, 0] = -100.0
    details = dataclasses.replace(details, covariance_east=np.eye(k) * 400.0, covariance_north=north)
    parsed = Page(report_html(report, details))
    images = [
        np.asarray(Image.open(io.BytesIO(base64.b64decode(item[1]["href"].partition(",")[2]))))
        for item in parsed.find("image")
    ]
    east, north_image, strip = images
    assert east.shape == north_image.shape == (k, k, 3)
    assert east[0, 0].tolist() == strip[0, 0].tolist() == [0, 80, 150]
    assert east[0, 1].tolist() == strip[50, 0].tolist() == [255, 255, 255]
    # Standard deviations of 10 m on a scale that ends at 20 m: half way to white, blue and orange.
    assert np.abs(north_image[3, 3].astype(int) - [127, 167, 202]).max() <= 1
    assert np.abs(north_image[0, k - 1].astype(int) - [234, 174, 127]).max() <= 1
    labels = [item[2] for item in _inside(parsed, "noise-figure") if item[0] == "text"]
    assert {"east", "north", "20 m"} <= set(labels)


def test_places_between_fixes_and_secrets_of_many_fixes(page):
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
    parsed = Page(report_html(report, details))
    articles = [item[2] for item in parsed.find("article")]
    assert "a place between two fixes" in articles[0]
    assert "9 fixes together" in articles[2]
    place = details.place(between, details.true_m)
    low, high = sorted([details.true_m[first.indices[0]].tolist(), details.true_m[first.indices[0] + 1].tolist()])
    assert low[0] - 1e-9 <= place[0] <= high[0] + 1e-9


def test_one_fix_is_enough(page):
    report, details = page
    secret = dataclasses.replace(
        details.secrets[0], indices=(0,), first_us=int(details.time_us[0]), last_us=int(details.time_us[0])
    )
    one = {
        name: getattr(details, name)[:1] for name in ("time_us", "true_m", "released_m", "believed_m", "halfwidth_m")
    }
    details = dataclasses.replace(
        details,
        **one,
        secrets=(secret,),
        epsilons=details.epsilons[:1],
        covariance_rows=np.array([0]),
        covariance_east=np.zeros((1, 1)),
        covariance_north=np.zeros((1, 1)),
    )
    source = report_html(report, details)
    assert "nan" not in Page(source).text
    assert not re.search(r'="[^"]*\bnan\b', source)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"true_m": np.zeros((3, 2))}, "true_m has shape"),
        ({"epsilons": np.zeros((1, 1))}, "epsilons has shape"),
        ({"worst_priors": ("a", "b")}, "worst prior"),
        ({"secrets": (), "epsilons": np.zeros((0, 3))}, "at least one"),
    ],
)
def test_details_that_do_not_fit_are_refused(page, change, words):
    with pytest.raises(InputError, match=words):
        dataclasses.replace(page[1], **change)


def test_values_that_are_no_numbers_are_refused(page):
    _, details = page
    for name in ("halfwidth_m", "epsilons", "covariance_east"):
        values = getattr(details, name).copy()
        values[0, 0] = math.nan
        with pytest.raises(InputError, match=f"{name} holds a value"):
            dataclasses.replace(details, **{name: values})
    with pytest.raises(InputError, match="must increase"):
        dataclasses.replace(details, time_us=details.time_us[::-1])
    with pytest.raises(InputError, match="none of 0 to"):
        dataclasses.replace(
            details, secrets=(dataclasses.replace(details.secrets[0], indices=(999,)), *details.secrets[1:])
        )


@pytest.mark.parametrize("n", [1, 7, 200, 201, 5000])
def test_noise_is_shown_at_few_rows_with_the_secrets_among_them(n):
    secret = [n // 3, n - 1]
    rows = covariance_rows(n, secret)
    assert len(rows) <= 200
    assert np.all(np.diff(rows) > 0)
    assert set(secret) <= set(rows.tolist())
    assert (rows[0], rows[-1]) == (0, n - 1)
    assert len(covariance_rows(n, range(n))) <= 200


def test_round_numbers():
    for value in (0.0123, 0.05, 1, 1.99, 7, 250, 99_999):
        found = round_below(value)
        assert found <= value * (1 + 1e-9) < 2.5 * found + 1e-12
        assert re.fullmatch(r"[125]0*|0\.0*[125]", f"{found:.10f}".rstrip("0").rstrip("."))
    assert ticks(-0.31, 1.02) == pytest.approx([-0.2, 0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert (length_text(1500.0), length_text(0.5), length_text(999)) == ("1.5 km", "0.5 m", "999 m")


def test_clock_ticks_are_round_and_name_each_day_once():
    start = 1_714_950_000 * 10**6  # 2024-05-05T23:00:00Z
    found = clock_ticks(start, start + 5 * 3600 * 10**6)
    assert [clock for _, clock, _ in found] == ["23:00", "00:00", "01:00", "02:00", "03:00", "04:00"]
    assert [date for _, _, date in found if date] == ["2024-05-05", "2024-05-06"]
    assert [clock for _, clock, _ in clock_ticks(start, start + 3 * 10**6)][:2] == ["23:00:00", "23:00:01"]
    for days in (9, 400, 40_000):
        many = clock_ticks(start, start + days * 86_400 * 10**6)
        assert 1 <= len(many) <= 9
        assert all(clock == "" and date for _, clock, date in many)


def _chromium(*arguments, folder):
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        pytest.skip("Chromium is not installed: the page is checked by parsing only")
    common = (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={folder / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND",
    )  # fmt: skip
    done = subprocess.run([program, *common, *arguments], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, done.stderr


@pytest.mark.slow
def test_a_browser_shows_and_prints_it_without_a_complaint(source, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(source, encoding="utf-8")
    picture, paper = tmp_path / "page.png", tmp_path / "page.pdf"
    _, log = _chromium(
        "--enable-logging=stderr", "--hide-scrollbars", "--window-size=1100,3000", f"--screenshot={picture}",
        path.as_uri(), folder=tmp_path,
    )  # fmt: skip
    assert "CONSOLE" not in log
    pixels = np.asarray(Image.open(picture).convert("RGB")).reshape(-1, 3)
    # The released path, the band over white, the text: each covers part of the page.
    for colour, least in (((213, 94, 0), 1000), ((196, 229, 247), 5000), ((26, 26, 26), 3000)):
        assert np.count_nonzero(np.abs(pixels.astype(int) - colour).max(axis=1) <= 3) > least
    dom, _ = _chromium("--dump-dom", path.as_uri(), folder=tmp_path)
    assert set(Page(dom).ids) == set(Page(source).ids)
    _chromium(f"--print-to-pdf={paper}", path.as_uri(), folder=tmp_path)
    assert paper.read_bytes().startswith(b"%PDF")
