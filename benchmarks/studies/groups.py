"""Hiding a group: what it costs that a published place does not say which of two groups a person belongs to.

    python -m benchmarks.studies.groups PATH [--out FOLDER] [--cells 100] [--groups A,B]

PATH is a folder of taxi traces of the cabspotting data set (text files of latitude, longitude, occupied, seconds),
whose two groups are the occupied and the vacant taxis; or a table of places (CSV: lat, lon or cells, and one column of
counts for each group). Of the traces the earlier half is public, and what is known of the groups; the later half is to
be protected. Of a table, a random half of the counts is public. Nothing of the data is written but errors, levels and
numbers of cells.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import markdown_table


LEVELS = (0.1, 0.25, 0.5, 1.0, 2.0)
CELL_DEGREES = 0.01
SCALES = (250.0, 1_000.0)  # metres, of the entropic mechanisms
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Groups:
    """Places (n, 2) in metres, the spacing of their grid (east, north), and counts (2, n), public and later ones."""

    names: tuple[str, str]
    places: np.ndarray
    spacing: tuple[float, float]
    public: np.ndarray
    later: np.ndarray
    left_out: float

    @property
    def distances(self) -> np.ndarray:
        """Metres, (n, n)."""
        return np.linalg.norm(self.places[:, None] - self.places[None], axis=-1)


def laws(counts: np.ndarray) -> np.ndarray:
    """Counts (groups, n) as distributions."""
    return counts / counts.sum(axis=1, keepdims=True)


def read_cabs(folder: Path, most: int) -> Groups:
    """Grid the points of all traces of a folder; the most visited cells are kept.

    Raises ValueError naming the file and line that cannot be read, or for a folder without traces.
    """
    files = sorted(folder.glob("*.txt"))
    if not files:
        raise ValueError(f"{folder.name} holds no .txt file")
    rows = []
    for path in files:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                latitude, longitude, occupied, seconds = (float(cell) for cell in line.split())
            except ValueError:
                raise ValueError(f"{path.name}, line {number}: expected latitude longitude occupied seconds") from None
            rows.append((latitude, longitude, occupied, seconds))
    table = np.array(rows)
    cells, which = np.unique(np.floor(table[:, :2] / CELL_DEGREES).astype(int), axis=0, return_inverse=True)
    early = table[:, 3] < np.median(table[:, 3])
    counts = np.zeros((2, 2, len(cells)))
    np.add.at(counts, (np.where(early, 0, 1), np.where(table[:, 2] > 0.5, 0, 1), np.ravel(which)), 1.0)
    return _kept(("occupied", "vacant"), (cells + 0.5) * CELL_DEGREES, counts[0], counts[1], most)


def read_table(path: Path, most: int, groups: tuple[str, ...] | None) -> Groups:
    """Counts of two groups from a table; each visit is public or later with probability one half."""
    from jaxpriv.jobs.conceal_groups import read_group_counts

    found = read_group_counts(path, groups)
    if len(found.names) != 2 or not found.whole:
        raise ValueError("the study compares two columns of whole counts; name them with --groups A,B")
    public = np.random.default_rng(0).binomial(found.counts.astype(int), 0.5).astype(float)
    degrees = np.stack(found.plane.to_degrees(np.asarray(found.places.locations)), axis=1)
    return _kept((found.names[0], found.names[1]), degrees, public, found.counts - public, most)


def _kept(names, degrees: np.ndarray, public: np.ndarray, later: np.ndarray, most: int) -> Groups:
    from jaxpriv.traces.projection import public_origin

    visits = np.sum(public + later, axis=0)
    top = np.sort(np.argsort(-visits, kind="stable")[:most])
    places = public_origin(degrees[:, 0], degrees[:, 1]).to_metres(degrees[top, 0], degrees[top, 1])
    if np.any(public[:, top].sum(axis=1) == 0) or np.any(later[:, top].sum(axis=1) == 0):
        raise ValueError("a group has no point in one of the halves")
    steps = [np.diff(np.unique(np.round(places[:, axis], 0))) for axis in (0, 1)]
    # Columns of one meridian differ by metres; the step of the grid is far above that.
    spacing = [float(np.median(one[one > 100.0])) if np.any(one > 100.0) else 1_000.0 for one in steps]
    lost = 1.0 - float(np.sum(visits[top]) / np.sum(visits))
    return Groups(names, places, (spacing[0], spacing[1]), public[:, top], later[:, top], lost)


def level(outputs: np.ndarray) -> float:
    """The largest log ratio between two laws, in either order."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(np.log(outputs[0]) - np.log(outputs[1]))
    return float(np.max(np.where(np.isnan(ratios), 0.0, ratios)))


