"""The whole job on recorded traces: what goes in comes out, protected, in the same format."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import protect_file
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.jobs.verify import verify_folder
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.instants import format_instant


FILES = ("009/Trajectory/20081027121402.plt", "065/Trajectory/20100315002423.plt", "141/Trajectory/20110909123256.plt")


@pytest.mark.parametrize("name", FILES)
def test_recorded_traces(name, real_data, tmp_path):
    path = real_data / "geolife/raw_plt" / name
    trace = read_trace(path)
    middle = trace.n_points // 2
    done = protect_file(
        path,
        tmp_path / "out",
        [int(trace.time_us[middle])],
        Target(200.0, 1.0),
        PriorChoice("matern32", 60.0, 300.0, 1.0),
    )
    assert verify_folder(tmp_path / "out").verified
    assert done.report.epsilon <= 1.0
    assert done.report.rms_noise_m < done.report.independent.rms_noise_m
    sanitised = read_trace(tmp_path / "out/share/trace.plt")
    np.testing.assert_array_equal(sanitised.time_us, trace.time_us)
    np.testing.assert_array_equal(sanitised.point_of_row, trace.point_of_row)
    moved = (
        done.plane.to_metres(sanitised.latitude, sanitised.longitude)
        - trace.mean_by_point(done.plane.to_metres(trace.latitude, trace.longitude))[trace.point_of_row]
    )
    # Ten standard deviations of the noisiest point.
    assert np.max(np.abs(moved)) < 10 * done.report.largest_noise_m
    rows = (tmp_path / "out/share/trace.plt").read_text().splitlines()[6:]
    assert {row.split(",")[3] for row in rows} == {"-777"}
    json.loads((tmp_path / "out/private/report.json").read_text())


@pytest.mark.slow
def test_priors_fitted_to_the_trace_itself(real_data, tmp_path):
    path = real_data / "geolife/raw_plt" / FILES[0]
    trace = read_trace(path)
    window = trace.time_us[[40, 44]]
    words = "/".join(format_instant(int(us)) for us in window)
    done = protect_file(path, tmp_path / "out", SecretRequest((words,)), Target(50.0, 1.0), PriorRequest())
    assert done.report.estimate
    assert len(done.report.by_secret) == np.count_nonzero((trace.time_us >= window[0]) & (trace.time_us <= window[1]))
    assert max(one.epsilon for one in done.report.by_secret) == done.report.epsilon <= 1.0
    assert done.report.gap < 1e-3
    assert verify_folder(tmp_path / "out").verified
