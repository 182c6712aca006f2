"""The map of three visits: which fixes are taken for the visits, and what is drawn and written."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.studies import figure3
from jaxpriv.jobs.demo_trace import demo_day


@pytest.fixture
def day(tmp_path):
    path = tmp_path / "day.csv"
    path.write_text(demo_day(points=30).csv)
    return path


@pytest.fixture
def seen(monkeypatch):
    """The expensive designs replaced by two that move nothing, and their arguments."""
    found: dict = {}

    def attack(seconds, metres, positions, budget):
        found.update(seconds=seconds, metres=metres, positions=list(positions), budget=budget)
        places = metres[list(positions)]
        spread = np.full_like(places, 40.0)
        return [
            figure3.Attack(name, 1.0, metres, places + 30.0, spread) for name in ("least noise", "independent noise")
        ]

    monkeypatch.setattr(figure3, "attack", attack)
    return found


def test_times_name_the_nearest_fixes(day, seen, tmp_path):
    rows = [line.split(",")[0] for line in day.read_text().splitlines()[1:]]
    wanted = [item for i in (3, 14, 27) for item in ("--secret", rows[i])]
    assert figure3.main([str(day), *wanted, "--error", "50", "--out", str(tmp_path / "out")]) == 0
    assert seen["positions"] == [3, 14, 27]
    assert seen["budget"] == pytest.approx(30 * 50.0**2)
    assert np.mean(seen["metres"], axis=0) == pytest.approx([0.0, 0.0], abs=1e-6)
    # A real trace's folder gets the map and nothing else.
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["figure3.png"]
    assert (tmp_path / "out" / "figure3.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_without_times_the_visits_are_spread_over_the_trace(day, seen, tmp_path):
    figure3.main([str(day), "--out", str(tmp_path)])
    share = seen["seconds"][seen["positions"]] / seen["seconds"][-1]
    assert np.all(np.diff(share) > 0.2) and share[0] > 0.0 and share[-1] < 1.0


def test_ellipses_hold_what_they_say():
    """Of normal pairs, 68 % and 95 % lie within the two half-widths; four standard errors."""
    distance = np.linalg.norm(np.random.default_rng(0).normal(size=(100_000, 2)), axis=1)
    for half, level in ((figure3.INNER, 0.68), (figure3.OUTER, 0.95)):
        assert np.mean(distance <= half) == pytest.approx(level, abs=4 * math.sqrt(level * (1 - level) / 100_000))


@pytest.mark.parametrize("visits", [1, 2])
def test_any_number_of_visits_is_drawn(tmp_path, visits):
    path = np.cumsum(np.random.default_rng(1).normal(size=(12, 2)), axis=0) * 100
    positions = [3, 9][:visits]
    spread = np.full((visits, 2), 50.0)
    attacks = [figure3.Attack(name, 2.0, path + 10, path[positions], spread) for name in ("a", "b")]
    figure3.draw_map(path, positions, attacks, 20.0, tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 10_000


def test_a_time_that_cannot_be_read_is_an_error_of_the_command(day, seen, tmp_path):
    with pytest.raises(SystemExit):
        figure3.main([str(day), "--secret", "yesterday", "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()
