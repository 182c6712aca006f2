"""Drawing in SVG by hand: elements, paths, and a frame that maps metres to the page."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np


# Okabe and Ito's palette: told apart with every common colour vision; each line also has its own stroke or marker.
TRUE, RELEASED, BELIEVED, BAND, INK, GRID = "#8a8a8a", "#d55e00", "#0072b2", "#56b4e9", "#1a1a1a", "#e4e4e4"


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """Write one element; underscores in names become hyphens, and values are escaped."""
    listed = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(written(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{listed}>{content}</{name}>" if content else f"<{name}{listed}/>"


def text(content: str, x: float, y: float, /, **attributes: object) -> str:
    """Write text, escaped."""
    return element("text", escape(content), x=x, y=y, **attributes)


def figure(identity: str, title: str, width: float, height: float, *parts: str) -> str:
    """Wrap parts in an SVG that scales with the page and has a title for those who cannot see it."""
    return (
        f'<svg id="{escape(identity)}" viewBox="0 0 {written(width)} {written(height)}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )


def points(pixels: np.ndarray) -> str:
    """Write points (m, 2) as the data of a path; points on the same half pixel as the one before are left out."""
    moved = np.any(np.diff(np.round(2 * pixels), axis=0) != 0, axis=1)
    pixels = pixels[np.concatenate([[True], moved])]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in pixels)


def star(x: float, y: float, radius: float, /, **attributes: object) -> str:
    """Draw a star of five points."""
    turns = np.arange(10) * np.pi / 5
    reach = np.where(np.arange(10) % 2, 0.42, 1.0) * radius
    outline = np.stack([x + reach * np.sin(turns), y - reach * np.cos(turns)], axis=1)
    return element("path", d=points(outline) + "Z", **attributes)


def badge(label: str, x: float, y: float) -> str:
    """Draw a number in a circle, longer labels in a lozenge."""
    half = max(9.0, 3.6 * len(label) + 3)
    return element(
        "g",
        element("rect", x=x - half, y=y - 9, width=2 * half, height=18, rx=9, fill=INK, stroke="#fff", stroke_width=1.5)
        + text(label, x, y + 4, fill="#fff", text_anchor="middle", font_size=11, font_weight="bold"),
    )


def dots(pixels: np.ndarray, radius: float, **attributes: object) -> str:
    """Draw a dot at each point (m, 2), one for those on the same half pixel."""
    pixels = np.unique(np.round(2 * pixels), axis=0) / 2
    return element("g", "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>' for x, y in pixels), **attributes)


@dataclass(frozen=True)
class Frame:
    """A rectangle of the page that shows a range of values: x to the right, y upwards."""

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]

    def to_page(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Map values (m,), (m,) to the page, (m, 2)."""
        right = self.left + (np.asarray(x, float) - self.x[0]) / (self.x[1] - self.x[0]) * self.width
        down = self.top + (self.y[1] - np.asarray(y, float)) / (self.y[1] - self.y[0]) * self.height
        return np.stack([right, down], axis=-1)

    @property
    def scale(self) -> float:
        """Length on the page of one unit of x."""
        return self.width / (self.x[1] - self.x[0])

    def outline(self, **attributes: object) -> str:
        """Draw the rectangle."""
        return element("rect", x=self.left, y=self.top, width=self.width, height=self.height, **attributes)


def written(value: object) -> str:
    """Write the value of an attribute: numbers to a hundredth."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
