"""How large the noise is, beside the least that could be and beside independent noise."""

from __future__ import annotations

from jaxpriv.report.page.details import ReleaseDetails
from jaxpriv.report.page.svg import INK, RELEASED, element, figure, text
from jaxpriv.report.page.words import figure_box, two_columns
from jaxpriv.report.plain import odds_factor, with_unit
from jaxpriv.report.record import Report
from jaxpriv.report.rounding import significant


_WIDTH, _NAME, _ROW = 760.0, 290.0, 30.0


def cost(report: Report, details: ReleaseDetails) -> str:
    """Write what the noise costs, beside what other noise would."""
    independent, unit = report.independent, details.unit
    moved, point = ("Points were displaced", "point") if details.on_map else ("Values were changed", "value")
    rows = [
        (f"{moved} by (root mean square, grid included)", with_unit(significant(report.rms_noise_m), unit)),
        (f"at the {point} that moves least", with_unit(significant(report.smallest_noise_m, 2, "down"), unit)),
        (f"at the {point} that moves most", with_unit(significant(report.largest_noise_m, 2, "up"), unit)),
    ]
    if report.rms_lower_bound_m is not None and report.gap is not None:
        rows += [
            (
                "No Gaussian noise with the same promise and floor can do with less than",
                with_unit(significant(report.rms_lower_bound_m, 3, "down"), unit),
            ),
            ("Gap between the two (of the variance, relative)", significant(report.gap, 2, "up")),
        ]
    if independent.rms_noise_m is not None:
        rows.append(
            (
                f"Independent noise at every {point} would need, for the same ε",
                with_unit(significant(independent.rms_noise_m), unit),
            )
        )
    if independent.epsilon is not None:
        rows += [
            ("Independent noise of the same size would have ε", significant(independent.epsilon)),
            ("and could change odds by a factor of", odds_factor(independent.exact_factor)),
        ]
    drawn = draw_cost(report.rms_lower_bound_m, report.rms_noise_m, independent.rms_noise_m, unit)
    return figure_box(drawn, "Cost") + two_columns("cost-table", "Cost of this release and of other noise", rows)


def draw_cost(lower_m: float | None, released_m: float, independent_m: float | None, unit: str = "m") -> str:
    """Draw root-mean-square displacements as bars from zero; unknown ones are left out."""
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
            text(with_unit(significant(value), unit), _NAME + length + 7, y + 16, font_size=13, fill="#222"),
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
