"""What a job is asked, and where it writes: ranges, secret times, output folders."""

from __future__ import annotations

import contextlib
import math
import os

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.jobs.output import output_folder
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.secret_choice import locate_secret
from jaxpriv.jobs.target import Target
from jaxpriv.traces.cleaning import clean
from jaxpriv.traces.csv_format import read_csv


N, STEP, START = 12, 20, 1_714_982_400 * 10**6


def _trace():
    rows = "".join(f"{START // 10**6 + STEP * i},45.0{i:02d},-30.0\n" for i in range(N))
    return clean(read_csv("time,lat,lon\n" + rows))


@pytest.mark.parametrize(
    ("offset_s", "position"),
    [(0, 0), (5, 0), (15, 1), (2 * STEP, 2), (N * STEP - STEP, N - 1), (N * STEP - STEP - 3, N - 1)],
)
def test_nearest_fix(offset_s, position):
    assert locate_secret(_trace(), START + offset_s * 10**6).position == position


@pytest.mark.parametrize(("offset_s", "words"), [(-1, "before the trace begins"), (N * STEP, "after the trace ends")])
def test_times_outside_the_trace_are_refused(offset_s, words):
    with pytest.raises(InputError, match=words):
        locate_secret(_trace(), START + offset_s * 10**6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"radius_m": 0.0}, "radius"),
        ({"radius_m": math.nan}, "radius"),
        ({"radius_m": 1e6}, "at most 50000"),
        ({"epsilon": 0.0}, "positive, finite"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"order": 1.0}, "above 1"),
        ({"delta": 1.0}, "between 0 and 1"),
        ({"resolution_m": 0.0}, "resolution"),
    ],
)
def test_targets_out_of_range(change, words):
    with pytest.raises(InputError, match=words):
        Target(**({"radius_m": 200.0, "epsilon": 1.0} | change))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cubic", 60.0, 300.0, 1.0), "choose one of rbf"),
        (("rbf", 0.0, 300.0, 1.0), "length scale"),
        (("rbf", 60.0, math.inf, 1.0), "standard deviation"),
        (("rbf", 60.0, 300.0, -1.0), "nugget"),
        (("periodic", 60.0, 300.0, 1.0), "needs a period"),
        (("rbf", 60.0, 300.0, 1.0, 60.0), "take none"),
        (("periodic", 60.0, 300.0, 1.0, 0.0), "period"),
    ],
)
def test_priors_out_of_range(arguments, words):
    with pytest.raises(InputError, match=words):
        PriorChoice(*arguments)


def test_periodic_prior_has_the_length_scale_of_short_differences():
    covariance = np.asarray(
        PriorChoice("periodic", 60.0, 300.0, 0.0, 3600.0).process_prior(np.array([0.0, 3.0, 3600.0])).covariance
    )
    assert covariance[0, 1] == pytest.approx(300**2 * math.exp(-(3.0**2) / (2 * 60.0**2)), rel=1e-5)
    assert covariance[0, 2] == pytest.approx(300**2, rel=1e-9)


def test_folders_are_replaced_only_when_asked_and_ours(tmp_path):
    out = tmp_path / "out"
    with output_folder(out) as folder:
        (folder / "share" / "a").write_text("first")
    with pytest.raises(InputError, match="exists already"), output_folder(out):
        pass
    with output_folder(out, force=True) as folder:
        (folder / "share" / "a").write_text("second")
    assert (out / "share" / "a").read_text() == "second"
    (out / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="did not write"), output_folder(out, force=True):
        pass
    assert (out / "thesis.tex").exists()
    with pytest.raises(InputError, match="does not exist"), output_folder(tmp_path / "no" / "out"):
        pass
    assert os.listdir(tmp_path) == ["out"]


def test_leftovers_of_killed_runs_go_and_living_runs_stay(tmp_path):
    out = tmp_path / "out"
    left = tmp_path / ".out.abcd.partial"
    (left / "whole").mkdir(parents=True)
    (left / "running").write_text("")
    (tmp_path / ".out.someone's").mkdir()
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(output_folder(out))
        assert not left.exists()
        (first / "share" / "a").write_text("first")
        with output_folder(out) as second:
            (second / "share" / "a").write_text("second")
        # The second run left the first one's folder alone; the first finds its place taken.
        assert (first / "share" / "a").read_text() == "first"
        with pytest.raises(InputError, match="exists already"):
            stack.close()
    assert (out / "share" / "a").read_text() == "second"
    assert sorted(os.listdir(tmp_path)) == [".out.someone's", "out"]
