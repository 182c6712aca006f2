"""`jaxpriv conceal`: the folder it writes, what its audit says, and what it refuses."""

from __future__ import annotations

import csv
import json
import math

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from jaxpriv.cli.app import app


runner = CliRunner()
SIDE = 4


def places():
    return [(48.0 + 0.01 * i, 16.0 + 0.015 * j) for i in range(SIDE) for j in range(SIDE)]


def counts(rng):
    return rng.integers(1, 60, size=(SIDE * SIDE, 2))


def table(numbers, names=("day", "night")):
    lines = ["lat,lon,name," + ",".join(names)]
    for k, ((lat, lon), row) in enumerate(zip(places(), numbers, strict=True)):
        lines.append(f"{lat:.4f},{lon:.4f},cell {k}," + ",".join(str(one) for one in row))
    return "\n".join(lines) + "\n"


@pytest.fixture
def run(tmp_path):
    def call(*flags, text=None, checkins=None):
        (tmp_path / "groups.csv").write_text(table(counts(np.random.default_rng(0))) if text is None else text)
        arguments = ["conceal", str(tmp_path / "groups.csv"), "--out", str(tmp_path / "out"), *flags]
        if checkins is not None:
            (tmp_path / "checkins.csv").write_text(checkins)
            arguments += ["--apply", str(tmp_path / "checkins.csv")]
        return runner.invoke(app, arguments)

    return call


