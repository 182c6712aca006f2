"""A file with every optional field filled comes out with none of them: positions on the original times, no more."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import protect_file
from jaxpriv.jobs.requests import SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import read_trace, sanitised_text
from jaxpriv.traces.instants import format_instant


MARK = "SENTINEL"
GPX = "{http://www.topografix.com/GPX/1/1}"
TIMES = [1_714_550_400 * 10**6 + 60 * 10**6 * i for i in range(8)]
NUMBERS = {"ele": "8848.86", "magvar": "13.37", "geoidheight": "46.71", "hdop": "1.71", "vdop": "2.72", "pdop": "3.73"}
NUMBERS |= {"sat": "17", "ageofdgpsdata": "4.74", "dgpsid": "771", "fix": "dgps"}
LINK = f'<link href="http://{MARK}.example/"><text>{MARK}</text><type>{MARK}</type></link>'
TEXTS = "".join(f"<{name}>{MARK}</{name}>" for name in ("name", "cmt", "desc", "src")) + LINK
SYMBOL = f"<sym>{MARK}</sym><type>{MARK}</type>"
EXTENSIONS = (
    f'<extensions><gpxtpx:TrackPointExtension xmlns:gpxtpx="http://{MARK}/tpx"><gpxtpx:hr>171</gpxtpx:hr>'
    f"<gpxtpx:cad>88</gpxtpx:cad><gpxtpx:atemp>36.6</gpxtpx:atemp><speed>13.370713</speed><course>271.907</course>"
    f"<device>{MARK}</device></gpxtpx:TrackPointExtension></extensions>"
)


def point(tag: str, i: int) -> str:
    """A waypoint, route point or track point with all that the schema allows, in the schema's order."""
    numbers = "".join(f"<{k}>{v}</{k}>" for k, v in NUMBERS.items() if k not in ("ele", "magvar", "geoidheight"))
    return (
        f'<{tag} lat="{10.5 + i * 0.001:.6f}" lon="{20.5 - i * 0.002:.6f}"><ele>{NUMBERS["ele"]}</ele>'
        f"<time>{format_instant(TIMES[i])}</time><magvar>{NUMBERS['magvar']}</magvar>"
        f"<geoidheight>{NUMBERS['geoidheight']}</geoidheight>{TEXTS}{SYMBOL}{numbers}{EXTENSIONS}</{tag}>"
    )


def full_gpx() -> str:
    """A GPX 1.1 file in which every optional element and attribute is filled."""
    metadata = (
        f"<metadata><name>{MARK}</name><desc>{MARK}</desc><author><name>{MARK}</name>"
        f'<email id="{MARK}" domain="{MARK}.example"/>{LINK}</author><copyright author="{MARK}"><year>1971</year>'
        f"<license>http://{MARK}/</license></copyright>{LINK}<time>1971-02-03T04:05:06Z</time>"
        f'<keywords>{MARK}</keywords><bounds minlat="10.4" minlon="20.4" maxlat="10.6" maxlon="20.6"/>'
        f"{EXTENSIONS}</metadata>"
    )
    described = f"{TEXTS}<number>771</number><type>{MARK}</type>{EXTENSIONS}"
    points = "".join(point("trkpt", i) for i in range(len(TIMES)))
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><!-- {MARK} --><?{MARK} {MARK}?>'
        f'<gpx version="1.1" creator="{MARK}" xmlns="http://www.topografix.com/GPX/1/1" '
        f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="{MARK} {MARK}" xml:lang="xx">'
        f"{metadata}{point('wpt', 0)}<rte>{described}{point('rtept', 1)}</rte>"
        f"<trk>{described}<trkseg>{points}{EXTENSIONS}</trkseg></trk>{EXTENSIONS}</gpx>"
    )


SCHEMA = {
    "name", "desc", "author", "email", "copyright", "year", "license", "link", "text", "type", "time",
    "keywords", "bounds", "extensions", "wpt", "rte", "rtept", "trk", "trkseg", "trkpt", "metadata", "ele",
    "magvar", "geoidheight", "cmt", "src", "sym", "fix", "sat", "hdop", "vdop", "pdop", "ageofdgpsdata",
    "dgpsid", "number", "gpx",
}  # fmt: skip


def local_names(text: str) -> list[str]:
    return [element.tag.rpartition("}")[2] for element in ElementTree.fromstring(text).iter()]


