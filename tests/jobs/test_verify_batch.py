"""Checking the folder of a batch: what was written is verified, and whatever is changed is found."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from jaxpriv.cli.app import app
from jaxpriv.errors import InputError
from jaxpriv.jobs.batch.part import BatchOptions
from jaxpriv.jobs.batch.run import run_batch
from jaxpriv.jobs.batch.verifying import verify_batch
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.jobs.verify import verify_folder


spec = importlib.util.spec_from_file_location("batch_data", Path(__file__).with_name("batch_data.py"))
assert spec is not None and spec.loader is not None
data = importlib.util.module_from_spec(spec)
spec.loader.exec_module(data)

COUNT = 12
RELEASED = {1, 2, 3, 4, 6, 8, 9, 11}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    home = tmp_path_factory.mktemp("made")
    run_batch(data.make_table(home / "in.parquet", COUNT), home / "out", data.request(), part_traces=2)
    return home


@pytest.fixture
def out(made, tmp_path) -> Path:
    return Path(shutil.copytree(made / "out", tmp_path / "out"))


def failed(out: Path) -> set[str]:
    return {check.name for check in verify_folder(out).checks if check.passed is False}


def detail(out: Path, name: str) -> str:
    (found,) = [check.detail for check in verify_folder(out).checks if check.name == name]
    return found


def part_of(out: Path, number: int) -> tuple[Path, Path]:
    """The shared file and the record of a trace."""
    for path in sorted((out / "private" / "parts").iterdir()):
        if any(one["trace"] == number for one in json.loads(path.read_text())["traces"]):
            return out / "share" / f"part-{path.stem}.parquet", path
    raise AssertionError(number)


def change_trace(out: Path, number: int, change: Callable[[dict], object]) -> None:
    _, path = part_of(out, number)
    content = json.loads(path.read_text())
    (one,) = [one for one in content["traces"] if one["trace"] == number]
    change(one)
    path.write_text(json.dumps(content))


def change_shared(out: Path, number: int, change: Callable[[dict[str, np.ndarray], np.ndarray], object]) -> None:
    """Change the columns of the file of a trace, and its digest with it: the other checks must find what is wrong."""
    path, _ = part_of(out, number)
    table = pq.read_table(path)
    columns = {name: table.column(name).to_numpy().copy() for name in table.column_names}
    change(columns, columns["trace"] == number)
    arrays = {**columns, "time": pa.array(columns["time"].astype("datetime64[us]"), pa.timestamp("us", tz="UTC"))}
    pq.write_table(pa.table(arrays), path)
    renew_digests(out)


def renew_digests(out: Path) -> None:
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (out / "share").iterdir()}
    (out / "private" / "shared.json").write_text(json.dumps({"sha256": found}))


def scaled(one: dict, share: float, *, digest: bool = True) -> None:
    """Less noise in the east of a trace."""
    factor = share * np.frombuffer(base64.b64decode(one["axes"][0]["factor"]), "<f8")
    one["axes"][0]["factor"] = base64.b64encode(factor.tobytes()).decode()
    if digest:
        one["axes"][0]["factor_sha256"] = hashlib.sha256(factor.tobytes()).hexdigest()


def test_what_was_written_is_verified(out):
    steps: list[str] = []
    found = verify_folder(out, steps.append)
    assert found.verified and all(check.passed for check in found.checks)
    records = data.records(out)
    assert set(records) == RELEASED and set(data.refused(out)) == set(range(COUNT)) - RELEASED
    # Two certificates of one mechanism, each within 1e-10 of the loss.
    assert found.epsilon == pytest.approx(max(one["epsilon"] for one in records.values()), rel=1e-9)
    assert any("Checking part" in step for step in steps)
    said = CliRunner().invoke(app, ["verify", str(out), "--json"])
    assert said.exit_code == 0 and json.loads(said.stdout)["verified"] is True


def test_the_share_folder_alone(out):
    shutil.rmtree(out / "private")
    for folder in (out, out / "share"):
        found = verify_folder(folder)
        assert found.verified and found.epsilon is None
        assert [check.name for check in found.checks if check.passed is None] == ["release", "promise"]
    # A file twice is found without its records too.
    path = sorted((out / "share").iterdir())[0]
    shutil.copy(path, path.with_name("part-0.parquet"))
    assert failed(out) == {"once"}


def test_simulated_output_is_never_verified(made, tmp_path):
    run_batch(made / "in.parquet", tmp_path / "sim", data.request(7), part_traces=4)
    assert failed(tmp_path / "sim") == {"release"}
    run = CliRunner().invoke(app, ["verify", str(tmp_path / "sim")])
    assert run.exit_code == 3 and "simulated output" in run.output


def test_several_secrets_and_a_target_are_verified(tmp_path):
    # The first trace has a secret between two fixes and one at a fix, each protected by itself.
    rows = [f"a,{1_600_000_000 + t},{48 + 1e-5 * t:.7f},16.0" for t in (0, 5, 10, 60, 65, 70)]
    (tmp_path / "in.csv").write_text("\n".join(["uid,time,lat,lon", *rows]) + "\n")
    options = BatchOptions(
        Target(50.0, 1.0),
        PriorRequest(given=data.PRIOR),
        SecretRequest(("2020-09-13T12:27:15Z", "2020-09-13T12:26:50Z")),
    )
    assert run_batch(tmp_path / "in.csv", tmp_path / "out", options).done == 1
    (record,) = data.records(tmp_path / "out").values()
    assert record["secrets"] == [{"fixes": [2]}, {"seconds": 35.0}]
    found = verify_folder(tmp_path / "out")
    assert found.verified and found.epsilon is not None and 0.9 < found.epsilon <= 1.0

    # The noise was made for the fix and the middle of the gap; it hides the last fix less.
    change_trace(tmp_path / "out", 0, lambda one: one.update(secrets=[{"fixes": [5]}, {"seconds": 35.0}]))
    assert failed(tmp_path / "out") == {"epsilon"}


def test_parts_of_which_no_trace_is_released(made, tmp_path):
    # Each part has a file without rows.
    options = BatchOptions(Target(50.0, 1.0), PriorRequest(given=data.PRIOR), SecretRequest(("2030-01-01T00:00:00Z",)))
    summary = run_batch(made / "in.parquet", tmp_path / "out", options, part_traces=4)
    assert (summary.done, summary.refused) == (0, COUNT) and summary.parts > 0
    found = verify_folder(tmp_path / "out")
    assert found.verified and found.epsilon is None
    assert [check.name for check in found.checks if check.passed is None] == ["epsilon"]


def test_a_changed_shared_file(out, made):
    path, _ = part_of(out, 3)
    whole = path.read_bytes()
    at = len(whole) // 3
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    assert "unchanged" in failed(out)
    # A run does not go on over it either.
    with pytest.raises(InputError, match="was changed after it was written"):
        run_batch(made / "in.parquet", out, data.request(), part_traces=2)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="is damaged: it cannot be read"):
        verify_folder(out)
    run = CliRunner().invoke(app, ["verify", str(out)])
    assert run.exit_code == 2 and path.name in run.output.replace("\n", "")


def test_positions_that_are_not_those_of_the_mechanism(out):
    def true_positions(columns: dict[str, np.ndarray], at: np.ndarray) -> None:
        columns["lat"][at] = np.round(48 + 1e-6 * np.arange(np.sum(at)), 7)

    change_shared(out, 3, true_positions)
    assert failed(out) == {"positions"}
    assert detail(out, "positions") == "trace 3: a position is not on the grid of the release"


def test_positions_with_more_decimals(out):
    change_shared(out, 3, lambda columns, at: columns["lon"].__iadd__(1e-9 * at))
    assert failed(out) == {"shared files"}


def test_other_instants(out):
    # Fixes that stand closer tell more of each other: the noise was made for the ones further apart.
    def closer(columns: dict[str, np.ndarray], at: np.ndarray) -> None:
        times = columns["time"]
        times[at] = times[at][0] + (times[at] - times[at][0]) // 4

    change_shared(out, 3, closer)
    assert failed(out) == {"epsilon"}
    change_shared(out, 3, lambda columns, at: columns["time"].__setitem__(at, columns["time"][at][::-1]))
    assert "shared files" in failed(out)


def test_another_column_and_another_number(out):
    path, _ = part_of(out, 3)
    table = pq.read_table(path)
    pq.write_table(table.append_column("name", [["x"] * len(table)]), path)
    renew_digests(out)
    assert failed(out) == {"shared files", "records", "complete"}
    pq.write_table(table.replace_schema_metadata({"by": "me"}), path)
    renew_digests(out)
    assert failed(out) == {"shared files", "records", "complete"}
    pq.write_table(table, path)
    # Traces 3 and 8 are in one file, in this order.
    change_shared(out, 8, lambda columns, at: columns["trace"].__setitem__(at, 99))
    assert failed(out) == {"records", "complete"}
    change_shared(out, 3, lambda columns, at: columns["trace"].__setitem__(at, 100))
    assert failed(out) == {"shared files", "records", "complete"}


def test_a_file_that_is_lost_copied_or_added(out):
    path, record = part_of(out, 3)
    content = path.read_bytes()
    path.unlink()
    assert failed(out) == {"files", "complete"}
    assert "neither released nor refused" in detail(out, "complete")
    path.write_bytes(content)
    twin = path.with_name("part-" + "0" * 64 + ".parquet")
    twin.write_bytes(content)
    assert failed(out) == {"once", "records", "unchanged", "complete"}
    shutil.copy(record, record.with_name("0" * 64 + ".json"))
    assert "once" in failed(out)
    twin.unlink()
    record.with_name("0" * 64 + ".json").unlink()
    (out / "share" / "notes.txt").write_text("x")
    assert failed(out) == {"files"}


def test_a_record_that_says_less_than_the_noise_gives_away(out):
    records = data.records(out)
    number = min(records, key=lambda n: records[n]["epsilon"])

    def less(one: dict) -> None:
        one["epsilon"] *= 0.99
        for axis in one["axes"]:
            axis["epsilon"] *= 0.99

    change_trace(out, number, less)
    assert failed(out) == {"epsilon"}
    assert detail(out, "epsilon") == f"trace {number}: the record says less than the noise gives away"
    assert "Not verified" in verify_folder(out).text()


def test_other_noise_than_what_is_stated(out):
    before = part_of(out, 3)[1].read_text()
    change_trace(out, 3, lambda one: scaled(one, 0.9, digest=False))
    # The summary counts the record of a trace that cannot be read no more.
    assert "records" in failed(out) and "its digest differs" in detail(out, "records")
    part_of(out, 3)[1].write_text(before)
    change_trace(out, 3, lambda one: scaled(one, 0.9))
    assert failed(out) == {"epsilon", "noise"}
    part_of(out, 3)[1].write_text(before)
    # More noise is as private, but not what was stated; it is further from what a grid of this step can say.
    change_trace(out, 3, lambda one: scaled(one, 1.1))
    assert failed(out) - {"floor, grid and τ"} == {"noise"}


def _floor(one: dict) -> None:
    for axis in one["axes"]:
        axis["floor_sd_m"] = 0.9


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_floor, {"floor, grid and τ", "epsilon", "noise"}),
        (lambda one: one.update(grid_exponent=-1), {"floor, grid and τ", "noise"}),
        (lambda one: one.update(tau=one["tau"] / 2), {"floor, grid and τ"}),
        (lambda one: one.update(origin=[48.1, 16.0]), {"positions"}),
        (lambda one: one.update(rms_m=29.0), {"noise"}),
        (lambda one: one["secrets"].__setitem__(0, {"fixes": [one["points"] // 2 + 1]}), {"records", "epsilon"}),
        (lambda one: one["axes"][0]["priors"][0].update(nugget_m=3.5), {"records"}),
        (lambda one: one.update(tau=None), {"records"}),
        (lambda one: one.update(points=3), {"records"}),
        (lambda one: one["axes"].pop(), {"records"}),
        (lambda one: one["axes"][0].update(priors=[]), {"records"}),
        (lambda one: one.pop("rms_m"), {"records"}),
    ],
)
def test_a_changed_record(out, change, expected):
    records = data.records(out)
    # Not the trace of the largest ε, which the summary states: it says the same of the others.
    number = next(n for n in records if records[n]["epsilon"] < max(one["epsilon"] for one in records.values()))
    change_trace(out, number, change)
    assert failed(out) == expected


def test_lost_and_damaged_records(out):
    path, record = part_of(out, 3)
    content = record.read_text()
    record.unlink()
    assert failed(out) == {"records"}
    assert detail(out, "records") == f"{path.name} has no record in private/parts"
    for text, match in (("{", "is damaged"), ('{"format": 1}', "another version"), ('{"format": 2}', "is damaged")):
        record.write_text(text)
        with pytest.raises(InputError, match=match):
            verify_batch(out)
    record.write_text(content)
    (out / "private" / "batch.json").write_text("{}")
    with pytest.raises(InputError, match="another version"):
        verify_folder(out)
    about = json.loads(json.dumps({"format": 2, "target": {"radius_m": 1.0, "epsilon": -1}, "prior": {"given": None}}))
    (out / "private" / "batch.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match=r"batch\.json is damaged"):
        verify_folder(out)


def test_the_counts(out):
    listed, summary = out / "private" / "refused.jsonl", out / "summary.json"
    lines, said = listed.read_text(), summary.read_text()
    listed.write_text("".join(lines.splitlines(keepends=True)[1:]))
    assert failed(out) == {"complete"} and "neither released nor refused" in detail(out, "complete")
    listed.write_text(lines + lines.splitlines(keepends=True)[0])
    assert failed(out) == {"complete"} and "refused twice" in detail(out, "complete")
    listed.write_text(lines.replace("distinct time", "different time"))
    assert failed(out) == {"complete"}
    listed.write_text(lines)
    for name in ("done", "refused", "parts", "epsilon", "estimate", "simulated", "reasons", "traces"):
        content = json.loads(said)
        content[name] = {} if name == "reasons" else (not content[name] if name in ("estimate", "simulated") else 1)
        summary.write_text(json.dumps(content))
        assert failed(out) == {"complete"}, name
    summary.write_text("[]")
    with pytest.raises(InputError, match=r"summary\.json is damaged"):
        verify_folder(out)
    summary.unlink()
    assert failed(out) == {"complete"} and "the run did not end" in detail(out, "complete")


def test_digests(out, made):
    digests = out / "private" / "shared.json"
    content = digests.read_text()
    digests.unlink()
    found = verify_folder(out)
    assert found.verified and [check.name for check in found.checks if check.passed is None] == ["unchanged"]
    digests.write_text("[1]")
    with pytest.raises(InputError, match=r"shared\.json is damaged"):
        verify_folder(out)
    digests.write_text(content)
    # A part that was removed is drawn again, and its digest with it; the others keep theirs.
    path, _ = part_of(out, 3)
    path.unlink()
    run_batch(made / "in.parquet", out, data.request(), part_traces=2)
    before, after = json.loads(content)["sha256"], json.loads(digests.read_text())["sha256"]
    assert {name for name in before if before[name] != after[name]} == {path.name}
    assert verify_folder(out).verified


def test_a_prior_of_other_numbers_than_those_of_the_design(tmp_path, monkeypatch):
    """Where the options name no numbers, the record's own are what is certified."""
    from jaxpriv.jobs.batch import part as batch_part
    from jaxpriv.jobs.prior_sources import AxisPriors, PriorSource

    axis = AxisPriors((PriorChoice("matern32", 60.0, 100.0, 3.0),), ("a",), (True,))
    source = PriorSource((axis, axis), "a test", True, ())
    monkeypatch.setattr(batch_part, "find_part_priors", lambda placed, *rest: [source] * len(placed))
    table = data.make_table(tmp_path / "in.parquet", 4)
    run_batch(table, tmp_path / "out", BatchOptions(Target(50.0, budget_m=30.0), PriorRequest()))
    assert verify_folder(tmp_path / "out").verified
    for number in (1, 3):
        change_trace(tmp_path / "out", number, lambda one: one["axes"][1]["priors"][0].update(nugget_m=0.1))
    assert failed(tmp_path / "out") == {"epsilon"}
    assert "(and 1 more)" in detail(tmp_path / "out", "epsilon")
