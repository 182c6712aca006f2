"""An obfuscation channel as two maps: what it costs at each place, and what an adversary is left with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


_KM = 1e-3


@dataclass(frozen=True)
class ObfuscationPicture:
    """What the picture shows.

    `places` (n, 2) in metres, their `probabilities` (n,), the expected distance `loss` (n,) that a person at each place
    is moved, and the adversary's expected `error` (n,) after each published place, NaN where it is never published;
    metres.
    """

    places: np.ndarray = field(repr=False)
    probabilities: np.ndarray = field(repr=False)
    loss: np.ndarray = field(repr=False)
    error: np.ndarray = field(repr=False)
    title: str


def draw_obfuscation(picture: ObfuscationPicture, path: Path) -> None:
    """Draw both maps and write a PNG to `path`."""
    figure = Figure(figsize=(13, 6.2), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    _map(figure, left, picture, picture.loss, "Quality loss: expected distance moved from each place", "metres moved")
    _map(
        figure,
        right,
        picture,
        picture.error,
        "Inference error: the adversary's, after each published place",
        "metres of error",
    )
    figure.suptitle(picture.title)
    figure.savefig(path, format="png", metadata={"Software": None})


def _map(figure: Figure, axes: Axes, picture: ObfuscationPicture, values: np.ndarray, title: str, unit: str) -> None:
    places = picture.places * _KM
    share = picture.probabilities / np.max(picture.probabilities)
    size = 14.0 + 180.0 * share * min(1.0, 30.0 / len(places))
    known = np.isfinite(values)
    drawn = axes.scatter(
        places[known, 0],
        places[known, 1],
        c=values[known],
        s=size[known],
        cmap="cividis",
        edgecolor="black",
        linewidth=0.3,
    )
    if not np.all(known):
        axes.scatter(
            places[~known, 0],
            places[~known, 1],
            marker="x",
            s=18,
            color="#8C8C8C",
            linewidth=0.8,
            label="never published",
        )
        axes.legend(loc="best", frameon=True)
    axes.set_aspect("equal", adjustable="box")
    axes.set(title=title, xlabel="km east", ylabel="km north")
    figure.colorbar(drawn, ax=axes, label=unit, shrink=0.85)
