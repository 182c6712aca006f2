"""The demonstration, from end to end at a small size."""

from __future__ import annotations

import pytest

from jaxpriv.errors import InputError
from jaxpriv.jobs.demo import run_demo
from jaxpriv.jobs.demo_trace import CLINIC, ORIGIN, demo_day
from jaxpriv.traces.files import read_trace


def test_demo_writes_picture_files_and_report(tmp_path):
    steps = []
    done = run_demo(tmp_path / "demo", points=40, progress=steps.append)
    picture = (tmp_path / "demo/picture.png").read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
    assert width > height > 500
    assert (tmp_path / "demo/share/trace.SIMULATED.csv").exists()
    assert done.report.epsilon <= 1.0
    assert steps[-1] == "Drawing the picture"
    with pytest.raises(InputError, match="exists already"):
        run_demo(tmp_path / "demo", points=40)


def test_the_made_up_day_is_at_the_clinic_at_the_secret_time(tmp_path):
    day = demo_day()
    assert day.csv == demo_day().csv
    (tmp_path / "day.csv").write_text(day.csv)
    trace = read_trace(tmp_path / "day.csv")
    assert trace.n_points == 120
    metres = ORIGIN.to_metres(trace.latitude, trace.longitude)
    nearest = abs(trace.time_us - day.secret_us).argmin()
    assert abs(metres[nearest] - CLINIC).max() < 20
