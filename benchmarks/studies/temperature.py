"""Indoor temperature: what it costs to hide the deviations that come from people.

    python -m benchmarks.studies.temperature PATH [--out FOLDER] [--column 3]

PATH is a text file of the SML2010 data set (UCI Machine Learning Repository; column 3 is the dining room's temperature,
its header is shifted), or any CSV file with a header, a time and a temperature. The first half of the series is public:
the daily course and the priors are fitted on it. The second half is protected, its deviations from the daily course
being what occupancy leaves behind. Nothing of the series is written but fitted numbers and errors.
"""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np


EPSILONS = (2.2, 2.5, 3.0, 4.0, 5.0)
INFERENTIAL = (0.05, 0.1, 0.25, 0.5, 1.0)
DELTA = 0.05
RADIUS = 1.0  # °C: mean deviations of working hours at most that far apart must stay hard to tell apart
WINDOW = 48  # hours protected by the conditional inferential design
LONGEST_GAP = 2.0  # hours; longer ones split the series


@dataclass(frozen=True)
class Fitted:
    """What the public half says: a daily course (24,), an AR(1) and a Matérn-3/2 with nugget, in °C and hours."""

    course: np.ndarray
    a: float
    sd: float
    lengthscale: float
    matern_sd: float
    noise_sd: float
    hours: int

    def __str__(self) -> str:
        return (
            f"fitted on {self.hours} public hours, deviations from their mean daily course (range "
            f"{np.min(self.course):.1f} to {np.max(self.course):.1f} °C): AR(1) with a = {self.a:.4f} per hour and sd "
            f"{self.sd:.2f} °C; Matérn-3/2 (REML) with length scale {self.lengthscale:.2f} h, "
            f"sd {self.matern_sd:.2f} °C, nugget sd {self.noise_sd:.3f} °C"
        )


