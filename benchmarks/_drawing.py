"""The pictures of the benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


# Okabe and Ito's colours, each with a marker of its own: told apart in any colour vision and in print.
STYLES = (
    ("#0072B2", "o"),
    ("#009E73", "s"),
    ("#D55E00", "^"),
    ("#CC79A7", "v"),
    ("#E69F00", "D"),
    ("#000000", "x"),
)


def draw_times(
    rows: Sequence[dict[str, Any]], problems: Sequence[str], methods: Sequence[str], equal: float, path: Path
) -> None:
    """One panel a problem: seconds against n on logarithmic axes, hollow where the excess is above `equal`."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.lines import Line2D

    figure, axes = plt.subplots(2, 2, figsize=(9.0, 7.0), sharex=True, sharey=True, layout="constrained")
    for axis, name in zip(axes.flat, problems, strict=True):
        for (colour, marker), method in zip(STYLES, methods, strict=True):
            done = [row for row in rows if (row["problem"], row["method"]) == (name, method) and "excess" in row]
            if not done:
                continue
            axis.plot([row["n"] for row in done], [row["seconds"] for row in done], color=colour, linewidth=1.4)
            for row in done:
                hollow = row["excess"] > equal and marker != "x"
                axis.plot(
                    row["n"],
                    row["seconds"],
                    marker=marker,
                    markersize=7,
                    color=colour,
                    markerfacecolor="white" if hollow else colour,
                    linestyle="none",
                )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_title(name, fontsize=11)
        axis.grid(True, which="major", color="#dddddd", linewidth=0.6)
        sizes = sorted({row["n"] for row in rows})
        axis.set_xticks(sizes, [f"{n:,}" for n in sizes])
        axis.minorticks_off()
    for axis in axes[-1]:
        axis.set_xlabel("points in the trace, n")
    for axis in axes[:, 0]:
        axis.set_ylabel("seconds, warm")
    handles = [
        Line2D([], [], color=colour, marker=marker, markersize=7, label=label)
        for (colour, marker), label in zip(STYLES, _labels(methods), strict=True)
    ]
    handles.append(
        Line2D([], [], color="#555555", marker="o", markerfacecolor="white", linestyle="none", label="less accurate")
    )
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _labels(methods: Sequence[str]) -> list[str]:
    ours = {"compiled": "jaxpriv, compiled", "certified": "jaxpriv.design, certified", "Adam": "Adam on a factor"}
    return [ours.get(method, method) for method in methods]
