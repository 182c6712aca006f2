"""Segments, gaps and jumps that broke other programs; the public report is named at each."""

from __future__ import annotations

import numpy as np

from jaxpriv.priors.kernels import matern32
from jaxpriv.traces.files import read_trace


def test_a_trace_of_one_point_is_a_trace(read, written):
    # https://github.com/movingpandas/movingpandas/issues/77: refused; here one point is protected like any other
    trace = read((written.stamp(0), "50", "8"))
    assert (trace.n_points, trace.median_step_s, trace.step_m) == (1, 0.0, 0.0)


def test_a_first_segment_of_one_point(written, tmp_path):
    # https://github.com/organicmaps/organicmaps/pull/9602: the whole track was lost
    rows = [(written.stamp(0), "50", "8"), *((written.stamp(66 + 10 * i), "50", "8") for i in range(7))]
    text = written.write["gpx"](rows)
    (tmp_path / "a.gpx").write_text(text.replace("</trkpt>\n", "</trkpt></trkseg><trkseg>", 1))
    assert written.seconds(read_trace(tmp_path / "a.gpx")) == [0, *range(66, 136, 10)]


def test_a_gap_keeps_its_length_and_leaves_no_correlation(read, written):
    # https://github.com/Runalyze/Runalyze/issues/2194: 63 minutes and 6.9 km joined at 1,500 km/h
    trace = read(
        (written.stamp(0), "50", "8"),
        (written.stamp(60), "50.001", "8"),
        (written.stamp(3840), "50.06", "8.03"),
        (written.stamp(3900), "50.061", "8.03"),
    )
    assert written.seconds(trace) == [0, 60, 3840, 3900]
    assert trace.odd is not None and (trace.odd.gaps, trace.odd.jumps) == (1, 0)
    # With a length scale of five minutes: (1 + a) exp(-a), a = sqrt(3) 3780 / 300.
    across = matern32(300.0).evaluate(trace.seconds[1], trace.seconds[2])
    assert 0 < float(across) < 1e-8


def test_row_labels_that_skip_numbers(tmp_path):
    # https://github.com/scikit-mobility/scikit-mobility/issues/191: a key error
    (tmp_path / "a.csv").write_text("id,time,lat,lon\n0,1,50,8\n3,2,50.1,8\n9,3,50.2,8\n")
    assert read_trace(tmp_path / "a.csv").latitude.tolist() == [50, 50.1, 50.2]


def test_a_bad_first_fix_spoils_nothing(read, written):
    # https://github.com/jchable/gpx-utility-analyzer/issues/77: anchored on (0, 0), 5,000 good points dropped
    trace = read((written.stamp(0), "0", "0"), *written.walk(4990, 1)[1:])
    assert (trace.n_rows, trace.cleaning.zero_fix) == (4989, 1)


def test_recorded_files_with_the_same_defects(real_data):
    folder = real_data / "gpx"
    assert read_trace(folder / "opentracks/gpx_timezone.gpx", track="all").n_points >= 1
    # A step of 57,771 s.
    long = read_trace(folder / "gpsbabel/garmin_xt_strk.gpx", track="all")
    assert np.max(np.diff(long.seconds)) >= 57_771
