"""The figures of the page, measured: positions, radii, bands, bars and colours."""

from __future__ import annotations

import base64
import dataclasses
import io
import re
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from jaxpriv.report.html import report_html
from jaxpriv.report.record import IndependentRecord


@pytest.fixture(scope="module")
def parsed(parse, page):
    return parse(report_html(*page))


def _metres(label):
    number, unit = label.split()
    return float(number) * (1000 if unit == "km" else 1)


@pytest.mark.parametrize("identity", ["map-figure", "close-up-1", "close-up-2", "close-up-3"])
def test_radii_and_beliefs_are_drawn_to_the_scale_of_the_bar(parsed, page, identity):
    _, details = page
    items = parsed.inside(identity)
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
    items = parsed.inside("series-figure")
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
    items = parsed.inside("cost-figure")
    lengths = [float(item[1]["width"]) for item in items if item[0] == "rect"]
    values = [report.rms_lower_bound_m, report.rms_noise_m, report.independent.rms_noise_m]
    np.testing.assert_allclose(np.array(lengths) / lengths[0], np.array(values) / values[0], rtol=1e-3)


def test_unknown_comparisons_are_left_out(parse, page):
    report, details = page
    report = dataclasses.replace(
        report, rms_lower_bound_m=None, gap=None, independent=IndependentRecord(None, None, None), warnings=()
    )
    parsed = parse(report_html(report, details))
    assert len([item for item in parsed.inside("cost-figure") if item[0] == "rect"]) == 1
    assert "None" not in parsed.text
    assert "warnings" not in parsed.ids


def test_the_heat_map_shows_size_and_sign(parse, page):
    report, details = page
    k = len(details.covariance_rows)
    north = np.diag(np.full(k, 100.0))
    north[0, k - 1] = north[k - 1, 0] = -100.0
    details = dataclasses.replace(details, covariances=np.stack([np.eye(k) * 400.0, north]))
    parsed = parse(report_html(report, details))
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
    labels = [item[2] for item in parsed.inside("noise-figure") if item[0] == "text"]
    assert {"east", "north", "20 m"} <= set(labels)


def test_one_fix_is_enough(parse, page):
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
        covariances=np.zeros((2, 1, 1)),
    )
    source = report_html(report, details)
    assert "nan" not in parse(source).text
    assert not re.search(r'="[^"]*\bnan\b', source)
