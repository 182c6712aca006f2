"""The study of indoor temperatures, on a generated series and, where there is one, on a recorded one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def temperature(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    from benchmarks.studies import temperature

    return temperature


def generated(folder: Path, days: int = 12) -> Path:
    """A CSV file every half hour: a daily course and an AR(1) of 0.9 an hour, with a gap of five hours near the end."""
    rng = np.random.default_rng(3)
    count = 48 * days
    deviation = np.zeros(count)
    for i in range(1, count):
        deviation[i] = np.sqrt(0.9) * deviation[i - 1] + 0.5 * np.sqrt(0.1) * rng.standard_normal()
    lines = ["timestamp,value"]
    for i in range(count):
        if count - 30 <= i < count - 20:
            continue
        hour = i / 2
        stamp = np.datetime64("2024-03-01T00:00:00") + np.timedelta64(30 * i, "m")
        lines.append(f"{str(stamp).replace('T', ' ')},{20 + np.sin(2 * np.pi * hour / 24) + deviation[i]:.4f}")
    path = folder / "generated.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_reading_and_fitting(temperature, tmp_path):
    hours, values = temperature.read_temperatures(generated(tmp_path))
    assert hours[0] == 0.0 and hours[1] == 0.5
    grid, series = temperature.hourly(hours, values)
    assert np.all(np.diff(grid) == 1.0) and grid[-1] == 12 * 24 - 16 and len(series) == len(grid)
    assert np.array_equal(series, values[np.searchsorted(hours, grid)])
    found = temperature.fitted(grid, series)
    # Three standard errors of an AR(1) coefficient over 270 hours, its daily mean removed.
    assert abs(found.a - 0.9) < 0.1 and 0.3 < found.sd < 0.75
    assert abs(np.max(found.course) - 21.0) < 0.6 and 0.0 < found.noise_sd < 0.3
    broken = tmp_path / "broken.csv"
    broken.write_text("time,value\n2024-01-01 00:00:00,20\nyesterday,20\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 3"):
        temperature.read_temperatures(broken)


@pytest.mark.slow
def test_errors_fall_with_epsilon_and_rise_with_what_is_heard(temperature):
    found = temperature.Fitted(np.full(24, 20.0), 0.9, 0.6, 8.0, 0.6, 0.02, 200)
    rows = temperature.per_output(found)
    for prior in ("AR(1)", "Matérn-3/2"):
        table = np.array([[row[f"{prior}, {name}"] for name in ("output", "filter", "smoother")] for row in rows])
        assert np.all(np.diff(table, axis=0) < 0) and np.all(np.diff(table, axis=1) > 0)
        # One output of a process of sd 0.6: θ = 0.36/(e^τ − 1).
        assert table[2, 0] == pytest.approx(np.sqrt(0.36 / np.expm1(6 - 3.841458820694)), rel=1e-9)


@pytest.mark.slow
def test_whole_study(temperature, tmp_path, capsys):
    assert temperature.main([str(generated(tmp_path)), "--out", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / "temperature.md").read_text(encoding="utf-8")
    assert text.strip() in capsys.readouterr().out
    assert "fitted on 136 public hours" in text and "AR(1) with a = 0." in text
    rows = [line for line in text.splitlines() if line.startswith(("| 0.", "| 1 "))]
    errors = np.array([[float(cell) for cell in row.strip("|").split("|")] for row in rows])
    assert len(errors) == 5 and np.all(np.diff(errors[:, 1:], axis=0) < 0) and np.all(errors[:, 1] < errors[:, 2])
    assert (tmp_path / "out" / "temperature.png").stat().st_size > 10_000
    assert temperature.main([str(tmp_path / "missing.csv")]) == 2


@pytest.mark.slow
def test_recorded_series(temperature, real_data, tmp_path):
    file = real_data / "sml2010" / "NEW-DATA-2.T15.txt"
    hours, values = temperature.read_temperatures(file)
    # The dining room, and not the weather two columns on.
    assert 10.0 < np.min(values) < np.max(values) < 35.0 and np.max(np.diff(hours)) == pytest.approx(0.5)
    text = temperature.study(file, tmp_path)
    assert "public hours" in text and (tmp_path / "temperature.png").exists()
