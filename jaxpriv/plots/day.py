"""One protected trace as a picture: a map, and each coordinate against time."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse


# Okabe and Ito's palette: told apart with every common colour vision, and in print by lightness.
_TRUE, _RELEASED, _BELIEVED, _SECRET = "#8C8C8C", "#D55E00", "#56B4E9", "#0072B2"
_KM = 1e-3
# Hours shown on either side of the protected time, where the noise is.
_WINDOW_H = 2.0


@dataclass(frozen=True)
class DayPicture:
    """What the picture shows, in metres and hours.

    `hours` (n,); `true`, `released` and `believed` (n, 2) east and north, `halfwidth` (n, 2) of the 68 % intervals;
    `secret` is the position of the protected time.
    """

    hours: np.ndarray
    true: np.ndarray = field(repr=False)
    released: np.ndarray = field(repr=False)
    believed: np.ndarray = field(repr=False)
    halfwidth: np.ndarray = field(repr=False)
    secret: int
    title: str
    places: tuple[tuple[str, float, float], ...] = ()


def draw_day(picture: DayPicture, path: Path) -> None:
    """Draw the map and the two coordinates against time, and write a PNG to `path`."""
    figure = Figure(figsize=(13, 6.8), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.15, 1))
    map_axes = figure.add_subplot(grid[:, 0])
    _map(map_axes, picture)
    east = figure.add_subplot(grid[0, 1])
    north = figure.add_subplot(grid[1, 1], sharex=east)
    for axis, (axes, name) in enumerate(((east, "km east"), (north, "km north"))):
        _against_time(axes, picture, axis, name)
    east.tick_params(labelbottom=False)
    north.set_xlabel("hour of the day (UTC)")
    handles, labels = map_axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(picture.title)
    figure.savefig(path, format="png", metadata={"Software": None})


def _map(axes: Axes, picture: DayPicture) -> None:
    true, released = picture.true * _KM, picture.released * _KM
    at, width = picture.believed[picture.secret] * _KM, 2 * picture.halfwidth[picture.secret] * _KM
    axes.plot(*released.T, color=_RELEASED, lw=1.3, marker="o", ms=3.5, label="released", zorder=3)
    axes.plot(*true.T, color=_TRUE, lw=4, solid_capstyle="round", label="true (kept private)", zorder=2)
    axes.add_patch(
        Ellipse(
            (at[0], at[1]),
            width[0],
            width[1],
            facecolor=_BELIEVED,
            edgecolor=_SECRET,
            alpha=0.45,
            label="what an attacker believes (68 % in each direction)",
            zorder=1,
        )
    )
    axes.plot(
        *true[picture.secret],
        marker="*",
        ms=17,
        color=_SECRET,
        mec="white",
        ls="none",
        label="secret place",
        zorder=4,
    )
    for name, east, north in picture.places:
        axes.annotate(
            name,
            (east * _KM, north * _KM),
            textcoords="offset points",
            xytext=(13, 13),
            fontsize=10,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1},
            zorder=5,
        )
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.12)
    axes.grid(color="0.9")
    axes.set_axisbelow(True)
    axes.set_xlabel("km east")
    axes.set_ylabel("km north")


def _against_time(axes: Axes, picture: DayPicture, axis: int, name: str) -> None:
    believed, halfwidth = picture.believed[:, axis] * _KM, picture.halfwidth[:, axis] * _KM
    axes.fill_between(picture.hours, believed - halfwidth, believed + halfwidth, color=_BELIEVED, alpha=0.45, lw=0)
    axes.plot(picture.hours, picture.released[:, axis] * _KM, color=_RELEASED, lw=1.3, marker="o", ms=2.5, zorder=3)
    axes.plot(picture.hours, picture.true[:, axis] * _KM, color=_TRUE, lw=4, zorder=2)
    axes.axvline(picture.hours[picture.secret], color=_SECRET, lw=1, ls=":")
    axes.plot(
        picture.hours[picture.secret],
        picture.true[picture.secret, axis] * _KM,
        marker="*",
        ms=15,
        color=_SECRET,
        mec="white",
        ls="none",
        zorder=4,
    )
    axes.grid(color="0.9")
    axes.set_axisbelow(True)
    at = picture.hours[picture.secret]
    axes.set_xlim(max(at - _WINDOW_H, picture.hours[0]), min(at + _WINDOW_H, picture.hours[-1]))
    shown = np.abs(picture.hours - at) <= _WINDOW_H
    values = np.concatenate([believed - halfwidth, believed + halfwidth, picture.true[:, axis] * _KM])
    low, high = (edge(values[np.tile(shown, 3)]) for edge in (np.min, np.max))
    axes.set_ylim(low - 0.06 * (high - low) - 1e-3, high + 0.06 * (high - low) + 1e-3)
    axes.set_ylabel(name)
