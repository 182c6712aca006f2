"""Every recorded file there is, in every format: a trace that is written and read again, or a reason."""

from __future__ import annotations

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.traces.files import read_trace, sanitised_text


@pytest.mark.slow
def test_every_real_file_gives_a_trace_or_a_reason(real_data, tmp_path):
    folders = {"gpx", "geolife", "taxi", "animals", "other"}
    read = refused = 0
    for path in sorted(real_data.glob("*/**/*")):
        if not path.is_file() or path.relative_to(real_data).parts[0] not in folders:
            continue
        try:
            trace = read_trace(path)
        except InputError:
            refused += 1
            continue
        assert np.all(np.diff(trace.time_us) > 0)
        assert np.all(np.isfinite(trace.latitude) & (np.abs(trace.latitude) <= 90))
        assert np.all(np.isfinite(trace.longitude) & (np.abs(trace.longitude) <= 180))
        assert trace.cleaning.rows_read == trace.cleaning.dropped + trace.n_rows
        text = sanitised_text(trace, np.zeros(trace.n_points), np.zeros(trace.n_points), "")
        written = tmp_path / f"again.{trace.style.kind}"
        written.write_text(text.replace("0.0000000", "1.0000000"), encoding="utf-8", newline="")
        again = read_trace(written)
        np.testing.assert_array_equal(again.time_us, trace.time_us)
        np.testing.assert_array_equal(again.point_of_row, trace.point_of_row)
        read += 1
    assert read > 1300
    assert refused > 20
