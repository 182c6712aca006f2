"""`jaxpriv audit` on what `protect` writes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxpriv.cli.app import app
from jaxpriv.errors import InputError
from jaxpriv.fitting.fit import Fit, Settings
from jaxpriv.fitting.prior_file import write_prior
from jaxpriv.jobs.audit import audit_file
from jaxpriv.jobs.mechanism_file import MechanismFile
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import protect_file
from jaxpriv.jobs.target import Target
from jaxpriv.mechanisms.gaussian import GaussianMechanism


START, N = 1_714_982_400, 8
RUNNER = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small trace, protected at its fourth fix; nothing in it is of a person."""
    made = tmp_path_factory.mktemp("made")
    rows = [f"{START + 20 * i},{45 + math.sin(i * i) * 1e-3:.7f},{-30 + math.cos(i) * 1e-3:.7f}" for i in range(N)]
    (made / "in.csv").write_text("\n".join(["time,lat,lon", *rows]) + "\n")
    protect_file(
        made / "in.csv",
        made / "out",
        [(START + 60) * 10**6],
        Target(200.0, 1.0),
        PriorChoice("matern32", 60.0, 300.0, 1.0),
        again=True,
    )
    return made / "out"


def _run(*arguments):
    return RUNNER.invoke(app, ["audit", *map(str, arguments)])


def test_the_report_is_found_and_its_epsilon_returns(folder):
    done = _run(folder, "--sensitivity", "50m", "--delta", "0.05", "--json")
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    report = json.loads((folder / "private" / "report.json").read_text())
    assert content["format"] == "jaxpriv-audit"
    (axis,) = content["axes"]
    rows = {(row["subject"][:8], row["notion"].split(",")[0]): row for row in axis["rows"]}
    np.testing.assert_allclose(
        rows["secret 0", "conditional inferential privacy"]["value"], report["epsilon"], rtol=1e-9
    )
    assert rows["changes ", "Gaussian differential privacy"]["value"] > 0
    assert (
        rows["the whol", "pointwise maximal leakage"]["value"] > rows["secret 0", "pointwise maximal leakage"]["value"]
    )


def test_the_table_names_every_notion(folder):
    done = _run(folder / "private" / "mechanism.npz", "--sensitivity", "50m")
    assert done.exit_code == 0
    for word in (
        "conditional inferential",
        "leakage",
        "mutual information",
        "Rényi",
        "zero-concentrated",
        "whole trace",
    ):
        assert word in done.stdout
    assert _run(folder, "--quiet").stdout == ""


def test_other_secrets_and_the_mechanism_alone(folder, tmp_path):
    other = _run(folder, "--secret", "2024-05-06T08:00:40Z", "--radius", "100m")
    assert other.exit_code == 0 and "position 2" in other.stdout
    between = audit_file(folder, secrets=["2024-05-06T08:00:47Z"])
    assert any(row.subject.startswith("secret 0") for row in between.axes[0][1].rows)
    alone = tmp_path / "mechanism.npz"
    alone.write_bytes((folder / "private" / "mechanism.npz").read_bytes())
    done = _run(alone, "--sensitivity", "50m")
    assert done.exit_code == 0 and "secret" not in done.stdout and "only what holds for any prior" in done.stdout
    refused = _run(alone)
    assert refused.exit_code == 2 and "nothing to audit" in refused.output


def test_a_prior_file_replaces_the_report(folder, tmp_path):
    def given(length):
        parameters = {"sd": 200.0, "lengthscale": length, "noise_sd": 2.0}
        return Fit(Settings("matern32"), parameters, None, 0.0, (0.0,), (), True, 50, 1000.0, 200.0)

    write_prior(tmp_path / "prior.json", [[given(40.0)], [given(40.0), given(90.0)]], "given")
    found = audit_file(folder, prior=tmp_path / "prior.json")
    east, north = (one.of("conditional inferential")[0].value for _, one in found.axes)
    # North is the worst of its two priors, of which the first is that of east.
    assert north > east > 0
    done = _run(folder, "--prior", tmp_path / "prior.json", "--json")
    assert json.loads(done.stdout)["axes"][1]["rows"][1]["value"] == north


def test_axes_that_differ_are_shown_by_themselves(tmp_path):
    times = (START + np.arange(4, dtype=np.int64)) * 10**6
    mechanisms = GaussianMechanism(np.zeros((4, 0)), 2.0), GaussianMechanism(np.ones((4, 1)), 0.0)
    MechanismFile(mechanisms, times, -3, 0.5, True).write(tmp_path / "mechanism.npz")
    found = audit_file(tmp_path, sensitivity_m=1.0)
    assert [name for name, _ in found.axes] == ["east, in metres", "north, in metres"]
    assert found.axes[0][1].of("Gaussian")[0].value == pytest.approx(0.5)
    assert found.axes[1][1].of("Gaussian")[0].value == math.inf
    assert json.loads(found.to_json())["axes"][1]["rows"][-1]["value"] is None
    assert "simulated" in found.text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius_m": 5.0}, "--secret"),
        ({"secrets": ["yesterday"]}, "--secret yesterday"),
        ({"secrets": ["2030-01-01T00:00:00Z"]}, "outside"),
        ({"delta": 2.0}, "probability"),
    ],
)
def test_bad_requests_are_refused(folder, options, message):
    with pytest.raises(InputError, match=message):
        audit_file(folder, **options)


def test_a_folder_without_a_mechanism_is_refused(tmp_path):
    done = _run(tmp_path)
    assert done.exit_code == 2 and "no mechanism.npz" in done.output
