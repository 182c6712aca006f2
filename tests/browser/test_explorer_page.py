"""The explorer in a browser: the slider is moved, and numbers, figures and table follow without a word or a request."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from jaxpriv.jobs.demo import PRIOR
from jaxpriv.jobs.demo_trace import ORIGIN, demo_day
from jaxpriv.jobs.explore import explore
from jaxpriv.jobs.target import Target
from jaxpriv.report.explorer import explorer_html
from jaxpriv.traces.files import read_trace


pytestmark = pytest.mark.slow
IDS = ("epsilon-now", "fact-moved", "fact-odds", "fact-left", "fact-independent", "words", "secret-1-after")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explorer")
    day = demo_day(60)
    (folder / "in.csv").write_text(day.csv)
    found = explore(
        read_trace(folder / "in.csv"), [day.secret_us], Target(500.0, 1.0), PRIOR, ladder=(0.1, 0.3, 3.0), origin=ORIGIN
    )
    (folder / "explorer.html").write_text(explorer_html(found), encoding="utf-8")
    return folder / "explorer.html"


def _texts(browser):
    return {identity: browser.value(f"document.getElementById('{identity}').textContent") for identity in IDS}


def _shape(browser):
    return browser.value(
        "['example-path', 'profile-path'].map(id => document.getElementById(id).getAttribute('d')).join() + "
        "document.getElementById('trade-mark').getAttribute('cx')"
    )


def _quiet(browser, path):
    assert browser.complaints == []
    assert browser.requests == [path.as_uri()]


def test_the_slider_works_from_the_keyboard(browser, path):
    browser.open(path)
    assert browser.value("document.getElementById('control').hidden") is False
    browser.value("document.getElementById('epsilon').focus()")
    seen, shapes = [_texts(browser)], [_shape(browser)]
    for key in ("ArrowRight", "Home", "ArrowRight"):
        browser.press(key)
        seen.append(_texts(browser))
        shapes.append(_shape(browser))
    assert [one["epsilon-now"] for one in seen] == ["ε = 1", "ε = 3", "ε = 0.1", "ε = 0.3"]
    for identity in IDS:
        assert len({one[identity] for one in seen}) == 4, identity
    assert len(set(shapes)) == 4
    assert browser.value("document.getElementById('epsilon').getAttribute('aria-valuetext')").startswith("ε = 0.3:")
    current = "[...document.querySelectorAll('#ladder-table tr[aria-current]')].map(row => row.cells[0].textContent)"
    assert browser.value(current) == ["0.3"]
    _quiet(browser, path)


def test_the_buttons_move_it_and_stop_at_the_ends(browser, path):
    browser.open(path)
    for _ in range(5):
        browser.value("document.getElementById('safer').click()")
    assert _texts(browser)["epsilon-now"] == "ε = 0.1"
    assert browser.value("document.getElementById('safer').disabled") is True
    browser.value("document.getElementById('exact').click()")
    assert _texts(browser)["epsilon-now"] == "ε = 0.3"
    assert browser.value("document.getElementById('safer').disabled") is False
    _quiet(browser, path)


def test_a_screen_reader_is_given_names_and_states(browser, path):
    browser.open(path)
    browser.call("Accessibility.enable")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    browser.call("Accessibility.disable")
    named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if "role" in node]
    assert ("heading", "What protecting this trace would cost, and what would stay uncertain") in named
    # Its value is said by itself.
    assert [name for role, name in named if role == "slider"] == ["How much the release may tell:"]
    assert "status" in {role for role, _ in named}
    assert any(role in ("image", "img") and name.startswith("Map: true path") for role, name in named)
    assert {"All values of ε", "Each secret before and after"} <= {name for role, name in named if role == "table"}


@pytest.mark.parametrize("width", [390, 1100])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_the_window_and_is_drawn(browser, path, tmp_path, width, dark):
    browser.open(path, width=width, dark=dark)
    assert browser.value("document.documentElement.scrollWidth") <= width
    browser.screenshot(tmp_path / "page.png")
    pixels = np.asarray(Image.open(tmp_path / "page.png").convert("RGB"))
    assert tuple(pixels[5, 2]) == ((22, 22, 22) if dark else (255, 255, 255))
    # The simulated path and curves, the band over white: each covers part of the page.
    for colour, least in (((213, 94, 0), 300), ((196, 229, 247), 300)):
        assert np.count_nonzero(np.abs(pixels.reshape(-1, 3).astype(int) - colour).max(axis=1) <= 3) > least
    # Whatever can be touched is large enough for a finger.
    sizes = browser.value(
        "['safer', 'exact', 'epsilon'].map(id => document.getElementById(id).getBoundingClientRect().height)"
    )
    assert min(sizes) >= 44
    _quiet(browser, path)


def test_paper_has_the_table_and_no_slider(browser, path):
    browser.open(path)
    assert browser.paper().startswith(b"%PDF")
    browser.media("print", dark=True)
    shown = "getComputedStyle(document.getElementById('{}')).display"
    assert browser.value(shown.format("control")) == "none"
    assert browser.value(shown.format("ladder-table")) == "table"
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.value("document.getElementById('ladder-table').tBodies[0].rows.length") == 4


def test_without_scripts_the_start_is_shown(browser, path, tmp_path):
    browser.open(path, script=False)
    document = browser.call("DOM.getDocument", depth=-1)
    slider = browser.call("DOM.querySelector", nodeId=document["root"]["nodeId"], selector="#control")
    assert "hidden" in browser.call("DOM.getAttributes", nodeId=slider["nodeId"])["attributes"]
    browser.screenshot(tmp_path / "page.png")
    pixels = np.asarray(Image.open(tmp_path / "page.png").convert("RGB")).reshape(-1, 3)
    assert np.count_nonzero(np.abs(pixels.astype(int) - (213, 94, 0)).max(axis=1) <= 3) > 300
    _quiet(browser, path)
