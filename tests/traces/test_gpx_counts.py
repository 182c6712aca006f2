"""Every recorded GPX file is read with the number of track points that an independent count found, or refused."""

from __future__ import annotations

import csv

from jaxpriv.errors import InputError
from jaxpriv.traces.files import read_trace


def test_counts_of_the_index(real_data):
    folder = real_data / "gpx"
    with (folder / "INDEX.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["file"].endswith(".gpx")]
    read = 0
    for row in rows:
        try:
            cleaning = read_trace(folder / row["file"], track="all").cleaning
        except InputError:
            # What is refused has no track points, none with a time, or none with a place.
            usable = int(row["trkpts"]) - int(row["points_without_time"])
            assert usable == 0 or row["file"].endswith("garmin-vivosmart-hr.gpx"), row["file"]
            continue
        read += 1
        assert cleaning.rows_read == int(row["trkpts"]), row["file"]
        assert cleaning.missing_time == int(row["points_without_time"]), row["file"]
    assert read >= 30
