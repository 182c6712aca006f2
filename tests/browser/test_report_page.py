"""The report in a browser: shown and printed without a complaint and without a request."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from jaxpriv.jobs.demo import run_demo


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    out = tmp_path_factory.mktemp("report") / "demo"
    run_demo(out, points=60)
    return out / "private" / "report.html"


@pytest.mark.parametrize("width", [390, 1100])
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_shown_without_a_complaint(browser, path, tmp_path, width, dark):
    browser.open(path, width=width, dark=dark)
    assert browser.value("document.documentElement.scrollWidth") <= width
    browser.screenshot(tmp_path / "page.png")
    pixels = np.asarray(Image.open(tmp_path / "page.png").convert("RGB")).reshape(-1, 3)
    # The released path, the band over white, the text: each covers part of the page.
    text = (236, 236, 236) if dark else (26, 26, 26)
    for colour, least in (((213, 94, 0), 300), ((196, 229, 247), 1000), (text, 3000)):
        assert np.count_nonzero(np.abs(pixels.astype(int) - colour).max(axis=1) <= 3) > least
    assert browser.complaints == []
    assert [address for address in browser.requests if not address.startswith("data:image/png")] == [path.as_uri()]


def test_it_is_printed_on_white(browser, path):
    browser.open(path, dark=True)
    assert browser.paper().startswith(b"%PDF")
    browser.media("print", dark=True)
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.value("getComputedStyle(document.querySelector('nav')).display") == "none"
