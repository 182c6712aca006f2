"""A batch draws no trace twice: changed inputs, lost keys and repeated traces are refused before anything is drawn."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from jaxpriv.cli.app import app
from jaxpriv.errors import InputError
from jaxpriv.jobs.batch import on_dask as batch_dask, run as batch
from jaxpriv.jobs.batch.run import run_batch
from jaxpriv.jobs.batch.summary import ANOTHER_RELEASE


spec = importlib.util.spec_from_file_location("batch_data", Path(__file__).with_name("batch_data.py"))
assert spec is not None and spec.loader is not None
data = importlib.util.module_from_spec(spec)
spec.loader.exec_module(data)

HEADER = "uid,time,lat,lon"
NUMBERS = ["--radius", "50m", "--budget", "30m", "--kernel", "matern32"]
NUMBERS += ["--lengthscale", "60s", "--sd", "100m", "--nugget", "3m"]


def people(count: int) -> list[list[str]]:
    """Rows of people, twelve fixes each, all rows of one length."""
    rng = np.random.default_rng(5)
    return [
        [
            f"p{k},{1_600_000_000 + 1000 * k + 5 * i},{48.5 + 1e-4 * north:.7f},{16.5 + 1e-4 * east:.7f}"
            for i, (north, east) in enumerate(rng.standard_normal((12, 2)))
        ]
        for k in range(count)
    ]


def write(path: Path, blocks: list[list[str]], header: str = HEADER) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *(row for block in blocks for row in block)]) + "\n")
    return path


def drawn(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "share").iterdir()}


@pytest.fixture(scope="module")
def begun(tmp_path_factory) -> Path:
    """A folder with an input of three people and the batch of it, in parts of one trace; tests copy it."""
    home = tmp_path_factory.mktemp("begun")
    run_batch(write(home / "in.csv", people(3)), home / "out", data.request(), part_traces=1)
    return home


@pytest.fixture
def copy(begun, tmp_path) -> Path:
    return Path(shutil.copytree(begun, tmp_path / "home"))


def swapped(path: Path) -> Path:
    """The input with its last two people in the other order: as many bytes."""
    size = path.stat().st_size
    first, second, third = people(3)
    write(path, [first, third, second])
    assert path.stat().st_size == size
    return path


def test_a_changed_input_of_the_same_size_is_refused_before_anything_is_drawn(copy):
    before = drawn(copy / "out")
    with pytest.raises(InputError, match="another input: 'input' differ"):
        run_batch(swapped(copy / "in.csv"), copy / "out", data.request(), part_traces=1)
    assert drawn(copy / "out") == before


def test_the_command_refuses_it_too(tmp_path):
    args = ["batch", str(write(tmp_path / "in.csv", people(3))), "--out", str(tmp_path / "o1"), *NUMBERS]
    first = CliRunner().invoke(app, args)
    assert first.exit_code == 0, first.output
    # The second run into another folder is said on the console and in the summary.
    assert ANOTHER_RELEASE in first.output
    assert json.loads((tmp_path / "o1" / "summary.json").read_text())["note"] == ANOTHER_RELEASE
    before = drawn(tmp_path / "o1")
    swapped(tmp_path / "in.csv")
    again = CliRunner().invoke(app, args)
    assert again.exit_code == 2 and "another input" in again.output
    assert drawn(tmp_path / "o1") == before


def test_the_workers_of_dask_are_not_started_for_it(copy, monkeypatch):
    def start(*given: object) -> None:
        raise AssertionError("nothing may be submitted")

    monkeypatch.setattr(batch_dask, "run_on_dask", start)
    with pytest.raises(InputError, match="another input"):
        run_batch(swapped(copy / "in.csv"), copy / "out", data.request(), part_traces=1, workers=2)


def test_a_renamed_folder_of_the_input_is_another_input(tmp_path):
    one, two, _ = people(3)
    source = tmp_path / "traces"
    write(source / "1" / "t.csv", [one])
    write(source / "2" / "t.csv", [two])
    run_batch(source, tmp_path / "out", data.request(), part_traces=1)
    before = drawn(tmp_path / "out")
    os.rename(source / "1", source / "3")
    with pytest.raises(InputError, match="another input"):
        run_batch(source, tmp_path / "out", data.request(), part_traces=1)
    assert drawn(tmp_path / "out") == before


def test_parts_without_their_key_are_refused(copy):
    before, key = drawn(copy / "out"), copy / "out" / "private" / "key"
    content = key.read_text()
    key.unlink()
    with pytest.raises(InputError, match="key is missing"):
        run_batch(copy / "in.csv", copy / "out", data.request(), part_traces=1)
    assert not key.exists()
    key.write_text("ab" * 32)
    with pytest.raises(InputError, match="'key'"):
        run_batch(copy / "in.csv", copy / "out", data.request(), part_traces=1)
    key.write_text("ab")
    with pytest.raises(InputError, match="not a key"):
        run_batch(copy / "in.csv", copy / "out", data.request(), part_traces=1)
    assert drawn(copy / "out") == before
    key.write_text(content)
    assert run_batch(copy / "in.csv", copy / "out", data.request(), part_traces=1).found == 3


def test_parts_of_another_size_and_another_release_of_jaxpriv_are_refused(copy, monkeypatch):
    before = drawn(copy / "out")
    with pytest.raises(InputError, match="'part_traces' differ"):
        run_batch(copy / "in.csv", copy / "out", data.request(), part_traces=2)
    monkeypatch.setattr(batch.importlib.metadata, "version", lambda name: "99")
    with pytest.raises(InputError, match="'jaxpriv' differ"):
        run_batch(copy / "in.csv", copy / "out", data.request(), part_traces=1)
    assert drawn(copy / "out") == before


@pytest.mark.parametrize("workers", [1, 2])
def test_a_number_that_stands_in_another_part_is_not_drawn(copy, monkeypatch, workers):
    """As for an input that changes while it is read: the comparison of the whole input is left out."""
    before, submitted = drawn(copy / "out"), []
    monkeypatch.setattr(batch, "keep_description", lambda out, about: None)
    monkeypatch.setattr(batch_dask, "run_on_dask", lambda parts, *rest: submitted.extend(parts))
    with pytest.raises(InputError, match="trace 1 was released already"):
        run_batch(swapped(copy / "in.csv"), copy / "out", data.request(), part_traces=1, workers=workers)
    assert drawn(copy / "out") == before and not submitted


def test_damaged_folders_are_refused(copy):
    def refused(match: str) -> None:
        with pytest.raises(InputError, match=match):
            run_batch(copy / "in.csv", copy / "out", data.request(), part_traces=1)

    parts = sorted((copy / "out" / "share").iterdir())
    twin = parts[0].with_name("part-" + "0" * 64 + ".parquet")
    twin.write_bytes(parts[0].read_bytes())
    refused("is missing")
    record = copy / "out" / "private" / "parts" / f"{parts[0].stem.removeprefix('part-')}.json"
    record.with_name("0" * 64 + ".json").write_bytes(record.read_bytes())
    refused("stands in two files")
    twin.write_bytes(b"not a table")
    refused("damaged")
    twin.unlink()
    (copy / "out" / "private" / "batch.json").write_text("[]")
    refused("damaged")


def test_identical_traces_are_released_once_and_listed(tmp_path):
    first, second, _ = people(3)
    same = [row.replace("p0", "p7") for row in first]
    doubled = [row.replace("p0", "p8") for row in first]
    doubled.insert(5, doubled[4])  # a row that stands twice says nothing new
    moved = [row.replace("p0", "p9") for row in first]
    moved[3] = moved[3][:-1] + ("1" if moved[3][-1] != "1" else "2")  # a centimetre: not noticed
    source = write(tmp_path / "in.csv", [first, second, same, doubled, moved])
    for out, size in ((tmp_path / "out", 32), (tmp_path / "many", 1)):
        summary = run_batch(source, out, data.request(7), part_traces=size)
        assert (summary.traces, summary.done, summary.refused, summary.repeated) == (5, 3, 2, 2)
        reasons = data.refused(out)
        assert set(reasons) == {2, 3} and all(reason.startswith("same as trace 0,") for reason in reasons.values())
        assert set(data.released(out)) == {0, 1, 4}
        assert json.loads((out / "summary.json").read_text())["repeated"] == 2
        assert sum(summary.reasons.values()) == 2
        # Nothing of it in what is shared: the numbers are those of the input.
        numbers = Counter(n for path in (out / "share").iterdir() for n in pq.read_table(path)["trace"].to_pylist())
        assert numbers == {0: 12, 1: 12, 4: 12}
        assert run_batch(source, out, data.request(7), part_traces=size).found == summary.parts


def test_identical_files_of_a_folder_are_released_once(tmp_path):
    one, two, _ = people(3)
    for k, block in enumerate([one, two, one]):
        write(tmp_path / "traces" / f"{k}.csv", [block])
    summary = run_batch(tmp_path / "traces", tmp_path / "out", data.request())
    assert (summary.done, summary.repeated) == (2, 1)
    assert data.refused(tmp_path / "out")[2].startswith("same as trace 0,")


def test_an_output_inside_of_the_input_is_refused_before_any_work(tmp_path, monkeypatch):
    source = tmp_path / "fold"
    write(source / "1.csv", people(1))
    (source / "deep").mkdir()
    (tmp_path / "link").symlink_to(source, target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    for given, out in (("fold", "fold/safe"), ("fold", "fold/deep/safe"), ("link", "fold/safe"), ("fold", "link/safe")):
        run = CliRunner().invoke(app, ["batch", given, "--out", out, *NUMBERS])
        assert run.exit_code == 2 and "lies in the input" in run.output
        assert not (tmp_path / out).exists()
    assert run_batch(Path("fold"), Path("folder"), data.request(7)).done == 1  # a longer name is not inside
