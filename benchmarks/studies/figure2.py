"""Figure 2 of Meehan and Chaudhuri (AISTATS 2021), reproduced and surpassed.

    python -m benchmarks.studies.figure2 [--geolife FOLDER] [--sml2010 FILE] [--points 20] [--out FOLDER]

All eight panels, with the published mechanisms, both baselines and the least-noise designs at equal error, each with a
certified loss. FOLDER holds the GeoLife data set (PERSON/Trajectory/*.plt), FILE is NEW-DATA-1.T15.txt of SML2010;
with them the quartiles of the effective length scales found in the data are shaded, by two definitions. Neither is
needed for the curves. Writes figure2.png and figure2.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.studies._effective_lengths import (
    Lengths,
    files_of,
    lengths,
    published_traces,
    temperature_lengths,
    window_traces,
)
from benchmarks.studies._figure2_curves import (
    BLOCK,
    CONCENTRATED,
    JOINT,
    PUBLISHED,
    ROBUST,
    SHAPED,
    UNIFORM,
    Panel,
    panels,
    rows,
)


# Okabe and Ito's colours, each with a marker of its own: told apart in any colour vision and in print.
LOOKS = {
    JOINT: ("#0072B2", "o"),
    BLOCK: ("#56B4E9", "s"),
    SHAPED: ("#009E73", "D"),
    ROBUST: ("#CC79A7", "P"),
    PUBLISHED: ("#D55E00", "^"),
    UNIFORM: ("#000000", "x"),
    CONCENTRATED: ("#8C8C8C", "v"),
}
ATTACKERS = {0.5: ":", 1.0: "-", 1.5: "--"}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.figure2", description=__doc__.split("\n")[0])
    parser.add_argument("--geolife", type=Path, help="folder with PERSON/Trajectory/*.plt")
    parser.add_argument("--sml2010", type=Path, help="NEW-DATA-1.T15.txt")
    parser.add_argument("--points", type=int, default=20, help="length scales a panel (default 20, as published)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder for figure2.png and .md")
    options = parser.parse_args(arguments)
    if options.points < 2:
        parser.error("--points must be at least 2")
    try:
        found = _data(options.geolife, options.sml2010)
    except (OSError, ValueError) as problem:
        parser.error(str(problem))
    table, start = [], time.perf_counter()
    for panel in panels(options.points):
        for squared in panel.squared:
            table += rows(panel, squared)
        print(f"panel {panel.letter}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    draw(panels(options.points), table, found, options.out / "figure2.png")
    text = summary(panels(options.points), table, found)
    (options.out / "figure2.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def _data(geolife: Path | None, sml2010: Path | None) -> dict[str, list[Lengths]]:
    found: dict[str, list[Lengths]] = {"rbf": [], "periodic": []}
    if geolife is not None:
        people = files_of(geolife)
        for name, (traces, count) in (
            ("GeoLife, published rules", published_traces(people)),
            ("GeoLife, 300 s windows", window_traces(people)),
        ):
            found["rbf"].append(lengths(name, traces, count, _counted(name)))
    if sml2010 is not None:
        for column, name in ((5, "SML2010, outdoors (published)"), (3, "SML2010, indoors")):
            fits = temperature_lengths(sml2010, column)
            found["periodic"].append(Lengths(name, fits.values, fits.traces, 0))
    return found


def _counted(name: str) -> Any:
    def each(items: list) -> Iterable:
        for i, item in enumerate(items):
            if i % 500 == 0:
                print(f"{name}: {i} of {len(items)} traces", file=sys.stderr, flush=True)
            yield item

    return each


def draw(listed: list[Panel], table: list[dict[str, Any]], found: dict[str, list[Lengths]], path: Path) -> None:
    """The eight panels as one picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure, axes = plt.subplots(2, 4, figsize=(16, 8.2), layout="constrained")
    for axis, panel in zip(axes.flat, listed, strict=True):
        mine = [row for row in table if row["panel"] == panel.letter]
        for fits, shade in zip(found[panel.kernel], ("#F0E442", "#BBBBBB"), strict=False):
            low, middle, high = fits.quartiles
            axis.axvspan(low, high, color=shade, alpha=0.35, linewidth=0)
            axis.axvline(middle, color=shade, linewidth=1.5, linestyle=(0, (4, 2)))
        for name, (colour, marker) in LOOKS.items():
            for attacker, line in ATTACKERS.items():
                chosen = [row for row in mine if row["mechanism"] == name and row["attacker"] == attacker]
                if chosen:
                    axis.plot(
                        [row["length"] for row in chosen],
                        [row["width"] for row in chosen],
                        color=colour,
                        linestyle=line,
                        marker=marker,
                        markersize=4,
                        linewidth=1.3,
                    )
        axis.set_title(f"({panel.letter}) {panel.title}", fontsize=10.5)
        axis.set_ylim(0, None)
        axis.grid(color="#dddddd", linewidth=0.6)
        axis.set_xlabel("effective length scale, steps" if panel.kernel == "rbf" else "periodic length scale")
    for axis in axes[:, 0]:
        axis.set_ylabel("68 % interval left to the attacker\n(width, prior standard deviations)")
    handles: list[Any] = [
        Line2D([], [], color=colour, marker=marker, markersize=5, label=name)
        for name, (colour, marker) in LOOKS.items()
    ]
    handles += [
        Line2D([], [], color="#555555", linestyle=line, label=f"attacker's length scale × {attacker:g}")
        for attacker, line in ATTACKERS.items()
    ]
    for kernel, fits in found.items():
        for one, shade in zip(fits, ("#F0E442", "#BBBBBB"), strict=False):
            label = f"{one.name}: middle half and median ({'top' if kernel == 'rbf' else 'bottom'})"
            handles.append(Patch(color=shade, alpha=0.5, label=label))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def summary(listed: list[Panel], table: list[dict[str, Any]], found: dict[str, list[Lengths]]) -> str:
    """What the picture shows, as numbers: at three length scales a panel, and the worst case over all."""
    lines = [
        "# Figure 2 of Meehan and Chaudhuri (AISTATS 2021), and the least noise beside it",
        "",
        "`python -m benchmarks.studies.figure2`. Width: twice the attacker's posterior standard deviation, in prior",
        "standard deviations. Loss: certified, rounded up. All mechanisms of a panel have the same total noise power.",
        "",
    ]
    for fits in [*found["rbf"], *found["periodic"]]:
        lines.append(f"* {fits}")
    if any(found.values()):
        lines.append("")
    for panel in listed:
        mine = [row for row in table if row["panel"] == panel.letter]
        sizes = sorted({row["length"] for row in mine})
        shown = [sizes[0], sizes[len(sizes) // 3], sizes[-1]]
        lines += [f"## ({panel.letter}) {panel.title}", ""]
        lines.append(
            "| mechanism | attacker × | " + " | ".join(f"l = {size:.2f}: width, loss" for size in shown) + " |"
        )
        lines.append("|---|---|" + "---|" * len(shown))
        for name in LOOKS:
            for attacker in panel.stretch:
                cells = []
                for size in shown:
                    key = (name, attacker, size)
                    same = [row for row in mine if (row["mechanism"], row["attacker"], row["length"]) == key]
                    cells.append(f"{same[0]['width']:.4f}, {same[0]['loss']:.4g}" if same else "")
                if any(cells):
                    lines.append(f"| {name} | {attacker:g} | " + " | ".join(cells) + " |")
        best = SHAPED if len(panel.secrets) > 1 else (ROBUST if len(panel.stretch) > 1 else JOINT)
        ratio, gap = _dominance(mine, best)
        lines += [
            "",
            f"{best}: loss at most {ratio:.3f} of the published mechanism's at every point; gaps ≤ {gap:.0e}.",
            "",
        ]
    return "\n".join(lines)


def _dominance(mine: list[dict[str, Any]], best: str) -> tuple[float, float]:
    """Largest ratio over the points of the worst attacker's losses, ours to the published; and our largest gap."""
    ratios = []
    for size in sorted({row["length"] for row in mine}):
        here = [row for row in mine if row["length"] == size]
        worst = {name: max(row["loss"] for row in here if row["mechanism"] == name) for name in (best, PUBLISHED)}
        ratios.append(worst[best] / worst[PUBLISHED])
    return float(np.max(ratios)), float(np.max([row["gap"] for row in mine if row["mechanism"] == best]))


if __name__ == "__main__":
    sys.exit(main())
