"""The noise as a picture: how far points move, and how much of it they share."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from jaxpriv.report.page.details import ReleaseDetails
from jaxpriv.report.page.scales import clock_ticks, length_text
from jaxpriv.report.page.svg import badge, element, figure, text
from jaxpriv.report.rounding import significant


_SIZE, _LEFT, _TOP = 300.0, 52.0, 46.0
_MAX_BADGES = 12
# Text keeps its size on the page when there is a single panel.
_MIN_WIDTH = 860.0
# Ends of a scale through white: blue for noise in the same direction, orange for opposite directions.
_POSITIVE, _NEGATIVE = np.array([0, 80, 150.0]), np.array([213, 94, 0.0])


def draw_noise(details: ReleaseDetails) -> str:
    """Draw the noise covariance of each axis on one scale, or once where they are equal.

    Colours show the signed square root of the covariance, in the unit of the values.
    """
    names = dict(zip(details.axes, details.covariances, strict=True))
    if len(names) > 1 and all(np.array_equal(one, details.covariances[0]) for one in details.covariances):
        names = {f"{' and '.join(details.axes)} alike": details.covariances[0]}
    signed = {name: np.sign(values) * np.sqrt(np.abs(values)) for name, values in names.items()}
    top = max(float(np.max(np.abs(values))) for values in signed.values()) or 1.0
    drawn = [
        _panel(details, values / top, name, _LEFT + i * (_SIZE + _LEFT + 10))
        for i, (name, values) in enumerate(signed.items())
    ]
    right = _LEFT + len(drawn) * (_SIZE + _LEFT + 10) - _LEFT + 14
    drawn.append(_scale(right, top, details.unit))
    width = max(right + 110, _MIN_WIDTH)
    return figure("noise-figure", "How much noise pairs of fixes share", width, _TOP + _SIZE + 44, *drawn)


def _panel(details: ReleaseDetails, relative: np.ndarray, name: str, left: float) -> str:
    rows = np.asarray(details.covariance_rows)
    shown = details.time_us[rows].astype(float)
    k = len(rows)
    drawn = [
        _image(_colours(relative), left, _TOP, _SIZE, _SIZE),
        element("rect", x=left, y=_TOP, width=_SIZE, height=_SIZE, fill="none", stroke="#999"),
        text(name, left + _SIZE / 2, 14, text_anchor="middle", font_size=13, fill="#222"),
    ]
    for number, secret in enumerate(details.secrets[:_MAX_BADGES], start=1):
        middle = (secret.first_us + secret.last_us) / 2
        drawn.append(badge(str(number), left + (float(np.interp(middle, shown, np.arange(k))) + 0.5) / k * _SIZE, 33))
    if k > 1:
        for at, clock, date in clock_ticks(int(shown[0]), int(shown[-1]), about=5):
            # Cells have one size each, whatever the time between the fixes.
            along = (float(np.interp(at, shown, np.arange(k))) + 0.5) / k * _SIZE
            drawn.append(element("path", d=f"M{left + along:.1f} {_TOP + _SIZE:.1f}v5", stroke="#999"))
            drawn.append(element("path", d=f"M{left:.1f} {_TOP + along:.1f}h-5", stroke="#999"))
            drawn.append(text(clock or date, left + along, _TOP + _SIZE + 18, text_anchor="middle"))
            drawn.append(text(clock or date[5:], left - 8, _TOP + along + 4, text_anchor="end"))
            if clock and date:
                drawn.append(text(date, left + along, _TOP + _SIZE + 33, text_anchor="middle"))
    return element("g", "".join(drawn), font_size=12, fill="#444")


def _scale(left: float, top: float, unit: str) -> str:
    strip = np.linspace(1, -1, 101)[:, None]
    end = length_text(float(significant(top, 2)), unit)
    labels = [(0.0, f"{end} together"), (0.5, "nothing shared"), (1.0, f"{end} opposite")]
    wrapped = []
    for at, label in labels:
        first, _, second = label.rpartition(" ")
        y = _TOP + at * _SIZE + (12 if at == 0 else -8 if at == 1 else 0)
        wrapped.append(text(first, left + 22, y, font_size=12, fill="#444"))
        wrapped.append(text(second, left + 22, y + 14, font_size=12, fill="#444"))
    outline = element("rect", x=left, y=_TOP, width=14, height=_SIZE, fill="none", stroke="#999")
    return _image(_colours(strip), left, _TOP, 14, _SIZE) + outline + "".join(wrapped)


def _colours(relative: np.ndarray) -> np.ndarray:
    strength = np.clip(np.abs(relative), 0, 1)[..., None]
    ends = np.where(relative[..., None] >= 0, _POSITIVE, _NEGATIVE)
    return np.round(255 + (ends - 255) * strength).astype(np.uint8)


def _image(colours: np.ndarray, x: float, y: float, width: float, height: float) -> str:
    data = base64.b64encode(png(colours)).decode("ascii")
    return element(
        "image",
        x=x,
        y=y,
        width=width,
        height=height,
        preserveAspectRatio="none",
        style="image-rendering:pixelated",
        href=f"data:image/png;base64,{data}",
    )


def png(colours: np.ndarray) -> bytes:
    """Write colours (rows, columns, 3), one byte each, as a PNG file."""
    rows, columns, _ = colours.shape
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), colours.reshape(rows, -1)], axis=1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
