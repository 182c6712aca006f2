"""Obfuscation on real maps: what each method costs and what an adversary is left with.

    python -m benchmarks.studies.obfuscation FOLDER_OR_FILES... [--out FOLDER] [--places 100] [--quick]

The inputs are maps as `read_prior_csv` (cells or places with counts) and `read_prior_geojson` (regions with a
population) take them, or a folder of such files; files that hold no map are left out. For each map, each ε and each
least error E_m (shares of the error before anything is published) the study designs

* PIVE (broken: a baseline), the uniform and the personalized sensitivity approach of Zhang et al. (arXiv:2101.12602),
  the latter by the paper's condition (25) and by the exact one;
* the best channel with the personalized approach's own promise: ε-differential privacy inside its sets, and E_m;
* the best channel with the uniform approach's own promise, ε/D_max a unit of distance between any two places, and E_m.

The best channels come from the linear program on maps of up to 30 places, and from the first-order method beyond, whose
certified gap is reported. Counts and populations are used; no trace is read, and no count is written.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.studies._obfuscation_tables import METHODS, changes, draw, markdown


EPSILONS = (0.5, 1.0, 2.0)
SHARES = (0.02, 0.05, 0.1)
_LINEAR = 30


def read_maps(paths: Sequence[Path], places: int) -> dict[str, Any]:
    """Name and prior (kilometres) of each map, its `places` likeliest places with a positive count.

    Raises ValueError: none of the files holds a map.
    """
    from jaxpriv.channels.prior_files import read_prior_csv, read_prior_geojson
    from jaxpriv.errors import InputError

    files = [file for path in paths for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    maps = {}
    for file in files:
        try:
            if file.suffix in (".geojson", ".json"):
                prior = read_prior_geojson(file)
            elif file.suffix == ".csv" and "flow" not in file.stem:
                prior = read_prior_csv(file)
            else:
                continue
        except InputError:
            continue
        if np.count_nonzero(np.asarray(prior.probabilities)) >= 10:
            maps[file.stem] = in_kilometres(prior, places)
    if not maps:
        raise ValueError("no file holds a map of at least 10 places with counts")
    return maps


def in_kilometres(prior: Any, places: int) -> Any:
    """The likeliest places, in kilometres."""
    from jaxpriv.channels.prior import DiscretePrior

    positive = int(np.count_nonzero(np.asarray(prior.probabilities)))
    top = prior.top(min(places, positive))
    return DiscretePrior(np.asarray(top.locations) / 1e3, np.asarray(top.probabilities))


def compare(prior: Any, epsilon: float, min_error: float, seconds: float | None) -> list[dict[str, Any]]:
    """One row a method: loss, errors, real levels; `problem` instead where the promise is out of reach.

    `seconds` is for each of the best channels, at most; None leaves them out.
    """
    from jaxpriv.channels.personalized import personalized_mechanism
    from jaxpriv.channels.published_pive import pive
    from jaxpriv.channels.sensitivity import uniform_mechanism

    def sets_of(design: Any) -> list[list[int]]:
        return [np.flatnonzero(members).tolist() for members in design.sets]

    designs: dict[str, Any] = {}
    makers: dict[str, Callable[[], Any]] = {
        METHODS[0]: lambda: pive(prior, epsilon, min_error),
        METHODS[1]: lambda: uniform_mechanism(prior, epsilon, min_error),
        METHODS[2]: lambda: personalized_mechanism(prior, epsilon, min_error, condition="paper"),
        METHODS[3]: lambda: personalized_mechanism(prior, epsilon, min_error, condition="exact"),
    }
    if seconds is not None:
        makers[METHODS[4]] = lambda: best(prior, epsilon, min_error, seconds, sets=sets_of(designs[METHODS[2]]))
        makers[METHODS[5]] = lambda: best(prior, epsilon / designs[METHODS[1]].diameters[0], min_error, seconds)
    rows = []
    for name, make in makers.items():
        row: dict[str, Any] = {"method": name, "epsilon": epsilon, "min_error": min_error}
        try:
            designs[name] = make()
            row |= measured(designs[name], prior, designs.get(METHODS[2]))
        except (ValueError, KeyError) as error:
            row["problem"] = str(error)
        rows.append(row)
    return rows


def best(prior: Any, epsilon: float, min_error: float, seconds: float, sets: Any = None) -> Any:
    """The least loss within the limits: exactly on small maps, else by the first-order method with its gap."""
    from jaxpriv.channels.gradient import gradient_channel
    from jaxpriv.channels.optimal import optimal_channel

    if prior.size <= _LINEAR:
        return optimal_channel(prior, epsilon, sets=sets, min_error=min_error)
    return gradient_channel(prior, epsilon, sets=sets, min_error=min_error, tolerance=0.01, max_seconds=seconds)


def measured(design: Any, prior: Any, partition: Any) -> dict[str, Any]:
    """What a design costs and what it really keeps: all errors in kilometres, all levels in nats."""
    from jaxpriv.channels.inference import conditional_error, expected_error, quality_loss

    log = np.asarray(design.channel.log_matrix, dtype=np.float64)
    sets = getattr(design, "sets", None)
    if sets is None:
        sets = partition.sets if partition is not None else np.ones((1, prior.size), dtype=bool)
    distinct = np.unique(np.asarray(sets), axis=0)
    return {
        "quality_loss": float(quality_loss(design.channel, prior)),
        "inference_error": float(expected_error(design.channel, prior)),
        "least_error": float(np.min(np.asarray(conditional_error(design.channel, prior)))),
        "level_in_sets": max(_level(log[members]) for members in distinct),
        "level_on_the_map": _level(log),
        "sets": len(distinct),
        "largest_set": int(np.max(np.sum(distinct, axis=1))),
        "gap": float(getattr(design, "gap", math.nan)),
    }


def _level(log: np.ndarray) -> float:
    used = np.any(np.isfinite(log), axis=0)
    return float(np.max(np.max(log[:, used], axis=0) - np.min(log[:, used], axis=0)))


def study(
    maps: dict[str, Any],
    out: Path,
    *,
    epsilons: Sequence[float] = EPSILONS,
    shares: Sequence[float] = SHARES,
    seconds: float = 20.0,
) -> str:
    """Compare on every map and write OUT/obfuscation.json, .md and .png; returns the text."""
    import jax

    from jaxpriv.channels.inference import prior_error

    results = {}
    # The best channels where the picture shows them.
    middle, fixed = shares[len(shares) // 2], min(epsilons, key=lambda value: abs(value - 1.0))
    with jax.enable_x64(True):
        for name, prior in maps.items():
            blind = float(prior_error(prior))
            results[name] = [
                row
                for epsilon in epsilons
                for share in shares
                for row in compare(
                    prior, epsilon, share * blind, seconds if share == middle or epsilon == fixed else None
                )
            ]
    text = markdown(results)
    out.mkdir(parents=True, exist_ok=True)
    entries = {name: {"settings": rows, "changes": changes(rows)} for name, rows in results.items()}
    document = json.dumps(_plain(entries), indent=1, ensure_ascii=False, allow_nan=False)
    (out / "obfuscation.json").write_text(document + "\n", encoding="utf-8")
    (out / "obfuscation.md").write_text(text + "\n", encoding="utf-8")
    draw(results, out / "obfuscation.png")
    return text


def _plain(value: Any) -> Any:
    """JSON knows no NaN and no infinity: null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.studies.obfuscation", description=__doc__.split("\n")[0]
    )
    parser.add_argument("paths", type=Path, nargs="+", help="files with maps (.csv, .geojson), or a folder of them")
    parser.add_argument("--out", type=Path, default=Path("build/studies"), help="folder of the tables and the plot")
    parser.add_argument("--places", type=int, default=100, help="likeliest places of each map that are kept")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each best channel, at most")
    parser.add_argument("--quick", action="store_true", help="two values of ε and one of E_m only")
    options = parser.parse_args(arguments)
    try:
        maps = read_maps(options.paths, options.places)
        fewer = {"epsilons": EPSILONS[:2], "shares": SHARES[1:2]} if options.quick else {}
        print(study(maps, options.out, seconds=options.seconds, **fewer))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\nwritten: {', '.join(str(options.out / f'obfuscation.{end}') for end in ('json', 'md', 'png'))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
