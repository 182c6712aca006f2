"""GPX files: what is read, what is never copied, and what is refused; gpxpy reads the same files as a cross-check."""

from __future__ import annotations

import calendar
import datetime
import gzip
import re

import gpxpy
import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.traces import sources
from jaxpriv.traces.cleaning import clean
from jaxpriv.traces.files import read_trace, sanitised_text
from jaxpriv.traces.gpx_format import read_gpx, write_gpx
from jaxpriv.traces.trace import NO_TIME


NOON = calendar.timegm((2024, 5, 1, 12, 0, 0)) * 10**6


def _gpx(body, root='<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1">'):
    return f'<?xml version="1.0"?>\n{root}\n{body}\n</gpx>\n'


def _point(minute, lat=50.0, lon=8.0, inside=""):
    return f'<trkpt lat="{lat}" lon="{lon}"><time>2024-05-01T12:{minute:02d}:00Z</time>{inside}</trkpt>\n'


def _track(*segments):
    return "<trk>" + "".join(f"<trkseg>{segment}</trkseg>" for segment in segments) + "</trk>"


# Everything GPX can say besides points: each word here is something that must not come out again.
SENTINELS = """
<metadata><name>SENTINEL-META</name><desc>SENTINEL-DESC</desc><author><name>SENTINEL-AUTHOR</name>
<email id="SENTINEL" domain="SENTINEL"/></author><link href="SENTINEL"><text>SENTINEL</text></link>
<time>1999-09-09T09:09:09Z</time><keywords>SENTINEL</keywords>
<bounds minlat="11.111" minlon="22.222" maxlat="33.333" maxlon="44.444"/></metadata>
<wpt lat="55.555" lon="6.666"><time>1999-09-09T09:09:09Z</time><name>SENTINEL-HOME</name></wpt>
<rte><name>SENTINEL-ROUTE</name><rtept lat="55.555" lon="6.666"><time>1999-09-09T09:09:09Z</time></rtept></rte>
<!-- SENTINEL <trkpt lat="1" lon="1"/> -->
<trk><name>SENTINEL-TRACK</name><cmt>SENTINEL</cmt><src>SENTINEL-DEVICE</src><number>987654</number>
<extensions><trkpt lat="55.555" lon="6.666"><time>1999-09-09T09:09:09Z</time></trkpt></extensions>
<trkseg>
<trkpt lat="50.0001" lon="8.0001"><ele>777.7</ele><time>2024-05-01T12:00:00Z</time><speed>66.6</speed><hdop>5.5</hdop>
<name>SENTINEL-POINT</name><sat>44</sat><extensions><x:time>1999-09-09T09:09:09Z</x:time></extensions></trkpt>
<trkpt lat="50.0002" lon="8.0002"><time>2024-05-01T12:01:00Z</time></trkpt>
</trkseg><trkseg></trkseg></trk>
<extensions>SENTINEL</extensions>
"""
FORBIDDEN = (
    "SENTINEL", "1999", "55.55", "6.66", "777", "66.6", "5.5<", "44", "11.1", "22.2", "33.3", "987654", "bounds",
    "metadata", "wpt", "rte", "ele", "speed", "hdop", "extensions", "link", "desc", "cmt", "src",
)  # fmt: skip


