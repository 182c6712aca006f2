"""From words to secrets, on traces whose stays are known because they were built."""

from __future__ import annotations

import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.errors import InputError
from jaxpriv.jobs.secret_sources import MAX_SECRETS, MAX_TOGETHER, choose_secrets
from jaxpriv.secrets.secret import EveryPoint, Secret
from jaxpriv.secrets.unsampled import UnsampledSecret
from jaxpriv.traces.cleaning import clean
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.instants import format_instant, parse_instant
from jaxpriv.traces.projection import LocalPlane
from jaxpriv.traces.trace import FileStyle, RawRows


START = parse_instant("2024-05-06T08:00:00Z").us
PLACE = LocalPlane(45.0, -30.0)
# Metres east of the place, every 10 s: there (0-2), away (3-6), there again (7-9), away (10-11).
EAST = [0.0, 40.0, 149.0, 151.0, 900.0, 900.0, 151.0, 149.0, 0.0, -149.0, -151.0, -700.0]


def at(seconds: float) -> str:
    return format_instant(START + round(seconds * 1e6))


def make(seconds=None, east=EAST, plane=PLACE):
    seconds = 10.0 * np.arange(len(east)) if seconds is None else seconds
    lat, lon = plane.to_degrees(np.stack([np.array(east, float), np.zeros(len(east))], axis=1))
    times = np.array([START + round(s * 1e6) for s in seconds], dtype=np.int64)
    return clean(RawRows(FileStyle("csv"), times, lat, lon, 7))


def positions(chosen):
    return [one.positions for one in chosen.secrets]


def test_a_time_is_the_nearest_fix_within_one_median_step_else_the_place_between():
    trace = make(seconds=[0, 10, 20, 30, 60, 70, 80, 90, 100, 110, 120, 130])
    chosen = choose_secrets(trace, [at(12.0), at(45.0), at(20.0)])
    assert positions(chosen) == [(1,), (2,), ()]
    first, second, third = chosen.on_axis(200.0)
    assert isinstance(first, Secret) and first.indices == (1,) and float(first.radius) == 200.0
    assert isinstance(second, Secret) and second.indices == (2,)
    assert isinstance(third, UnsampledSecret) and float(third.time) == 45.0
    assert chosen.secrets[0].times[0].record.fix_offset_s == -2.0
    assert not chosen.warnings and not chosen.naive
    text = chosen.describe()
    assert "3 secrets, each protected by itself" in text
    assert "a time between two fixes" in text and "the nearest to" in text


def test_a_time_without_an_offset_is_utc_and_said_to_be():
    chosen = choose_secrets(make(), ["2024-05-06 08:00:30"])
    assert positions(chosen) == [(3,)]
    assert "taken as UTC" in chosen.describe()


def test_the_same_fix_twice_is_one_secret():
    chosen = choose_secrets(make(), [at(11), at(9), f"{at(0)}/{at(20)}"])
    assert positions(chosen) == [(0,), (1,), (2,)]
    assert len(chosen.understood) == 3


def test_a_window_holds_its_ends_and_is_cut_by_the_trace():
    trace = make()
    assert positions(choose_secrets(trace, [f"{at(20)}/{at(50)}"])) == [(2,), (3,), (4,), (5,)]
    assert positions(choose_secrets(trace, [f"{at(19.9)}/{at(29.9)}"])) == [(2,)]
    assert positions(choose_secrets(trace, [f"{at(-500)}/{at(10)}"])) == [(0,), (1,)]
    assert positions(choose_secrets(trace, [f"{at(100)}/{at(5000)}"])) == [(10,), (11,)]


