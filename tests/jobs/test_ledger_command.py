"""`jaxpriv protect --ledger` and `jaxpriv ledger`: exit codes, what is said, and that noise does not average out."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from typer.testing import CliRunner

from jaxpriv.cli.app import app


runner = CliRunner()
DAY = "time,lat,lon\n" + "".join(
    f"2024-05-06T08:{i:02d}:00Z,{31.4159265 + math.sin(i * i) * 1e-3:.7f},{27.1828182 + (math.cos(i) - 1) * 1e-3:.7f}\n"
    for i in range(12)
)
OPTIONS = {
    "--secret": "2024-05-06T08:05:00Z",
    "--radius": "200m",
    "--epsilon": "1",
    "--kernel": "matern32",
    "--lengthscale": "5min",
    "--sd": "0.3km",
    "--nugget": "1m",
}


@pytest.fixture
def run(tmp_path):
    def call(out, *flags, ledger="l.ledger", **changes):
        (tmp_path / "in.csv").write_text(DAY)
        options = OPTIONS | {f"--{key}": value for key, value in changes.items()}
        if ledger is not None:
            options["--ledger"] = str(tmp_path / ledger)
        arguments = [part for option, value in options.items() for part in (option, value)]
        return runner.invoke(
            app, ["protect", str(tmp_path / "in.csv"), "--out", str(tmp_path / out), *arguments, *flags]
        )

    return call


def test_noise_does_not_average_out(run, tmp_path):
    """Ten requests for one trace are one release; a release of another shape is refused, whatever the sum says."""
    result = run("0", limit="2.5")
    assert result.exit_code == 0, result.output
    assert "release number 1 about this person" in " ".join(result.output.split())
    first = (tmp_path / "0/share/trace.csv").read_bytes()
    for i in range(1, 10):
        result = run(str(i))
        assert result.exit_code == 0, result.output
        assert "Release number 1 again; nothing new is published, and nothing is spent." in result.stderr
        assert (tmp_path / f"{i}/share/trace.csv").read_bytes() == first
    refused = run("10", secret="2024-05-06T08:07:00Z")
    assert refused.exit_code == 3 and "limit is 2.5" in refused.stderr and not (tmp_path / "10").exists()
    # Alone each has ε = 1, and the limit is above the sum of both: the joint value is far above it.
    assert "for the fix at 2024-05-06T08:05:00Z" in refused.stderr or "08:07:00Z" in refused.stderr
    assert "31.41" not in refused.output and "27.18" not in refused.output

    listed = runner.invoke(app, ["ledger", str(tmp_path / "l.ledger"), "--check"])
    assert listed.exit_code == 0, listed.output
    assert "1 person(s); limit ε = 2.5" in listed.output and "one person: 1 release(s)" in listed.output
    assert "1.50 below the limit" in listed.output and "which is what is on record" in listed.output
    content = json.loads(runner.invoke(app, ["ledger", str(tmp_path / "l.ledger"), "--json"]).stdout)
    assert content["limit"] == 2.5 and content["persons"][0]["releases"][0]["state"] == "published"

    printed = run("11", "--json", "--quiet")
    assert json.loads(printed.stdout)["ledger"] | {"secrets": []} == {
        "number": 1, "counted": 1, "limit": 2.5, "epsilon": content["persons"][0]["epsilon_together"],
        "secrets": [], "again": True,
    }  # fmt: skip

    with closing(sqlite3.connect(tmp_path / "l.ledger")) as database, database:
        database.execute("UPDATE together SET epsilon_together = 0.5")
    wrong = runner.invoke(app, ["ledger", str(tmp_path / "l.ledger"), "--check"])
    assert wrong.exit_code == 3 and "MORE THAN WHAT IS ON RECORD" in wrong.output


def test_options_that_do_not_go_together(run, tmp_path):
    for changes, flags, words in (
        ({"ledger": None, "limit": "2"}, [], "go with --ledger"),
        ({"ledger": None, "person": "Ada"}, [], "go with --ledger"),
        ({"simulate": "3"}, [], "--simulate draws no release"),
        ({}, ["--dry-run"], "--dry-run keeps no account"),
        ({"limit": "0"}, [], "positive, finite number"),
    ):
        result = run("out", *flags, **changes)
        assert result.exit_code == 2 and words in result.stderr
    missing = runner.invoke(app, ["ledger", str(tmp_path / "l.ledger")])
    assert missing.exit_code == 2 and "there is no such ledger" in missing.stderr
    assert os.listdir(tmp_path) == ["in.csv"]


def test_help_is_quick_to_import():
    """The list of commands loads neither the database nor the numerics."""
    script = "import sys, jaxpriv.cli.app; print({'sqlite3', 'jax'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
