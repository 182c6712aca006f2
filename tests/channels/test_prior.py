"""Discrete priors from counts, tables, polygons and traces."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jaxpriv.channels.channel_audit import audit
from jaxpriv.channels.partitions import largest_promise
from jaxpriv.channels.personalized import personalized_mechanism
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.prior_files import grid_prior, read_prior_csv, read_prior_geojson
from jaxpriv.errors import InputError
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.projection import LocalPlane


def _write(tmp_path, text, name="places.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_counts_and_the_likeliest_places():
    prior = DiscretePrior.from_counts(np.arange(8.0).reshape(4, 2), [1, 3, 3, 1], names="abcd")
    np.testing.assert_array_equal(prior.probabilities, [0.125, 0.375, 0.375, 0.125])
    top = prior.top(3)
    assert top.names == ("a", "b", "c")
    np.testing.assert_allclose(top.probabilities, [1 / 7, 3 / 7, 3 / 7])
    np.testing.assert_allclose(prior.distances[0], [0.0, np.sqrt(8), np.sqrt(32), np.sqrt(72)])


def test_check_ins_count_their_rows(tmp_path):
    path = _write(
        tmp_path, "lat,lng,datetime,uid\n43.8,10.5,2011-02-03,1\n43.5,10.3,2011-02-03,1\n43.8,10.5,2011-02-04,2\n"
    )
    prior = read_prior_csv(path)
    np.testing.assert_allclose(prior.probabilities, [2 / 3, 1 / 3])
    back = prior.plane.to_degrees(np.asarray(prior.locations))
    np.testing.assert_allclose(back, [[43.8, 43.5], [10.5, 10.3]], atol=1e-9)


def test_cells_are_taken_at_their_centres(tmp_path):
    path = _write(
        tmp_path, "cell_lat_min,cell_lon_min,size_deg,points,users\n39.75,116.15,0.01,229,4\n39.76,116.15,0.01,71,1\n"
    )
    prior = read_prior_csv(path)
    latitude, longitude = prior.plane.to_degrees(np.asarray(prior.locations))
    np.testing.assert_allclose(latitude, [39.755, 39.765], atol=1e-9)
    np.testing.assert_allclose(longitude, 116.155, atol=1e-9)
    np.testing.assert_allclose(prior.probabilities, [229 / 300, 71 / 300])
    np.testing.assert_allclose(read_prior_csv(path, "users").probabilities, [0.8, 0.2])
    # A hundredth of a degree of latitude is 1,110.2 m there.
    assert prior.distances[0, 1] == pytest.approx(1110.2, abs=0.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lat,lon\n", "no rows"),
        ("place,lon\nx,1\ny,2\n", "no latitude"),
        ("lat,lon,count\n1,2,3\n1,3,x\n", "row 3: the count is not a finite"),
        ("lat,lon,count\n1,2,-3\n1,3,1\n", "row 2: the count is negative"),
        ("lat,lon,count\n1,2,3\n,3,1\n", "row 3: the latitude is missing"),
        ("lat,lon\n1,2\n95,3\n", "row 3: the latitude is outside"),
        ("lat,lon\n1,2\n1,3,4\n", "row 3 has 3 cells"),
        ("lat,lon\n1,2\n1,2\n", "at least two places"),
        ("lat,lon\n1,2\n60,3\n", "1,000 km"),
        ("lat,lon,count\n1,2,0\n1,3,0\n", "all counts are zero"),
    ],
)
def test_tables_that_are_refused(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        read_prior_csv(_write(tmp_path, text))


def test_a_column_that_is_not_there(tmp_path):
    path = _write(tmp_path, "lat,lon\n1,2\n1,3\n")
    with pytest.raises(InputError, match="no column 'visits'; it has lat, lon"):
        read_prior_csv(path, "visits")
    with pytest.raises(InputError, match="cannot read"):
        read_prior_csv(tmp_path / "absent.csv")


def _collection(*geometries, population=(3, 1)):
    return json.dumps(
        {
            "type": "FeatureCollection",
            "features": [
                {"type": "Feature", "properties": {"population": p, "tile_id": str(i)}, "geometry": g}
                for i, (g, p) in enumerate(zip(geometries, population, strict=True))
            ],
        }
    )


def _square(x, y, side):
    return [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]


def test_polygons_are_their_centroids(tmp_path):
    """A square with a hole, given both ways round, and two squares as one feature; small, so nearly flat."""
    holed = {"type": "Polygon", "coordinates": [_square(0, 0, 0.04), _square(0.02, 0.01, 0.02)]}
    turned = {"type": "Polygon", "coordinates": [_square(0, 0, 0.04), _square(0.02, 0.01, 0.02)[::-1]]}
    two = {"type": "MultiPolygon", "coordinates": [[_square(0.1, 0, 0.01)], [_square(0.13, 0, 0.01)[::-1]]]}
    for outline in (holed, turned):
        prior = read_prior_geojson(_write(tmp_path, _collection(outline, two), "map.json"))
        latitude, longitude = prior.plane.to_degrees(np.asarray(prior.locations))
        # (16 · 0.02 − 4 · 0.03)/12 across, 0.02 up; the middle of the two squares. Curvature: some 1e-9 degrees.
        np.testing.assert_allclose(longitude, [0.2 / 12, 0.12], atol=1e-7)
        np.testing.assert_allclose(latitude, [0.02, 0.005], atol=1e-7)
        np.testing.assert_array_equal(prior.probabilities, [0.75, 0.25])
        assert prior.names == ("0", "1")


POINT = {"type": "Point", "coordinates": [0, 1]}
FLAT = {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 0]]]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[]", "FeatureCollection"),
        (_collection({"type": "LineString"}, POINT), "feature 0 is a LineString"),
        (_collection(FLAT, POINT), "no area"),
        (_collection({"type": "Point", "coordinates": ["a", 0]}, POINT), "cannot be read"),
        (_collection(POINT, POINT, population=(1, None)), "feature 1 has no number"),
    ],
)
def test_polygons_that_are_refused(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        read_prior_geojson(_write(tmp_path, text, "map.json"))


def test_a_grid_over_positions(rng):
    positions = rng.uniform(-1000, 1000, size=(500, 2))
    prior = grid_prior(positions, 250.0)
    assert prior.size == 64
    np.testing.assert_allclose(np.mod(prior.locations, 250.0), 125.0)
    counts = [np.sum(np.all(np.abs(positions - place) <= 125.0, axis=1)) for place in prior.locations]
    np.testing.assert_allclose(prior.probabilities, np.array(counts) / 500)
    assert grid_prior(positions, 250.0, least_count=8).size < 64
    with pytest.raises(InputError, match="smaller cells"):
        grid_prior(positions, 1e6, least_count=500)
    with pytest.raises(InputError, match="side of a cell"):
        grid_prior(positions, 0.0)
    with pytest.raises(InputError, match="no trace"):
        grid_prior([], 100.0)


def test_a_grid_over_traces(tmp_path):
    text = "time,lat,lon\n" + "".join(f"2024-05-01T08:0{i}:00Z,{50 + 0.01 * i},7.0\n" for i in range(6))
    traces = [read_trace(_write(tmp_path, text)) for _ in range(2)]
    plane = LocalPlane(50.0, 7.0)
    prior = grid_prior(traces, 1112.0, plane)
    # Fixes 1,112 m apart in latitude: one cell or two of them, each position counted for both traces.
    assert prior.plane == plane and prior.size in (5, 6)
    assert float(np.sum(prior.probabilities)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "count", "size"),
    [
        ("derived_beijing_grid_0p01deg_from_geolife.csv", "points", 1455),
        ("derived_sf_grid_0p01deg_from_cabspotting5.csv", "points", 149),
    ],
)
def test_real_grids(real_data, name, count, size):
    prior = read_prior_csv(real_data / "priors" / name, count)
    assert prior.size == size
    part = prior.top(60)
    error = 0.5 * largest_promise(part, 1.0)
    report = audit(personalized_mechanism(part, 1.0, error))
    assert report.certified_error >= error and report.real_level <= 1.0


def test_real_counties(real_data):
    prior = read_prior_geojson(real_data / "priors" / "skmob_NY_counties_2011.geojson")
    assert prior.size == 62 and "36061" in prior.names
    latitude, longitude = prior.plane.to_degrees(np.asarray(prior.locations))
    manhattan = prior.names.index("36061")
    # The county of Manhattan is an island near 40.78° N, 73.97° W.
    assert abs(latitude[manhattan] - 40.78) < 0.03 and abs(longitude[manhattan] + 73.97) < 0.03
