"""Checking a folder again: what agrees passes, whatever was changed is found."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import protect_file
from jaxpriv.jobs.target import Target
from jaxpriv.jobs.verify import verify_folder


START = 1_714_982_400
N = 9
PRIOR, TARGET = PriorChoice("matern32", 60.0, 300.0, 1.0), Target(200.0, 1.0)


def _input(folder, kind):
    points = [(20 * i, 45 + math.sin(i * i) * 1e-3, -30 + math.cos(i) * 1e-3) for i in range(N)]
    if kind == "csv":
        rows = [f"{START + t},{lat:.7f},{lon:.7f}" for t, lat, lon in points]
        # Two rows of one instant.
        text = "\n".join(["time,lat,lon", *rows, rows[-1]]) + "\n"
    else:
        day = 39748 + 8 / 24
        rows = [
            f"{lat:.7f},{lon:.7f},0,492,{day + t / 86400:.10f},2008-10-27,08:{t // 60:02d}:{t % 60:02d}"
            for t, lat, lon in points
        ]
        text = "\r\n".join(["x", "WGS 84", "x", "x", "0,2,255,track,0,0,2,0", "0", *rows]) + "\r\n"
    path = folder / f"in.{kind}"
    path.write_text(text, newline="")
    return path


@pytest.fixture(scope="module", params=["csv", "plt"])
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    path = _input(folder, request.param)
    secret = START + 60 if request.param == "csv" else 1_225_094_460
    done = protect_file(path, folder / "out", [secret * 10**6], TARGET, PRIOR)
    return folder / "out", done, request.param


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    protect_file(_input(folder, "csv"), folder / "out", [(START + 60) * 10**6], TARGET, PRIOR, again=True)
    return folder / "out"


@pytest.fixture
def private(table, tmp_path):
    """A folder whose private half is changed: the format of the trace does not matter."""
    shutil.copytree(table, tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def folder(made, tmp_path):
    shutil.copytree(made[0], tmp_path / "out")
    return tmp_path / "out"


def _failed(folder):
    return {check.name for check in verify_folder(folder).checks if check.passed is False}


def _change(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_what_was_written_is_verified(folder, made):
    found = verify_folder(folder)
    assert found.verified and not found.simulated
    assert all(check.passed for check in found.checks)
    assert found.epsilon == made[1].report.epsilon
    assert json.loads(found.to_json())["verified"] is True
    assert "Verified: ε ≤ 1.00 nats at order 2" in found.text()


@pytest.mark.parametrize("alone", [True, False])
def test_the_share_folder_alone(folder, alone):
    shutil.rmtree(folder / "private")
    found = verify_folder(folder / "share" if alone else folder)
    assert found.verified and found.epsilon is None
    assert {check.name for check in found.checks if check.passed is None} == {"promise"}
    assert "Whether they keep a promise was not checked" in found.text()


def test_a_changed_integer(folder):
    _change(folder / "share/release.json", lambda content: content["east"].__setitem__(4, content["east"][4] + 1))
    assert _failed(folder) == {"positions"}


def test_a_changed_position(folder, made):
    path = folder / f"share/trace.{made[2]}"
    lines = path.read_bytes().split(b"\n")
    at = lines[-3]
    cells = at.split(b",")
    # Two units of the last decimal are two centimetres.
    latitude = 1 if made[2] == "csv" else 0
    cells[latitude] = f"{float(cells[latitude]) + 2e-7:.7f}".encode()
    before = path.read_bytes()
    path.write_bytes(before.replace(at, b",".join(cells)))
    assert path.read_bytes() != before
    assert "positions" in _failed(folder)


def test_a_changed_time(folder):
    _change(folder / "share/release.json", lambda content: content["times"].__setitem__(0, "2001-01-01T00:00:00Z"))
    assert _failed(folder) == {"times", "same release"}


@pytest.mark.parametrize("name", ["notes.txt", ".hidden", "trace.gpx", "more/positions.csv", "release.SIMULATED.json"])
def test_an_added_file(folder, name):
    (folder / "share" / name).parent.mkdir(exist_ok=True)
    (folder / "share" / name).write_text("x")
    assert _failed(folder) == ({"trace"} if name.startswith("trace") else {"files"})


def test_a_link_is_no_file_of_the_release(folder, made):
    name = f"trace.{made[2]}"
    (folder / "share" / name).rename(folder / name)
    (folder / "share" / name).symlink_to(folder / name)
    assert _failed(folder) == {"files"}


def test_a_removed_trace(folder, made):
    (folder / f"share/trace.{made[2]}").unlink()
    assert _failed(folder) == {"trace"}


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + "\n",
        lambda text: text.replace("-777", "-492", 1) if "jaxpriv" in text else text.replace("time", "time ", 1),
        lambda text: text.replace("jaxpriv", "a name", 1) if "jaxpriv" in text else text.replace("\n", ",note\n", 1),
        # The last row once more; in the table, the duplicate is left out.
        lambda text: (
            text.rstrip() + "\r\n" + text.rstrip().rsplit("\n", 1)[1] + "\r\n"
            if "jaxpriv" in text
            else text.rstrip() + ",x\n"
        ),
    ],
)
def test_something_added_to_the_trace(folder, made, change):
    path = folder / f"share/trace.{made[2]}"
    path.write_bytes(change(path.read_bytes().decode()).encode())
    try:
        found = _failed(folder)
    except InputError as error:
        found = str(error)
    # A row written twice is only missed by the private report: rows of one instant are legitimate.
    assert found.startswith(f"trace.{made[2]}: ") if isinstance(found, str) else found & {"fields", "same release"}


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        (lambda report: report.update(epsilon=report["epsilon"] * 0.999), {"epsilon"}),
        (lambda report: report.update(epsilon_north=report["epsilon_north"] * 0.999), {"epsilon"}),
        (lambda report: report["axes"][1]["epsilons"][0].__setitem__(0, 0.9), {"epsilon"}),
        (lambda report: report["axes"][0].update(loss_per_m2=1e-6), {"epsilon"}),
        (lambda report: report.update(radius_m=400.0), {"epsilon"}),
        (lambda report: report.update(radius_m=400.0, plane_radius_m=400.12), {"epsilon"}),
        (lambda report: report.update(order=4.0), {"epsilon"}),
        (lambda report: report["axes"][0]["priors"][0].update(nugget_m=0.01), {"epsilon"}),
        (lambda report: report["odds"].update(exact=1.0), {"odds"}),
        (lambda report: report["odds"].update(theorem_factor=2.0), {"odds"}),
        (lambda report: report.update(rms_noise_m=10.0), {"noise"}),
        (lambda report: report.update(floor_sd_m=2.0), {"floor, grid and τ"}),
        (lambda report: report.update(tau=1e-300), {"same release"}),
        (lambda report: report.update(origin=[0.0, 0.0]), {"same release"}),
        (lambda report: report.update(simulated=True), {"same release"}),
        (lambda report: report["secrets"].append(report["secrets"][0]), {"same release"}),
    ],
)
def test_a_changed_report(private, change, failed):
    _change(private / "private/report.json", change)
    assert failed <= _failed(private)


def test_more_than_the_truth_is_no_lie(private):
    """A report may claim less than what holds."""
    _change(private / "private/report.json", lambda report: report.update(epsilon=report["epsilon"] * 0.999999999999))
    # Within what another machine's rounding may differ by.
    assert _failed(private) == set()


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        (lambda stored: stored.update(factor_north=stored["factor_north"] * 0.9), {"epsilon", "noise"}),
        (lambda stored: stored.update(floor_sd_east=0.25), {"floor, grid and τ"}),
        (lambda stored: stored.update(grid_exponent=3), {"same release", "floor, grid and τ"}),
        (lambda stored: stored.update(time_us=stored["time_us"] + 1), {"same release"}),
        (lambda stored: stored.update(factor_east=stored["factor_east"] * 2**60), {"floor, grid and τ", "noise"}),
    ],
)
def test_a_changed_mechanism(private, change, failed):
    path = private / "private/mechanism.npz"
    stored = dict(np.load(path))
    change(stored)
    np.savez(path, **stored)
    assert failed <= _failed(private)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("share/release.json", lambda content: content.update(format_version=2)),
        ("share/release.json", lambda content: content.update(format_version=1.0)),
        ("share/release.json", lambda content: content.update(format="other")),
        ("share/release.json", lambda content: content.update(speed=[1.0])),
        ("share/release.json", lambda content: content.pop("tau")),
        ("share/release.json", lambda content: content.update(tau=None)),
        ("share/release.json", lambda content: content.update(tau=0.5)),
        ("share/release.json", lambda content: content["east"].append(1)),
        ("share/release.json", lambda content: content["east"].__setitem__(0, 1.5)),
        ("share/release.json", lambda content: content["east"].__setitem__(0, True)),
        ("share/release.json", lambda content: content["east"].__setitem__(0, 2**53)),
        ("share/release.json", lambda content: content["times"].reverse()),
        ("share/release.json", lambda content: content["times"].__setitem__(0, "yesterday")),
        ("share/release.json", lambda content: content.update(grid_exponent=5000)),
        ("share/release.json", lambda content: content["origin"].update(latitude=float("nan"))),
        ("share/release.json", lambda content: content["origin"].update(height=1.0)),
        ("share/release.json", lambda content: content.update(projection="another")),
        ("private/report.json", lambda content: content.update(format_version=2)),
        ("private/report.json", lambda content: content.update(epsilon="small")),
        ("private/report.json", lambda content: content.update(epsilon=None)),
        ("private/report.json", lambda content: content.update(more=1)),
        ("private/report.json", lambda content: content["prior"].pop("kernel")),
        ("private/report.json", lambda content: content.update(epsilon=10**400)),
        ("private/report.json", lambda content: content["secrets"][0].update(fix_time="2031-01-01T00:00:00Z")),
    ],
)
def test_files_that_are_not_of_this_format(private, name, change):
    _change(private / name, change)
    with pytest.raises(InputError, match=name.split("/")[1]):
        verify_folder(private)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"format": 1, "format": 2}', b"\xff\xfe", b"[" * 10**5])
def test_files_that_are_no_json(private, content):
    (private / "share/release.json").write_bytes(content)
    with pytest.raises(InputError, match=r"release\.json"):
        verify_folder(private)


@pytest.mark.parametrize(
    "change",
    [
        lambda stored: stored.update(format_version=2),
        lambda stored: stored.update(format="other"),
        lambda stored: stored.update(x=1),
        lambda stored: stored.update(time_us=stored["time_us"][::-1]),
        lambda stored: stored.update(factor_east=stored["factor_east"][1:]),
        lambda stored: stored.update(factor_east=stored["factor_east"].astype(np.float32)),
        lambda stored: stored.update(floor_sd_north=math.nan),
        lambda stored: stored.update(resolution=-1.0),
        lambda stored: stored.update(simulated=2),
    ],
)
def test_mechanisms_that_are_not_of_this_format(private, change):
    path = private / "private/mechanism.npz"
    stored = dict(np.load(path))
    change(stored)
    np.savez(path, **stored)
    with pytest.raises(InputError, match=r"mechanism\.npz|floor_sd"):
        verify_folder(private)


def test_damaged_mechanisms(private):
    path = private / "private/mechanism.npz"
    whole = path.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"PK" + whole[2:200]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"mechanism\.npz"):
            verify_folder(private)
    path.unlink()
    with pytest.raises(InputError, match=r"mechanism\.npz: cannot be read"):
        verify_folder(private)


def test_folders_that_are_none_of_ours(tmp_path):
    with pytest.raises(InputError, match="not a folder"):
        verify_folder(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"no share/release\.json"):
        verify_folder(tmp_path)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulated")
    protect_file(
        _input(folder, "csv"), folder / "out", [(START + 60) * 10**6], TARGET, PRIOR, simulate_seed=4
    )  # fmt: skip
    return folder / "out"


def test_simulated_output_is_no_release(simulated):
    for folder in (simulated, simulated / "share"):
        found = verify_folder(folder)
        assert found.simulated and not found.verified
        assert {check.name for check in found.checks if check.passed is False} == {"release"}
        assert "Not a release" in found.text()


def test_simulated_output_in_disguise_is_no_release(simulated, tmp_path):
    shutil.copytree(simulated, tmp_path / "out")
    share = tmp_path / "out/share"
    (share / "trace.SIMULATED.csv").rename(share / "trace.csv")
    (share / "release.SIMULATED.json").rename(share / "release.json")
    assert {"release", "names"} <= _failed(tmp_path / "out")
    _change(share / "release.json", lambda content: content.update(simulated=False, note="", tau=1e-18))
    found = verify_folder(tmp_path / "out")
    assert found.simulated and not found.verified
    assert "same release" in _failed(tmp_path / "out")
