"""Maps of the released trace: the whole of it, and close-ups of the secrets."""

from __future__ import annotations

import numpy as np

from jaxpriv.report.page.details import ReleaseDetails, SecretDetails
from jaxpriv.report.page.scales import length_text, round_below, ticks
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
    star,
    text,
)


_MAX_DOTS = 400
# Fixes shown before and after a secret in its close-up: other visits to the place would cover it.
CLOSE_UP_FIXES = 40
_RING = {"fill": "none", "stroke": INK, "stroke_width": 1.4, "stroke_dasharray": "7 3 1.5 3"}


def draw_map(details: ReleaseDetails) -> str:
    """Draw true, released and believed positions to scale, with the secrets and their radii."""
    low, high = _extent(details)
    span = high - low
    width, left, bottom = 760.0, 70.0, 40.0
    inner = width - left - 12
    height = float(np.clip(inner * span[1] / span[0], 260, 680))
    scale = max(span[0] / inner, span[1] / height)
    middle, half = (low + high) / 2, np.array([inner, height]) * scale / 2
    frame = Frame(
        left,
        10.0,
        inner,
        height,
        (float(middle[0] - half[0]), float(middle[0] + half[0])),
        (float(middle[1] - half[1]), float(middle[1] + half[1])),
    )
    clip = "map-clip"
    inside = [_paths(details, frame, 0, len(details.time_us))]
    inside += [_secret_marks(details, secret, frame) for secret in details.secrets]
    return figure(
        "map-figure",
        "Map of true, released and believed positions with the protected places",
        width,
        frame.top + height + bottom,
        element("clipPath", frame.outline(), id=clip),
        _grid(frame),
        element("g", "".join(inside), clip_path=f"url(#{clip})"),
        frame.outline(fill="none", stroke="#999"),
        _badges(details, frame),
        scale_bar(frame),
    )


def draw_close_up(details: ReleaseDetails, number: int) -> str:
    """Draw the surroundings of secret `number` (from 0): its radius, and what an attacker believes afterwards.

    Of the paths, `CLOSE_UP_FIXES` fixes before it and after it are shown.
    """
    secret = details.secrets[number]
    place, believed = details.place(secret, details.true_m), details.place(secret, details.believed_m)
    released = details.place(secret, details.released_m)
    reach = max(
        1.12 * secret.radius_m,
        float(np.max(np.abs(believed - place) + 1.12 * np.array(secret.after_m))),
        1.1 * float(np.max(np.abs(released - place))),
    )
    size = 300.0
    frame = Frame(
        1.0,
        1.0,
        size - 2,
        size - 2,
        (float(place[0] - reach), float(place[0] + reach)),
        (float(place[1] - reach), float(place[1] + reach)),
    )
    clip = f"close-up-{number + 1}-clip"
    first, last = np.searchsorted(details.time_us, [secret.first_us, secret.last_us], side="right")
    inside = _paths(details, frame, max(0, first - CLOSE_UP_FIXES - 1), last + CLOSE_UP_FIXES) + _secret_marks(
        details, secret, frame, named=True
    )
    return figure(
        f"close-up-{number + 1}",
        f"Close-up of secret {number + 1}: its radius and what an attacker believes about it",
        size,
        size,
        element("clipPath", frame.outline(), id=clip),
        element("g", inside, clip_path=f"url(#{clip})"),
        frame.outline(fill="none", stroke="#999"),
        scale_bar(frame),
    )


def scale_bar(frame: Frame) -> str:
    """Draw a bar of a round length, with the length written on it."""
    length = round_below((frame.x[1] - frame.x[0]) * 0.28)
    x0, y = frame.left + 14, frame.top + frame.height - 14
    x1 = x0 + length * frame.scale
    label = length_text(length)
    return element(
        "g",
        element(
            "path", d=f"M{x0:.1f} {y - 5:.1f}V{y:.1f}H{x1:.1f}V{y - 5:.1f}", fill="none", stroke="#fff", stroke_width=5
        )
        + element(
            "path", d=f"M{x0:.1f} {y - 5:.1f}V{y:.1f}H{x1:.1f}V{y - 5:.1f}", fill="none", stroke=INK, stroke_width=2
        )
        + text(label, (x0 + x1) / 2, y - 7, text_anchor="middle", font_size=12, class_="halo"),
    )


def _extent(details: ReleaseDetails) -> tuple[np.ndarray, np.ndarray]:
    shown = [details.true_m, details.released_m]
    for secret in details.secrets:
        place = details.place(secret, details.true_m)
        believed, after = details.place(secret, details.believed_m), np.array(secret.after_m)
        shown.append(np.stack([place - secret.radius_m, place + secret.radius_m, believed - after, believed + after]))
    every = np.concatenate(shown)
    low, high = every.min(axis=0), every.max(axis=0)
    pad = 0.05 * float(np.max(high - low))
    return low - pad, high + pad


def _paths(details: ReleaseDetails, frame: Frame, first: int, last: int) -> str:
    true, released, believed = (
        frame.to_page(*path[first:last].T) for path in (details.true_m, details.released_m, details.believed_m)
    )
    line = {"fill": "none", "stroke_linejoin": "round", "stroke_linecap": "round"}
    drawn = [
        element("path", d=_visible(true, frame), stroke=TRUE, stroke_width=5, **line),
        element("path", d=_visible(released, frame), stroke=RELEASED, stroke_width=1.3, **line),
    ]
    near = _near(released, frame)
    if len(near) <= _MAX_DOTS:
        drawn.append(dots(near, 2.6, fill="#fff", stroke=RELEASED, stroke_width=1.3))
    drawn.append(
        element("path", d=_visible(believed, frame), stroke=BELIEVED, stroke_width=1.8, stroke_dasharray="5 4", **line)
    )
    return "".join(drawn)


