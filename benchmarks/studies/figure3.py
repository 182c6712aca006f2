"""Figure 3 of Meehan and Chaudhuri (AISTATS 2021): three visits of a day, and what the noise looks like.

    python -m benchmarks.studies.figure3 [TRACE] [--secret TIME …] [--error 150] [--out FOLDER]

TRACE is a trace file that jaxpriv reads; without it the made-up day of `jaxpriv demo` is used. Three sensitive times
(default: early, in the middle and late) are protected under the default set of priors, fitted on the trace itself,
with the least noise of so many metres (root mean square, both axes together), and beside it independent noise of the
same error. Ellipses hold an attacker's belief about each visit. Writes figure3.png and, without a TRACE,
covariances.png: the noise of every mechanism for both kernels of the paper. Pictures of a real trace are for you alone.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import jaxpriv as jp
from benchmarks.studies._figure2_curves import (
    BLOCK,
    JOINT,
    PUBLISHED,
    SHAPED,
    UNIFORM,
    covariance,
    mechanisms,
    panels,
)
from jaxpriv.errors import JaxprivError
from jaxpriv.jobs.demo_trace import demo_day
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.instants import parse_instant
from jaxpriv.traces.projection import LocalPlane


BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8C8C8C"
RADIUS = 200.0
# Half-widths, in standard deviations, of ellipses that hold a normal pair with 68 % and 95 % probability.
INNER, OUTER = math.sqrt(-2 * math.log(0.32)), math.sqrt(-2 * math.log(0.05))
SHARED = ("true (kept private)", "sensitive visit")


@dataclass(frozen=True)
class Attack:
    """One release, and what an attacker believes about the secrets: means and deviations, metres."""

    name: str
    epsilon: float
    released: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.figure3", description=__doc__.split("\n")[0])
    parser.add_argument("trace", nargs="?", type=Path, help="trace file; default: a made-up day")
    parser.add_argument("--secret", action="append", default=[], metavar="TIME", help="sensitive time, ISO 8601")
    parser.add_argument("--error", type=float, default=150.0, metavar="METRES", help="root mean square displacement")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder for the pictures")
    options = parser.parse_args(arguments)
    try:
        seconds, metres, start = _trace(options.trace)
        wanted = [(parse_instant(text).us / 1e6 - start) for text in options.secret]
        spread = np.array([0.16, 0.52, 0.86]) * seconds[-1]
        secrets = [int(np.argmin(np.abs(seconds - when))) for when in (wanted or spread)]
        attacks = attack(seconds, metres, secrets, len(seconds) * options.error**2)
    except (JaxprivError, OSError, ValueError) as problem:
        parser.error(str(problem))
    options.out.mkdir(parents=True, exist_ok=True)
    draw_map(metres, secrets, attacks, options.error, options.out / "figure3.png")
    if options.trace is None:
        draw_noises(options.out / "covariances.png")
    for one in attacks:
        left = ", ".join(f"±{value:.0f} m" for value in np.sqrt(np.mean(one.deviation**2, axis=1)))
        print(f"{one.name}: ε ≤ {one.epsilon:.3g} at every visit; the attacker is left with {left} in each direction")
    return 0


def _trace(path: Path | None) -> tuple[np.ndarray, np.ndarray, float]:
    """Seconds from the first fix, metres east and north of the middle, and the first fix in seconds since 1970."""
    if path is None:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "day.csv"
            made.write_text(demo_day(points=80).csv)
            trace = read_trace(made)
    else:
        trace = read_trace(path)
    plane = LocalPlane(float(np.mean(trace.latitude)), float(np.mean(trace.longitude)))
    metres = plane.to_metres(trace.latitude, trace.longitude)
    return (trace.time_us - trace.time_us[0]) / 1e6, metres - np.mean(metres, axis=0), float(trace.time_us[0]) / 1e6


def attack(seconds: np.ndarray, metres: np.ndarray, positions: Sequence[int], budget: float) -> list[Attack]:
    """The least noise and independent noise of equal power, released once each, and read by an attacker.

    The attacker believes in the first prior of each set, with the trace's own mean.
    """
    sets = [list(axis) for axis in _prior_sets(seconds, metres)]
    secrets = [jp.Secret([i], radius=RADIUS) for i in positions]
    design = jp.design_axes(sets, secrets, budget=budget, resolution=0.5)
    even = jp.baselines.uniform(len(seconds), budget / 2)
    cases: list[tuple[str, list[Any], float]] = [
        ("least noise", [axis.mechanism for axis in design.axes], design.epsilon),
        (
            "independent noise",
            [even, even],
            max(jp.certify(members, secrets, even).epsilon for members in sets),
        ),
    ]
    found = []
    for name, noises, epsilon in cases:
        released = np.stack([noise.release(metres[:, axis]).values for axis, noise in enumerate(noises)], axis=1)
        mean, deviation = np.zeros((2, len(positions), 2))
        for axis, noise in enumerate(noises):
            prior = np.asarray(sets[axis][0].covariance)
            gain = np.linalg.solve(prior + np.asarray(noise.covariance), prior[:, list(positions)])
            mean[:, axis] = gain.T @ released[:, axis]
            left = prior[np.ix_(positions, positions)] - prior[list(positions)] @ gain
            deviation[:, axis] = np.sqrt(np.maximum(np.diagonal(left), 0.0))
        found.append(Attack(name, epsilon, released, mean, deviation))
    return found


def _prior_sets(seconds: np.ndarray, metres: np.ndarray) -> list[Any]:
    found = jp.prior_set(seconds, metres, resolution=0.5)
    return found if isinstance(found, list) else [found]


def draw_map(metres: np.ndarray, secrets: Sequence[int], attacks: Sequence[Attack], error: float, path: Path) -> None:
    """A row a mechanism: the true trace, the release and the attacker's ellipses, and each visit close up, to scale."""
    plt = _pyplot()
    rows, places = len(attacks), metres[list(secrets)]
    figure, axes = plt.subplots(
        rows, len(places) + 1, figsize=(6 + 2.9 * len(places), 3.6 * rows + 0.8), layout="constrained",
        gridspec_kw={"width_ratios": [2.0, *[1.0] * len(places)]}, squeeze=False,
    )  # fmt: skip
    reaches = [np.abs(one.mean - places) + OUTER * np.max(one.deviation, axis=1, keepdims=True) for one in attacks]
    far = 1.05 * float(np.max(reaches))
    handles: dict[str, Any] = {}
    for row, one, colour in zip(axes, attacks, (BLUE, ORANGE), strict=False):
        _layer(row[0], one, colour, metres, places, np.zeros(2), 1e3)
        for i, place in enumerate(places):
            row[0].annotate(
                str(i + 1), place / 1e3, xytext=(7, 5), textcoords="offset points", fontsize=11, weight="bold",
                bbox={"boxstyle": "circle,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
            )  # fmt: skip
            close = row[i + 1]
            _layer(close, one, colour, metres, places, place, 1.0)
            close.set(xlim=(-far, far), ylim=(-far, far))
            left = float(np.sqrt(np.mean(one.deviation[i] ** 2)))
            close.set_title(f"visit {i + 1}: attacker ±{left:.0f} m", fontsize=10)
            close.tick_params(labelsize=8)
            close.locator_params(nbins=5)
        row[0].set_title(f"{one.name}, {error:.0f} m root mean square: ε ≤ {one.epsilon:.3g}", fontsize=11)
        row[0].set_ylabel("km north")
        row[1].set_ylabel("m north of the visit", fontsize=9)
        for handle, text in zip(*row[0].get_legend_handles_labels(), strict=True):
            handles[text if text in SHARED else f"{text} ({one.name})"] = handle
    for first, second in zip(axes[:-1, 0], axes[1:, 0], strict=True):
        second.sharex(first)
        second.sharey(first)
        first.autoscale()
    axes[-1, 0].set_xlabel("km east")
    for close in axes[-1, 1:]:
        close.set_xlabel("m east of the visit", fontsize=9)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def _layer(
    axis: Any, one: Attack, colour: str, metres: np.ndarray, places: np.ndarray, origin: np.ndarray, unit: float
) -> None:
    """One map around `origin` (2,), in units of so many metres."""
    from matplotlib.patches import Ellipse

    axis.plot(*(metres - origin).T / unit, color=GREY, linewidth=3, label=SHARED[0])
    axis.plot(*(one.released - origin).T / unit, color=colour, linewidth=1, marker=".", markersize=4, label="released")
    for middle, deviation in zip(one.mean, one.deviation, strict=True):
        for level, alpha in ((INNER, 0.35), (OUTER, 0.15)):
            width, height = 2 * level * deviation / unit
            axis.add_patch(Ellipse((middle - origin) / unit, width, height, color=colour, alpha=alpha, linewidth=0))
    axis.plot(*(places - origin).T / unit, marker="*", color="black", markersize=9, linestyle="none", label=SHARED[1])
    axis.fill([], [], color=colour, alpha=0.35, label="attacker's belief, 68 % and 95 %")
    axis.set_aspect("equal")
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)