def test_a_window_over_a_gap_says_where_nothing_is_protected():
    trace = make(seconds=[*range(0, 60, 10), *range(600, 660, 10)])
    chosen = choose_secrets(trace, [f"{at(40)}/{at(610)}"])
    assert positions(chosen) == [(4,), (5,), (6,), (7,)]
    assert any(f"between {at(50)} and {at(600)}" in text for text in chosen.warnings)
    assert not choose_secrets(trace, [f"{at(0)}/{at(50)}"]).warnings


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (at(-10), "before the trace begins"),
        (at(10_000), "after the trace ends"),
        (f"{at(-20)}/{at(-10)}", "ends before the trace begins"),
        (f"{at(500)}/{at(600)}", "begins after the trace ends"),
        (f"{at(11)}/{at(19)}", "no fix lies in the window"),
        (f"{at(50)}/{at(20)}", "ends before it begins"),
        (f"{at(50)}/{at(50)}", "has no length"),
        (f"{at(1)}/{at(2)}/{at(3)}", "more than one slash"),
        ("yesterday", "not ISO 8601"),
        ("", "not ISO 8601"),
        ("20240506", "may be a date"),
        ("45.0,-30.0", "needs --match"),
        ("145.0,30.0", "latitude first"),
        ("45.0;-30.0", "not ISO 8601"),
    ],
)
def test_words_that_cannot_be_used(word, message):
    with pytest.raises(InputError, match=message):
        choose_secrets(make(), [word])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "say what to protect"),
        ({"words": [at(0)], "match_m": 100.0}, "--match goes with a place"),
        ({"words": ["45,-30"], "match_m": 0.0}, "positive distance"),
        ({"hide_ends_m": float("nan")}, "positive distance"),
        ({"hide_ends_m": float("inf")}, "positive distance"),
        ({"every": True, "words": [at(0)]}, "--all already means"),
        ({"every": True, "hide_ends_m": 100.0}, "--all already means"),
        ({"every": True, "together": True}, "--all already means"),
        ({"words": [at(0)], "together": True}, "--compound joins"),
        ({"words": ["45.02,-30"], "match_m": 150.0}, "no fix is within 150 m"),
    ],
)
def test_choices_that_do_not_go_together(options, message):
    with pytest.raises(InputError, match=message):
        choose_secrets(make(), **options)


def test_a_place_is_every_visit_and_the_choice_itself_a_secret():
    chosen = choose_secrets(make(), ["45.0,-30.0"], match_m=150.0)
    assert positions(chosen) == [(0,), (1,), (2,), (7,), (8,), (9,)]
    assert [text.split(":")[0] for text in chosen.understood] == [
        "visit 1 of 2 to the place given",
        "visit 2 of 2 to the place given",
    ]
    assert f"3 fixes from {at(70)} to {at(90)}, each by itself" in chosen.understood[1]
    assert any("chosen by where the person was" in text for text in chosen.warnings)
    assert "45" not in chosen.describe().replace(at(0)[:10], "")  # the place is not repeated


def test_a_place_across_the_date_line():
    trace = make(plane=LocalPlane(-17.0, 180.0))
    assert set(np.sign(trace.longitude)) == {-1.0, 1.0}
    for longitude in ("180", "-180"):
        chosen = choose_secrets(trace, [f"-17.0,{longitude}"], match_m=150.0)
        assert positions(chosen) == [(0,), (1,), (2,), (7,), (8,), (9,)]


def test_of_rows_at_one_instant_the_nearest_counts():
    trace = make(seconds=[0, 10, 20, 20, 30], east=[900.0, 900.0, 100.0, 1000.0, 900.0])
    assert trace.n_points == 4
    assert positions(choose_secrets(trace, ["45.0,-30.0"], match_m=150.0)) == [(2,)]


def test_the_ends_are_hidden_by_noise_until_the_trace_leaves_them():
    east = [0.0, 300.0, 499.0, 501.0, 100.0, 3000.0, 2000.0, 2501.0, 2700.0, 2999.0, 3000.0]
    chosen = choose_secrets(make(east=east), hide_ends_m=500.0)
    # Coming back (100 m) does not prolong the first stay; at 2,501 m the trace is 499 m from its last fix.
    assert positions(chosen) == [(0,), (1,), (2,), (7,), (8,), (9,), (10,)]
    assert any("does not cut" in text for text in chosen.warnings)
    assert any("chosen by where the person was" in text for text in chosen.warnings)


def test_a_trace_that_never_leaves_is_all_ends():
    chosen = choose_secrets(make(east=[0.0, 20.0, 10.0, 5.0]), hide_ends_m=500.0)
    assert positions(chosen) == [(0,), (1,), (2,), (3,)]


