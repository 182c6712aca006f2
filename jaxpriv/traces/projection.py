"""A local plane: metres east and north of a public origin."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyproj

from jaxpriv.errors import InputError


# Within EXTENT_M of the origin the plane stretches no distance between two places by more than this factor
# (azimuthal equidistant: at most c / sin c with c = EXTENT_M / 6335 km, and it never shrinks one by more than 1e-4).
EXTENT_M = 250_000.0
STRETCH = 1.0003


@dataclass(frozen=True)
class LocalPlane:
    """The azimuthal equidistant projection of the WGS 84 ellipsoid around an origin in degrees."""

    latitude: float
    longitude: float

    def __post_init__(self) -> None:
        if not (abs(self.latitude) <= 90 and abs(self.longitude) <= 180):
            raise InputError("the origin needs a latitude within ±90 and a longitude within ±180 degrees")

    def _projection(self) -> pyproj.Proj:
        return pyproj.Proj(proj="aeqd", lat_0=self.latitude, lon_0=self.longitude, ellps="WGS84", units="m")

    def to_metres(self, latitude: np.ndarray, longitude: np.ndarray) -> np.ndarray:
        """Project degrees (m,), (m,) to metres east and north, (m, 2)."""
        east, north = self._projection()(np.asarray(longitude, float), np.asarray(latitude, float), errcheck=True)
        return np.stack([east, north], axis=-1)

    def to_degrees(self, metres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bring metres east and north (m, 2) back to latitude and longitude in degrees, (m,) each."""
        longitude, latitude = self._projection()(metres[:, 0], metres[:, 1], inverse=True, errcheck=True)
        return np.asarray(latitude), np.asarray(longitude)

    def check_extent(self, metres: np.ndarray) -> None:
        """Raise `InputError` when a position (m, 2) lies farther from the origin than the plane is good for."""
        if np.max(np.hypot(metres[:, 0], metres[:, 1])) > EXTENT_M:
            raise InputError(
                f"a position lies more than {EXTENT_M / 1000:.0f} km from the origin of the local plane; "
                "remove a stray fix, cut a long journey into parts, or pass another --origin LAT,LON"
            )


def public_origin(latitude: np.ndarray, longitude: np.ndarray) -> LocalPlane:
    """Centre a plane at the mean of the positions (m,), (m,) in degrees, rounded to 0.1 degree.

    The mean is taken on the sphere, so that a trace across the date line has its origin among its points.
    """
    lat, lon = np.radians(latitude), np.radians(longitude)
    x, y, z = np.mean([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
    mean_lat, mean_lon = math.degrees(math.atan2(z, math.hypot(x, y))), math.degrees(math.atan2(y, x))
    return LocalPlane(round(mean_lat, 1) + 0.0, round(mean_lon, 1) + 0.0)