def variation(outputs: np.ndarray) -> float:
    """Total variation between two laws."""
    return 0.5 * float(np.sum(np.abs(outputs[0] - outputs[1])))


def tuned(
    make: Callable[[float], np.ndarray], groups: np.ndarray, wanted: float, low: float, high: float
) -> np.ndarray:
    """The channel of least noise whose group level is at most `wanted`, by bisection of its parameter's logarithm."""
    if level(groups @ make(low)) > wanted:
        raise ValueError(f"a mechanism does not reach the level {wanted:g} with the most noise tried")
    while high / low > 1.001:
        middle = np.sqrt(low * high)
        low, high = (middle, high) if level(groups @ make(middle)) <= wanted else (low, middle)
    return make(low)


def response(count: int, epsilon: float) -> np.ndarray:
    """Randomised response: the true cell with e^ε times the probability of any other."""
    weights = np.ones((count, count)) + np.expm1(epsilon) * np.eye(count)
    return weights / weights.sum(axis=1, keepdims=True)


def compared(data: Groups) -> list[dict[str, Any]]:
    """Losses in metres at equal levels, the groups' laws being those of the later half, exactly."""
    from jaxpriv.channels.planar import planar_geometric
    from jaxpriv.distribution.relaxed_search import searched_outputs
    from jaxpriv.distribution.targets import relaxed_outputs

    groups, distance = laws(data.later), data.distances
    grid = planar_geometric(data.places, 1.0 / 500.0, data.spacing).outputs
    away = np.linalg.norm(data.places[:, None] - grid[None], axis=-1)

    def planar(epsilon: float) -> np.ndarray:
        return np.exp(np.asarray(planar_geometric(data.places, epsilon, data.spacing).channel.log_matrix))

    def loss(channels: Any, metres: np.ndarray) -> float:
        return float(np.mean([np.sum(law @ (rows * metres)) for law, rows in zip(groups, channels, strict=True)]))

    rows = []
    for wanted in LEVELS:
        both = tuned(lambda e: response(len(distance), e), groups, wanted, 1e-3, 30.0)
        noise = tuned(planar, groups, wanted, 2.5e-5, 0.05)
        exact = relaxed_outputs(groups, distance, wanted)
        row = {
            "level": wanted,
            "randomised response": loss([both, both], distance),
            "planar geometric": loss([noise, noise], away),
            "relaxed coupling": exact.cost,
            "lower bound": exact.lower_bound,
        }
        for scale in SCALES:
            row[f"entropic, {scale:g} m"] = searched_outputs(groups, distance, wanted, scale, steps=100).cost
        rows.append(row)
    return rows


def couplings(data: Groups) -> list[dict[str, Any]]:
    """Coupling mechanisms made from the later laws (exact) and from the public counts (estimated), under the later."""
    from jaxpriv.channels.channel import Channel
    from jaxpriv.channels.levels import geo_level
    from jaxpriv.distribution.approximate import audit_coupling
    from jaxpriv.distribution.coupling import coupling_mechanism
    from jaxpriv.distribution.estimated import estimated_level
    from jaxpriv.distribution.redirected import entropic_mechanism
    from jaxpriv.distribution.targets import barycentre

    true, distance = laws(data.later), data.distances
    rows = []
    for knowledge, counts in (("exact", data.later), ("estimated", data.public)):
        known = laws(counts)
        aim = barycentre(known, distance).target
        aim = np.where(aim > 1e-9, aim, 0.0) / np.sum(aim[aim > 1e-9])
        mechanisms = {"least distance": coupling_mechanism(known, aim, distance)}
        for scale in SCALES:
            mechanisms[f"entropic, {scale:g} m"] = entropic_mechanism(known, aim, distance, scale)
        mechanisms["independent"] = coupling_mechanism(known, aim, distance, kind="independent")
        for name, made in mechanisms.items():
            audit = audit_coupling(made, true)
            counted = estimated_level(made, counts, CONFIDENCE) if knowledge == "estimated" else None
            rows.append(
                {
                    "mechanism": name,
                    "groups known": knowledge,
                    "level": audit.actual,
                    "variation": audit.actual_variation,
                    "level from counts": None if counted is None else counted.epsilon,
                    "variation from counts": None if counted is None else counted.total_variation,
                    "metres": float(np.mean(audit.losses)),
                    "nats a km of places": max(
                        1000.0 * float(geo_level(Channel(np.asarray(one.log_matrix)), distance))
                        for one in made.channels
                    ),
                }
            )
    return rows