def test_fixes_together_are_one_secret():
    trace = make()
    chosen = choose_secrets(trace, [f"{at(20)}/{at(50)}", at(20)], together=True)
    assert positions(chosen) == [(2,), (2, 3, 4, 5)]  # the single time is not implied
    joint = chosen.on_axis(200.0)[1]
    assert joint.indices == (2, 3, 4, 5) and joint.n_times == 4
    assert any("jumps between them" in text for text in chosen.warnings)
    assert positions(choose_secrets(trace, ["45,-30"], match_m=150.0, together=True)) == [(0, 1, 2), (7, 8, 9)]
    with pytest.raises(InputError, match=f"12 fixes cannot be protected together, at most {MAX_TOGETHER}"):
        choose_secrets(trace, [f"{at(0)}/{at(200)}"], together=True)


def test_every_fix():
    trace = make()
    chosen = choose_secrets(trace, every=True)
    assert isinstance(chosen.on_axis(200.0), EveryPoint)
    assert positions(chosen) == [(i,) for i in range(12)]
    assert "every fix of the trace, 12" in chosen.describe()
    assert positions(choose_secrets(make(east=[0.0]), every=True)) == [(0,)]


def test_too_many_secrets():
    trace = make(east=[0.0] * (MAX_SECRETS + 1))
    window = f"{at(0)}/{at(10 * MAX_SECRETS)}"
    with pytest.raises(InputError, match=f"makes {MAX_SECRETS + 1} secrets"):
        choose_secrets(trace, [window])
    assert len(choose_secrets(trace, [f"{at(10)}/{at(10 * MAX_SECRETS)}"]).secrets) == MAX_SECRETS


def test_the_library_takes_them_as_they_are():
    trace = make(seconds=[0, 10, 20, 30, 60, 70, 80, 90, 100, 110, 120, 130])
    chosen = choose_secrets(trace, [at(45), f"{at(10)}/{at(20)}"])
    prior = jp.ProcessPrior(jp.kernels.matern32(40.0, 300.0), trace.seconds, noise_sd=1.0)
    noise_sd = 80.0
    certificate = jp.certify(prior, chosen.on_axis(200.0), jp.GaussianMechanism(np.zeros((12, 0)), noise_sd), order=2.0)
    lag = np.sqrt(3) * np.abs(trace.seconds[:, None] - np.array([10.0, 20.0, 45.0])) / 40.0
    cross = 300.0**2 * (1 + lag) * np.exp(-lag) + (trace.seconds[:, None] == [10.0, 20.0, 45.0])
    own = 300.0**2 + np.array([1.0, 1.0, 0.0])  # between fixes there is no error of a fix
    total = np.asarray(prior.covariance) + noise_sd**2 * np.eye(12)
    left = own - np.einsum("ij,ij->j", cross, np.linalg.solve(total, cross))
    # Order 2 and one time: epsilon = r² t. Twelve points, condition number 100: this inversion is good to 1e-12.
    np.testing.assert_allclose(certificate.epsilons.ravel(), 200.0**2 * (1 / left - 1 / own), rtol=1e-10)


def test_visits_of_a_recorded_trace(real_data):
    trace = read_trace(real_data / "geolife/raw_plt/009/Trajectory/20081027121402.plt")
    lat, lon = trace.latitude[0], trace.longitude[0]
    chosen = choose_secrets(trace, [f"{lat:.6f},{lon:.6f}"], match_m=100.0)
    # Distances on a sphere agree with those on the ellipsoid to 0.6 %.
    away = 6_371_008.8 * np.hypot(
        np.radians(trace.latitude - lat), np.radians(trace.longitude - lon) * np.cos(np.radians(lat))
    )
    found = {i for (i,) in positions(chosen)}
    assert set(trace.point_of_row[away < 99.0]) <= found <= set(trace.point_of_row[away < 101.0])
    ends = {i for (i,) in positions(choose_secrets(trace, hide_ends_m=100.0))}
    assert {0, trace.n_points - 1} <= ends