@pytest.mark.parametrize(
    "root",
    [
        '<gpx version="1.1" creator="SENTINEL" xmlns="http://www.topografix.com/GPX/1/1">',
        '<gpx version="1.0" creator="SENTINEL" xmlns="http://www.topografix.com/GPX/1/0">',
        "<gpx>",
    ],
)
def test_only_times_and_positions_come_out(root):
    trace = clean(read_gpx(_gpx(SENTINELS, root)))
    assert trace.time_us.tolist() == [NOON, NOON + 60_000_000]
    np.testing.assert_array_equal(trace.latitude, [50.0001, 50.0002])
    written = sanitised_text(trace, np.array([1.5, -2.25]), np.array([3.0, -4.0]), "a <title> & more")
    assert [word for word in FORBIDDEN if word in written] == []
    again = gpxpy.parse(written)
    assert (again.version, again.creator, again.name, again.bounds) == ("1.1", "jaxpriv", None, None)
    assert (len(again.waypoints), len(again.routes), [track.name for track in again.tracks]) == (
        0,
        0,
        ["a <title> & more"],
    )
    assert [(p.latitude, p.longitude, p.elevation) for p in again.tracks[0].segments[0].points] == [
        (1.5, 3.0, None),
        (-2.25, -4.0, None),
    ]
    assert [int(p.time.timestamp()) for p in again.tracks[0].segments[0].points] == [NOON // 10**6, NOON // 10**6 + 60]


def test_written_numbers_are_plain_decimals_in_the_ranges_of_the_schema():
    lat, lon = np.array([-2e-7, 90.0, -90.0]), np.array([5.17e-4, 179.99999999, -180.0])
    written = write_gpx("", np.array([0, 1, -(2**31) * 10**6]), lat, lon)
    numbers = re.findall(r'l(?:at|on)="([^"]*)"', written)
    assert numbers == [
        "-0.0000002", "0.0005170", "90.0000000", "-180.0000000", "-90.0000000", "-180.0000000",
    ]  # fmt: skip
    assert re.findall("<time>(.*?)</time>", written) == [
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00.000001Z",
        "1901-12-13T20:45:52Z",
    ]


def test_what_is_written_reads_back(rng):
    us = NOON + np.cumsum(rng.integers(1, 10**9, 50))
    lat, lon = rng.uniform(-90, 90, 50), rng.uniform(-180, 180, 50)
    trace = clean(read_gpx(write_gpx("jaxpriv", us, lat, lon)))
    np.testing.assert_array_equal(trace.time_us, us)
    # Seven decimals of a degree.
    np.testing.assert_allclose(trace.latitude, lat, rtol=0, atol=0.51e-7)
    np.testing.assert_allclose(trace.longitude, lon, rtol=0, atol=0.51e-7)


def test_segments_keep_their_times_and_empty_ones_vanish():
    raw = read_gpx(_gpx(_track(_point(0), "", _point(1) + _point(2), _point(40))))
    assert clean(raw).seconds.tolist() == [0, 60, 120, 2400]


def test_several_tracks_are_refused_unless_chosen():
    body = _track(_point(0) + _point(1)) + _track('<trkpt lat="1" lon="1"/>') + _track(_point(5, lat=51))
    text = _gpx(body)
    with pytest.raises(InputError, match=r"2 tracks \(numbers 1, 3\).*--track all"):
        read_gpx(text)
    assert clean(read_gpx(text, 1)).seconds.tolist() == [0, 60]
    assert clean(read_gpx(text, 3)).latitude.tolist() == [51]
    both = clean(read_gpx(text, "all"))
    assert (both.seconds.tolist(), both.cleaning.missing_time) == ([0, 60, 300], 1)
    for choice in (0, 4, -1, True, "each"):
        with pytest.raises(InputError, match="the file has 3 tracks"):
            read_gpx(text, choice)


def test_tracks_without_usable_points_are_no_other_person():
    trace = clean(read_gpx(_gpx(_track('<trkpt lat="1" lon="1"/>') + _track(_point(0)) + "<trk/>")))
    assert (trace.n_rows, trace.cleaning.missing_time) == (1, 1)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "iso-8859-1", "cp1252"])
@pytest.mark.parametrize("declared", [True, False])
def test_encodings(encoding, declared, tmp_path):
    text = _gpx("<metadata><name>Zoë Čapek</name></metadata>" + _track(_point(7))).replace("Č", "C")
    if declared:
        text = text.replace('version="1.0"?', f'version="1.0" encoding="{encoding.removesuffix("-sig")}"?')
    (tmp_path / "a.gpx").write_bytes(text.encode(encoding))
    assert read_trace(tmp_path / "a.gpx").time_us.tolist() == [NOON + 7 * 60 * 10**6]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "line 1: not well-formed XML"),
        (b"lat,lon,time\n1,2,3\n", "line 1: not well-formed XML"),
        (_gpx(_track(_point(0)))[:-9].encode(), r"line \d+: not well-formed XML"),
        (_gpx("<wpt>&nbsp;</wpt>").encode(), "line 3: not well-formed XML .undefined entity"),
        (b"<?xml version='1.0'?><kml><trk/></kml>", "not GPX"),
        (b'<?xml version="1.0" encoding="zlib_codec"?><gpx/>', "encoding that the file declares is not known"),
        (b"\xff\xfe<\0g\0", "line 1: not well-formed"),
        (b"\xff\xfe\x00", "begins like UTF-16 text but is not"),
        (_gpx("").encode(), "no track points"),
        (_gpx('<wpt lat="1" lon="2"><time>2020-01-01T00:00:00Z</time></wpt>').encode(), "no track points"),
        (_gpx(_track('<trkpt lat="1" lon="2"/>')).encode(), "1 rows read.*no time"),
        (_gpx(_track(_point(0) + _point(1, lat="49,97"))).encode(), r"track point 2 \(line 4\): the latitude.*comma"),
        (_gpx(_track(_point(0, lon="0x10"))).encode(), r"track point 1 \(line 3\): the longitude is not a number"),
        (_gpx(_track(_point(0).replace("12:00:00", "25:00:00"))).encode(), "track point 1 .*: the time is not ISO"),
        (_gpx(_track(_point(0).replace("2024-05-01T12:00:00Z", "1714564800"))).encode(), "the time is a number"),
        (_gpx(_track(_point(0, inside="<time>2024-05-01T12:00:00Z</time>"))).encode(), "two times"),
    ],
)
def test_refusals_say_where_and_quote_nothing(content, words, tmp_path):
    (tmp_path / "a.gpx").write_bytes(content)
    with pytest.raises(InputError, match=words) as problem:
        read_trace(tmp_path / "a.gpx")
    assert "49" not in str(problem.value)


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE gpx [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(12))
    + "]><gpx><metadata><name>&m;</name></metadata></gpx>"
)


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        '<!DOCTYPE gpx [<!ENTITY x SYSTEM "file:///etc/hostname">]><gpx><trk><name>&x;</name></trk></gpx>',
        '<!DOCTYPE gpx SYSTEM "http://192.0.2.1/gpx.dtd"><gpx/>',
        '<!DOCTYPE gpx [<!ENTITY % p SYSTEM "http://192.0.2.1/p"> %p;]><gpx/>',
    ],
    ids=["bomb", "file", "dtd", "parameter"],
)
def test_entities_are_refused_before_any_is_declared(text):
    # The first would expand to 10¹² characters.
    with pytest.raises(InputError, match="document type"):
        read_gpx(text)


