"""The legend of the figures that show paths."""

from __future__ import annotations

from jaxpriv.report.page.svg import BAND, BELIEVED, INK, RELEASED, TRUE, element, star


def legend(*, on_map: bool, released: str = "released", believed: bool = True) -> str:
    """Write the legend of a map, or of curves against time; `believed` is whether the believed path is drawn."""

    def line(**attributes: object) -> str:
        return element("path", d="M2 8H46", fill="none", **attributes)

    patch = {"cx": 24, "cy": 8, "rx": 14, "ry": 7} if on_map else {"x": 2, "y": 2, "width": 44, "height": 12}
    guess = "an attacker’s best guess afterwards"
    entries = [
        (line(stroke=TRUE, stroke_width=5, stroke_linecap="round"), "true (known to you only)"),
        (
            line(stroke=RELEASED, stroke_width=1.5)
            + element("circle", cx=24, cy=8, r=3, fill="#fff", stroke=RELEASED, stroke_width=1.5),
            released,
        ),
        *([(line(stroke=BELIEVED, stroke_width=2, stroke_dasharray="5 4"), guess)] if believed else []),
        (
            element("ellipse" if on_map else "rect", **patch, fill=BAND, fill_opacity=0.35, stroke=BELIEVED),
            f"68 % {'in each direction ' if on_map else ''}around {'it' if believed else guess}",
        ),
    ]
    if on_map:
        ring = {"fill": "none", "stroke": INK, "stroke_width": 1.4, "stroke_dasharray": "7 3 1.5 3"}
        entries += [
            (star(24, 8, 8, fill=INK), "protected place"),
            (element("circle", cx=24, cy=8, r=7, **ring), "its radius, to scale"),
        ]
    else:
        entries.append((line(stroke=INK, stroke_dasharray="7 3 1.5 3"), "protected time"))
    items = "".join(
        f'<li><svg viewBox="0 0 48 16" aria-hidden="true">{mark}</svg>{name}</li>' for mark, name in entries
    )
    return f'<ul class="legend">{items}</ul>'
