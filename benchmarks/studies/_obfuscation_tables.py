"""Tables and pictures of the study of obfuscation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


# Published in the paper, as averages over its own values of ε and E_m: (method, against, change of the quality loss).
PUBLISHED = (
    ("uniform", "PIVE", 0.295),
    ("personalized, paper's condition", "PIVE", 0.074),
    ("personalized, paper's condition", "uniform", -0.171),
)
METHODS = (
    "PIVE",
    "uniform",
    "personalized, paper's condition",
    "personalized, exact condition",
    "best for the personalized promise",
    "best for the uniform promise",
)


def changes(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean change of the loss of one method against another over the settings where both exist."""
    table = {(r["method"], r["epsilon"], r["min_error"]): r["quality_loss"] for r in rows if "quality_loss" in r}
    pairs = [(one, other, value) for one, other, value in PUBLISHED]
    pairs += [
        (METHODS[3], METHODS[2], math.nan),
        (METHODS[4], METHODS[2], math.nan),
        (METHODS[5], METHODS[1], math.nan),
    ]
    found = []
    for one, other, published in pairs:
        ratios = [
            value / table[(other, *key[1:])] - 1.0
            for key, value in table.items()
            if key[0] == one and (other, *key[1:]) in table
        ]
        if ratios:
            found.append({
                "method": one,
                "against": other,
                "published": published,
                "mean": float(np.mean(ratios)),
                "least": min(ratios),
                "most": max(ratios),
                "settings": len(ratios),
            })  # fmt: skip
    return found


def differences(name: str, found: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]) -> list[str]:
    """Sentences: whether the paper's ordering holds on this map, and what of it differs."""
    lines = []
    for one in found:
        if math.isnan(one["published"]):
            continue
        agrees = one["mean"] * one["published"] > 0.0
        size = abs(one["mean"]) / abs(one["published"])
        verdict = "same direction" if agrees else "the other direction"
        factor = f", {size:.1f} times the published size" if agrees else ""
        lines.append(
            f"{name}: {one['method']} against {one['against']}: {one['mean']:+.1%} "
            f"(published {one['published']:+.1%}): {verdict}{factor}."
        )
    broken = [r for r in rows if r["method"] == METHODS[0] and "quality_loss" in r]
    if broken:
        worst = max(broken, key=lambda r: r["level_in_sets"] / r["epsilon"])
        lines.append(
            f"{name}: PIVE's loss is bought with a level it does not keep: up to {worst['level_in_sets']:.3g} nats "
            f"inside its sets where {worst['epsilon']:g} is claimed."
        )
    lines += [
        f"{name}: the sizes depend on the map and on ε and E_m (least and most above): the uniform approach pays for "
        "the one place with the widest set, so that a map with outlying places is dearer to it; the exact condition "
        "asks less than (25), the more so the larger ε.",
        f"{name}: the best channel for the personalized promise costs a fraction, because nothing is asked between "
        "sets: it may publish which set (a level of inf on the map). That is what the promise says, and why the level "
        "on the map stands beside it; the best channel for the uniform promise keeps a level between any two places.",
    ]
    return lines


def markdown(maps: dict[str, list[dict[str, Any]]]) -> str:
    """The tables and the differences, as text."""
    parts = [
        "Quality loss and inference error in kilometres. Changes are means over all settings where both methods exist; "
        "the published ones are averages over the paper's own settings and unpublished map, so that orderings and "
        "sizes can be compared, not digits.",
    ]
    for name, rows in maps.items():
        found = changes(rows)
        parts.append(f"## {name}")
        lines = [
            "| method | against | published | here, mean | least | most | settings |",
            "|:--|:--|--:|--:|--:|--:|--:|",
        ]
        for one in found:
            published = "" if math.isnan(one["published"]) else f"{one['published']:+.1%}"
            lines.append(
                f"| {one['method']} | {one['against']} | {published} | {one['mean']:+.1%} | {one['least']:+.1%} "
                f"| {one['most']:+.1%} | {one['settings']} |"
            )
        parts.append("\n".join(lines))
        parts.append("\n".join(f"* {line}" for line in differences(name, found, rows)))
        head = ["ε", "E_m", "method", "loss", "mean error", "least error", "level in sets", "level on the map", "gap"]
        lines = ["| " + " | ".join(head) + " |", "|--:|--:|:--|--:|--:|--:|--:|--:|--:|"]
        for row in rows:
            start = f"| {row['epsilon']:g} | {row['min_error']:.3g} | {row['method']} |"
            if "problem" in row:
                lines.append(f"{start} out of reach | | | | | |")
                continue
            gap = "" if math.isnan(row["gap"]) else f"{row['gap']:.1%}"
            lines.append(
                f"{start} {row['quality_loss']:.3f} | {row['inference_error']:.3f} | {row['least_error']:.3f} "
                f"| {row['level_in_sets']:.3g} | {row['level_on_the_map']:.3g} | {gap} |"
            )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def draw(maps: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """For each map: loss against ε at the middle E_m, loss against E_m at ε = 1, and the error left at both."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from benchmarks._drawing import STYLES

    figure = Figure(figsize=(14, 3.6 * len(maps) + 0.9), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    parts = np.ravel(figure.subfigures(len(maps), 1, squeeze=False))
    handles, labels = [], []
    for part, (name, rows) in zip(parts, maps.items(), strict=True):
        axes = part.subplots(1, 4)
        part.suptitle(name, fontsize=11, fontweight="bold")
        errors = sorted({row["min_error"] for row in rows})
        middle = errors[len(errors) // 2]
        fixed = min({row["epsilon"] for row in rows}, key=lambda value: abs(value - 1.0))
        for column, (quantity, word) in enumerate(
            [("quality_loss", "quality loss"), ("inference_error", "error left")]
        ):
            for (colour, marker), method in zip(STYLES, METHODS, strict=True):
                mine = [row for row in rows if row["method"] == method and quantity in row]
                style = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.4, "label": method}
                style["linestyle"] = ":" if method == METHODS[0] else "-"
                against = [(row["epsilon"], row[quantity]) for row in mine if row["min_error"] == middle]
                axes[column].plot(*zip(*against, strict=True), **style) if against else None
                against = [(row["min_error"], row[quantity]) for row in mine if row["epsilon"] == fixed]
                axes[2 + column].plot(*zip(*against, strict=True), **style) if against else None
            axes[column].set(xlabel="ε (nats)", ylabel=f"{word} (km)", title=f"E_m = {middle:.2g} km")
            axes[2 + column].set(xlabel="E_m (km)", ylabel=f"{word} (km)", title=f"ε = {fixed:g}")
        for axis in axes:
            axis.grid(alpha=0.3)
            axis.set_ylim(bottom=0.0)
        found, words = axes[0].get_legend_handles_labels()
        handles, labels = (found, words) if len(words) > len(labels) else (handles, labels)
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(path, format="png", metadata={"Software": None})
