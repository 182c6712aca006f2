"""GPX 1.0 and 1.1: the track points of a file, and nothing else of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.traces.contents import Contents, Person
from jaxpriv.traces.degrees import is_missing
from jaxpriv.traces.gathering import Gathering
from jaxpriv.traces.instants import format_instant, parse_instant
from jaxpriv.traces.trace import FileStyle, RawRows, TrackChoice


_POINT = ["gpx", "trk", "trkseg", "trkpt"]
_POSITION_WIDTH = len('lat="-90.0000000" lon="-180.0000000"')
# Longer than any time that can be read; what comes after is not kept.
_MAX_TIME = 100
# Deeper than any extension; the parser keeps every open element.
_MAX_DEPTH = 200


def read_gpx(text: str, track: TrackChoice = None) -> RawRows:
    """Read the track points: their times and positions, in the order of the file, across all segments.

    Waypoints, routes, names, comments, extensions, bounds and every other element are passed over. `track` takes one
    track (1 is the first) or "all" as one person's; by default the file must have a single track with usable points.
    Raises `InputError`, with the number of the point and its line and without any value, for XML that is not well
    formed or declares a document type (where entities would come from), for a file of several tracks, and for
    points that are not readable.
    """
    return _rows(_chosen(_content(text), track))


def gpx_contents(text: str, track: TrackChoice) -> Contents:
    """Read the points of one track, or of all with "all", and count what else the file has.

    A file without track points gives no rows. Raises `InputError` as `read_gpx` does.
    """
    content = _content(text)
    points = content.points if track == "all" else _chosen(content, track)
    sizes = [0] * content.segments
    for point in content.points:
        sizes[point.segment - 1] += 1
    counts = {
        "tracks": content.tracks,
        "segments": content.segments,
        "empty_segments": sizes.count(0),
        "one_point_segments": sizes.count(1),
        "track_points": len(content.points),
        "points_without_elevation": sum(not point.elevation for point in content.points),
        "points_with_fractional_seconds": sum("." in point.time for point in content.points),
        "waypoints": content.waypoints,
        "route_points": content.route_points,
    }
    return Contents(
        "GPX",
        (Person(None, _rows(points)),),
        columns={"time": "time", "latitude": "lat", "longitude": "lon"},
        counts=counts,
    )


def _content(text: str) -> _Content:
    content = _Content()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = lambda name, attributes: content.start(name, attributes, parser.CurrentLineNumber)
    parser.EndElementHandler = content.end
    parser.CharacterDataHandler = content.characters
    try:
        parser.Parse(text.encode("utf-8", errors="replace"), True)
    except expat.ExpatError as problem:
        raise InputError(f"line {problem.lineno}: not well-formed XML ({expat.ErrorString(problem.code)})") from None
    return content


@dataclass
class _Point:
    """One track point as text; `place` says where it stands in the file."""

    track: int
    segment: int
    place: str
    latitude: str
    longitude: str
    time: str = ""
    times: int = 0
    elevation: bool = False

    @property
    def usable(self) -> bool:
        return not any(is_missing(cell) for cell in (self.latitude, self.longitude, self.time))


@dataclass
class _Content:
    """What has been read so far: the path to the current element, what was counted, the points."""

    points: list[_Point] = field(default_factory=list)
    tracks: int = 0
    segments: int = 0
    waypoints: int = 0
    route_points: int = 0
    _path: list[str] = field(default_factory=list)
    _in_time: bool = False

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        self._path.append(name.rpartition(":")[2])
        if len(self._path) > _MAX_DEPTH:
            raise InputError(f"line {line}: more than {_MAX_DEPTH} elements inside each other; the file is not GPX")
        if len(self._path) == 1 and self._path != ["gpx"]:
            raise InputError("the file is not GPX: its outermost element is another one")
        if self._path == ["gpx", "trk"]:
            self.tracks += 1
        elif self._path == ["gpx", "trk", "trkseg"]:
            self.segments += 1
        elif self._path == ["gpx", "wpt"]:
            self.waypoints += 1
        elif self._path == ["gpx", "rte", "rtept"]:
            self.route_points += 1
        elif self._path == _POINT:
            place = f"track point {len(self.points) + 1} (line {line})"
            position = attributes.get("lat", ""), attributes.get("lon", "")
            self.points.append(_Point(self.tracks, self.segments, place, *position))
        elif self._path == [*_POINT, "ele"]:
            self.points[-1].elevation = True
        elif self._path == [*_POINT, "time"]:
            self._in_time = True
            self.points[-1].times += 1

    def characters(self, text: str) -> None:
        if self._in_time and len(self.points[-1].time) < _MAX_TIME:
            self.points[-1].time += text[:_MAX_TIME]

    def end(self, name: str) -> None:
        self._in_time = False
        self._path.pop()


def _refuse_doctype(*_: object) -> None:
    raise InputError("the file declares a document type, which GPX has no use for and which can be misused; remove it")


def _chosen(content: _Content, track: TrackChoice) -> list[_Point]:
    if not content.points:
        raise InputError("the file has no track points; its routes and waypoints, if any, are not read")
    if track == "all":
        return content.points
    if track is not None:
        if isinstance(track, bool) or not isinstance(track, int) or not 1 <= track <= content.tracks:
            raise InputError(f"the file has {content.tracks} tracks; choose one by its number (1 is the first), or all")
        return [point for point in content.points if point.track == track]
    used = sorted({point.track for point in content.points if point.usable})
    if len(used) > 1:
        numbers = ", ".join(map(str, used[:5])) + (" ..." if len(used) > 5 else "")
        raise InputError(
            f"the file holds {len(used)} tracks (numbers {numbers}). If one person made them, pass --track all: they "
            "are protected together, as one trace. Otherwise pass --track NUMBER, or split the file by person"
        )
    return content.points


def _rows(points: list[_Point]) -> RawRows:
    found = Gathering()
    for point in points:
        if point.times > 1:
            raise InputError(f"{point.place}: two times for one point")
        instant = None
        if not is_missing(point.time):
            try:
                instant = parse_instant(point.time)
                if instant.style != "iso":
                    raise ValueError("a number")
            except ValueError as problem:
                raise InputError(f"{point.place}: the time is {problem}; write it as 2024-05-01T08:30:00Z") from None
        found.add(instant, point.latitude, point.longitude, point.place)
    return found.rows(FileStyle("gpx"), segment=[point.segment for point in points])


def write_gpx(title: str, time_us: np.ndarray, latitude: np.ndarray, longitude: np.ndarray) -> str:
    """Write rows (m,) as GPX 1.1: one track named `title` of one segment, times in UTC, seven decimals.

    Longitudes are at least −180 and below 180, as the schema wants. All points have the same length, so that the length
    of a file tells nothing of them.
    """
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<gpx version="1.1" creator="jaxpriv" xmlns="http://www.topografix.com/GPX/1/1">',
        f"<trk><name>{escape(title)}</name><trkseg>",
    ]
    for us, lat, lon in zip(time_us, latitude, longitude, strict=True):
        east = f"{lon:.7f}"
        east = "-180.0000000" if east == "180.0000000" else east
        position = f'lat="{lat:.7f}" lon="{east}"'
        lines.append(f"<trkpt {position:<{_POSITION_WIDTH}}><time>{format_instant(us)}</time></trkpt>")
    return "\n".join([*lines, "</trkseg></trk>", "</gpx>"]) + "\n"
