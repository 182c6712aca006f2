"""The local plane, against Vincenty's formulas for the ellipsoid (Survey Review, 1975)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.traces.projection import EXTENT_M, STRETCH, LocalPlane, public_origin


def vincenty(lat1, lon1, lat2, lon2):
    """Distance in metres and azimuth in radians at the first point; WGS 84."""
    a, f = 6378137.0, 1 / 298.257223563
    b = a * (1 - f)
    u1, u2 = (math.atan((1 - f) * math.tan(math.radians(lat))) for lat in (lat1, lat2))
    difference = lam = math.radians(lon2 - lon1)
    for _ in range(100):
        x = math.cos(u2) * math.sin(lam)
        y = math.cos(u1) * math.sin(u2) - math.sin(u1) * math.cos(u2) * math.cos(lam)
        sin_s = math.hypot(x, y)
        cos_s = math.sin(u1) * math.sin(u2) + math.cos(u1) * math.cos(u2) * math.cos(lam)
        sigma = math.atan2(sin_s, cos_s)
        sin_a = math.cos(u1) * math.cos(u2) * math.sin(lam) / sin_s
        cos2_a = 1 - sin_a**2
        cos_2m = cos_s - 2 * math.sin(u1) * math.sin(u2) / cos2_a if cos2_a > 1e-15 else 0.0
        c = f / 16 * cos2_a * (4 + f * (4 - 3 * cos2_a))
        lam, old = (
            difference + (1 - c) * f * sin_a * (sigma + c * sin_s * (cos_2m + c * cos_s * (2 * cos_2m**2 - 1))),
            lam,
        )
        if abs(lam - old) < 1e-15:
            break
    k = cos2_a * (a**2 - b**2) / b**2
    big_a = 1 + k / 16384 * (4096 + k * (-768 + k * (320 - 175 * k)))
    big_b = k / 1024 * (256 + k * (-128 + k * (74 - 47 * k)))
    delta = (
        big_b
        * sin_s
        * (
            cos_2m
            + big_b / 4 * (cos_s * (2 * cos_2m**2 - 1) - big_b / 6 * cos_2m * (4 * sin_s**2 - 3) * (4 * cos_2m**2 - 3))
        )
    )
    return b * big_a * (sigma - delta), math.atan2(x, y)


@pytest.mark.parametrize("origin", [(0.0, 0.0), (40.0, 116.3), (-33.9, 179.9), (69.6, -18.9)])
def test_east_and_north_are_distance_and_azimuth(origin, rng):
    plane = LocalPlane(*origin)
    lats, lons = origin[0] + rng.uniform(-0.4, 0.4, 20), origin[1] + rng.uniform(-0.4, 0.4, 20)
    metres = plane.to_metres(lats, lons)
    for (east, north), lat, lon in zip(metres, lats, lons, strict=True):
        distance, azimuth = vincenty(*origin, lat, lon)
        # Vincenty's series is good to about 0.1 mm.
        assert math.hypot(east - distance * math.sin(azimuth), north - distance * math.cos(azimuth)) < 1e-3


@pytest.mark.parametrize("origin", [(0.0, 0.0), (40.0, 116.3), (-33.9, 180.0), (89.9, 0.0), (90.0, 0.0)])
def test_round_trip_is_below_a_millimetre_over_50_km(origin, rng):
    plane = LocalPlane(*origin)
    metres = rng.uniform(-50e3, 50e3, (500, 2))
    assert np.max(np.abs(plane.to_metres(*plane.to_degrees(metres)) - metres)) < 1e-3


def test_known_long_distance():
    # The published value of this geodesic, Beijing to Los Angeles.
    metres = LocalPlane(40.08, 116.585).to_metres(np.array([33.943]), np.array([-118.408]))
    assert abs(math.hypot(*metres[0]) - 10_059_214.493) < 1e-3


def test_one_place_twice_is_at_no_distance():
    metres = LocalPlane(40.7, -74.0).to_metres(np.full(2, 40.71199035644531), np.full(2, -74.0081))
    np.testing.assert_array_equal(metres[0], metres[1])
    assert np.all(LocalPlane(40.7, -74.0).to_metres(np.array([40.7]), np.array([-74.0])) == 0)


def test_stretch_bounds_the_map_scale(rng):
    # Pairs of places 200 m apart in the plane, at its edge, in the direction of the largest stretch.
    for lat in (0.0, 45.0, 80.0):
        plane = LocalPlane(lat, 10.0)
        for angle in rng.uniform(0, 2 * np.pi, 10):
            at = EXTENT_M * np.array([np.cos(angle), np.sin(angle)])
            pair = np.stack([at, at + 200 * np.array([-np.sin(angle), np.cos(angle)])])
            lats, lons = plane.to_degrees(pair)
            scale = 200 / vincenty(lats[0], lons[0], lats[1], lons[1])[0]
            assert 1.0002 < scale < STRETCH


def test_origin_is_the_rounded_mean_and_knows_the_date_line():
    assert public_origin(np.array([40.01, 40.03]), np.array([116.31, 116.35])) == LocalPlane(40.0, 116.3)
    plane = public_origin(np.array([0.0, 0.0]), np.array([-179.5, 179.5]))
    assert (plane.latitude, abs(plane.longitude)) == (0.0, 180.0)
    metres = plane.to_metres(np.array([0.0, 0.0]), np.array([-179.5, 179.5]))
    # The place half way is on the date line, not at longitude 0.
    lat, lon = plane.to_degrees(metres.mean(axis=0, keepdims=True))
    assert abs(lat[0]) < 1e-9
    assert abs(abs(lon[0]) - 180) < 1e-9


def test_extent_and_origin_are_checked():
    plane = LocalPlane(0.0, 0.0)
    plane.check_extent(np.array([[249e3, 0.0]]))
    with pytest.raises(InputError, match="250 km"):
        plane.check_extent(np.array([[0.0, 0.0], [200e3, 200e3]]))
    with pytest.raises(InputError, match="latitude within"):
        LocalPlane(91.0, 0.0)
