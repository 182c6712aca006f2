"""The map of the explorer: an example of the noise, and what an attacker would believe of each secret."""

from __future__ import annotations

import numpy as np

from jaxpriv.report.page.details import ReleaseDetails
from jaxpriv.report.page.exploration import Exploration
from jaxpriv.report.page.live import Live
from jaxpriv.report.page.maps import scale_bar
from jaxpriv.report.page.svg import (
    BAND,
    BELIEVED,
    GRID,
    INK,
    RELEASED,
    TRUE,
    Frame,
    badge,
    element,
    figure,
    points,
    star,
)


_WIDTH, _HEIGHT = 480.0, 400.0
# Paths are drawn at so many fixes at most: each ε has its own.
MAX_FIXES = 800
# The frame holds the true path and the rings, with room for noise; what leaves it is cut off.
_ROOM = 0.3


def draw_explorer_map(found: Exploration, shown: list[int], rows: np.ndarray, live: Live) -> str:
    """Draw it for the secrets `shown` and the fixes `rows`."""
    first = found.rungs[0].details
    frame = _frame(first, shown)
    clip = "explorer-map-clip"
    line = {"fill": "none", "stroke_linejoin": "round", "stroke_linecap": "round"}
    drawn = [
        element("path", d=points(frame.to_page(*first.true_m[rows].T)), stroke=TRUE, stroke_width=5, **line),
        live.element(
            "path",
            "example-path",
            {"d": [points(frame.to_page(*rung.details.released_m[rows].T)) for rung in found.rungs]},
            stroke=RELEASED,
            stroke_width=1.4,
            **line,
        ),
    ]
    badges = []
    for number in shown:
        secret = first.secrets[number]
        (x, y) = frame.to_page(*first.place(secret, first.true_m)[:, None])[0].tolist()
        centres = [
            frame.to_page(*rung.details.place(secret, rung.details.believed_m)[:, None])[0] for rung in found.rungs
        ]
        halves = [np.array(rung.details.secrets[number].after_m) * frame.scale for rung in found.rungs]
        ellipse = {
            "cx": [float(centre[0]) for centre in centres],
            "cy": [float(centre[1]) for centre in centres],
            "rx": [float(half[0]) for half in halves],
            "ry": [float(half[1]) for half in halves],
        }
        drawn += [
            live.element("ellipse", f"believed-{number + 1}", ellipse, fill=BAND, fill_opacity=0.35, stroke=BELIEVED),
            element(
                "circle",
                cx=x,
                cy=y,
                r=secret.radius_m * frame.scale,
                fill="none",
                stroke=INK,
                stroke_dasharray="7 3 1.5 3",
            ),
            star(x, y, 8, fill=INK, stroke="#fff", stroke_width=1.2),
        ]
        badges.append(badge(str(number + 1), x, max(y - 18, frame.top + 10)))
    return figure(
        "explorer-map",
        "Map: true path, a simulated noisy path, the protected places, and where an attacker would believe them to be",
        _WIDTH,
        _HEIGHT,
        element("clipPath", frame.outline(), id=clip),
        element("g", "".join(drawn) + "".join(badges), clip_path=f"url(#{clip})"),
        frame.outline(fill="none", stroke=GRID),
        scale_bar(frame),
    )


def _frame(details: ReleaseDetails, shown: list[int]) -> Frame:
    held = [details.true_m]
    for number in shown:
        place = details.place(details.secrets[number], details.true_m)
        held.append(np.stack([place - details.secrets[number].radius_m, place + details.secrets[number].radius_m]))
    every = np.concatenate(held)
    low, high = every.min(axis=0), every.max(axis=0)
    span = (high - low) * (1 + _ROOM)
    inner = np.array([_WIDTH - 4, _HEIGHT - 4])
    half = inner * max(float(np.max(span / inner)), 1e-9) / 2
    middle = (low + high) / 2
    (left, bottom), (right, top) = (middle - half).tolist(), (middle + half).tolist()
    return Frame(2.0, 2.0, float(inner[0]), float(inner[1]), (left, right), (bottom, top))
