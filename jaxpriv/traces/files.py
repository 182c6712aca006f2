"""Trace files: which reader and writer a file needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.traces.cleaning import clean
from jaxpriv.traces.contents import Contents, Person, ReadOptions
from jaxpriv.traces.csv_format import csv_contents, write_csv
from jaxpriv.traces.encoding import decode_table, decode_xml
from jaxpriv.traces.geojson_format import geojson_contents, write_geojson
from jaxpriv.traces.gpx_format import gpx_contents, read_gpx, write_gpx
from jaxpriv.traces.lines import TextLines
from jaxpriv.traces.plt_format import read_plt, write_plt
from jaxpriv.traces.sources import Progress, Source
from jaxpriv.traces.trace import RawRows, Trace, TrackChoice


_TEXT = (".txt", ".tsv", ".tab", ".dat")
_KINDS = (".csv", ".gpx", ".plt", *_TEXT, ".geojson", ".json", ".parquet", ".gpkg")


def read_trace(
    path: Path,
    track: TrackChoice = None,
    *,
    options: ReadOptions | None = None,
    strict: bool = False,
    progress: Progress = lambda step: None,
) -> Trace:
    """Read and clean the trace of one person: a table (CSV and its like, Parquet, GeoPackage), GPX, PLT or GeoJSON.

    Any of them may be gzipped (.csv.gz). `track` chooses among the tracks of a GPX or GeoJSON file: a number from 1,
    or "all" when one person made them all; `options` says more. With `strict`, what would need cleaning is refused.
    Large tables are read row by row, and `progress` is told how far.
    Raises `InputError`: what is wrong, in which row, what to do; never a time or position of the file.
    """
    options = options or ReadOptions()
    if track is not None:
        options = replace(options, track=track)
    raw = file_contents(path, options, progress=progress).one_person()
    return clean(raw, strict=strict or options.strict, duplicates=options.duplicates)


def file_contents(
    path: Path, options: ReadOptions, survey: bool = False, progress: Progress = lambda step: None
) -> Contents:
    """Read what a file holds, every person of it; with `survey` all GPX tracks even where they may be of several.

    Raises `InputError` as `read_trace` does.
    """
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    kind = suffixes[-2] if packed and len(suffixes) > 1 else suffixes[-1] if suffixes else ""
    if kind not in _KINDS:
        raise InputError(
            "only files that end in .csv, .gpx or .plt, in .tsv, .txt, .geojson, .parquet or .gpkg can be read, with "
            ".gz after it when they are packed; convert the trace to CSV (time, lat, lon)"
        )
    table = kind not in (".gpx", ".plt")
    numbered = kind in (".gpx", ".geojson", ".json")
    if options.track is not None and not numbered and not (table and options.track == "all"):
        raise InputError("only GPX files have numbered tracks (and GeoJSON); leave the track out")
    if not table and (options.who is not None or options.columns != ReadOptions().columns):
        raise InputError("only tables have columns; leave --columns and --who out (a track is chosen by --track)")
    return _reader(kind, survey)(Source.of(path, packed, progress), options)


def _reader(kind: str, survey: bool) -> Callable[[Source, ReadOptions], Contents]:
    match kind:
        case ".gpx" if survey:
            return lambda source, options: gpx_contents(decode_xml(source.whole()), options.track or "all")
        case ".gpx":
            return lambda source, options: _alone("GPX", read_gpx(decode_xml(source.whole()), options.track))
        case ".plt":
            return lambda source, options: _alone("PLT", read_plt(decode_table(source.whole())))
        case ".geojson" | ".json":
            return lambda source, options: geojson_contents(decode_table(source.whole()), options, survey)
        case ".parquet":
            from jaxpriv.traces.parquet_format import parquet_contents

            return parquet_contents
        case ".gpkg":
            from jaxpriv.traces.geopackage_format import geopackage_contents

            return lambda source, options: geopackage_contents(source.whole(), options)
    return lambda source, options: csv_contents(TextLines.of(source), options, headerless=kind in _TEXT)


def _alone(kind: str, raw: RawRows) -> Contents:
    return Contents(kind, (Person(None, raw),))


def sanitised_text(trace: Trace, latitude: np.ndarray, longitude: np.ndarray, title: str) -> str:
    """Write sanitised points (n,), (n,) in degrees in the format of the trace's file, on its rows and instants.

    Only instants, positions and known column names are written. `title` marks the file where the format has a place
    for it (GPX, PLT; a table and GeoJSON have none). What was no text is written as CSV.
    """
    rows = trace.point_of_row
    time_us, lat, lon = trace.time_us[rows], latitude[rows], longitude[rows]
    if trace.style.kind == "csv":
        return write_csv(trace.style, time_us, lat, lon)
    if trace.style.kind == "geojson":
        return write_geojson(time_us, lat, lon)
    return (write_gpx if trace.style.kind == "gpx" else write_plt)(title, time_us, lat, lon)
