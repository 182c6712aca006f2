"""Each coordinate against time, with what an attacker believes after the release."""

from __future__ import annotations

import numpy as np

from jaxpriv.report.page.details import ReleaseDetails
from jaxpriv.report.page.scales import clock_ticks, ticks
from jaxpriv.report.page.svg import (
    BAND,
    BELIEVED,
    GRID,
    INK,
    RELEASED,
    TRUE,
    Frame,
    badge,
    dots,
    element,
    figure,
    points,
    text,
)


_MAX_DOTS = 400
_LEFT, _WIDTH, _PANEL, _GAP, _TOP = 62.0, 808.0, 190.0, 26.0, 26.0


def draw_series(details: ReleaseDetails) -> str:
    """Draw each coordinate of the true, released and believed path, the latter with its 68 % band."""
    values = np.concatenate(
        [
            details.true_m,
            details.believed_m - details.halfwidth_m,
            details.believed_m + details.halfwidth_m,
            details.released_m,
        ]
    )
    far = details.unit == "m" and float(np.max(np.ptp(values, axis=0))) >= 4000
    unit, name = (1000.0, "km") if far else (1.0, details.unit)
    first, last = int(details.time_us[0]), int(details.time_us[-1])
    if first == last:
        first, last = first - 30 * 10**6, last + 30 * 10**6
    drawn = []
    frames = []
    for axis, direction in enumerate(details.axes):
        low, high = float(values[:, axis].min()) / unit, float(values[:, axis].max()) / unit
        pad = 0.05 * (high - low) or 1.0
        frame = Frame(
            _LEFT, _TOP + axis * (_PANEL + _GAP), _WIDTH, _PANEL, (float(first), float(last)), (low - pad, high + pad)
        )
        frames.append(frame)
        drawn.append(_panel(details, frame, axis, unit, f"{name} {direction}".strip()))
    drawn.append(_clock(frames[-1], frames, first, last))
    drawn += [_secret(frames, number, s.first_us, s.last_us) for number, s in enumerate(details.secrets, start=1)]
    height = frames[-1].top + _PANEL + 46
    title = f"{' and '.join(details.axes).capitalize()} against time: true, released and believed values"
    return figure("series-figure", title, _LEFT + _WIDTH + 30, height, *drawn)


def _panel(details: ReleaseDetails, frame: Frame, axis: int, unit: float, name: str) -> str:
    times = details.time_us
    true, released, believed, halfwidth = (
        path[:, axis] / unit for path in (details.true_m, details.released_m, details.believed_m, details.halfwidth_m)
    )
    upper, lower = frame.to_page(times, believed + halfwidth), frame.to_page(times, believed - halfwidth)
    line = {"fill": "none", "stroke_linejoin": "round"}
    drawn = []
    for value in ticks(*frame.y):
        y = float(frame.to_page(np.array([frame.x[0]]), np.array([value]))[0, 1])
        drawn.append(element("path", d=f"M{frame.left:.1f} {y:.1f}H{frame.left + frame.width:.1f}", stroke=GRID))
        label = f"{round(value, 9):g}".replace("-", "−")
        drawn.append(text(label, frame.left - 6, y + 4, text_anchor="end", font_size=12, fill="#444"))
    middle = frame.top + frame.height / 2
    drawn += [
        text(
            name, 13, middle, text_anchor="middle", transform=f"rotate(-90 13 {middle:.1f})", font_size=13, fill="#222"
        ),
        element("path", d=points(np.concatenate([upper, lower[::-1]])) + "Z", fill=BAND, fill_opacity=0.35),
        *(element("path", d=points(edge), stroke=BELIEVED, stroke_width=0.7, **line) for edge in (upper, lower)),
        element("path", d=points(frame.to_page(times, true)), stroke=TRUE, stroke_width=4, **line),
        element("path", d=points(frame.to_page(times, released)), stroke=RELEASED, stroke_width=1.1, **line),
    ]
    if len(times) <= _MAX_DOTS:
        marks = frame.to_page(times, released)
        drawn.append(dots(marks, 2.2, fill="#fff", stroke=RELEASED, stroke_width=1.1))
    dashed = {"stroke": BELIEVED, "stroke_width": 1.6, "stroke_dasharray": "5 4"}
    drawn.append(element("path", d=points(frame.to_page(times, believed)), **dashed, **line))
    drawn.append(frame.outline(fill="none", stroke="#999"))
    return "".join(drawn)


def _clock(bottom: Frame, frames: list[Frame], first: int, last: int) -> str:
    drawn = []
    for at, clock, date in clock_ticks(first, last):
        x = float(bottom.to_page(np.array([at]), np.array([bottom.y[0]]))[0, 0])
        for frame in frames:
            drawn.append(element("path", d=f"M{x:.1f} {frame.top + frame.height:.1f}v5", stroke="#999"))
        y = bottom.top + bottom.height + 18
        drawn += [text(label, x, y + 16 * i, text_anchor="middle") for i, label in enumerate((clock, date)) if label]
    end = bottom.left + bottom.width
    drawn.append(text("UTC", end, bottom.top + bottom.height + 42, text_anchor="end"))
    return element("g", "".join(drawn), font_size=12, fill="#444")


def _secret(frames: list[Frame], number: int, first_us: int, last_us: int) -> str:
    drawn = []
    x = 0.0
    for frame in frames:
        span = np.clip(np.array([first_us, last_us], dtype=float), *frame.x)
        (x0, _), (x1, _) = frame.to_page(span, np.array([frame.y[0]] * 2)).tolist()
        x = (x0 + x1) / 2
        if x1 - x0 > 3:
            drawn.append(
                element("rect", x=x0, y=frame.top, width=x1 - x0, height=frame.height, fill=INK, fill_opacity=0.07)
            )
        for edge in {x0, x1} if x1 - x0 > 3 else {x}:
            drawn.append(
                element(
                    "path",
                    d=f"M{edge:.1f} {frame.top:.1f}v{frame.height:.1f}",
                    stroke=INK,
                    stroke_dasharray="7 3 1.5 3",
                )
            )
    return "".join(drawn) + badge(str(number), x, 13)