def test_the_full_file_is_full():
    """Every element of the schema occurs in it, so that the test below leaves none out."""
    assert set(local_names(full_gpx())) >= SCHEMA


@pytest.fixture(scope="module")
def sanitised(tmp_path_factory):
    """The full file, released."""
    folder = tmp_path_factory.mktemp("metadata")
    source = folder / f"{MARK}.gpx"
    source.write_text(full_gpx())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        protect_file(
            source,
            folder / "out",
            SecretRequest((format_instant(TIMES[3]),)),
            Target(200.0, epsilon=1.0),
            PriorChoice("matern32", 600.0, 300.0, 5.0),
        )
    return folder / "out"


def test_a_gpx_with_every_field_comes_out_with_none(sanitised):
    text = (sanitised / "share" / "trace.gpx").read_text()
    assert local_names(text) == ["gpx", "trk", "name", "trkseg"] + ["trkpt", "time"] * len(TIMES)
    root = ElementTree.fromstring(text)
    assert root.attrib == {"version": "1.1", "creator": "jaxpriv"}
    assert [element.text for element in root.iter(f"{GPX}name")] == ["jaxpriv"]
    assert all(set(element.attrib) == {"lat", "lon"} for element in root.iter(f"{GPX}trkpt"))
    assert not re.search(r"<!--|<\?(?!xml )|xsi|lang=", text)
    shared = b"".join(path.read_bytes() for path in (sanitised / "share").iterdir())
    for value in (
        MARK,
        "1971",
        "xx",
        *(v for v in NUMBERS.values() if "." in v),
        "13.370713",
        "271.907",
        "36.6",
        "tpx",
    ):
        assert value.encode() not in shared
    assert {path.name for path in (sanitised / "share").iterdir()} == {"trace.gpx", "release.json"}


def test_a_diff_shows_positions_on_the_original_times_and_nothing_else(sanitised):
    """Against the same file reduced to times and positions, the only characters that differ are in lat and lon."""
    original = [
        (element.findtext(f"{GPX}time"), element.attrib)
        for element in ElementTree.fromstring(full_gpx()).iter(f"{GPX}trkpt")
    ]
    lines = (sanitised / "share" / "trace.gpx").read_text().splitlines()
    points = [line for line in lines if line.startswith("<trkpt")]
    assert len(points) == len(original)
    for line, (time, attributes) in zip(points, original, strict=True):
        found = re.fullmatch(r'<trkpt lat="(-?\d+\.\d{7})" lon="(-?\d+\.\d{7})" *><time>(.*)</time></trkpt>', line)
        assert found is not None and found[3] == time
        assert (float(found[1]), float(found[2])) != (float(attributes["lat"]), float(attributes["lon"]))
    # Nobody's prior of 300 m moves anything by kilometres: these are the positions, with noise.
    moved = [abs(float(re.findall(r'lat="(.*?)"', line)[0]) - 10.5) for line in points]
    assert max(moved) < 0.05


def lines_of(kind: str, folder: Path, latitude: np.ndarray, longitude: np.ndarray) -> Path:
    """A file of each other format, with everything filled that it has a place for."""
    path = folder / f"{MARK}.{kind}"
    stamps = [format_instant(us) for us in TIMES[: len(latitude)]]
    if kind == "csv":
        head = "time,lat,lon,ele,speed,course,accuracy,satellites,note,user name\n"
        rows = (
            f"{t},{a:.6f},{o:.6f},8848.86,13.37,271.9,4.74,17,{MARK},{MARK}"
            for t, a, o in zip(stamps, latitude, longitude, strict=True)
        )
        path.write_text(head + "\n".join(rows) + "\n")
    elif kind == "plt":
        head = [f"OziExplorer Track Point File Version {MARK}", "WGS 84", f"Altitude {MARK}", f"Reserved {MARK}"]
        head += [f"0,9,777216,{MARK},1,3,2,65280,-1,0", "10"]
        rows = (
            f"{a:.6f},{o:.6f},1,8848,{us / 86_400e6 + 25569:.10f},{t[:10]},{t[11:19]}"
            for us, t, a, o in zip(TIMES, stamps, latitude, longitude, strict=False)
        )
        path.write_text("\r\n".join([*head, *rows]) + "\r\n")
    elif kind == "geojson":
        features = [
            {
                "type": "Feature",
                "id": MARK,
                "bbox": [20.0, 10.0, 21.0, 11.0],
                "properties": {"time": t, "speed": 13.37, "heading": 271.9, "note": MARK, "nested": {"a": MARK}},
                "geometry": {"type": "Point", "coordinates": [round(o, 6), round(a, 6), 8848.86]},
            }
            for t, a, o in zip(stamps, latitude, longitude, strict=True)
        ]
        path.write_text(json.dumps({"type": "FeatureCollection", "name": MARK, "crs": None, "features": features}))
    else:
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        columns = {"time": stamps, "lat": latitude.round(6).tolist(), "lon": longitude.round(6).tolist()}
        columns |= {"ele": [8848.86] * len(stamps), "note": [MARK] * len(stamps)}
        parquet.write_table(pyarrow.table(columns).replace_schema_metadata({MARK: MARK}), path)
    return path