def draw_noises(path: Path, seed: int = 7) -> None:
    """Covariance (top) and four draws (bottom) of the noise of each mechanism, for both kernels, one secret."""
    plt = _pyplot()
    names = (PUBLISHED, BLOCK, JOINT, SHAPED, UNIFORM)
    listed = {panel.letter: panel for panel in panels(2)}
    rows = [(listed["a"], 6.1**2, "RBF, l = 6.1"), (listed["e"], 1.097**2, "periodic, l = 1.097")]
    figure, axes = plt.subplots(4, len(names), figsize=(15, 11), layout="constrained")
    rng = np.random.default_rng(seed)
    for row, (panel, squared, title) in enumerate(rows):
        found = {name: mechanism for name, (mechanism, _) in mechanisms(panel, squared).items()}
        shaped = jp.baselines.prior_shaped(jp.GaussianPrior(covariance(panel, squared)), 0.02 * panel.n)
        found[SHAPED] = shaped
        for column, name in enumerate(names):
            matrix = np.asarray(found[name].covariance)
            top, bottom = axes[2 * row, column], axes[2 * row + 1, column]
            reach = float(np.max(np.abs(matrix)))
            image = top.imshow(matrix, cmap="PuOr", vmin=-reach, vmax=reach)
            figure.colorbar(image, ax=top, shrink=0.75)
            top.set_title(f"{title}\n{name}", fontsize=9.5)
            values, vectors = np.linalg.eigh(matrix)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            for line in ("-", "--", ":", "-."):
                bottom.plot(root @ rng.normal(size=panel.n), color=BLUE, linestyle=line, linewidth=1.1)
            bottom.axvline(panel.secrets[0][0], color=ORANGE, linewidth=1)
            bottom.set_xlabel("step (line: the secret)", fontsize=9)
        axes[2 * row, 0].set_ylabel("covariance, step by step", fontsize=9)
        axes[2 * row + 1, 0].set_ylabel("noise, prior standard deviations", fontsize=9)
    figure.savefig(path, dpi=95, metadata={"Software": None})
    plt.close(figure)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


if __name__ == "__main__":
    sys.exit(main())