def stored(folder):
    with np.load(folder / "share" / "mechanism.npz", allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def published(file):
    """The law of what each group publishes, from the file alone."""
    laws = file["counts"] / file["counts"].sum(axis=1, keepdims=True)
    return np.einsum("sn,snm->sm", laws, file["weights"].astype(float) / 2.0 ** int(file["bits"]))


@pytest.mark.parametrize("kind", ["cost", "minimax", "independent", "entropic"])
def test_groups_leave_with_one_law(run, tmp_path, kind):
    flags = ("--scale", "1km") if kind == "entropic" else ()
    found = run("--kind", kind, "--target", "mean", *flags)
    assert found.exit_code == 0, found.output
    file = stored(tmp_path / "out")
    laws = published(file)
    np.testing.assert_allclose(laws[0], laws[1], rtol=1e-9)
    np.testing.assert_allclose(laws[0], file["target"], rtol=1e-9)
    audit = json.loads((tmp_path / "out" / "share" / "audit.json").read_text())
    # The entropic iteration ends at a total variation of 1e-13.
    assert 0.0 <= audit["level"] < 1e-9 and audit["level"] >= np.max(np.abs(np.log(laws[0] / laws[1]))) - 1e-13
    points = [one["point_level"] for one in audit["groups"]]
    assert audit["from_counts"]["total_variation"] <= 1.0
    if kind == "independent":
        # The product law: nothing about the place either, whatever the counts leave possible.
        assert points == [0.0, 0.0] and audit["from_counts"]["level"] < 1e-12
    elif kind == "entropic":
        # 2 nats at the scale; the table's rounding is far below the margin of the bound.
        assert all(0.0 < one <= 2.0 / 1000.0 for one in points)
    else:
        assert points == ["infinite", "infinite"]
        assert "own place is not hidden" in found.output
    for one, law in zip(audit["groups"], file["counts"], strict=True):
        assert 0.0 < one["loss_m"] <= one["worst_m"] and law.sum() > 0


def test_a_group_as_target_stays_where_it_is(run, tmp_path):
    assert run("--target", "Night", "--groups", "night,day").exit_code == 0
    audit = json.loads((tmp_path / "out" / "share" / "audit.json").read_text())
    moved = {one["name"]: one["loss_m"] for one in audit["groups"]}
    assert moved["night"] == pytest.approx(0.0, abs=1e-6) and moved["day"] > 100.0
    barycentre = run("--force")
    assert barycentre.exit_code == 0
    best = json.loads((tmp_path / "out" / "share" / "audit.json").read_text())
    # The barycentre moves the groups no more in sum; HiGHS is right to 1e-7 of the largest distance.
    assert sum(one["loss_m"] for one in best["groups"]) <= sum(moved.values()) + 1e-3


def test_check_ins_are_released_without_saying_whose(run, tmp_path):
    rng = np.random.default_rng(2)
    numbers = counts(rng)
    numbers[3, 1] = 0
    lines = ["time,lat,lon,user"] + [
        f"{1_700_000_000 + k},{lat + 1e-4},{lon},me" for k, (lat, lon) in enumerate(places())
    ]
    found = run("--group", "night", text=table(numbers), checkins="\n".join(lines) + "\n")
    assert found.exit_code == 0, found.output
    folder = tmp_path / "out"
    with (folder / "share" / "released.csv").open() as file:
        released = list(csv.DictReader(file))
    assert len(released) == 16 and set(released[0]) == {"time", "latitude", "longitude"}
    assert [float(row["time"]) for row in released] == [1_700_000_000 + k for k in range(16)]
    file = stored(folder)
    known = {(round(a, 6), round(b, 6)) for a, b in zip(file["latitude"], file["longitude"], strict=True)}
    assert all((round(float(r["latitude"]), 6), round(float(r["longitude"]), 6)) in known for r in released)
    assert "1 of them lie where their group has no count" in found.output
    shared = (folder / "share" / "audit.txt").read_text() + (folder / "share" / "audit.json").read_text()
    assert "released" not in shared and "no count;" not in shared
    assert (folder / "private" / "applied.csv").stat().st_mode & 0o777 == 0o600
    # What is drawn is a row of the table of that group: outputs of weight zero never occur.
    where = {pair: k for k, pair in enumerate(zip(file["latitude"].round(6), file["longitude"].round(6), strict=True))}
    for k, row in enumerate(released):
        output = where[round(float(row["latitude"]), 6), round(float(row["longitude"]), 6)]
        assert file["weights"][1, k, output] > 0


def test_text_in_the_column_of_times_is_refused_and_not_repeated(run, tmp_path):
    lat, lon = places()[0]
    found = run("--group", "night", checkins=f"time,lat,lon\n=secret(),{lat},{lon}\n")
    assert found.exit_code == 2 and "row 2" in found.output and "secret" not in found.output
    assert not (tmp_path / "out").exists()


def test_level_from_counts_shrinks_with_the_number_of_people(run, tmp_path):
    numbers = counts(np.random.default_rng(5))
    levels = []
    for factor in (1, 100):
        assert run("--target", "mean", "--force", text=table(numbers * factor)).exit_code == 0
        levels.append(json.loads((tmp_path / "out" / "share" / "audit.json").read_text())["from_counts"]["level"])
    # Standard errors are ten times smaller; at a few dozen a cell the intervals are wider than that still.
    assert levels[1] < levels[0] / 5.0 and levels[1] > 0.0


def test_shares_instead_of_counts(run, tmp_path):
    shares = np.random.default_rng(6).dirichlet(np.ones(SIDE * SIDE), size=2).T
    found = run("--target", "mean", text=table(shares))
    assert found.exit_code == 0 and "not whole" in found.output
    audit = json.loads((tmp_path / "out" / "share" / "audit.json").read_text())
    assert audit["from_counts"] is None and audit["level"] < 1e-9


@pytest.mark.parametrize("flags", [("--target", "mean"), ("--target", "mean", "--kind", "entropic", "--scale", "1km")])
def test_nothing_is_computed_in_single_precision(run, tmp_path, flags):
    audits = []
    for wide in (True, False):
        with jax.enable_x64(wide):
            assert run(*flags, "--force").exit_code == 0
        audits.append(json.loads((tmp_path / "out" / "share" / "audit.json").read_text()))
    assert audits[0] == audits[1] and audits[0]["level"] < 1e-9


def test_three_groups_and_cells(run, tmp_path):
    rng = np.random.default_rng(7)
    lines = ["cell_lat_min,cell_lon_min,size_deg,a,b,c"]
    for lat, lon in places()[:6]:
        lines.append(f"{lat},{lon},0.01," + ",".join(str(one) for one in rng.integers(1, 30, size=3)))
    found = run(text="\n".join(lines) + "\n")
    assert found.exit_code == 0, found.output
    file = stored(tmp_path / "out")
    assert file["weights"].shape == (3, 6, 6) and file["groups"].tolist() == ["a", "b", "c"]
    assert file["latitude"][0] == pytest.approx(48.005, abs=1e-6)
    assert (tmp_path / "out" / "share" / "map.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("flags", "text", "message"),
    [
        (("--kind", "best"), None, "expected one of"),
        (("--kind", "entropic"), None, "--scale"),
        (("--scale", "1km"), None, "--scale"),
        (("--group", "night"), None, "--apply and --group"),
        (("--confidence", "1"), None, "--confidence"),
        (("--target", "noon"), None, "groups are day, night"),
        (("--groups", "day"), None, "at least two"),
        (("--groups", "day,day"), None, "twice"),
        (("--groups", "day,noon"), None, "no column 'noon'"),
        ((), "lat,lon,day\n48,16,1\n48,16.1,2\n", "at least two"),
        ((), "lat,lon,day,night\n48,16,1,0\n48,16.1,2,0\n", "no count above zero"),
        ((), "lat,lon,day,night\n48,16,1,3\n48,16.1,2,-1\n", "negative"),
        (("--groups", "day,night"), "lat,lon,day,night\n48,16,1,3\n48,16.1,2,x\n", "row 3"),
        ((), "lat,lon,day,night\n48,16,1,3\n48,16,2,1\n", "two"),
        (("--target", "mean"), "lat,lon,day,mean\n48,16,1,3\n48,16.1,2,1\n", "rename"),
    ],
)
def test_refusals(run, tmp_path, flags, text, message):
    found = run(*flags, text=text)
    assert found.exit_code == 2 and message in found.output, found.output
    assert not (tmp_path / "out").exists()


def test_unknown_group_of_the_check_ins(run):
    found = run("--group", "noon", checkins="lat,lon\n48,16\n")
    assert found.exit_code == 2 and "--group noon" in found.output


def test_exact_level_against_floats():
    from jaxpriv.channels.channel import Channel
    from jaxpriv.channels.table import IntegerTable
    from jaxpriv.jobs.conceal_audit import exact_level, exact_outputs
    from jaxpriv.jobs.conceal_groups import GroupCounts

    rng = np.random.default_rng(3)
    numbers = rng.integers(1, 9, size=(2, 3)).astype(float)
    tables = tuple(IntegerTable.from_channel(Channel.from_matrix(rng.dirichlet(np.ones(4), size=3))) for _ in range(2))
    groups = GroupCounts(("a", "b"), None, None, numbers, True)  # type: ignore[arg-type]
    level, variation = exact_level(exact_outputs(groups, tables))
    laws = [law @ np.exp(one.channel.log_matrix) for law, one in zip(groups.laws, tables, strict=True)]
    assert level == pytest.approx(np.max(np.abs(np.log(laws[0] / laws[1]))), abs=1e-13)
    assert variation == pytest.approx(0.5 * np.sum(np.abs(laws[0] - laws[1])), abs=1e-14)
    first = IntegerTable(np.array([[2, 0]] * 3), 1)
    other = IntegerTable(np.array([[1, 1]] * 3), 1)
    assert exact_level(exact_outputs(groups, (other, first))) == (math.inf, pytest.approx(0.5, abs=1e-15))
    assert exact_level(exact_outputs(groups, (other, other))) == (0.0, 0.0)