WRITTEN = {
    "csv": r"\d{4}-.*Z, *-?\d+\.\d{7}, *-?\d+\.\d{7}",
    "parquet": r"\d{4}-.*Z, *-?\d+\.\d{7}, *-?\d+\.\d{7}",
    "plt": r" *-?\d+\.\d{7}, *-?\d+\.\d{7},0,-777,\d+\.\d{10},\d{4}-\d\d-\d\d,\d\d:\d\d:\d\d",
    "geojson": r'\{"type":"Feature","properties":\{"time":"[^"]*"\},"geometry":\{"type":"Point","coordinates":'
    r"\[ *-?\d+\.\d{7}, *-?\d+\.\d{7}\]\}\},?",
}


@pytest.mark.parametrize("kind", sorted(WRITTEN))
def test_other_formats_come_out_with_times_and_positions(kind, tmp_path):
    latitude, longitude = 10.5 + 0.001 * np.arange(8), 20.5 - 0.002 * np.arange(8)
    trace = read_trace(lines_of(kind, tmp_path, latitude, longitude))
    text = sanitised_text(trace, trace.latitude + 0.01, trace.longitude + 0.01, "jaxpriv")
    rows = [line for line in text.splitlines() if re.fullmatch(WRITTEN[kind], line)]
    assert len(rows) == len(TIMES)
    rest = [line for line in text.splitlines() if line not in rows]
    for value in (MARK, "8848", "13.37", "271.9", "4.74", "bbox", "crs"):
        assert value not in text
    if kind in ("csv", "parquet"):
        assert rest == ["time,lat,lon"]
    elif kind == "plt":
        assert len(rest) == 6 and rest[4] == "0,2,255,jaxpriv,0,0,2,8421376"
    else:
        assert rest == ['{"type":"FeatureCollection","features":[', "]}"]


def test_a_geopackage_comes_out_with_times_and_positions(tmp_path):
    pyogrio = pytest.importorskip("pyogrio")
    pytest.importorskip("pyarrow")
    import struct

    geometry = np.array([struct.pack("<BIdd", 1, 1, 20.5 + i / 500, 10.5 + i / 999) for i in range(8)], dtype=object)
    fields = [np.array([format_instant(us) for us in TIMES], dtype=object), np.array([MARK] * 8, dtype=object)]
    path = tmp_path / "a.gpkg"
    pyogrio.raw.write(
        path, geometry, fields, ["time", "note"], geometry_type="Point", crs="EPSG:4326", layer=MARK, driver="GPKG"
    )
    trace = read_trace(path, options=ReadOptions())
    text = sanitised_text(trace, trace.latitude, trace.longitude, "jaxpriv")
    assert text.splitlines()[0] == "time,lat,lon" and len(text.splitlines()) == 9 and MARK not in text


DATA = os.environ.get("JAXPRIV_DATA")


@pytest.mark.skipif(DATA is None, reason="JAXPRIV_DATA is not set: the folder of real files")
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_the_all_fields_files_of_gpxpy(version):
    """Files that another library tests its reading of every field with."""
    path = Path(str(DATA)) / "gpx" / "gpxpy" / f"gpx{version}_with_all_fields.gpx"
    source = path.read_text()
    trace = read_trace(path, "all")
    text = sanitised_text(trace, np.zeros(trace.n_points), np.zeros(trace.n_points), "jaxpriv")
    assert set(local_names(text)) == {"gpx", "trk", "name", "trkseg", "trkpt", "time"}
    assert local_names(text).count("name") == 1
    example = set(re.findall(r"example [a-z0-9 ]+|http://[^<\"]+", source)) - {"http://www.topografix.com/GPX/1/1"}
    assert len(example) > 20 and not any(words in text for words in example)