def _visible(pixels: np.ndarray, frame: Frame) -> str:
    """Write the part of a path whose pieces may touch the frame."""
    low = np.array([frame.left, frame.top])
    high = low + np.array([frame.width, frame.height])
    start, end = pixels[:-1], pixels[1:]
    touching = np.all((np.maximum(start, end) >= low - 5) & (np.minimum(start, end) <= high + 5), axis=1)
    breaks = np.flatnonzero(np.diff(np.concatenate([[False], touching, [False]]).astype(int)))
    runs = [points(pixels[first : last + 1]) for first, last in breaks.reshape(-1, 2)]
    return "".join(runs) or points(pixels[:1])


def _near(pixels: np.ndarray, frame: Frame) -> np.ndarray:
    low, high = (
        np.array([frame.left, frame.top]) - 5,
        np.array([frame.left + frame.width, frame.top + frame.height]) + 5,
    )
    return pixels[np.all((pixels >= low) & (pixels <= high), axis=1)]


def _secret_marks(details: ReleaseDetails, secret: SecretDetails, frame: Frame, named: bool = False) -> str:
    place, believed = details.place(secret, details.true_m), details.place(secret, details.believed_m)
    (x, y), (cx, cy) = frame.to_page(*np.stack([place, believed], axis=1)).tolist()
    radius = secret.radius_m * frame.scale
    drawn = [
        element(
            "ellipse",
            cx=cx,
            cy=cy,
            rx=secret.after_m[0] * frame.scale,
            ry=secret.after_m[1] * frame.scale,
            fill=BAND,
            fill_opacity=0.35,
            stroke=BELIEVED,
        ),
        element("circle", cx=x, cy=y, r=radius, **_RING),
    ]
    if named:
        tip = (x + radius * 0.82, y - radius * 0.572)
        drawn.append(element("path", d=f"M{x:.1f} {y:.1f}L{tip[0]:.1f} {tip[1]:.1f}", **_RING))
        drawn.append(
            text(
                length_text(secret.radius_m),
                x + radius * 0.45,
                y - radius * 0.32 - 6,
                text_anchor="middle",
                font_size=12,
                class_="halo",
            )
        )
    places = details.true_m[list(secret.indices)] if secret.indices else place[None]
    drawn += [
        star(sx, sy, 9 if named else 8, fill=INK, stroke="#fff", stroke_width=1.2)
        for sx, sy in frame.to_page(places[:, 0], places[:, 1]).tolist()
    ]
    return "".join(drawn)


def _badges(details: ReleaseDetails, frame: Frame) -> str:
    """Number the secrets, away from the middle of the trace; those that would overlap share a badge: 4 +2."""
    centre = frame.to_page(*details.true_m.mean(axis=0)[:, None])[0]
    groups: list[tuple[np.ndarray, list[int]]] = []
    for number, secret in enumerate(details.secrets, start=1):
        at = frame.to_page(*details.place(secret, details.true_m)[:, None])[0]
        distance = float(np.hypot(*(at - centre)))
        at = at + 19 * ((at - centre) / distance if distance > 1e-6 else np.array([0.0, -1.0]))
        near = next((numbers for place, numbers in groups if np.hypot(*(place - at)) < 22), None)
        if near is None:
            groups.append((at, [number]))
        else:
            near.append(number)
    return "".join(
        badge(str(numbers[0]) + (f" +{len(numbers) - 1}" if len(numbers) > 1 else ""), float(at[0]), float(at[1]))
        for at, numbers in groups
    )


def _grid(frame: Frame) -> str:
    drawn = []
    unit, name = (1000.0, "km") if max(frame.x[1] - frame.x[0], frame.y[1] - frame.y[0]) >= 4000 else (1.0, "m")
    bottom = frame.top + frame.height
    for east in ticks(*frame.x, about=7):
        x = float(frame.to_page(np.array([east]), np.array([frame.y[0]]))[0, 0])
        drawn.append(element("path", d=f"M{x:.1f} {frame.top:.1f}V{bottom:.1f}", stroke=GRID))
        drawn.append(text(_number(east / unit), x, bottom + 15, text_anchor="middle"))
    for north in ticks(*frame.y, about=6):
        y = float(frame.to_page(np.array([frame.x[0]]), np.array([north]))[0, 1])
        drawn.append(element("path", d=f"M{frame.left:.1f} {y:.1f}H{frame.left + frame.width:.1f}", stroke=GRID))
        drawn.append(text(_number(north / unit), frame.left - 6, y + 4, text_anchor="end"))
    drawn.append(text(f"{name} east of the origin", frame.left + frame.width / 2, bottom + 32, text_anchor="middle"))
    middle = frame.top + frame.height / 2
    turned = f"rotate(-90 13 {middle:.1f})"
    drawn.append(text(f"{name} north of the origin", 13, middle, text_anchor="middle", transform=turned))
    return element("g", "".join(drawn), font_size=12, fill="#444")


def _number(value: float) -> str:
    return f"{round(value, 9):g}".replace("-", "−")
