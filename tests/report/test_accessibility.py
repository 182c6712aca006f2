"""The pages for those who see little or nothing, and on paper: contrast from the style, structure from the tree."""

from __future__ import annotations

import re

import pytest

from jaxpriv.report.html import report_html
from jaxpriv.report.page.document import packaged
from jaxpriv.report.page.svg import BAND, BELIEVED, INK, RELEASED, TRUE


# Text and what it may stand on, by the names of the style sheet.
TEXT = [("ink", "paper"), ("muted", "paper"), ("link", "paper"), ("alarm", "paper"), ("ink", "marked")]
SCHEMES = {
    "light": r"^:root \{(.*?)\}",
    "dark": r"scheme: dark\) \{\s*:root \{(.*?)\}",
    "paper": r"print \{\s*:root \{(.*?)\}",
}


def _luminance(colour):
    """Relative luminance of sRGB, as WCAG 2.2 defines it."""
    values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    light, dark = sorted(map(_luminance, map(_long, (first, second))), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _long(colour):
    return "#" + "".join(2 * digit for digit in colour[1:]) if len(colour) == 4 else colour


def test_the_measure_of_contrast():
    assert contrast("#000", "#fff") == pytest.approx(21)
    # A grey that WCAG's own examples give as the lightest that passes on white.
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_stands_out_in_every_scheme(scheme):
    style = packaged("report.css")
    names = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", re.search(SCHEMES[scheme], style, re.S)[1]))
    assert set(names) == {"paper", "ink", "muted", "link", "alarm", "line", "marked"}
    for text, ground in TEXT:
        assert contrast(names[text], names[ground]) >= 4.5, (text, ground)


def test_no_text_has_a_colour_that_is_not_among_the_tested():
    for name in ("report.css", "explorer.css"):
        style = re.sub(r":root \{.*?\}", "", packaged(name), flags=re.S)
        for declared in re.findall(r"[^-](?:color|background): ([^;}]+)", style):
            assert re.fullmatch(r"var\(--(ink|muted|link|alarm|paper|marked)\)|inherit|none|#ffffff", declared), (
                declared
            )


def test_writing_and_lines_in_figures_stand_out_on_white(page, parse):
    parsed = parse(report_html(*page))
    fills = {item[1]["fill"] for item in parsed.elements if item[0] in ("text", "g") and "fill" in item[1]}
    written = {fill for fill in fills if fill not in ("#fff", "none")}
    assert written >= {"#222", "#444"}
    for fill in written:
        assert contrast(fill, "#fff") >= 4.5, fill
    assert contrast("#fff", INK) >= 4.5  # numbers of the secrets, on their badges
    # Lines and marks need 3 : 1; the band has an outline, which is what is seen.
    for colour in (TRUE, RELEASED, BELIEVED, INK):
        assert contrast(colour, "#fff") >= 3, colour
    assert contrast(BAND, "#fff") < contrast(BELIEVED, "#fff")


def test_the_tree_of_the_report_can_be_walked_without_seeing_it(page, parse):
    parsed = parse(report_html(*page))
    parsed.assert_accessible()
    headings = [item[0] for item in parsed.elements if re.fullmatch("h[1-6]", item[0])]
    assert headings.count("h3") == len(page[1].secrets)
    first = next(item for item in parsed.elements if item[0] == "a")
    assert first[1]["href"] == "#content"
    for box in parsed.find("div", **{"class": "wide"}) + parsed.find("div", **{"class": "figure"}):
        assert box[1]["tabindex"] == "0"
        assert box[1]["aria-label"]


def test_paper_has_its_own_style():
    printed = packaged("report.css").rpartition("@media print")[2]
    assert "nav, .skip { display: none; }" in printed
    for kept in ("svg", ".secret", "#loss-table", "tr"):
        assert re.search(rf"(?m){re.escape(kept)}[^{{}}]*\{{[^{{}}]*break-inside: avoid", printed), kept
