"""Curves of the explorer: how far each point is moved, and what each ε costs."""

from __future__ import annotations

import math

import numpy as np

from jaxpriv.report.page.exploration import Exploration
from jaxpriv.report.page.live import Live
from jaxpriv.report.page.scales import clock_ticks, length_text
from jaxpriv.report.page.svg import GRID, INK, RELEASED, Frame, badge, element, figure, points, text
from jaxpriv.report.rounding import given


_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 480.0, 300.0, 62.0, 44.0
_INDEPENDENT = "#0072b2"
_APART = 22.0  # numbers of secrets that are nearer than this would cover each other


def draw_profile(found: Exploration, shown: list[int], rows: np.ndarray, live: Live) -> str:
    """Draw the size of the noise against time, on a logarithmic scale that stays while ε moves."""
    details = found.rungs[0].details
    first, last = int(details.time_us[0]), int(details.time_us[-1])
    if first == last:
        first, last = first - 30 * 10**6, last + 30 * 10**6
    spreads = [np.log10(rung.spread[rows]) for rung in found.rungs]
    others = [rung.report.independent.rms_noise_m for rung in found.rungs]
    known = [math.log10(value) for value in others if value]
    low, high = min(map(np.min, spreads)), max([*map(np.max, spreads), *known])
    frame = _frame((float(first), float(last)), (float(low), float(high)))
    times = details.time_us[rows].astype(float)
    drawn = [_decades(frame, details.unit)]
    for at, clock, date in clock_ticks(first, last, about=5):
        x = float(frame.to_page(np.array([at]), np.array([0.0]))[0, 0])
        y = frame.top + frame.height
        drawn += [
            text(label, x, y + 16 + 15 * i, text_anchor="middle") for i, label in enumerate((clock, date)) if label
        ]
    drawn.append(text("UTC", frame.left + frame.width, frame.top + frame.height + 40, text_anchor="end"))
    labelled = -math.inf
    for number in shown:
        secret = details.secrets[number]
        middle = np.clip((secret.first_us + secret.last_us) / 2, *frame.x)
        x = float(frame.to_page(np.array([middle]), np.array([0.0]))[0, 0])
        mark = f"M{x:.1f} {frame.top:.1f}v{frame.height:.1f}"
        drawn.append(element("path", d=mark, stroke=INK, stroke_dasharray="7 3 1.5 3"))
        if x - labelled >= _APART:
            drawn.append(badge(str(number + 1), x, 11))
            labelled = x
    levels = [float(frame.to_page(np.array([first]), np.array([math.log10(v) if v else low]))[0, 1]) for v in others]
    level = {"y1": levels, "y2": levels, "visibility": ["visible" if value else "hidden" for value in others]}
    dashes = {"stroke": _INDEPENDENT, "stroke_width": 1.8, "stroke_dasharray": "6 4"}
    right = frame.left + frame.width
    drawn.append(live.element("line", "independent-level", level, x1=frame.left, x2=right, **dashes))
    drawn.append(
        live.element(
            "path",
            "profile-path",
            {"d": [points(frame.to_page(times, spread)) for spread in spreads]},
            fill="none",
            stroke=RELEASED,
            stroke_width=2.2,
            stroke_linejoin="round",
        )
    )
    title = "How far each point would be moved, against time; dashed, independent noise with the same promise"
    return figure("profile-figure", title, _WIDTH, _HEIGHT, element("g", "".join(drawn), font_size=13, fill="#444"))


def draw_trade(found: Exploration, live: Live) -> str:
    """Draw the displacement against ε, both logarithmic, with a mark that moves along."""
    at = np.log10([rung.epsilon for rung in found.rungs])
    ours = np.log10([rung.report.rms_noise_m for rung in found.rungs])
    others = [(x, math.log10(rung.report.independent.rms_noise_m)) for x, rung in zip(at, found.rungs, strict=True)
              if rung.report.independent.rms_noise_m]  # fmt: skip
    highs = [float(ours.max()), *(y for _, y in others)]
    x_range = (float(at.min()) - 0.05, float(at.max()) + 0.05)
    frame = _frame(x_range, (float(ours.min()), max(highs)))
    drawn = [_decades(frame, found.rungs[0].details.unit)]
    y = frame.top + frame.height
    last = -math.inf
    for place, rung in zip(at, found.rungs, strict=True):
        x = float(frame.to_page(np.array([place]), np.array([0.0]))[0, 0])
        drawn.append(element("path", d=f"M{x:.1f} {y:.1f}v4", stroke="#777"))
        if x - last >= 30:
            drawn.append(text(given(rung.epsilon), x, y + 17, text_anchor="middle"))
            last = x
    drawn.append(
        text("ε: safer on the left, more exact on the right", _LEFT + frame.width / 2, y + 37, text_anchor="middle")
    )
    line = {"fill": "none", "stroke_linejoin": "round"}
    if others:
        path = frame.to_page(np.array([x for x, _ in others]), np.array([value for _, value in others]))
        drawn.append(
            element("path", d=points(path), stroke=_INDEPENDENT, stroke_width=1.8, stroke_dasharray="6 4", **line)
        )
    pixels = frame.to_page(at, ours)
    drawn.append(element("path", d=points(pixels), stroke=RELEASED, stroke_width=2.2, **line))
    where = {"cx": pixels[:, 0].tolist(), "cy": pixels[:, 1].tolist()}
    drawn.append(live.element("circle", "trade-mark", where, r=6, fill="#fff", stroke=INK, stroke_width=2.5))
    title = "How far points would be moved on the whole at each ε; dashed, independent noise with the same promise"
    return figure("trade-figure", title, _WIDTH, _HEIGHT, element("g", "".join(drawn), font_size=13, fill="#444"))


def _frame(x: tuple[float, float], y: tuple[float, float]) -> Frame:
    low, high = y
    pad = max(0.05 * (high - low), 0.05)
    span = x if x[1] > x[0] else (x[0] - 0.5, x[1] + 0.5)
    return Frame(_LEFT, 24.0, _WIDTH - _LEFT - 12, _HEIGHT - 24 - _BOTTOM, span, (low - pad, high + pad))


def _decades(frame: Frame, unit: str) -> str:
    """Lines at 1, 10, 100 …, and in between where there are few."""
    low, high = frame.y
    steps = (1.0,) if high - low > 2.2 else (1.0, 2.0, 5.0) if high - low > 0.6 else (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
    drawn = []
    for power in range(math.floor(low), math.ceil(high) + 1):
        for step in steps:
            value = step * 10.0**power
            if not low <= math.log10(value) <= high:
                continue
            y = float(frame.to_page(np.array([frame.x[0]]), np.array([math.log10(value)]))[0, 1])
            drawn.append(element("path", d=f"M{frame.left:.1f} {y:.1f}H{frame.left + frame.width:.1f}", stroke=GRID))
            drawn.append(text(length_text(value, unit), frame.left - 6, y + 4, text_anchor="end"))
    drawn.append(frame.outline(fill="none", stroke="#999"))
    return "".join(drawn)
