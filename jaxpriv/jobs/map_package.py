"""Maps as GeoPackage layers, brought to the GeoJSON that reading maps knows; through pyogrio."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jaxpriv.errors import InputError


@contextmanager
def as_geojson(path: Path) -> Iterator[Path]:
    """The only layer with geometries of a GeoPackage in degrees of WGS 84 as a GeoJSON file, while the block lasts.

    Raises `InputError` for several layers, another reference system, and when pyogrio is not installed.
    """
    try:
        import pyogrio  # pyright: ignore[reportMissingImports]
        from pyogrio.errors import DataLayerError, DataSourceError  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise InputError("GeoPackage files need pyogrio: pip install pyogrio") from None
    if not path.is_file():
        raise InputError(f"cannot read {path}: no such file")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "map.geojson"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                layers = [str(name) for name, kind in pyogrio.list_layers(path) if kind is not None]
                if len(layers) != 1:
                    raise InputError(f"{path.name}: {len(layers)} layers with geometries; save the map's alone")
                meta, _, geometry, fields = pyogrio.raw.read(path, layer=layers[0], force_2d=True)
                if meta["crs"] not in ("EPSG:4326", "OGC:CRS84"):
                    raise InputError(f"{path.name}: not in degrees of WGS 84 (EPSG:4326); convert it first")
                options = {"geometry_type": meta["geometry_type"], "crs": meta["crs"], "driver": "GeoJSON"}
                pyogrio.raw.write(target, geometry, fields, meta["fields"], **options)
        except (DataSourceError, DataLayerError, RuntimeError, ValueError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError(f"{path.name}: not readable as a GeoPackage") from None
        yield target