def test_deep_and_long_elements_do_no_harm():
    deep = "<extensions>" + "<a>" * 190 + "</a>" * 190 + "</extensions>"
    assert clean(read_gpx(_gpx(deep + _track(_point(0))))).n_rows == 1
    with pytest.raises(InputError, match="line 3: more than 200 elements inside each other"):
        read_gpx(_gpx("<a>" * 5_000_000))
    for long in (f'<wpt lat="{"1" * 10**7}" lon="2"/>', f"<name>{'x' * 10**7}</name>", f"<{'y' * 10**6}/>"):
        assert clean(read_gpx(_gpx(long + _track(_point(0))))).n_rows == 1
    with pytest.raises(InputError, match="the latitude is not a number"):
        read_gpx(_gpx(_track(_point(0, lat="1" * 10**6 + "x"))))
    with pytest.raises(InputError, match="the time"):
        read_gpx(_gpx(_track(_point(0).replace("Z<", "9" * 100_000 + "Z<"))))


def test_comments_and_cdata_inside_a_time():
    text = _gpx(_track("<trkpt lat='1' lon='2'><time>\n <![CDATA[2024-05-01T]]><!-- x -->12:00:00Z </time></trkpt>"))
    assert clean(read_gpx(text)).time_us.tolist() == [NOON]


def test_packed_files_and_packed_bombs(tmp_path, monkeypatch):
    (tmp_path / "a.gpx.gz").write_bytes(gzip.compress(_gpx(_track(_point(0))).encode()))
    assert read_trace(tmp_path / "a.gpx.gz").style.kind == "gpx"
    (tmp_path / "b.CSV.GZ").write_bytes(gzip.compress(b"time,lat,lon\n1,40,7\n"))
    assert read_trace(tmp_path / "b.CSV.GZ").style.kind == "csv"
    (tmp_path / "c.plt.gz").write_bytes(gzip.compress(b"x")[:-3])
    with pytest.raises(InputError, match="its end is missing"):
        read_trace(tmp_path / "c.plt.gz")
    monkeypatch.setattr(sources, "MAX_BYTES", 2**20)
    (tmp_path / "d.gpx.gz").write_bytes(gzip.compress(b" " * (2**20 + 1)))
    (tmp_path / "e.gpx").write_bytes(b" " * (2**20 + 1))
    for name, words in (("d.gpx.gz", "200 times its size"), ("e.gpx", "larger than 1 MB")):
        with pytest.raises(InputError, match=words):
            read_trace(tmp_path / name)
    # Tables are read row by row, and may be larger, unless they unpack to many times their size.
    table = b"time,lat,lon\n" + b"1,40,7\n" * 200_000
    (tmp_path / "f.csv").write_bytes(table)
    assert read_trace(tmp_path / "f.csv").n_rows == 200_000
    (tmp_path / "g.csv.gz").write_bytes(gzip.compress(table))
    with pytest.raises(InputError, match="unpacks to more than 200 times its size"):
        read_trace(tmp_path / "g.csv.gz")
    monkeypatch.setattr(sources, "MAX_TABLE_BYTES", 2**20)
    with pytest.raises(InputError, match="larger than 1 MB"):
        read_trace(tmp_path / "f.csv")


def test_only_gpx_has_tracks(tmp_path):
    (tmp_path / "a.csv").write_text("time,lat,lon\n1,40,7\n")
    with pytest.raises(InputError, match="only GPX"):
        read_trace(tmp_path / "a.csv", track=1)


def test_real_files_agree_with_gpxpy(real_data):
    compared = 0
    for path in sorted(real_data.glob("gpx/*/*.gpx")):
        if path.stat().st_size > 150_000:
            continue
        try:
            raw = read_gpx(path.read_text(encoding="utf-8-sig"), "all")
        except InputError:
            continue
        expected = [
            point
            for track in gpxpy.parse(path.read_text(encoding="utf-8-sig")).tracks
            for segment in track.segments
            for point in segment.points
        ]
        assert raw.latitude.tolist() == [point.latitude for point in expected], path.name
        assert raw.longitude.tolist() == [point.longitude for point in expected], path.name
        # gpxpy takes a time without an offset as it is, and so as UTC here.
        stamps = [
            NO_TIME if p.time is None else round(p.time.replace(tzinfo=p.time.tzinfo or datetime.UTC).timestamp() * 1e6)
            for p in expected
        ]
        assert raw.time_us.tolist() == stamps, path.name
        compared += 1
    assert compared >= 25
