"""A coupling mechanism as maps: where each group is and how far it is moved, and the law that all of them publish."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


_KM = 1e-3
_MOST = 5  # groups drawn


@dataclass(frozen=True)
class ConcealPicture:
    """What the picture shows: `places` (n, 2) in metres, the groups' `laws` (groups, n), the expected distance `moved`
    (groups, n) from each place in metres, and the law (n,) that is `published`."""

    places: np.ndarray = field(repr=False)
    names: tuple[str, ...]
    laws: np.ndarray = field(repr=False)
    moved: np.ndarray = field(repr=False)
    published: np.ndarray = field(repr=False)
    title: str


def draw_conceal(picture: ConcealPicture, path: Path) -> None:
    """Draw a map for each group, of the first five, and one of what is published; write a PNG to `path`."""
    shown = min(len(picture.names), _MOST)
    columns = min(shown + 1, 3)
    rows = math.ceil((shown + 1) / columns)
    figure = Figure(figsize=(5.4 * columns, 4.9 * rows), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    largest = float(np.max(picture.moved[:shown][picture.laws[:shown] > 0.0])) or 1.0
    drawn = None
    for k in range(shown):
        name = (
            f"{picture.names[k]}: before"
            if len(picture.names) <= _MOST
            else f"{picture.names[k]} (one of {len(picture.names)} groups)"
        )
        drawn = _map(axes[k], picture.places, picture.laws[k], picture.moved[k], largest, name)
    if drawn is not None:
        figure.colorbar(drawn, ax=list(axes[:shown]), label="expected distance moved, metres", shrink=0.85)
    _map(axes[shown], picture.places, picture.published, None, 1.0, "published, by every group")
    for unused in axes[shown + 1 :]:
        unused.set_axis_off()
    figure.suptitle(picture.title)
    figure.savefig(path, format="png", metadata={"Software": None})


def _map(axes: Axes, places: np.ndarray, law: np.ndarray, moved: np.ndarray | None, largest: float, title: str):
    has = law > 0.0
    size = 10.0 + 190.0 * law / np.max(law) * min(1.0, 60.0 / len(places))
    axes.scatter(*(places[~has] * _KM).T, s=5, color="#C8C8C8", linewidth=0.0)
    drawn = axes.scatter(
        *(places[has] * _KM).T,
        s=size[has],
        c="#D55E00" if moved is None else moved[has],
        cmap=None if moved is None else "cividis",
        vmin=None if moved is None else 0.0,
        vmax=None if moved is None else largest,
        edgecolor="black",
        linewidth=0.3,
    )
    axes.set_aspect("equal", adjustable="box")
    axes.set(title=title, xlabel="km east", ylabel="km north")
    return drawn
