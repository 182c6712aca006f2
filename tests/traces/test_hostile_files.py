"""Files made to harm: markup, encodings, names that look like paths, cells that look like formulas."""

from __future__ import annotations

import csv
import io
import os
import re

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.jobs.checkins import Checkins
from jaxpriv.jobs.inspect import inspect_file
from jaxpriv.jobs.inspect_text import inspection_text
from jaxpriv.jobs.released_checkins import write_applied, write_released
from jaxpriv.traces.contents import ColumnNames, ReadOptions
from jaxpriv.traces.files import read_trace, sanitised_text


POINT = '<trkpt lat="50" lon="8"><time>2024-05-01T12:00:00Z</time></trkpt>'
GPX = f"<gpx><trk><name>%s</name><trkseg>{POINT}</trkseg></trk></gpx>"
TABLE = "time,user,lat,lon\n0,ann,50,8\n60,ann,50.1,8.1\n"

# The bytes of a file, its ending, and how many rows are read, or what is said.
FILES = {
    "UTF-16 without a mark": (GPX.encode("utf-16-le"), "gpx", 1),
    "UTF-16 with a mark, declared as UTF-8": ('<?xml version="1.0" encoding="UTF-8"?>' + GPX).encode("utf-16"),
    "UTF-32": (GPX.encode("utf-32"), "gpx", "not well-formed|begins like UTF-16"),
    "Latin-1 in a name, undeclared": ((GPX % "Zo\xeb").encode("latin-1"), "gpx", 1),
    "an encoding that is none": (b'<?xml version="1.0" encoding="rot13"?>' + GPX.encode(), "gpx", "not known"),
    "a zero byte in the markup": (GPX.encode().replace(b"<trk>", b"<trk>\0"), "gpx", "not well-formed"),
    "a zero byte in a table": (TABLE.encode().replace(b"ann", b"a\0n"), "csv", "not text"),
    "a mark before the header": (b"\xef\xbb\xbf" + TABLE.encode(), "csv", 2),
    "carriage returns alone": (TABLE.replace("\n", "\r").encode(), "csv", 2),
    "Windows line ends": (TABLE.replace("\n", "\r\n").encode(), "csv", 2),
    "Windows line ends in GPX": (GPX.replace("><", ">\r\n<").encode(), "gpx", 1),
    "no line end at all": (TABLE.rstrip().encode(), "csv", 2),
    "a megabyte without a line end": (b"x" * (2**20 + 2), "csv", "a line has more than"),
    "the same in UTF-16": (("x" * (2**20 + 2)).encode("utf-16"), "csv", "a line has more than"),
    "a cell of many characters": ((TABLE + "1," + "x" * 200_000 + ",1,1\n").encode(), "csv", "row 4: not readable"),
    "a header of many characters": (("x" * 200_000 + ",time,lat,lon\n").encode(), "csv", "first line does not name"),
    "a number of a million digits": ((TABLE + f"1,ann,{'1' * 10**5}x,1\n").encode(), "csv", "the latitude is not"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_markup_and_encodings(name, tmp_path):
    found = FILES[name]
    content, ending, expected = found if isinstance(found, tuple) else (found, "gpx", 1)
    path = tmp_path / f"a.{ending}"
    path.write_bytes(content)
    if isinstance(expected, int):
        assert read_trace(path).n_rows == expected
        return
    with pytest.raises(InputError, match=expected):
        read_trace(path)


PATHS = ["../../etc/passwd", "/etc/passwd", "..\\..\\x", "a/b", "CON", "~/x", "$(id)", "a\x1b]0;x\x07", "x\n\ny"]


@pytest.mark.parametrize("name", PATHS)
def test_names_in_files_never_become_paths(name, tmp_path, monkeypatch):
    opened = []
    quoted = '"' + name.replace('"', '""') + '"'
    (tmp_path / "a.csv").write_text(TABLE.replace("ann", quoted) + "90,bob,50.2,8.2\n", newline="")
    (tmp_path / "a.gpx").write_text(GPX % name.replace("\x1b", "").replace("\x07", ""))
    plain = open
    monkeypatch.setattr("builtins.open", lambda path, *a, **k: opened.append(path) or plain(path, *a, **k))
    for found in (
        inspect_file(tmp_path / "a.csv"),
        inspect_file(tmp_path / "a.csv", ReadOptions(who=name)),
        inspect_file(tmp_path / "a.gpx"),
    ):
        text = inspection_text(found)
        assert "\x1b" not in text and "\x1b" not in found.to_json()
        trace = read_trace(tmp_path / "a.csv", options=ReadOptions(who=name))
        assert (trace.n_rows, name in sanitised_text(trace, trace.latitude, trace.longitude, "")) == (2, False)
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "a.gpx"]
    assert all(str(path).startswith(str(tmp_path)) for path in opened)


FORMULA = re.compile(r"""(?m)(^|[,;\t|])["' ]*[=+@]|(^|[,;\t|])["' ]*-(?![0-9])""")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "=cmd|' /C calc'!", "\t="])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_no_cell_that_is_written_is_a_formula(start, delimiter, tmp_path):
    # Where tabs separate, a tab cannot begin a cell.
    start = start.strip("\t") if delimiter == "\t" else start
    header = delimiter.join([f"{start}time", f"{start}lat", f'"{start}lon"', f"{start}note"])
    rows = [delimiter.join(["2024-05-01T12:00:00Z", "-50", "-8.5", f"{start}1+1"])]
    (tmp_path / "a.csv").write_text("\n".join([header, *rows]) + "\n")
    options = ReadOptions(ColumnNames("1", "2", "3"))
    trace = read_trace(tmp_path / "a.csv", options=options)
    text = sanitised_text(trace, trace.latitude, trace.longitude, "")
    assert not FORMULA.search(text)
    assert next(csv.reader(io.StringIO(text), delimiter=delimiter)) == ["time", "lat", "lon"]


def test_the_pattern_finds_formulas():
    assert all(FORMULA.search(text) for text in ("=1", "a,+x", 'a;"@b"', "-x", "a\t=b"))
    assert not FORMULA.search("time,lat\n2024-05-01T12:00:00Z,-50.5")


def test_tables_of_check_ins_are_written_without_formulas(tmp_path):
    applied = Checkins(np.array([0]), np.array([1.0]), ("=1+1",))
    write_released(tmp_path / "released.csv", np.array([-1.0]), np.array([-2.0]), applied)
    write_applied(tmp_path / "applied.csv", applied)
    for path in tmp_path.iterdir():
        with path.open(newline="") as file:
            assert not any(cell[:1] in ("=", "+", "@") for row in csv.reader(file) for cell in row)