def draw(rows: list[dict[str, Any]], at_zero: float, path: Path) -> None:
    """Loss against level, both logarithmic, with the coupling of level 0 as a line."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.4, 4.8), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    styles = (("#D55E00", "^"), ("#E69F00", "D"), ("#0072B2", "o"), ("#009E73", "s"), ("#CC79A7", "v"))
    methods = [name for name in rows[0] if name not in ("level", "lower bound")]
    for (colour, marker), name in zip(styles, methods, strict=True):
        axes.plot([r["level"] for r in rows], [r[name] for r in rows], color=colour, marker=marker, label=name)
    axes.axhline(at_zero, color="#555555", linestyle="--", linewidth=1.2, label="coupling, level 0")
    axes.set(xscale="log", yscale="log", xlabel="level of the groups, nats", ylabel="mean distance moved, metres")
    axes.set_xticks([r["level"] for r in rows], [f"{r['level']:g}" for r in rows])
    axes.minorticks_off()
    axes.grid(True, color="#dddddd", linewidth=0.6)
    figure.legend(loc="outside right upper", frameon=False)
    figure.savefig(path, format="png", metadata={"Software": None})


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as a Markdown table; nothing where there is no number."""

    def cell(value: Any) -> str:
        if value is None or isinstance(value, str):
            return value or ""
        return "∞" if np.isinf(value) else f"{value:.3g}" if value < 1000 else f"{value:.0f}"

    return markdown_table(list(rows[0]), [[cell(value) for value in row.values()] for row in rows]).rstrip()


def study(path: Path, out: Path, most: int = 100, groups: tuple[str, ...] | None = None) -> str:
    """Read, compare, draw, and write OUT/groups.md, groups.json and groups.png; returns the text."""
    import jax

    from jaxpriv.jobs.plain_json import plain

    data = read_cabs(path, most) if path.is_dir() else read_table(path, most, groups)
    with jax.enable_x64(True):
        at_level, at_zero = compared(data), couplings(data)
    true, known = laws(data.later), laws(data.public)
    text = "\n\n".join([
        f"Groups: {data.names[0]} and {data.names[1]}; {len(data.places)} cells, which hold all but "
        f"{data.left_out:.1%} of the points. As they are, the groups' places differ by a level of {level(true):.3g} "
        f"nats and a total variation of {variation(true):.3g}. Public: {int(data.public.sum()):,} points; to be "
        f"protected: {int(data.later.sum()):,}. Between the halves the groups changed by a total variation of "
        f"{variation(np.stack([known[0], true[0]])):.3g} and {variation(np.stack([known[1], true[1]])):.3g}.",
        "Mean distance moved, metres, when the published places of the two groups may differ by a level; laws known "
        "exactly. Randomised response and planar noise need not know the group; couplings do.",
        table(at_level),
        "Coupling mechanisms with the barycentre as target, under the later laws. Levels from counts hold at "
        f"{CONFIDENCE:.0%} confidence for independent points from laws that do not change; points of a trace are not "
        "independent, and the halves differ.",
        table(at_zero),
    ])  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    (out / "groups.md").write_text(text + "\n", encoding="utf-8")
    numbers = plain({"cells": len(data.places), "at_equal_level": at_level, "couplings": at_zero})
    (out / "groups.json").write_text(json.dumps(numbers, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draw(at_level, at_zero[0]["metres"], out / "groups.png")
    return text


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.groups", description=__doc__.split("\n")[0])
    parser.add_argument("path", type=Path, help="folder of cabspotting traces, or a CSV of places and counts")
    parser.add_argument("--out", type=Path, default=Path("build/studies"), help="folder of the tables and the plot")
    parser.add_argument("--cells", type=int, default=100, help="keep the most visited cells")
    parser.add_argument("--groups", help="of a CSV: the two columns, as A,B")
    options = parser.parse_args(arguments)
    try:
        print(study(options.path, options.out, options.cells, options.groups and tuple(options.groups.split(","))))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\nwritten: {options.out}/groups.md, groups.json and groups.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