def read_temperatures(path: Path, column: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Hours since the first midnight and °C, times increasing; rows that go back in time are dropped.

    Raises ValueError naming the line that cannot be read.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = [line for line in file.read().splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"{path.name} is empty")
    sml = lines[0].startswith("#")
    rows = [line.split() for line in lines[1:]] if sml else list(csv.reader(lines[1:]))
    times, values = [], []
    for i, row in enumerate(rows):
        try:
            if sml:
                when = datetime.strptime(f"{row[0]} {row[1]}", "%d/%m/%Y %H:%M")
                value = float(row[column - 1])
            else:
                first = next(j for j, cell in enumerate(row) if ":" in cell)
                when, value = datetime.fromisoformat(row[first]), float(row[first + 1])
        except (ValueError, IndexError, StopIteration) as error:
            raise ValueError(f"{path.name}, line {i + 2}: expected a time and a temperature") from error
        if not times or when > times[-1]:
            times.append(when)
            values.append(value)
    start = times[0].replace(hour=0, minute=0, second=0, microsecond=0)
    return np.array([(one - start).total_seconds() / 3600.0 for one in times]), np.array(values)


def hourly(hours: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The longest stretch without a gap of more than two hours, interpolated to whole hours."""
    breaks = np.flatnonzero(np.diff(hours) > LONGEST_GAP) + 1
    start, end = max(zip([0, *breaks], [*breaks, len(hours)], strict=True), key=lambda piece: piece[1] - piece[0])
    grid = np.arange(np.ceil(hours[start]), np.floor(hours[end - 1]) + 1)
    return grid, np.interp(grid, hours[start:end], values[start:end])


def fitted(hours: np.ndarray, values: np.ndarray) -> Fitted:
    """Daily course, AR(1) and Matérn-3/2 of the public half."""
    import jaxpriv as jp

    of_day = (hours % 24).astype(int)
    course = np.array([np.mean(values[of_day == h]) if np.any(of_day == h) else np.mean(values) for h in range(24)])
    deviation = values - course[of_day]
    a = float(deviation[1:] @ deviation[:-1] / (deviation[:-1] @ deviation[:-1]))
    if not 0.0 < a < 1.0:
        raise ValueError(f"the deviations have an AR(1) coefficient of {a:.4f}: not a stable series to fit")
    innovation = np.std(deviation[1:] - a * deviation[:-1])
    fit = cast("jp.Fit", jp.fit(hours - hours[0], deviation, kernel="matern32", mean="constant", units=("°C", "h")))
    return Fitted(course, a, float(innovation / np.sqrt(1 - a * a)), fit.lengthscale, fit.sd, fit.noise_sd, len(hours))


def per_output(found: Fitted) -> list[dict]:
    """Noise sd (°C) that keeps ε about the temperature of an hour, by prior and by what the eavesdropper hears."""
    import jax
    import jax.numpy as jnp
    from scipy.optimize import brentq

    from jaxpriv.pml.profile import information_budget
    from jaxpriv.systems.leakage import Observer, state_information
    from jaxpriv.systems.matern import matern_system
    from jaxpriv.systems.scalar_noise import filter_noise, output_noise, smoother_noise

    rules: dict[Observer, Any] = {"output": output_noise, "filter": filter_noise, "smoother": smoother_noise}
    matern = matern_system("matern32", found.lengthscale, found.matern_sd, 1.0)
    value = jnp.array([[1.0, 0.0]])

    def heard(log_variance, observer: Observer):
        return state_information(matern, jnp.exp(log_variance)[None, None], observer, directions=value)

    informations = {name: jax.jit(partial(heard, observer=name)) for name in rules}
    rows = []
    for epsilon in EPSILONS:
        budget = float(information_budget(epsilon, DELTA, 1))
        row: dict = {"epsilon": epsilon}
        for name, rule in rules.items():
            row[f"AR(1), {name}"] = float(jnp.sqrt(rule(found.a, found.sd**2 * (1 - found.a**2), budget)))
            middle = np.log(found.matern_sd**2)
            root = cast(
                float,
                brentq(lambda x, f=informations[name], half=budget / 2: float(f(x)) - half, middle - 15, middle + 15),
            )
            row[f"Matérn-3/2, {name}"] = float(np.exp(root / 2))
        rows.append(row)
    return rows


def inferential(found: Fitted) -> list[dict]:
    """Error (°C, root mean square an hour) of two days that hide the mean deviation of a day's working hours."""
    import jaxpriv as jp

    times = np.arange(float(WINDOW))
    priors = [
        jp.ProcessPrior(jp.kernels.matern32(found.lengthscale, found.matern_sd), times, noise_sd=found.noise_sd),
        jp.ProcessPrior(jp.kernels.matern12(-1.0 / np.log(found.a), found.sd), times, noise_sd=found.noise_sd),
    ]
    working = ((times % 24 >= 9) & (times % 24 < 17) & (times < 24)).astype(float)
    secret = jp.LinearSecret(working / np.sum(working), RADIUS)
    rows = []
    for epsilon in INFERENTIAL:
        design = jp.design(priors, secret, epsilon=epsilon)
        # White noise of equal loss, under the worse of the two priors.
        white = jp.baselines.smallest_uniform(priors, secret, epsilon)
        rows.append({
            "epsilon": epsilon,
            "least noise": float(np.sqrt(design.cost / WINDOW)),
            "independent noise": float(white.floor_sd),
        })  # fmt: skip
    return rows


def draw(outputs: list[dict], windows: list[dict], path: Path) -> None:
    """Both error curves, as a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    colours = {"output": "#0072B2", "filter": "#D55E00", "smoother": "#009E73"}
    styles = {"AR(1)": ("o", "-"), "Matérn-3/2": ("s", "--")}
    for prior, (marker, line) in styles.items():
        for observer, colour in colours.items():
            errors = [row[f"{prior}, {observer}"] for row in outputs]
            left.plot(EPSILONS, errors, color=colour, marker=marker, linestyle=line, label=f"{prior}, {observer}")
    left.set(yscale="log", xlabel=f"ε about one hour (nats, δ = {DELTA})", ylabel="noise, standard deviation (°C)",
             title="Pointwise leakage about each hour")  # fmt: skip
    for name, colour, line in (("least noise", "#0072B2", "-"), ("independent noise", "#8C8C8C", "--")):
        right.plot(INFERENTIAL, [row[name] for row in windows], color=colour, linestyle=line, marker="o", label=name)
    right.set(xscale="log", yscale="log", xlabel=f"ε about the mean of 9–17 h, radius {RADIUS:g} °C (nats, order 2)",
              ylabel="error, root mean square (°C)", title=f"Inferential privacy of {WINDOW} hours")  # fmt: skip
    for axes in (left, right):
        axes.grid(alpha=0.3, which="both")
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, format="png", metadata={"Software": None})


def table(rows: list[dict]) -> str:
    """Rows as a Markdown table."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(f"{row[name]:.4g}" for name in names) + " |" for row in rows]
    return "\n".join(lines)


def study(path: Path, out: Path, column: int = 3) -> str:
    """Fit, design, draw, and write OUT/temperature.md and OUT/temperature.png; returns the text."""
    import jax

    hours, values = hourly(*read_temperatures(path, column))
    half = len(hours) // 2
    if half < 48:
        raise ValueError(f"{path.name} has {len(hours)} hours without a long gap; at least 96 are needed")
    with jax.enable_x64(True):
        found = fitted(hours[:half], values[:half])
        outputs, windows = per_output(found), inferential(found)
        later = values[half:] - found.course[(hours[half:] % 24).astype(int)]
    text = "\n\n".join([
        f"{len(hours)} hours without a gap of more than {LONGEST_GAP:g} h; {found}.",
        f"The protected half deviates from that course by {np.std(later):.2f} °C (standard deviation) about a mean "
        f"of {np.mean(later):+.2f} °C. The guarantees allow any known mean; more spread than the prior's voids them.",
        f"Noise standard deviation in °C that keeps ε about the temperature of an hour at δ = {DELTA}, by prior and by "
        "what the eavesdropper hears (its own output, all so far, later ones too):",
        table(outputs),
        f"Error in °C (root mean square an hour) of {WINDOW} hours whose mean deviation from 9 to 17 h on day one "
        f"is protected, radius {RADIUS:g} °C, ε at order 2, certified under both priors:",
        table(windows),
    ])  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    (out / "temperature.md").write_text(text + "\n", encoding="utf-8")
    draw(outputs, windows, out / "temperature.png")
    return text


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.studies.temperature", description=__doc__.split("\n")[0]
    )
    parser.add_argument("path", type=Path, help="SML2010 text file, or a CSV file with a time and a temperature")
    parser.add_argument("--out", type=Path, default=Path("build/studies"), help="folder of the table and the plot")
    parser.add_argument("--column", type=int, default=3, help="column of an SML2010 file, counted from 1")
    options = parser.parse_args(arguments)
    try:
        print(study(options.path, options.out, options.column))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\nwritten: {options.out / 'temperature.md'}, {options.out / 'temperature.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
