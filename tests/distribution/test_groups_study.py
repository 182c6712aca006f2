"""The study of two groups, on generated traces and, where there are some, on recorded ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def groups(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    from benchmarks.studies import groups

    return groups


def generated(folder: Path, points: int = 900) -> Path:
    """Three taxis on a map of 3 × 4 cells: occupied ones prefer the south-west, vacant ones the north-east."""
    rng = np.random.default_rng(8)
    folder.mkdir()
    for taxi in range(3):
        lines = []
        for k in range(points):
            occupied = int(rng.random() < 0.4)
            row, column = (rng.integers(0, 3), rng.integers(0, 4))
            if rng.random() < 0.5:
                row, column = (0, rng.integers(0, 2)) if occupied else (2, rng.integers(2, 4))
            latitude, longitude = 37.7 + 0.01 * (row + rng.random()), -122.5 + 0.01 * (column + rng.random())
            lines.append(f"{latitude:.5f} {longitude:.5f} {occupied} {1_211_000_000 + 60 * k + taxi}")
        (folder / f"new_{taxi}.txt").write_text("\n".join(lines) + "\n")
    return folder


def test_reading(groups, tmp_path):
    data = groups.read_cabs(generated(tmp_path / "cabs"), 12)
    assert data.names == ("occupied", "vacant") and data.left_out == 0.0
    assert data.public.shape == (2, 12) and data.public.sum() + data.later.sum() == 2700
    assert abs(data.public.sum() - data.later.sum()) <= 3
    # A hundredth of a degree: 1.11 km north, 0.88 km east at this latitude.
    assert data.spacing == (pytest.approx(880, abs=5), pytest.approx(1110, abs=5))
    fewer = groups.read_cabs(tmp_path / "cabs", 5)
    assert len(fewer.places) == 5 and 0.0 < fewer.left_out < 1.0
    (tmp_path / "cabs" / "new_9.txt").write_text("37.7 -122.4 1\n")
    with pytest.raises(ValueError, match="line 1"):
        groups.read_cabs(tmp_path / "cabs", 12)
    with pytest.raises(ValueError, match="holds no"):
        groups.read_cabs(tmp_path, 12)


def test_a_table_is_split(groups, tmp_path):
    path = tmp_path / "cells.csv"
    path.write_text("lat,lon,a,b\n48,16,40,10\n48,16.02,20,30\n48.02,16,1000,20\n")
    data = groups.read_table(path, 3, None)
    np.testing.assert_array_equal(data.public + data.later, [[40, 20, 1000], [10, 30, 20]])
    # A binomial half: five standard deviations.
    assert abs(data.public[0, 2] - 500) < 5 * np.sqrt(250)
    path.write_text("lat,lon,a,b\n48,16,0.5,10\n48,16.02,20,30\n")
    with pytest.raises(ValueError, match="whole"):
        groups.read_table(path, 3, None)


def test_mechanisms_reach_the_level_they_are_compared_at(groups):
    rng = np.random.default_rng(1)
    both = rng.dirichlet(np.ones(6), size=2)
    channel = groups.tuned(lambda e: groups.response(6, e), both, 0.3, 1e-3, 30.0)
    # Bisection to a thousandth of the parameter.
    assert 0.295 < groups.level(both @ channel) <= 0.3
    with pytest.raises(ValueError, match="most noise"):
        groups.tuned(lambda e: groups.response(6, e), both, 0.3, 20.0, 30.0)


@pytest.mark.slow
def test_study(groups, tmp_path, monkeypatch):
    monkeypatch.setattr(groups, "LEVELS", (0.25, 1.0))
    text = groups.study(generated(tmp_path / "cabs"), tmp_path / "out", 12)
    found = json.loads((tmp_path / "out" / "groups.json").read_text())
    assert "total variation" in text and (tmp_path / "out" / "groups.png").stat().st_size > 10_000
    for row in found["at_equal_level"]:
        # The linear program is the best there is at a level, also among channels that know no group.
        best = row["relaxed coupling"]
        assert row["lower bound"] <= best + 1e-6
        others = [value for name, value in row.items() if name not in ("level", "lower bound", "relaxed coupling")]
        assert all(best <= value + 1e-3 for value in others)
    exact = [row for row in found["couplings"] if row["groups known"] == "exact"]
    assert all(row["level"] < 1e-9 for row in exact)
    assert exact[0]["metres"] == min(row["metres"] for row in exact)
    estimated = [row for row in found["couplings"] if row["groups known"] == "estimated"]
    # Independent points of one law: the level from the counts covers the later half's but for five in a hundred.
    assert all(row["level"] <= row["level from counts"] for row in estimated)


@pytest.mark.slow
@pytest.mark.skipif("JAXPRIV_DATA" not in os.environ, reason="JAXPRIV_DATA names no folder of recorded data")
def test_recorded_taxis(groups, tmp_path, monkeypatch):
    monkeypatch.setattr(groups, "LEVELS", (0.5,))
    folder = Path(os.environ["JAXPRIV_DATA"]) / "taxi" / "cabspotting"
    assert groups.main([str(folder), "--cells", "25", "--out", str(tmp_path)]) == 0
    row = json.loads((tmp_path / "groups.json").read_text())["at_equal_level"][0]
    assert row["relaxed coupling"] < 0.2 * row["planar geometric"]
