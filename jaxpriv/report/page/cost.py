"""How large the noise is, beside the least that could be and beside independent noise."""

from __future__ import annotations

from jaxpriv.report.page.svg import INK, RELEASED, element, figure, text
from jaxpriv.report.rounding import significant


_WIDTH, _NAME, _ROW = 760.0, 290.0, 30.0


def draw_cost(lower_m: float | None, released_m: float, independent_m: float | None) -> str:
    """Draw root-mean-square displacements in metres as bars from zero; unknown ones are left out."""
    bars = [
        ("least possible for this promise", lower_m, "url(#cost-hatch)", INK),
        ("this release", released_m, RELEASED, RELEASED),
        ("independent noise with the same ε", independent_m, "#fff", INK),
    ]
    known = [(name, value, fill, edge) for name, value, fill, edge in bars if value is not None]
    longest = max(max(value for _, value, _, _ in known), 1e-9)
    room = _WIDTH - _NAME - 90
    drawn = []
    for row, (name, value, fill, edge) in enumerate(known):
        y = 4 + row * _ROW
        length = max(room * value / longest, 1.0)
        drawn += [
            text(name, _NAME - 10, y + 16, text_anchor="end", font_size=13, fill="#222"),
            element("rect", x=_NAME, y=y, width=length, height=_ROW - 9, fill=fill, stroke=edge),
            text(f"{significant(value)} m", _NAME + length + 7, y + 16, font_size=13, fill="#222"),
        ]
    hatch = element(
        "pattern",
        element("path", d="M0 6L6 0", stroke=INK, stroke_width=1),
        id="cost-hatch",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
    )
    return figure(
        "cost-figure", "Displacement by this and by other noise", _WIDTH, 4 + len(known) * _ROW, hatch, *drawn
    )
