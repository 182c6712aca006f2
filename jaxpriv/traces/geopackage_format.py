"""Traces as GeoPackage layers of points; read through pyogrio."""

from __future__ import annotations

import warnings

from jaxpriv.errors import InputError
from jaxpriv.traces.columns import find_columns, is_position
from jaxpriv.traces.contents import Contents, ReadOptions
from jaxpriv.traces.tables import Row, Table, read_table
from jaxpriv.traces.typed_tables import cell_text, check_rows, wkb_positions


def geopackage_contents(content: bytes, options: ReadOptions) -> Contents:
    """Read the only layer of points of a GeoPackage in degrees of WGS 84; the time is one of its fields.

    Raises `InputError` as `read_table` does, for several layers, another reference system, and when pyogrio is not
    installed.
    """
    try:
        import pyogrio  # pyright: ignore[reportMissingImports]
        from pyogrio.errors import DataSourceError  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise InputError("GeoPackage files need pyogrio: pip install pyogrio") from None
    if not content.startswith(b"SQLite format 3\0"):
        raise InputError("the file is not a GeoPackage")
    try:
        with warnings.catch_warnings():
            # What GDAL remarks may quote the file.
            warnings.simplefilter("ignore")
            layers = [str(name) for name, kind in pyogrio.list_layers(content) if kind is not None]
            if len(layers) != 1:
                raise InputError(f"the file has {len(layers)} layers with geometries; save the trace's alone")
            check_rows(int(pyogrio.read_info(content, layer=layers[0], force_feature_count=True)["features"]))
            meta, _, geometries, fields = pyogrio.raw.read(content, layer=layers[0], datetime_as_string=True)
    except InputError:
        raise
    except (DataSourceError, ValueError, RuntimeError):
        raise InputError("the file is not readable as a GeoPackage") from None
    if meta["crs"] not in ("EPSG:4326", "OGC:CRS84"):
        raise InputError("the layer has another reference system than WGS 84 degrees (EPSG:4326); convert it first")
    names = [str(name) for name in meta["fields"]]
    plain = [f"{name} (field)" if is_position(name) else name for name in names]
    header = (*plain, "latitude", "longitude")
    columns = find_columns(header, options.columns)
    if columns is None:
        raise InputError(
            "no field of the layer is known to be the time; call it time, or say which it is: --columns time=NAME"
        )
    used, narrow = columns.narrowed()
    texts = [[cell_text(value) for value in fields[i]] for i in used if i < len(names)]
    rows: list[Row] = [
        (number + 1, [*(column[number] for column in texts), *position])
        for number, position in enumerate(wkb_positions(list(geometries)))
    ]
    shown = tuple(header[i] for i in used)
    return read_table(Table("GeoPackage", shown, narrow, rows, named=True), options)
