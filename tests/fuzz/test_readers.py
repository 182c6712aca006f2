"""Readers of trace files on bytes and texts that nobody meant as a trace: a trace, or an error that tells nothing."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from samples import ROWS, check, samples

from jaxpriv.jobs.inspect_text import inspection_text
from jaxpriv.traces.contents import ColumnNames, ReadOptions


# No deadline: the first file of a kind imports its reader.
FUZZ = settings(deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
LONG = settings(deadline=None, max_examples=3000, suppress_health_check=[HealthCheck.too_slow])
SAMPLES = samples()
ENDINGS = sorted({name.partition(".")[2] for name in SAMPLES})
# What has a meaning in one of the formats, besides single bytes.
TOKENS = [
    b"", b"\0", b"\r", b"\n", b"\r\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\x85", b"\xa0", b'"', b"'",
    b"<", b">", b"&", b"<!DOCTYPE x>", b"]]>", b"<![CDATA[", b"<trkpt/>", b"{", b"}", b"[", b"]", b":", b",", b";",
    b"\t", b"|", b" ", b"null", b"true", b"NaN", b"-", b"+", b".", b"e", b"E9", b"0", b"9" * 30, b"1e999", b"-0",
    b"Infinity", b"0x1F", b"\xd9\xa3", b"2016-12-31T23:59:60Z", b"Z", b"+23:59", b"T", b"time", b"lat", b"lon", b"id",
    b"=1+1", b"\\u0000", b"\\ud800", b'"type"', b'"coordinates"',
]  # fmt: skip


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@st.composite
def damaged(draw):
    """A whole file with a few places overwritten, taken out, doubled, or given another part of it."""
    name = draw(st.sampled_from(sorted(SAMPLES)))
    content = bytearray(SAMPLES[name])
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 20)))
        insert = draw(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=4)))
        match draw(st.integers(0, 3)):
            case 0:
                content[start:end] = insert
            case 1:
                content[start:start] = content[start:end] * draw(st.integers(1, 3))
            case 2:
                content[start:end] = content[end : 2 * end - start]
            case _:
                del content[end:]
                content += insert
    return name, bytes(content)


COLUMN = st.one_of(st.none(), st.sampled_from(["time", "lat", "1", "2", "9", "9" * 5000, "²"]))
OPTIONS = st.builds(
    ReadOptions,
    st.builds(ColumnNames, COLUMN, COLUMN, COLUMN, COLUMN),
    who=st.one_of(st.none(), st.sampled_from(["a", "b", "x", "", "../../a"])),
    track=st.sampled_from([None, None, None, 1, 2, "all"]),
    duplicates=st.sampled_from(["merge", "noise"]),
    strict=st.booleans(),
)


@FUZZ
@given(st.sampled_from(ENDINGS), st.binary(max_size=200))
def test_any_bytes(folder, ending, content):
    check(folder, f"a.{ending}", content)


@FUZZ
@given(damaged())
def test_damaged_files(folder, file):
    name, content = file
    found = check(folder, f"a{name}", content)
    if found is not None:
        inspection_text(found).encode("utf-8")


@FUZZ
@given(damaged(), OPTIONS)
def test_damaged_files_with_options(folder, file, options):
    check(folder, f"a{file[0]}", file[1], options)


CELL = st.one_of(
    st.sampled_from([token.decode("latin-1") for token in TOKENS] + [str(cell) for row in ROWS for cell in row]),
    st.text(max_size=8),
    st.floats().map(str),
    st.datetimes().map(str),
)


@FUZZ
@given(st.lists(st.lists(CELL, min_size=1, max_size=5), max_size=6), st.sampled_from([",", ";", "\t", "|", " "]))
def test_tables_of_any_cells(folder, rows, delimiter):
    lines = [delimiter.join(["time", "lat", "lon"]), *(delimiter.join(row) for row in rows)]
    check(folder, "a.txt", "\n".join(lines).encode("utf-8", errors="surrogatepass"))


KEYS = st.sampled_from(["type", "features", "geometry", "coordinates", "properties", "time", "coordTimes", "user"])
KINDS = st.sampled_from(["Feature", "FeatureCollection", "Point", "LineString", "MultiLineString"])
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), CELL),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, st.one_of(inner, KINDS), max_size=5)),
    max_leaves=20,
)


@FUZZ
@given(JSON)
def test_any_json(folder, value):
    features = value if isinstance(value, list) else [value]
    document = {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": f} for f in features]}
    for one in (value, document):
        check(folder, "a.geojson", json.dumps(one).encode("utf-8"))


@FUZZ
@given(st.recursive(CELL, lambda inner: st.lists(inner, max_size=3), max_leaves=12), st.data())
def test_any_elements(folder, tree, data):
    tags = st.sampled_from(["gpx", "trk", "trkseg", "trkpt", "time", "ele", "wpt", "x:trkpt", "extensions"])

    def written(node):
        if isinstance(node, str):
            return node.replace("&", "&amp;").replace("<", "&lt;")
        tag = data.draw(tags)
        lat, lon = (data.draw(st.one_of(st.just("1.5"), CELL)).replace('"', "") for _ in range(2))
        place = f' lat="{lat}" lon="{lon}"' if tag == "trkpt" else ""
        return f"<{tag}{place}>{''.join(written(child) for child in node)}</{tag}>"

    text = f"<gpx><trk><trkseg>{written(tree)}</trkseg></trk></gpx>"
    check(folder, "a.gpx", text.encode("utf-8", errors="surrogatepass"))


def test_samples_are_read(folder):
    # Were they refused, the mutations would test nothing but refusals.
    for name, content in SAMPLES.items():
        found = check(folder, f"a{name}", content)
        assert found is not None and sum(person.points for person in found.people) >= 1, name


@pytest.mark.slow
@LONG
@given(damaged(), st.one_of(st.just(ReadOptions()), OPTIONS))
def test_many_damaged_files(folder, file, options):
    check(folder, f"a{file[0]}", file[1], options)
