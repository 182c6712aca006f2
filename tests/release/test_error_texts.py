"""Refusals say nothing about the trace: one constant text for each of two reasons, no digit, nothing chained."""

from __future__ import annotations

import json
import logging
import re
import warnings
from pathlib import Path
from xml.sax import saxutils

import numpy as np
import pytest

from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.jobs.inspect import inspect_file
from jaxpriv.jobs.inspect_text import inspection_text
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import plan
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.series.job import plan_series
from jaxpriv.jobs.target import Target
from jaxpriv.mechanisms.data_resolution import measured_resolution, refuse_coarse_data
from jaxpriv.mechanisms.grid_release import release
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.projection import LocalPlane
from jaxpriv.traces.series_format import read_series


SENTINEL = 31.4159


class Loud:
    """An array-like whose own error quotes its contents."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError(f"could not convert {SENTINEL}")


BAD = {
    "nan": [SENTINEL, np.nan],
    "inf": [SENTINEL, np.inf],
    "too long": [SENTINEL] * 3,
    "two-dimensional": [[SENTINEL, SENTINEL]],
    "scalar": SENTINEL,
    "text": str(SENTINEL),
    "texts": [str(SENTINEL), "x"],
    "missing": None,
    "missing inside": [SENTINEL, None],
    "complex": [SENTINEL + 0j, 1],
    "boolean": [True, False],
    "ragged": [[SENTINEL], [1.0, 2.0]],
    "long double": np.array([SENTINEL, 1], dtype=np.longdouble),
    "large integers": np.array([2**53 + 1, 314159]),
    "huge integers": [10**400, 314159],
    "masked": np.ma.array([SENTINEL, 1.0], mask=[True, False]),
    "dates": np.array(["2031-04-15", "2031-04-15"], dtype="datetime64[s]"),
    "dictionary": {"lat": SENTINEL},
    "empty": [],
    "loud": Loud(),
}


def refusal(x) -> InputError:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning would be a second message
        with pytest.raises(InputError) as caught:
            release(x, np.ones((2, 1)), 1.0, resolution=0.0)
    return caught.value


@pytest.mark.parametrize("name", [name for name in BAD if np.finfo(np.longdouble).bits > 64 or name != "long double"])
def test_one_text_for_every_bad_trace(name, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    error = refusal(BAD[name])
    assert str(error) == str(refusal([np.inf, np.inf]))
    assert not any(character.isdigit() for character in str(error))
    assert error.args == (str(error),) and error.__cause__ is None and error.__context__ is None
    assert not caplog.records and capsys.readouterr() == ("", "")


@pytest.mark.parametrize("x", [[2.0**54, SENTINEL], [SENTINEL, -(2.0**60)], [1e300, SENTINEL], [-1.7e308, 1.7e308]])
def test_one_text_for_every_trace_out_of_range(x, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    error = refusal(x)
    assert str(error) == str(refusal([1e200, 0.0]))
    assert not any(character.isdigit() for character in str(error).replace("float64", ""))
    assert error.__cause__ is None and error.__context__ is None
    assert not caplog.records and capsys.readouterr() == ("", "")


def test_no_traceback_of_the_library_holds_noise():
    """A collector of frames sees the caller's trace and the outputs, never the draws."""
    error = refusal([2.0**54, SENTINEL])
    frame, names = error.__traceback__, set()
    while frame is not None:
        names |= set(frame.tb_frame.f_locals) if "jaxpriv" in frame.tb_frame.f_code.co_filename else set()
        frame = frame.tb_next
    assert "integers" in names and not names & {"draws", "normals", "shared", "own"}


def test_texts_about_the_step_of_the_data_are_constant():
    for bad in ([np.nan, SENTINEL], [], [None], ["a"]):
        with pytest.raises(InputError) as caught:
            measured_resolution(np.array(bad))
        assert not any(character.isdigit() for character in str(caught.value))
    with pytest.raises(InputError) as caught:
        refuse_coarse_data(np.array([SENTINEL, SENTINEL + 1, 2 * SENTINEL]), 1e-9)
    assert not any(character.isdigit() for character in str(caught.value))


# What the reading of files and the planning of a release say, about positions whose digits would be recognised.
LATITUDE, LONGITUDE = 31.4159265, -141.5926535
DIGITS = re.compile(r"31\.?4159|141\.?592|4159265|5926535")
CELLS = [
    "nan", "inf", "-inf", "1e999", "", "N/A", "x31.4159265", "31,4159265", "31.4159265.1", "3.14159265e1",
    "0x314159265", "314159.265", "-31.4159265", "31°41.59265'", "31.4159265 -141.5926535", "=31.4159265", '"31.4159265',
]  # fmt: skip


def fix(i: int, lat: str | None = None, lon: str | None = None, time: str | None = None) -> tuple[str, str, str]:
    when = f"2024-05-01T08:{i:02d}:00Z" if time is None else time
    step = i * 1e-7
    return when, f"{LATITUDE + step:.7f}" if lat is None else lat, f"{LONGITUDE - step:.7f}" if lon is None else lon


def as_csv(rows) -> tuple[str, str]:
    return ".csv", "time,lat,lon\n" + "".join(",".join(row) + "\n" for row in rows)


