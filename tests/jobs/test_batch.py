"""The batch job: nothing lost, nothing twice, the same whatever the parts, and resumable."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from jaxpriv.cli.app import app
from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.jobs.batch.run import run_batch
from jaxpriv.jobs.protect import plan
from jaxpriv.traces.contents import ColumnNames, ReadOptions
from jaxpriv.traces.files import read_trace


def _load(name: str):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


data = _load("batch_data")
COUNT = 40
SINGLE = {k for k in range(COUNT) if k % 5 == 0}
NOWHERE = {k for k in range(COUNT) if k % 7 == 0}


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    return data.make_table(tmp_path_factory.mktemp("data") / "in.parquet", COUNT)


@pytest.fixture(scope="module")
def whole(table, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "out"
    run_batch(table, out, data.request(7), part_traces=4)
    return out


def test_every_trace_is_released_or_listed_with_a_reason(whole):
    rows, reasons = data.released(whole), data.refused(whole)
    assert set(reasons) == SINGLE | NOWHERE
    assert set(rows) == set(range(COUNT)) - SINGLE - NOWHERE == set(data.records(whole))
    assert all(len(rows[k]) == data.SIZES[k % 5] for k in rows)
    assert all("no position" in reasons[k] for k in NOWHERE)
    assert all("1 distinct time" in reasons[k] for k in SINGLE - NOWHERE)
    summary = json.loads((whole / "summary.json").read_text())
    assert (summary["traces"], summary["done"], summary["refused"]) == (COUNT, len(rows), len(reasons))
    assert sum(summary["reasons"].values()) == len(reasons)


def test_shared_files_hold_numbers_instants_and_rounded_positions_only(whole):
    for path in (whole / "share").iterdir():
        file = pq.ParquetFile(path)
        assert file.schema_arrow.names == ["trace", "time", "lat", "lon"]
        assert not file.schema_arrow.metadata
        values = file.read().column("lat").to_numpy()
        np.testing.assert_array_equal(values, np.round(values, 7))
        assert b"person" not in path.read_bytes()
    assert (whole / "private").stat().st_mode & 0o777 == 0o700
    assert {one.name for one in whole.iterdir()} == {"share", "private", "summary.json"}


def test_the_same_whatever_the_parts_and_the_format(whole, table, tmp_path):
    run_batch(table, tmp_path / "large", data.request(7), part_traces=13)
    run_batch(data.make_table(tmp_path / "in.csv", COUNT), tmp_path / "csv", data.request(7))
    for other in ("large", "csv"):
        assert data.released(tmp_path / other) == data.released(whole)
        # Bit for bit: levels, costs, bounds and the digests of the factors.
        assert data.records(tmp_path / other) == data.records(whole)
        assert data.refused(tmp_path / other).keys() == data.refused(whole).keys()


def test_designs_are_those_of_protect(whole, tmp_path):
    lines = data.make_table(tmp_path / "in.csv", COUNT).read_text().splitlines()
    for k in (3, 8, 13):
        (tmp_path / "one.csv").write_text("\n".join([lines[0], *(x for x in lines if x.startswith(f"person {k},"))]))
        trace = read_trace(tmp_path / "one.csv")
        middle = int(trace.time_us[trace.n_points // 2])
        made = plan(trace, [middle], data.request().target, data.PRIOR)
        epsilon = max(made.noise.east.design.epsilon, made.noise.north.design.epsilon)
        # Two solvers of one convex problem, each within 1e-6 of its bound.
        assert data.records(whole)[k]["epsilon"] == pytest.approx(epsilon, rel=1e-5)
        assert data.records(whole)[k]["rms_m"] <= 30.0


def test_a_missing_part_is_made_again_and_the_others_are_left(whole, table, tmp_path):
    out = tmp_path / "out"
    first = run_batch(table, out, data.request(), part_traces=4)
    before = {path: path.read_bytes() for path in (out / "share").iterdir()}
    lost = sorted(before)[0]
    lost.unlink()
    left = out / "share" / ".of-a-lost-worker.unfinished"
    again = run_batch(table, out, data.request(), part_traces=4, progress=lambda step: left.touch())
    assert (again.parts, again.found) == (first.parts, first.parts - 1)
    assert set((out / "share").iterdir()) == set(before)
    assert all(path.read_bytes() == content for path, content in before.items() if path != lost)
    # The noise of a release has no seed, and the names of its parts have a key of their own.
    assert lost.read_bytes() != before[lost]
    assert not {path.name for path in before} & {path.name for path in (whole / "share").iterdir()}


def test_a_run_that_is_killed_goes_on(whole, table, tmp_path):
    out = tmp_path / "out"
    script = Path(__file__).with_name("batch_run.py")
    done = subprocess.run([sys.executable, str(script), str(table), str(out)], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    assert len([path for path in (out / "share").iterdir() if not path.name.startswith(".")]) == 1
    summary = run_batch(table, out, data.request(7), part_traces=4)
    assert summary.found == 1
    assert data.files(out) == data.files(whole)
    assert not list(out.rglob("*.unfinished"))


def test_a_folder_of_files(whole, tmp_path):
    lines = data.make_table(tmp_path / "in.csv", 14).read_text().splitlines()
    folder = tmp_path / "traces"
    folder.mkdir()
    for k in range(14):
        rows = [line.split(",", 1)[1] for line in lines[1:] if line.startswith(f"person {k},")]
        (folder / f"{k:02d}.csv").write_text("\n".join(["time,lat,lon", *rows]) + "\n")
    (folder / "99.csv").write_text("nothing of use\n1\n")
    summary = run_batch(folder, tmp_path / "out", data.request(7))
    assert summary.traces == 15
    assert "does not name a time" in data.refused(tmp_path / "out")[14]
    assert data.released(tmp_path / "out") == {k: v for k, v in data.released(whole).items() if k < 14}


def test_what_cannot_be_used_is_said_before_any_work(table, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(InfeasibleError, match="noise floor"):
        run_batch(table, out, data.request(budget_m=1.0))
    with pytest.raises(InputError, match="1 GB"):
        run_batch(table, out, data.request(), memory=1e8)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no trace file"):
        run_batch(tmp_path / "empty", out, data.request())
    (tmp_path / "mixed.csv").write_text("uid,time,lat,lon\na,1,48,16\nb,2,48,16\na,3,48,16\n")
    with pytest.raises(InputError, match="do not stand together"):
        run_batch(tmp_path / "mixed.csv", tmp_path / "mixed", data.request())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="did not write"):
        run_batch(table, tmp_path / "other", data.request())


def test_a_folder_goes_on_with_the_same_options_only(table, tmp_path):
    out = tmp_path / "out"
    run_batch(table, out, data.request(7))
    with pytest.raises(InputError, match="other options"):
        run_batch(table, out, data.request(8))
    with pytest.raises(InputError, match="other options"):
        run_batch(table, out, data.request(7), reading=ReadOptions(ColumnNames(who="uid")))
    # Nothing was released where the first attempt named a column that is not there.
    with pytest.raises(InputError, match="does not name"):
        run_batch(table, tmp_path / "new", data.request(7), reading=ReadOptions(ColumnNames(who="cab")))
    assert run_batch(table, tmp_path / "new", data.request(7)).traces == COUNT


def test_the_command(table, whole, tmp_path):
    numbers = ["--radius", "50m", "--budget", "30m", "--kernel", "matern32"]
    numbers += ["--lengthscale", "60s", "--sd", "100m", "--nugget", "3m"]
    run = CliRunner().invoke(app, ["batch", str(table), "--out", str(tmp_path / "out"), *numbers, "--simulate", "7"])
    assert run.exit_code == 0, run.output
    assert f"{COUNT} traces: " in run.output and "SIMULATED" in run.output
    assert data.released(tmp_path / "out") == data.released(whole)
    said = CliRunner().invoke(
        app, ["batch", str(table), "--out", str(tmp_path / "out"), *numbers, "--simulate", "7", "--json"]
    )
    assert json.loads(said.stdout) == json.loads((tmp_path / "out" / "summary.json").read_text())
    wrong = CliRunner().invoke(
        app, ["batch", str(table), "--out", str(tmp_path / "o2"), *numbers, "--secret", "middle", "--secret", "x"]
    )
    assert wrong.exit_code == 2 and "goes alone" in wrong.output


def test_the_document_runs():
    text = (Path(__file__).parents[2] / "docs" / "batch_command.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.S)
    exec(compile(block, "batch_command.md", "exec"), {})


def test_the_cache_of_compiled_programs_is_the_commands_alone(tmp_path):
    code = (
        "import os, jax, jaxpriv, jaxpriv.jobs.batch.run\n"
        "assert jax.config.jax_compilation_cache_dir is None and 'JAX_COMPILATION_CACHE_DIR' not in os.environ\n"
    )
    plain = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION")}
    subprocess.run([sys.executable, "-c", code], check=True, env=plain)
    code = (
        "from jaxpriv.cli.console import use_compilation_cache\nuse_compilation_cache()\n"
        "import jax\nprint(jax.config.jax_compilation_cache_dir)\n"
    )
    for extra, expected in (({}, tmp_path / "jaxpriv"), ({"JAX_COMPILATION_CACHE_DIR": "/mine"}, "/mine")):
        env = {**plain, "XDG_CACHE_HOME": str(tmp_path), **extra}
        done = subprocess.run([sys.executable, "-c", code], check=True, env=env, capture_output=True, text=True)
        assert done.stdout.strip() == str(expected)
