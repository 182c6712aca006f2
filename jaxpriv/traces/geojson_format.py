"""GeoJSON (RFC 7946): points with a time among their properties, or lines with coordTimes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.traces.columns import Columns, asked_column, find_columns, is_position, tells_people_apart
from jaxpriv.traces.contents import Contents, ReadOptions
from jaxpriv.traces.instants import format_instant
from jaxpriv.traces.tables import Row, Table, read_table


_LATITUDE, _LONGITUDE, _TIMES, _LINE = "latitude of the geometry", "longitude of the geometry", "coordTimes", "line"
_MAX_PROPERTIES = 1000


class _Number(str):
    """A number as the file writes it, so that its decimals can be counted."""


def geojson_contents(text: str, options: ReadOptions, survey: bool = False) -> Contents:
    """Read the points of a feature collection, or the lines with times, one a track.

    Raises `InputError`, with the number of the feature and without any value, for text that is no GeoJSON, features
    of other kinds, another reference system than longitude and latitude of WGS 84, and points without a time column.
    """
    features = _features(text)
    kinds = {_geometry(feature, f"feature {i}")[0] for i, feature in enumerate(features, 1)}
    if kinds <= {"Point", None}:
        if options.track is not None and options.track != "all":
            raise InputError("only lines of a GeoJSON file are numbered tracks; leave the track out")
        return read_table(_points(features, options), options)
    if not kinds <= {"LineString", "MultiLineString", None}:
        raise InputError("the GeoJSON file has other geometries than points alone or lines alone; keep the track only")
    return _lines(features, options, survey)


def _features(text: str) -> list[Any]:
    try:
        parsed = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=lambda name: "nan")
    except RecursionError:
        raise InputError("the file is nested too deeply to be GeoJSON") from None
    except ValueError as problem:
        line = f"line {problem.lineno}: " if isinstance(problem, json.JSONDecodeError) else ""
        raise InputError(f"{line}not JSON") from None
    if not isinstance(parsed, dict):
        raise InputError("the file is not GeoJSON: its outermost value is no object")
    system = json.dumps(parsed.get("crs"))
    if parsed.get("crs") is not None and not any(name in system for name in ("CRS84", '"EPSG:4326"', "EPSG::4326")):
        raise InputError("the GeoJSON file has its own reference system; convert it to WGS 84 (longitude, latitude)")
    features = parsed.get("features") if parsed.get("type") == "FeatureCollection" else [parsed]
    if not isinstance(features, list) or not all(isinstance(f, dict) and f.get("type") == "Feature" for f in features):
        raise InputError("the file is not GeoJSON: a feature, or a collection of features, is expected")
    return features


def _geometry(feature: dict[str, Any], place: str) -> tuple[str | None, Any]:
    geometry = feature.get("geometry")
    if geometry is None:
        return None, None
    if not isinstance(geometry, dict) or isinstance(geometry.get("type"), (_Number, bool, type(None), list, dict)):
        raise InputError(f"{place}: its geometry is no GeoJSON geometry")
    return geometry["type"], geometry.get("coordinates")


def _position(coordinates: Any, place: str) -> tuple[str, str]:
    """The latitude and longitude of a position as text; RFC 7946 writes the longitude first."""
    if coordinates is None:
        return "", ""
    if not isinstance(coordinates, list) or len(coordinates) < 2:
        raise InputError(f"{place}: a position is a list of a longitude and a latitude")
    if not all(isinstance(number, _Number) for number in coordinates[:2]):
        raise InputError(f"{place}: a position is made of numbers")
    return str(coordinates[1]), str(coordinates[0])


def _text(value: Any) -> str:
    return "" if value is None else str(value) if isinstance(value, (str, bool)) else ""


def _properties(feature: dict[str, Any]) -> dict[str, Any]:
    properties = feature.get("properties")
    return properties if isinstance(properties, dict) else {}


def _points(features: list[Any], options: ReadOptions) -> Table:
    names = dict.fromkeys(name for feature in features for name in list(_properties(feature))[:_MAX_PROPERTIES])
    header = (*list(names)[:_MAX_PROPERTIES], "latitude", "longitude")
    # Latitudes and longitudes among the properties give way to those of the geometry.
    renamed = tuple(f"{name} (property)" if is_position(name) else name for name in header[:-2])
    columns = find_columns((*renamed, "latitude", "longitude"), options.columns)
    if columns is None:
        raise InputError(
            "no property of the points is known to be their time; call it time, or say which it is: --columns time=NAME"
        )
    used, narrow = columns.narrowed()
    kept = [header[i] for i in used if i < len(header) - 2]
    rows: list[Row] = []
    for i, feature in enumerate(features, 1):
        properties = _properties(feature)
        position = _position(_geometry(feature, f"feature {i}")[1], f"feature {i}")
        rows.append((f"feature {i}", [*(_text(properties.get(name)) for name in kept), *position]))
    return Table("GeoJSON (points)", (*kept, _LATITUDE, _LONGITUDE), narrow, rows, "geojson", named=True)


def _lines(features: list[Any], options: ReadOptions, survey: bool) -> Contents:
    rows: list[Row] = []
    who = _who(features, options)
    for i, feature in enumerate(features, 1):
        if isinstance(options.track, int) and options.track != i:
            continue
        kind, coordinates = _geometry(feature, f"feature {i}")
        if kind is None:
            continue
        properties = _properties(feature)
        times = properties.get("coordTimes", properties.get("times"))
        people = [_text(properties.get(name)) for name in who]
        parts, stamps = ([coordinates], [times]) if kind == "LineString" else (coordinates, times)
        if not (isinstance(parts, list) and isinstance(stamps, list) and len(parts) == len(stamps)):
            raise InputError(f"feature {i}: a line needs one time for each position, in the property coordTimes")
        for part, own in zip(parts, stamps, strict=True):
            if not (isinstance(part, list) and isinstance(own, list) and len(part) == len(own)):
                raise InputError(f"feature {i}: a line needs one time for each position, in the property coordTimes")
            for k, (position, stamp) in enumerate(zip(part, own, strict=True), 1):
                place = f"feature {i}, position {k}"
                rows.append((place, [str(i), _text(stamp), *_position(position, place), *people]))
    if isinstance(options.track, int) and not rows:
        raise InputError(f"the file has {len(features)} lines; choose one by its number (1 is the first), or all")
    columns = Columns(1, 2, 3, None, tuple(range(4, 4 + len(who))), (), options.columns.who is not None)
    header = (_LINE, _TIMES, _LATITUDE, _LONGITUDE, *who)
    contents = read_table(Table("GeoJSON (lines)", header, columns, rows, "geojson", named=True), options)
    lines = len({cells[0] for _, cells in rows})
    if lines > 1 and options.track is None and not survey and len(contents.people) == 1 and contents.who is None:
        raise InputError(
            f"the file holds {lines} lines. If one person made them, pass --track all: they are protected together, as "
            "one trace. Otherwise pass --track NUMBER, or split the file by person"
        )
    return replace(contents, counts={"tracks": lines})


def _who(features: list[Any], options: ReadOptions) -> list[str]:
    """The properties that tell people apart: the one that the user names, or those with the usual names."""
    names = list(dict.fromkeys(name for feature in features for name in list(_properties(feature))[:_MAX_PROPERTIES]))
    if options.columns.who is None:
        return [name for name in names if tells_people_apart(name)]
    asked = asked_column(options.columns.who, names)
    if asked is None:
        raise InputError("no line has the property that --columns who= names")
    return [names[asked]]


def write_geojson(time_us: np.ndarray, latitude: np.ndarray, longitude: np.ndarray) -> str:
    """Write rows (m,) as a collection of points whose only property is the time in UTC; seven decimals.

    Positions are padded with spaces to one width, so that the length of a file tells nothing of them.
    """
    lines = [
        f'{{"type":"Feature","properties":{{"time":"{format_instant(us)}"}},'
        f'"geometry":{{"type":"Point","coordinates":[{lon:12.7f},{lat:11.7f}]}}}}'
        for us, lat, lon in zip(time_us, latitude, longitude, strict=True)
    ]
    return '{"type":"FeatureCollection","features":[\n' + ",\n".join(lines) + "\n]}\n"
