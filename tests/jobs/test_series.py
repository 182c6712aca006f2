"""Series of sensors: reading by stated rules, protecting in the unit of the column, sharing nothing else."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxpriv.cli.app import app
from jaxpriv.errors import InputError
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.series.file import decimals_for, read_series_release
from jaxpriv.jobs.series.inspect import inspect_series
from jaxpriv.jobs.series.job import dry_run_series, plan_series, protect_series_file
from jaxpriv.jobs.series.priors import find_series_priors
from jaxpriv.jobs.target import Target
from jaxpriv.jobs.verify import verify_folder
from jaxpriv.traces.contents import ColumnNames, ReadOptions
from jaxpriv.traces.instants import format_instant
from jaxpriv.traces.series_format import read_series


START = 1_714_550_400 * 10**6  # 2024-05-01T08:00:00Z
PRIOR = PriorRequest(given=PriorChoice("matern32", 3600.0, 1.0, 0.2))
TARGET = Target(2.0, epsilon=1.0, resolution_m=0.1, unit="")
SECRET = SecretRequest((format_instant(START + 2 * 900 * 10**6),))


def written(folder: Path, text: str, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def day(folder: Path, name: str = "day.csv", shift: float = 0.0, n: int = 24, start: int = START) -> Path:
    rng = np.random.default_rng(3)
    values = 20.0 + np.cumsum(rng.normal(0, 0.3, n)) + shift
    rows = [
        f"{format_instant(start + 900 * i * 10**6)},kitchen,{value:.1f},{60 + i % 7},a note of SENTINEL"
        for i, value in enumerate(values)
    ]
    return written(folder, "\n".join(["time,room,temperature,pulse,note", *rows]) + "\n", name)


def read(folder: Path, text: str, column: str = "v", **options):
    return read_series(written(folder, text), column, ReadOptions(**options))


def test_rules_of_reading_are_counted(tmp_path):
    text = (
        "time,v,w\n2024-05-01T08:15:00Z,2,x\n2024-05-01T08:00:00,1.5,x\n2024-05-01T08:15:00Z,4,x\n,5,x\n"
        "2024-05-01T08:30:00Z,,x\n2024-05-01T08:45:00Z,NaN,x\n2024-05-01T11:00:00+02:00,7,x\n"
    )
    series = read(tmp_path, text)
    counts = series.cleaning
    assert (counts.rows_read, counts.missing_time, counts.missing_value, counts.dropped) == (7, 1, 2, 3)
    assert (counts.out_of_order, counts.duplicate_rows, counts.naive_times, counts.offset_times) == (1, 1, 1, 1)
    assert counts.other_columns == 1
    np.testing.assert_array_equal(series.values, [1.5, 3.0, 7.0])  # the two values at one instant are averaged
    np.testing.assert_array_equal(series.seconds, [0, 900, 3600])  # a gap keeps its time
    assert series.point_of_row.tolist() == [0, 1, 1, 2]
    said = " ".join(counts.sentences())
    for words in (
        "no time",
        "no value",
        "out of order",
        "merged",
        "without an offset",
        "another offset",
        "1 other column",
    ):
        assert words in said
    with pytest.raises(InputError, match="strict reading"):
        read_series(tmp_path / "a.csv", "v", ReadOptions(strict=True))


@pytest.mark.parametrize(
    ("text", "options", "values"),
    [
        (
            "#  1:Date 2:Time 3:v\n18/04/2012 00:00 20.2\n18/04/2012 00:15 20.3\n",
            {"columns": ColumnNames(day_first=True)},
            [20.2, 20.3],
        ),
        ('"date","v","w"\n"1","2015-02-02 14:19:00",23.7,1\n"2","2015-02-02 14:20:00",23.8,1\n', {}, [23.7, 23.8]),
        ("time;v\n2024-05-01 08:00;1,5\n2024-05-01 08:01;2,5\n", {}, [1.5, 2.5]),
        ("when\tv\n1714550400\t-1e-2\n1714550460\t2\n", {"columns": ColumnNames(time="when")}, [-0.01, 2.0]),
        ("time,lat,lon,v\n2024-05-01,48,16,3\n2024-05-02,49,17,4\n", {}, [3.0, 4.0]),
        ("time,device,v\n2024-05-01,a,3\n2024-05-01,b,5\n2024-05-02,a,4\n", {"who": "a"}, [3.0, 4.0]),
    ],
)
def test_tables_that_are_understood(tmp_path, text, options, values):
    assert read(tmp_path, text, **options).values.tolist() == values


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("time,w\n2024-05-01,1\n", "does not name that column"),
        ("v,w\n1,1\n", "does not name that column"),
        ("time,v\n2024-05-01,warm31.4159\n", "row 2: the value is not a number"),
        ("time,v\n2024-05-01,inf\n", "row 2: the value is not a number"),
        ("time,v\n2024-05-01,3e31\n", "too large"),
        ("time,v\n2024-31-05,314159\n", "row 2: the time is"),
        ("time,v\n2024-05-01,31,4159\n2024-05-02,1\n", "row 3: another number of cells"),
        ("time,v\n2024-05-01,\n", "no row of the file has a time and a value"),
        ("time,device,v\n2024-05-01,a,3\n2024-05-01,b,5\n", "2 people or devices"),
        ("time,v,v\n2024-05-01,1,2\n", "twice"),
        ('time,v\n2024-05-01,"1\n', "quotation mark"),
    ],
)
def test_tables_that_are_refused_without_a_value_in_the_text(tmp_path, text, words):
    with pytest.raises(InputError, match=words) as caught:
        read(tmp_path, text)
    assert "31.4159" not in str(caught.value) and "314159" not in str(caught.value)


@pytest.fixture(scope="module")
def protected(tmp_path_factory):
    """A protected day of temperatures, and its file."""
    folder = tmp_path_factory.mktemp("series")
    source = day(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        protect_series_file(source, "temperature", folder / "out", SECRET, TARGET, PRIOR)
    return source, folder / "out"


def test_only_times_and_the_column_are_shared(protected):
    source, out = protected
    lines = (out / "share" / "series.csv").read_text().splitlines()
    assert lines[0] == "time,temperature"
    assert [line.split(",")[0] for line in lines[1:]] == [
        line.split(",")[0] for line in source.read_text().splitlines()[1:]
    ]
    assert {len(line) for line in lines[1:]} == {len(lines[1])}
    shared = read_series_release(out / "share" / "release.json")
    assert shared.decimals == 1
    for line, value in zip(lines[1:], shared.values.values, strict=True):
        assert abs(float(line.split(",")[1]) - value) <= 0.05 + 1e-12
    everything = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert b"SENTINEL" not in everything and b"kitchen" not in everything
    assert sorted(path.name for path in (out / "share").iterdir()) == ["release.json", "series.csv"]


def test_the_report_speaks_in_the_unit_of_the_column(protected):
    _, out = protected
    text = (out / "private" / "report.txt").read_text()
    assert "in the unit of the column temperature" in text
    for word in (" m ", "metre", " east", " north", " place"):
        assert word not in text
    page = (out / "private" / "report.html").read_text()
    assert "http" not in page.replace("http-equiv", "") and "<svg" in page and "temperature" in page
    content = json.loads((out / "private" / "report.json").read_text())
    assert content["epsilon"] <= 1.0 and content["column"] == "temperature"
    # Any noise of that certified loss leaves this much of the secret: 1 / sqrt(1/s + loss).
    variance = 1.0**2 + 0.2**2
    assert math.isclose(content["secrets"][0]["after"], 1 / math.sqrt(1 / variance + content["loss"]), rel_tol=1e-9)


def test_a_folder_verifies_and_a_changed_one_does_not(protected):
    _, out = protected
    found = verify_folder(out)
    assert found.verified and found.epsilon is not None and found.epsilon <= 1.0
    table = out / "share" / "series.csv"
    kept = table.read_text()
    last = kept.splitlines()[-1]
    try:
        table.write_text(kept.replace(last, last[:-1] + str((int(last[-1]) + 1) % 10)))
        assert not verify_folder(out).verified
        table.write_text(kept.replace("\n", ",1\n").replace("temperature,1", "temperature,pulse"))
        assert not verify_folder(out).verified
    finally:
        table.write_text(kept)
    report = out / "private" / "report.json"
    said = report.read_text()
    content = json.loads(said)
    try:
        content["epsilon"] = content["epsilon"] / 2
        report.write_text(json.dumps(content))
        assert not verify_folder(out).verified
    finally:
        report.write_text(said)
    assert verify_folder(out).verified


def test_the_same_values_are_released_once(protected, tmp_path):
    source, _ = protected
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(source.parent / "state"))
        with pytest.raises(InputError, match="on record as released"):
            protect_series_file(source, "temperature", tmp_path / "again", SECRET, TARGET, PRIOR)


def test_priors_come_from_another_time_or_are_called_an_estimate(tmp_path):
    series = read_series(day(tmp_path), "temperature")
    other = day(tmp_path, "other.csv", start=START + 10**12)
    options = ReadOptions()
    kernels = ("matern32",)
    _, source, estimate, _ = find_series_priors(
        series, PriorRequest(file=other, kernels=kernels), TARGET, "temperature", options
    )
    assert "another series" in source and not estimate
    members, source, estimate, _ = find_series_priors(
        series, PriorRequest(kernels=kernels), TARGET, "temperature", options
    )
    assert "on the series itself" in source and estimate and len(members.choices) >= 3
    for request, words in (
        (PriorRequest(file=tmp_path / "day.csv", kernels=kernels), "times in common"),
        (PriorRequest(file=tmp_path / "p.json"), "about positions"),
        (PriorRequest(sd_m=1.0), "alone is no prior"),
        (PriorRequest(kernels=("rq",)), "cannot be fitted"),
    ):
        with pytest.raises(InputError, match=words):
            find_series_priors(series, request, TARGET, "temperature", options)


def test_what_cannot_be_fitted_or_declared_is_refused(tmp_path):
    still = read(tmp_path, "time,v\n" + "".join(f"2024-05-{i:02d},7\n" for i in range(1, 31)))
    with pytest.raises(InputError, match="varies by no more than its resolution"):
        find_series_priors(still, PriorRequest(), TARGET, "v", ReadOptions())
    short = read(tmp_path, "time,v\n2024-05-01,7\n2024-05-02,8\n")
    with pytest.raises(InputError, match="fewer than 20"):
        find_series_priors(short, PriorRequest(), TARGET, "v", ReadOptions())
    series = read_series(day(tmp_path), "temperature")
    fine = Target(2.0, epsilon=1.0, resolution_m=0.01, unit="")
    with pytest.raises(InputError, match="coarser lattice") as caught:
        plan_series(series, "temperature", SECRET, fine, PRIOR)
    assert not any(character.isdigit() for character in str(caught.value))
    with pytest.raises(InputError, match="a series has no places"):
        plan_series(series, "temperature", SecretRequest(("48.2,16.3",), 100.0), TARGET, PRIOR)
    with pytest.raises(InputError, match="in metres is for positions"):
        plan_series(series, "temperature", SECRET, Target(2.0, epsilon=1.0), PRIOR)


def test_decimals_follow_from_the_resolution_alone():
    assert [decimals_for(one) for one in (0.1, 0.25, 0.5, 1.0, 2.0, 50.0, 1e-3, 0.09)] == [1, 1, 1, 0, 0, 0, 3, 2]


def test_inspection_tells_no_value(tmp_path):
    found = inspect_series(day(tmp_path), "temperature")
    assert (found.times, found.decimals, found.median_step_s) == (24, 1, 900.0)
    assert math.isclose(found.resolution, 0.1, rel_tol=1e-9)
    assert "protect can read this" in found.text() and "20." not in found.text().replace("2024", "")
    assert json.loads(found.to_json())["cleaning"]["other_columns"] == 3


def test_the_command_line(tmp_path):
    source = str(day(tmp_path))
    run = CliRunner()
    prior = ["--kernel", "matern32", "--lengthscale", "1h", "--sd", "1", "--nugget", "0.2"]
    base = [
        "protect",
        source,
        "--series",
        "temperature",
        "--secret",
        "daily 08:00/08:10Z",
        "--out",
        str(tmp_path / "o"),
    ]
    for more, words in (
        (["--radius", "2m", "--epsilon", "1", "--resolution", "0.1"], "plain number"),
        (["--radius", "2", "--epsilon", "1"], "needs --resolution"),
        (["--radius", "2", "--epsilon", "1", "--resolution", "0.1", "--origin", "48,16"], "not for a series"),
        (["--radius", "2", "--budget", "0.01", "--resolution", "0.1"], "is not above"),
    ):
        failed = run.invoke(app, [*base, *more, *prior])
        assert failed.exit_code in (2, 3) and words in " ".join(failed.output.split())
    seen = run.invoke(app, ["inspect", source, "--series", "temperature"])
    assert seen.exit_code == 0 and "24 times" in seen.output
    goal = ["--radius", "2", "--epsilon", "1", "--resolution", "0.1", *prior]
    made = run.invoke(app, [*base, *goal, "--simulate", "1", "--json", "--quiet"])
    assert made.exit_code == 0
    content = json.loads(made.output)
    assert content["simulated"] is True
    assert content["understood"] == ["daily 08:00/08:10Z: 1 fix in 1 window, each by itself."]
    assert run.invoke(app, ["verify", str(tmp_path / "o")]).exit_code != 0  # simulated output is never verified


def test_a_dry_run_says_the_size_in_the_unit(tmp_path):
    text = dry_run_series(day(tmp_path), "temperature", tmp_path / "out", SECRET, TARGET, PRIOR)
    assert "unit of the column temperature" in text and " m " not in text and not (tmp_path / "out").exists()


DATA = os.environ.get("JAXPRIV_DATA")


@pytest.mark.skipif(DATA is None, reason="JAXPRIV_DATA is not set: the folder of real files")
def test_real_tables_are_read_by_the_names_in_their_headers():
    folder = Path(str(DATA))
    dates = ReadOptions(ColumnNames(day_first=True))
    inside = read_series(folder / "sml2010" / "NEW-DATA-2.T15.txt", "3", dates)
    named = read_series(folder / "sml2010" / "NEW-DATA-2.T15.txt", "Temperature_Comedor_Sensor", dates)
    outside = read_series(folder / "sml2010" / "NEW-DATA-2.T15.txt", "5:Weather_Temperature", dates)
    assert inside.n_points == 1373 and inside.values[0] == 20.2 and outside.values[0] == 13.0
    np.testing.assert_array_equal(inside.values, named.values)
    assert np.count_nonzero(np.diff(inside.seconds) == 1800) == 2  # two gaps of half an hour, kept
    occupancy = read_series(folder / "temperature" / "uci_occupancy_datatest.txt", "Temperature")
    assert occupancy.n_points == 2665 and occupancy.cleaning.row_names == 2665 and occupancy.values[0] == 23.7
    weather = inspect_series(folder / "temperature" / "nab_ambient_temperature_system_failure.csv", "value")
    assert weather.times == 7267 and weather.problem is None


def test_strict_is_heeded_by_inspect_and_by_reading(tmp_path):
    path = tmp_path / "backwards.csv"
    path.write_text("time,temp\n" + "".join(f"2024-05-01T{hour:02d}:00:00Z,{hour}.5\n" for hour in (3, 1, 2, 4)))
    assert inspect_series(path, "temp").problem is None
    strict = ReadOptions(strict=True)
    problem = inspect_series(path, "temp", strict).problem
    assert problem is not None
    with pytest.raises(InputError) as refused:
        read_series(path, "temp", strict)
    assert str(refused.value) == problem