def as_gpx(rows) -> tuple[str, str]:
    points = "".join(
        f"<trkpt lat={saxutils.quoteattr(lat)} lon={saxutils.quoteattr(lon)}><time>{when}</time></trkpt>"
        for when, lat, lon in rows
    )
    return ".gpx", f'<gpx version="1.1"><trk><trkseg>{points}</trkseg></trk></gpx>'


def as_plt(rows) -> tuple[str, str]:
    lines = [f"{lat},{lon},0,-777,45413.3,{when[:10]},{when[11:19]}" for when, lat, lon in rows]
    return ".plt", "\r\n".join(["x"] * 6 + lines) + "\r\n"


def as_geojson(rows) -> tuple[str, str]:
    features = [
        {
            "type": "Feature",
            "properties": {"time": when},
            "geometry": {"type": "Point", "coordinates": [_number(lon), _number(lat)]},
        }
        for when, lat, lon in rows
    ]
    return ".geojson", json.dumps({"type": "FeatureCollection", "features": features})


def _number(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


def said_about(path: Path, caplog) -> list[str]:
    """Everything that reading, planning and inspecting this file say, refused or not."""
    texts = []
    secrets = SecretRequest(("2024-05-01T08:02:00Z",))
    prior = PriorChoice("matern32", 600.0, 300.0, 5.0)
    actions = (
        lambda: plan(read_trace(path), SecretRequest(("1.5,1.5",), 10.0), Target(200.0, epsilon=1.0), prior),
        lambda: plan(read_trace(path), secrets, Target(200.0, epsilon=1.0, resolution_m=1e-4), prior),
        lambda: plan(read_trace(path), secrets, Target(200.0, budget_m=0.1), prior),
        lambda: plan(read_trace(path), secrets, Target(200.0, epsilon=1.0), PriorRequest()),
        lambda: plan(read_trace(path), secrets, Target(200.0, epsilon=1.0), prior, origin=LocalPlane(0.0, 0.0)),
        lambda: texts.append(inspection_text(inspect_file(path))),
        lambda: read_trace(path, strict=True),
    )
    for action in actions:
        try:
            action()
        except InputError as problem:
            # What is chained to it is shown in a traceback.
            chained = None if problem.__suppress_context__ else problem.__context__
            texts += [str(problem), str(problem.__cause__ or chained or "")]
        except InfeasibleError as problem:
            texts.append(str(problem))
    return texts + [record.getMessage() for record in caplog.records]


def test_the_digits_would_be_recognised():
    assert DIGITS.search(f"row 3: {LATITUDE} is wrong") and DIGITS.search(f"at {LONGITUDE:.4f}")


@pytest.mark.parametrize("write", [as_csv, as_gpx, as_plt, as_geojson])
@pytest.mark.parametrize("cell", CELLS)
def test_no_digit_of_a_position_in_what_reading_and_planning_say(write, cell, tmp_path, caplog):
    caplog.set_level(logging.DEBUG, logger="jaxpriv")
    for broken in (fix(3, lat=cell), fix(3, lon=cell), fix(3, lat=cell, lon=cell), fix(3, time=f"2024 {cell}")):
        ending, text = write([fix(0), fix(1), broken, fix(4), fix(5)])
        path = tmp_path / f"trace{ending}"
        path.write_text(text)
        texts = said_about(path, caplog)
        assert len(texts) >= 3
        for said in texts:
            assert not DIGITS.search(said), said


@pytest.mark.parametrize("far", [(LATITUDE, 100.0), (-LATITUDE, LONGITUDE), (89.31415, LONGITUDE)])
def test_no_digit_of_a_position_far_away(far, tmp_path, caplog):
    """A stray fix, too far for the plane: the refusal is about the plane."""
    ending, text = as_csv([fix(0), fix(1), fix(2, lat=f"{far[0]:.7f}", lon=f"{far[1]:.7f}"), fix(3)])
    path = tmp_path / f"trace{ending}"
    path.write_text(text)
    texts = said_about(path, caplog)
    assert any("km from the origin" in said for said in texts) and not any(DIGITS.search(said) for said in texts)


def test_a_refusal_is_the_same_for_all_positions_of_a_class(tmp_path, caplog):
    """The same mistake in traces of other places is told in the same words."""
    told = set()
    for shift in (0.0, 1.2345678, -17.7654321):
        path = tmp_path / "trace.csv"
        rows = [
            (when, f"{float(lat) + shift:.7f}", f"{float(lon) + shift:.7f}") for when, lat, lon in map(fix, range(4))
        ]
        path.write_text(as_csv([*rows, fix(5, lat="wrong")])[1])
        told.add(tuple(said_about(path, caplog)))
    assert len(told) == 1


def test_no_digit_of_a_value_in_what_a_series_says(tmp_path):
    for cell in CELLS:
        path = tmp_path / "series.csv"
        path.write_text(
            f"time,v\n2024-05-01T08:00Z,31.4159265\n2024-05-01T08:01Z,{cell}\n2024-05-01T08:02Z,62.831853\n"
        )
        target = Target(2.0, epsilon=1.0, resolution_m=1e-9, unit="")
        for request in (PriorRequest(), PriorRequest(given=PriorChoice("matern32", 600.0, 3.0, 1e-9))):
            with pytest.raises((InputError, InfeasibleError)) as caught:
                plan_series(read_series(path, "v"), "v", SecretRequest(("2024-05-01T09:00Z",)), target, request)
            assert not DIGITS.search(str(caught.value)), str(caught.value)
