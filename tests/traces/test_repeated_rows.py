"""Several rows of one instant as one fix or as repeated measurements; times finer than a microsecond."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.instants import parse_instant


def _written(path, rows):
    path.write_text("time,lat,lon\n" + "".join(f"{t},{lat:.9f},{lon:.9f}\n" for t, lat, lon in rows))
    return path


def test_repeated_measurements_are_averaged_and_their_scatter_is_measured(tmp_path, rng):
    # Five fixes at each of 400 instants, each coordinate off by a normal error of 4 m.
    metres = 111_320.0
    rows = [
        (60 * i, 48 + i / 1e4 + rng.normal(0, 4) / metres, 16 + rng.normal(0, 4) / metres / math.cos(math.radians(48)))
        for i in range(400)
        for _ in range(5)
    ]
    path = _written(tmp_path / "a.csv", rows)
    merged = read_trace(path)
    noise = read_trace(path, options=ReadOptions(duplicates="noise"), strict=True)
    assert (noise.n_points, noise.cleaning.repeated_rows, noise.cleaning.duplicate_rows) == (400, 1600, 0)
    assert (merged.cleaning.repeated_rows, merged.cleaning.duplicate_rows) == (0, 1600)
    assert merged.cleaning.scatter_m is None
    # 3,200 degrees of freedom: four standard errors are 5 %; the sphere of the degree's length adds less than 1 %.
    assert noise.cleaning.scatter_m == pytest.approx(4.0, rel=0.06)
    positions = np.stack([noise.latitude, noise.longitude], axis=1)
    np.testing.assert_array_equal(noise.mean_by_point(positions), merged.mean_by_point(positions))
    assert f"scatters by {noise.cleaning.scatter_m:.2g} m" in " ".join(noise.cleaning.sentences())
    with pytest.raises(InputError, match="strict reading"):
        read_trace(path, strict=True)


def test_scatter_across_the_date_line_and_of_equal_rows(tmp_path):
    path = _written(tmp_path / "a.csv", [(0, 0.0, 179.99995), (0, 0.0, -179.99995), (60, 1.0, 1.0), (60, 1.0, 1.0)])
    done = read_trace(path, options=ReadOptions(duplicates="noise")).cleaning
    # One pair differs by 1e-4 degrees in one of its coordinates: sum of squares d^2/2 over 2 (4 - 2).
    assert done.scatter_m == pytest.approx(1e-4 * 111_320 / math.sqrt(8), rel=1e-5)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("2024-05-01T12:00:00.123456Z", False),
        ("2024-05-01T12:00:00.1234560Z", False),
        ("2024-05-01T12:00:00.1234567Z", True),
        ("2024-05-01T12:00:00,123456001+02:00", True),
        ("20240501T120000.1234567", True),
        ("1714564800.123456", False),
        ("1714564800.1234564", True),
        ("1714564800123.456", False),
        ("1714564800123.4567", True),
        ("1714564800123456789", True),
        ("1714564800123456000", False),
    ],
)
def test_digits_beyond_the_microsecond_are_noticed(text, cut):
    found = parse_instant(text)
    assert found.cut == cut
    assert found.us % 10**6 // 1000 in (0, 123)


def test_they_are_counted_in_every_kind_of_table(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (tmp_path / "a.csv").write_text("time,lat,lon\n2024-05-01T12:00:00.1234567Z,50,8\n2024-05-01T12:00:01Z,50,8.1\n")
    times = pa.array([1714564800_123456789, 1714564801_000000000], pa.timestamp("ns"))
    parquet.write_table(pa.table({"time": times, "lat": [50.0, 50.0], "lon": [8.0, 8.1]}), tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        trace = read_trace(tmp_path / name)
        assert (trace.cleaning.cut_times, trace.time_us[0]) == (1, 1714564800_123456)
        assert "1 row with a time finer than a microsecond" in " ".join(trace.cleaning.sentences())
    # It is told, and nothing that strict reading refuses.
    assert read_trace(tmp_path / "a.csv", strict=True).n_rows == 2
