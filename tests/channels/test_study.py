"""The study of obfuscation on maps: a generated grid from files to tables, and a real one where there is one."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from small_maps import grid

from benchmarks.studies._obfuscation_tables import METHODS, PUBLISHED, changes
from benchmarks.studies.obfuscation import main, read_maps, study


def write_cells(path: Path, rows: int, columns: int) -> None:
    weights = np.asarray(grid(rows, columns, seed=5).probabilities)
    lines = ["cell_lat_min,cell_lon_min,size_deg,points"]
    for (i, j), weight in zip(np.ndindex(rows, columns), weights, strict=True):
        lines.append(f"{40.0 + 0.01 * i:.2f},{116.0 + 0.01 * j:.2f},0.01,{int(1 + 1e4 * weight)}")
    path.write_text("\n".join(lines) + "\n")


def test_a_generated_grid_from_file_to_table_and_picture(tmp_path):
    write_cells(tmp_path / "cells.csv", 3, 4)
    (tmp_path / "notes.txt").write_text("no map")
    (tmp_path / "flow.csv").write_text("flow,origin,destination\n1,a,b\n")
    maps = read_maps([tmp_path], 100)
    assert list(maps) == ["cells"]
    # Neighbouring cells of 0.01° of latitude are 1.11 km apart.
    distances = np.asarray(maps["cells"].distances)
    assert np.sort(distances[0])[1] == pytest.approx(0.851, abs=0.005)
    text = study(maps, tmp_path / "out", epsilons=(1.0,), shares=(0.1,))
    assert (tmp_path / "out" / "obfuscation.png").read_bytes().startswith(b"\x89PNG")
    assert text in (tmp_path / "out" / "obfuscation.md").read_text(encoding="utf-8")
    document = json.loads((tmp_path / "out" / "obfuscation.json").read_text(encoding="utf-8"))
    rows = {row["method"]: row for row in document["cells"]["settings"]}
    assert tuple(rows) == METHODS
    error = rows["uniform"]["min_error"]
    assert rows["PIVE"]["quality_loss"] <= rows["uniform"]["quality_loss"] * (1 + 1e-12)
    for method in METHODS[2:]:
        assert rows[method]["least_error"] >= error * (1 - 1e-9)
    for method in METHODS[1:5]:
        assert rows[method]["level_in_sets"] <= 1.0 + 1e-9
    # The same promise, at its best.
    assert rows[METHODS[4]]["quality_loss"] <= rows[METHODS[2]]["quality_loss"] * (1 + 1e-6)
    assert rows[METHODS[3]]["quality_loss"] <= rows[METHODS[2]]["quality_loss"] * (1 + 1e-9)


def test_changes_are_means_of_ratios_over_settings_that_both_methods_have():
    def row(method, epsilon, loss):
        return {"method": method, "epsilon": epsilon, "min_error": 0.1} | ({"quality_loss": loss} if loss else {})

    rows = [row("PIVE", 1.0, 2.0), row("PIVE", 2.0, 1.0), row("uniform", 1.0, 3.0), row("uniform", 2.0, 1.2)]
    rows += [row(METHODS[2], 1.0, 2.4), row(METHODS[2], 2.0, None)]
    found = {(one["method"], one["against"]): one for one in changes(rows)}
    assert found["uniform", "PIVE"]["mean"] == pytest.approx((0.5 + 0.2) / 2)
    assert found["uniform", "PIVE"]["published"] == 0.295
    assert found[METHODS[2], "uniform"]["mean"] == pytest.approx(-0.2)
    assert found[METHODS[2], "uniform"]["settings"] == 1
    # What the paper prints is consistent: 1.074/1.295 = 1 − 0.171.
    growth = {(one, other): value for one, other, value in PUBLISHED}
    personalized, uniform = growth[METHODS[2], "PIVE"], growth["uniform", "PIVE"]
    assert (1 + personalized) / (1 + uniform) - 1 == pytest.approx(growth[METHODS[2], "uniform"], abs=6e-4)


def test_a_folder_without_a_map_is_refused(tmp_path, capsys):
    (tmp_path / "empty.csv").write_text("lat,lon\n1,2\n")
    assert main([str(tmp_path)]) == 2
    assert "no file holds a map" in capsys.readouterr().err


@pytest.mark.slow
def test_real_cells_show_the_order_of_the_paper(tmp_path):
    data = os.environ.get("JAXPRIV_DATA")
    if data is None:
        pytest.skip("JAXPRIV_DATA is not set")
    maps = read_maps([Path(data) / "priors" / "derived_beijing_grid_0p01deg_from_geolife.csv"], 30)
    study(maps, tmp_path, epsilons=(1.0,), shares=(0.05,))
    document = json.loads((tmp_path / "obfuscation.json").read_text(encoding="utf-8"))
    (found,) = document.values()
    for one in found["changes"]:
        if one["published"] is not None and not math.isnan(one["published"]):
            assert one["mean"] * one["published"] > 0.0
