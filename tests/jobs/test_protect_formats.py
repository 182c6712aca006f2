"""Files of other formats, from the command to the check of what was written."""

from __future__ import annotations

import json
import math

import pytest
from typer.testing import CliRunner

from jaxpriv.cli.app import app


runner = CliRunner()

WALK = [(1577836800 + 60 * i, 40 + math.sin(i * i) * 1e-3, 7 + math.cos(i) * 1e-3) for i in range(10)]


def _spaces(path):
    path.write_text("".join(f"{lat:.7f} {lon:.7f} 0 {us}\n" for us, lat, lon in WALK[::-1]))


def _geojson(path):
    features = [
        {
            "type": "Feature",
            "properties": {"time": us, "name": "SENTINEL"},
            "geometry": {"type": "Point", "coordinates": [round(lon, 7), round(lat, 7), 77.7]},
        }
        for us, lat, lon in WALK
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "name": "SENTINEL", "features": features}))


def _parquet(path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    times, lats, lons = zip(*WALK, strict=True)
    columns = {"when": times, "lat": [round(v, 7) for v in lats], "lon": [round(v, 7) for v in lons]}
    parquet.write_table(pa.table(columns | {"SENTINEL": ["SENTINEL"] * len(WALK)}), path)


@pytest.mark.parametrize(
    ("write", "name", "written", "options"),
    [
        (_spaces, "cab.txt", "trace.SIMULATED.csv", []),
        (_geojson, "a.geojson", "trace.SIMULATED.geojson", []),
        (_parquet, "a.parquet", "trace.SIMULATED.csv", ["--columns", "time=when"]),
    ],
    ids=["spaces", "geojson", "parquet"],
)
def test_what_is_written_passes_its_own_check(write, name, written, options, tmp_path):
    write(tmp_path / name)
    goal = {"--radius": "200m", "--epsilon": "1", "--kernel": "matern32", "--lengthscale": "5min", "--sd": "0.3km"}
    goal |= {"--nugget": "2m", "--secret": "2020-01-01T00:05:00Z", "--out": str(tmp_path / "out"), "--simulate": "1"}
    arguments = [part for pair in goal.items() for part in pair]
    done = runner.invoke(app, ["protect", str(tmp_path / name), *arguments, *options])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "out/share" / written).read_text()
    assert "SENTINEL" not in text and "77.7" not in text
    assert text.count("\n") >= len(WALK)
    checked = runner.invoke(app, ["verify", str(tmp_path / "out")])
    # A simulation is no release, and that is all that is wrong with it.
    failed = [line for line in checked.output.splitlines() if line.startswith("FAILED")]
    assert len(failed) == 1 and "release: simulated" in failed[0], checked.output
    # The console breaks long lines.
    said = " ".join(checked.output.split())
    assert "the trace holds times and positions and nothing else" in said
    assert "every position of the trace is a pair of the released integers" in said
