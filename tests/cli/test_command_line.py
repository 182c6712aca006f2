"""The commands: exit codes, messages, and what goes where."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from jaxpriv.cli.app import app
from jaxpriv.cli.quantities import parse_duration, parse_length
from jaxpriv.errors import InputError


runner = CliRunner()

DAY = "time,lat,lon\n" + "".join(
    f"2024-05-06T08:{i:02d}:00Z,{31.4159265 + math.sin(i * i) * 1e-3:.7f},{27.1828182 + (math.cos(i) - 1) * 1e-3:.7f}\n"
    for i in range(12)
)
DEFAULTS = {
    "--secret": "2024-05-06T08:05:00Z",
    "--radius": "200m",
    "--epsilon": "1",
    "--kernel": "matern32",
    "--lengthscale": "5min",
    "--sd": "0.3km",
    "--nugget": "1m",
    "--simulate": "3",
}


@pytest.fixture
def run(tmp_path):
    def call(*flags, text=DAY, name="in.csv", **changes):
        (tmp_path / name).write_text(text)
        options = DEFAULTS | {f"--{key}": value for key, value in changes.items()}
        arguments = [part for option, value in options.items() if value is not None for part in (option, value)]
        return runner.invoke(app, ["protect", str(tmp_path / name), "--out", str(tmp_path / "out"), *arguments, *flags])

    return call


def test_protect_writes_the_folder_and_says_so(run, tmp_path):
    result = run()
    assert result.exit_code == 0, result.output
    assert sorted(os.listdir(tmp_path / "out")) == ["private", "share"]
    assert result.stdout.strip().startswith("Prior: given by the user")
    assert "NOT PRIVATE" in result.stderr
    assert "31.41" not in result.output
    assert "27.18" not in result.output


def test_plt_in_plt_out(run, tmp_path):
    rows = "".join(
        f"{31.4159265 + math.sin(i * i) * 1e-3:.7f},{27.18 + math.cos(i) * 1e-3:.7f},0,492,39748.0,2024-05-06,"
        f"08:{i:02d}:00\r\n"
        for i in range(12)
    )
    header = "\r\n".join(
        ["Geolife trajectory", "WGS 84", "Altitude is in Feet", "Reserved 3", "0,2,255,SENTINEL,0,0,2,8421376", "0", ""]
    )
    result = run("--quiet", text=header + rows, name="in.plt")
    assert (result.exit_code, result.output) == (0, "")
    written = (tmp_path / "out/share/trace.SIMULATED.plt").read_bytes()
    assert b"SIMULATED - NOT PRIVATE" in written
    assert b"SENTINEL" not in written
    assert written.count(b",-777,") == 12
    assert written.count(b"\r\n") == 18


def test_json_is_all_of_stdout(run):
    result = run("--json")
    report = json.loads(result.stdout)
    assert report["epsilon"] <= 1.0
    assert report["simulated"] is True
    assert report["radius_m"] == 200.0
    assert "NOT PRIVATE" in result.stderr


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_was_cleaned_or_odd_is_said_once(run, form):
    text = DAY.replace("Z,", ",").replace("08:11:00", "08:59:00")
    result = run(*(["--json"] if form == "json" else []), text=text, secret="2024-05-06 08:05:00")
    assert result.exit_code == 0
    assert result.stderr.count("--secret has no offset from UTC") == 1
    # The JSON is for programs: what it says of the file is said beside it.
    said = " ".join((result.stderr if form == "json" else result.stderr + result.stdout).split())
    assert said.count("12 rows with a time without an offset: taken as UTC.") == 1
    assert said.count("1 gap of more than ten median steps: kept with their true times.") == 1
    if form == "json":
        report = json.loads(result.stdout)
        assert len(report["cleaning"]) == len(report["odd"]) == 1


SENTINELS = ("31.4", "27.1", "1415", "8182")


@pytest.mark.parametrize(
    ("changes", "text", "code", "words"),
    [
        ({"radius": "200"}, DAY, 2, "--radius 200: the unit is missing; write 200m"),
        ({"radius": "200furlongs"}, DAY, 2, "the unit furlongs is not known"),
        ({"radius": "0m"}, DAY, 2, "the radius is 0.0 m"),
        (
            {"lengthscale": "60m"},
            DAY,
            2,
            "--lengthscale 60m: the unit m is not known here; use one of ms, s, min, h, d",
        ),
        ({"epsilon": "0"}, DAY, 2, "epsilon is 0.0"),
        ({"epsilon": "nan"}, DAY, 2, "epsilon is nan"),
        ({"epsilon": "much"}, DAY, 2, "epsilon"),
        ({"order": "1"}, DAY, 2, "order"),
        ({"kernel": None, "sd": None}, DAY, 2, "pass --kernel, --sd"),
        ({"kernel": "cubic"}, DAY, 2, "cubic"),
        ({"kernel": "periodic"}, DAY, 2, "needs a period"),
        ({"simulate": "-1"}, DAY, 2, "simulate"),
        ({"secret": "noon"}, DAY, 2, "--secret noon: not ISO 8601"),
        ({"secret": "2024-05-06T07:59:59Z"}, DAY, 2, "before the trace begins"),
        ({"secret": "2024-05-06T08:05:00+02:00"}, DAY, 2, "check the date and the offset"),
        ({"origin": "48.2"}, DAY, 2, "--origin 48.2,16.4"),
        ({"origin": "0,0"}, DAY, 2, "250 km"),
        ({"resolution": "1mm"}, DAY, 2, "pass --resolution 0.012m"),
        ({}, DAY.replace(",31.4", ",91.4"), 2, "12 rows read"),
        ({}, DAY.replace("31.4", "31,4", 1), 2, "4 cells where the header has 3"),
        ({}, DAY.replace("08:03:00Z", "yesterday 31.4159"), 2, "row 5: the time is not ISO 8601"),
        ({}, "", 2, "first line"),
        ({}, DAY.replace("time,lat,lon", "a,b,c"), 2, "name them time, lat and lon"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_2(run, tmp_path, changes, text, code, words):
    result = run(text=text, **changes)
    assert result.exit_code == code, result.output
    flat = " ".join(result.stderr.replace("│", " ").split())
    assert words in flat
    assert result.stdout == ""
    assert not any(digits in result.output for digits in SENTINELS)
    assert os.listdir(tmp_path) == ["in.csv"]


def verify(*arguments):
    return runner.invoke(app, ["verify", *map(str, arguments)])


def test_a_release_and_its_verification(run, tmp_path):
    result = run(simulate=None)
    assert result.exit_code == 0, result.output
    assert sorted(os.listdir(tmp_path / "out/share")) == ["release.json", "trace.csv"]
    assert "SIMULATED" not in result.output
    assert f"jaxpriv verify {tmp_path / 'out'}" in result.stderr.replace("\n", "")

    checked = verify(tmp_path / "out")
    assert checked.exit_code == 0, checked.output
    assert "Verified: ε ≤ 1.00 nats" in checked.stdout
    assert json.loads(verify(tmp_path / "out", "--json").stdout)["verified"] is True
    assert verify(tmp_path / "out", "--quiet").output == ""

    shared = verify(tmp_path / "out/share")
    assert shared.exit_code == 0
    assert "was not checked" in " ".join(shared.stdout.split())

    (tmp_path / "out/share/more.txt").write_text("x")
    wrong = verify(tmp_path / "out", "--json")
    assert wrong.exit_code == 3
    assert [check["name"] for check in json.loads(wrong.stdout)["checks"] if check["passed"] is False] == ["files"]

    (tmp_path / "out/share/release.json").write_text("{}")
    unreadable = verify(tmp_path / "out")
    assert (unreadable.exit_code, unreadable.stdout) == (2, "")
    assert "release.json" in unreadable.stderr
    assert verify(tmp_path / "nowhere").exit_code == 2


def test_simulated_output_does_not_verify(run, tmp_path):
    run()
    result = verify(tmp_path / "out")
    assert result.exit_code == 3
    assert "Not a release" in result.stdout


def test_a_second_release_asks_for_again(run, tmp_path):
    run(simulate=None)
    second = run("--force", simulate=None)
    assert (second.exit_code, second.stdout) == (2, "")
    assert "pass --again" in second.stderr
    third = run("--force", "--again", simulate=None)
    assert third.exit_code == 0
    assert "This is release number 2 of the same positions and times" in " ".join(third.stdout.split())
    # A simulation is no release.
    assert run("--force").exit_code == 0


def test_existing_folder_needs_force(run, tmp_path):
    (tmp_path / "out").mkdir()
    assert run().exit_code == 2
    assert run("--force", "--quiet").exit_code == 0
    assert (tmp_path / "out/share").is_dir()


def test_missing_file():
    result = runner.invoke(
        app,
        ["protect", "nowhere.csv", "--out", "out-of-nowhere", *(part for pair in DEFAULTS.items() for part in pair)],
    )
    assert result.exit_code == 2
    assert "cannot read nowhere.csv: No such file or directory" in result.stderr


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        ("CertificateError", 3, "Error: could not be verified"),
        ("InfeasibleError", 3, "Error: could not be verified"),
        ("RuntimeError", 1, "unexpected RuntimeError"),
    ],
)
def test_exit_codes_of_later_failures(run, tmp_path, monkeypatch, error, code, words):
    import jaxpriv.errors
    from jaxpriv.jobs import protect as job

    def fail(*arguments):
        raise getattr(jaxpriv.errors, error, RuntimeError)("could not be verified")

    monkeypatch.setattr(job, "design_noise", fail)
    result = run()
    assert result.exit_code == code
    assert words in result.stderr
    # What nobody foresaw may quote the trace.
    assert ("could not be verified" in result.stderr) == (code == 3)
    assert os.listdir(tmp_path) == ["in.csv"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("200m", 200.0), ("0.2km", 200.0), ("1e3 m", 1000.0), ("50cm", 0.5), ("0m", 0.0), (".5km", 500.0)],
)
def test_lengths(text, value):
    assert parse_length("--radius", text) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "value"), [("60s", 60.0), ("5min", 300.0), ("1h", 3600.0), ("2d", 172800.0), ("250ms", 0.25)]
)
def test_durations(text, value):
    assert parse_duration("--lengthscale", text) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("text", ["", "m", "-5m", "nanm", "infm", "1e999m", "5 m m", "5,5m", "5m2"])
def test_no_lengths(text):
    with pytest.raises(InputError, match="--sd"):
        parse_length("--sd", text)


def test_help_and_version():
    for arguments in (
        ["--help"],
        ["protect", "--help"],
        ["verify", "--help"],
        ["fit", "--help"],
        ["demo", "--help"],
        [],
    ):
        result = runner.invoke(app, arguments, env={"COLUMNS": "100", "NO_COLOR": "1"})
        assert "Usage" in result.output
    result = runner.invoke(app, ["protect", "--help"], env={"COLUMNS": "100", "NO_COLOR": "1"})
    for option in (
        "--secret",
        "--radius",
        "--epsilon",
        "--kernel",
        "--simulate",
        "--again",
        "--force",
        "--json",
        "--delta",
        "--budget",
        "--uncertainty",
        "--prior-set",
        "--hide-ends",
        "--dry-run",
    ):
        assert option in result.output
    assert runner.invoke(app, ["--version"]).output.startswith("jaxpriv 0.")


def test_the_command_line_itself_does_not_import_jax():
    # The package's own __init__ is left out: only what the command line imports before a command runs is looked at.
    code = (
        "import importlib.util, sys, types\n"
        "spec = importlib.util.find_spec('jaxpriv')\n"
        "package = types.ModuleType('jaxpriv'); package.__path__ = list(spec.submodule_search_locations)\n"
        "sys.modules['jaxpriv'] = package\n"
        "import jaxpriv.cli\n"
        "print([name for name in ('jax', 'numpy', 'scipy', 'matplotlib', 'pyproj') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_python_dash_m():
    done = subprocess.run([sys.executable, "-m", "jaxpriv", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("jaxpriv ")
