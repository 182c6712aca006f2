"""The integers decided in double precision against rational arithmetic and the exact path, for the same bytes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from fixed_bytes import Counted, coordinates, seeded

from jaxpriv.mechanisms import bulk_normal, bulk_rounding, exact_normal
from jaxpriv.mechanisms.bulk_rounding import OUT_OF_RANGE, bulk_grid_integers
from jaxpriv.mechanisms.exact_normal import exact_normals
from jaxpriv.mechanisms.exact_rounding import exact_grid_integers
from jaxpriv.mechanisms.grid_release import _release


@pytest.fixture
def redone(monkeypatch) -> list[int]:
    """How many entries each release computed in integers."""
    counts: list[int] = []

    def counting(trace, *rest):
        counts.append(len(trace))
        return exact_grid_integers(trace, *rest)

    monkeypatch.setattr(bulk_rounding, "exact_grid_integers", counting)
    return counts


def by_definition(x, factor, floor_sd, draws, exponent) -> list[int]:
    """⌊(X + L ξ + s ζ)/Δ + ½⌋ in rational numbers, straight from the definition; OUT_OF_RANGE where it does not fit."""
    n, q = factor.shape
    z, step, found = [Fraction(d, 2**160) for d in draws], Fraction(2) ** exponent, []
    for i in range(n):
        shared = sum((Fraction(float(factor[i, j])) * z[j] for j in range(q)), Fraction(0))
        total = Fraction(float(x[i])) + shared + Fraction(float(floor_sd)) * z[q + i]
        found.append(math.floor(total / step + Fraction(1, 2)))
    return [j if abs(j) < 2**53 else OUT_OF_RANGE for j in found]


def wild(rng: np.random.Generator, shape, spread: int) -> np.ndarray:
    """Numbers whose exponents spread over ±spread, some zero, some subnormal."""
    values = rng.normal(size=shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)
    values = np.where(rng.random(shape) < 0.1, 0.0, values)
    return np.where(rng.random(shape) < 0.1, rng.integers(-5, 6, shape) * 5e-324, values)


def exact_path(x, factor, floor_sd, exponent, seed) -> list[int]:
    return exact_grid_integers(x, factor, floor_sd, exact_normals(sum(factor.shape), seeded(seed)), exponent)


@pytest.mark.parametrize("spread", [0, 20, 300, 1000])
def test_integers_equal_rational_arithmetic(spread, redone):
    rng, fitting = np.random.default_rng(spread), 0
    for _ in range(250):
        n, q = int(rng.integers(1, 5)), int(rng.integers(0, 4))
        x, factor = wild(rng, n, spread), wild(rng, (n, q), spread)
        floor_sd = abs(float(wild(rng, 1, spread)[0]))
        seed, exponent = int(rng.integers(2**32)), int(rng.integers(max(-spread - 40, -1074), min(spread + 40, 971)))
        expected = by_definition(x, factor, floor_sd, exact_normals(n + q, seeded(seed)), exponent)
        assert bulk_grid_integers(x, factor, floor_sd, exponent, seeded(seed)).tolist() == expected
        fitting += sum(j != OUT_OF_RANGE for j in expected)
    assert fitting > 150  # the cases are not all refusals
    if spread <= 20:
        assert sum(redone) < 125  # of some 600 entries: most are decided in double precision


@pytest.mark.parametrize(("size", "rank"), [(1, 0), (2, 1), (50, 1), (50, 50), (300, 3), (4_000, 2)])
@pytest.mark.parametrize(("noise", "exponent"), [(1.0, 0), (2.0**24, 0), (2.0**22, -2), (30.0, -20)])
def test_positions_far_from_the_origin_on_fine_grids(size, rank, noise, exponent, redone):
    """Metres up to 10^7 and steps down to 2^-24 of the noise: equal, and hardly anything is computed twice."""
    rng = np.random.default_rng(size + rank)
    x, factor = 1e7 + 1e5 * rng.normal(size=size), noise * rng.normal(size=(size, rank))
    found = bulk_grid_integers(x, factor, noise, exponent, seeded(9))
    assert found.dtype == np.int64
    assert found.tolist() == exact_path(x, factor, noise, exponent, 9)
    assert sum(redone) <= 1  # expected: below 2^-19 an entry


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_release_is_the_same_on_both_paths(rank):
    rng = np.random.default_rng(rank)
    for seed in range(60):
        n = int(rng.integers(1, 40))
        x, factor = rng.normal(size=n) * 1e6, rng.normal(size=(n, rank)) * 40
        made = _release(x, factor, 1.3, resolution=0.5, exponent=None, _bytes=seeded(seed))
        assert made.integers.tolist() == exact_path(x, factor, 1.3, 0, seed)


@pytest.mark.slow
def test_a_long_trace_is_the_same_on_both_paths():
    rng = np.random.default_rng(8)
    x, factor = 1e7 * rng.normal(size=100_000), 100 * rng.normal(size=(100_000, 2))
    assert bulk_grid_integers(x, factor, 1.3, -24, seeded(8)).tolist() == exact_path(x, factor, 1.3, -24, 8)


@pytest.mark.parametrize(
    ("rank", "scale", "floor_sd"),
    [(0, 1.0, 1.0), (2, 1.0, 1.0), (2, 2.0**30, 1.0), (5, 2.0**45, 1.0), (2, 1.0, 2.0**-70), (12, 1.0, 2.0**-70)],
)
def test_sums_next_to_a_boundary(rank, scale, floor_sd, redone):
    """Sums within 2^-30 to 2^-54 of a half, or as near as the trace's own last place allows: equal all the same.

    Decided in double precision above the bound alone. The control rounds the float64 sum, and is wrong at the nearest.
    """
    size, wrong, rng = 200, 0, np.random.default_rng(rank)
    factor = scale * rng.normal(size=(size, rank))
    draws = exact_normals(rank + size, seeded(10))
    z = [Fraction(d, 2**160) for d in draws]
    half = Fraction(1, 2)
    noise = [
        sum((Fraction(v) * w for v, w in zip(row, z, strict=False)), Fraction(floor_sd) * z[rank + i])
        for i, row in enumerate(factor.tolist())
    ]
    for bits in (*range(30, 54, 4), 54):
        away = rng.choice([-1.0, 1.0], size) * 2.0**-bits
        x = np.array([float(round(t) + half - t + Fraction(a)) for t, a in zip(noise, away.tolist(), strict=True)])
        if scale > 1:
            x -= np.rint(scale * rng.normal(size=size))  # not small, so that the sum is not
        expected = exact_path(x, factor, floor_sd, 0, 10)
        redone.clear()
        assert bulk_grid_integers(x, factor, floor_sd, 0, seeded(10)).tolist() == expected
        if scale == floor_sd == 1:
            assert sum(redone) == (0 if bits <= 38 else size if bits >= 50 else sum(redone))
        approximate = np.array([d / 2**160 for d in draws])
        naive = np.floor(x + factor @ approximate[:rank] + floor_sd * approximate[rank:] + 0.5)
        wrong += int(np.sum(naive != expected))
    assert wrong > 20


def test_halves_exactly_on_the_boundary(redone):
    """A factor of zeros, a floor that vanishes beside the step, or draws that cancel: t + ½ is an integer, or one
    part in 10^300 below it."""
    x = np.array([-2.5, -0.5, 0.5, 1.5, 2.0**40 + 0.5])
    for seed in range(20):
        for floor_sd in (5e-324, 1e-300, 2.0**-60):
            found = bulk_grid_integers(x, np.zeros((5, 1)), floor_sd, 0, seeded(seed)).tolist()
            assert found == exact_path(x, np.zeros((5, 1)), floor_sd, 0, seed)
    assert sum(redone) == 300  # each of them needs the sign of the noise
    # points (a, a) of the disc: two equal draws, the first shared with weight -1: the noise is exactly zero
    pairs = [(2**127 + 2 * i + 1, 2**127 + 2 * i + 1) for i in range(4)]
    for centre in (-3.5, 0.5, 7.5):
        for nudge, lower in ((0.0, 0), (-(2.0**-50), 1)):
            found = bulk_grid_integers(np.array([centre + nudge]), np.array([[-1.0]]), 1.0, 0, coordinates(pairs))
            assert found.tolist() == [math.floor(centre + 0.5) - lower]


def test_draws_without_a_bound_are_taken_exactly(redone):
    """Points at the innermost cells and on the rim, as own and as shared draws."""
    pairs = [(1, 1), (3, 2**80 + 1), (2**129 - 1, 1), (2**100 + 1, -1), (2**128 + 1, 2**127 + 1)] * 3
    x, count = np.linspace(-5, 5, 27), 0
    for rank in (0, 1, 3):
        factor = np.full((27, rank), 0.37)
        draws = exact_normals(27 + rank, coordinates(pairs))
        found = bulk_grid_integers(x, factor, 1.5, -3, coordinates(pairs))
        assert found.tolist() == exact_grid_integers(x, factor, 1.5, draws, -3)
        count += 24 - rank if rank else 23
    assert 0 < sum(redone) < 81


def test_values_too_large_for_the_grid_are_marked(redone):
    x = np.array([2.0**60, -(2.0**60), 2.0**53, -(2.0**53), 2.0**53 - 1, 1e308, 5.0])
    found = bulk_grid_integers(x, np.zeros((7, 0)), 5e-324, 0, seeded(11)).tolist()
    assert found == [OUT_OF_RANGE] * 4 + [2**53 - 1, OUT_OF_RANGE, 5]
    assert redone == [6]
    big = bulk_grid_integers(np.array([0.0, 1.0]), np.array([[1e308], [0.0]]), 1.0, -900, seeded(11)).tolist()
    assert big == [OUT_OF_RANGE] * 2


def test_large_terms_that_cancel_are_summed_exactly():
    """X = -L ξ rounded, 2^70 steps each: the sum fits, and float64 has lost all of it."""
    z = Fraction(exact_normals(2, seeded(12))[0], 2**160)
    x = np.array([float(-(2**70) * z)])
    expected = exact_path(x, np.array([[2.0**70]]), 1.0, 0, 12)
    assert abs(expected[0]) < 2**53
    assert bulk_grid_integers(x, np.array([[2.0**70]]), 1.0, 0, seeded(12)).tolist() == expected


def test_without_an_accurate_logarithm_the_integers_are_the_same(monkeypatch, redone):
    x, factor = np.linspace(0, 1, 30), np.ones((30, 2))
    expected = bulk_grid_integers(x, factor, 1.0, -4, seeded(13)).tolist()
    assert redone == []
    monkeypatch.setattr(bulk_normal, "_logarithm_is_accurate", lambda: False)
    assert bulk_grid_integers(x, factor, 1.0, -4, seeded(13)).tolist() == expected
    assert redone == [30]


def sampler_work(x: np.ndarray, factor: np.ndarray, monkeypatch) -> tuple:
    """Requests for bytes, attempts looked at in double precision and in integers, and pairs made exactly."""
    work: dict[str, list] = {"chunks": [], "points": [], "pairs": []}
    source = Counted(14)

    def recorded(name, function):
        return lambda *arguments: work[name].append(arguments[1:]) or function(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(bulk_normal, "_polar_chunk", recorded("chunks", bulk_normal._polar_chunk))
        patch.setattr(bulk_normal, "point_of_disc", recorded("points", exact_normal.point_of_disc))
        patch.setattr(bulk_normal, "polar_pair", recorded("pairs", lambda *a: exact_normal.polar_pair(*a)))
        made = _release(x, factor, 0.75, resolution=0.0, exponent=None, _bytes=source)
    assert made.integers.shape == x.shape
    return (tuple(source.requests), tuple(work["chunks"]), tuple(work["points"]), len(work["pairs"]))


def test_the_samplers_loops_do_not_depend_on_the_trace(monkeypatch):
    """Equal bytes, equal work: the same requests, chunks and exact evaluations for 0, 2^20 + 1/3 and other traces."""
    rng, size = np.random.default_rng(15), 60
    traces = [np.zeros(size), np.full(size, 2.0**20 + 1 / 3), np.full(size, 1e-300), np.full(size, -1e9)]
    traces += [rng.normal(size=size) * 10.0 ** rng.uniform(-9, 9) for _ in range(60)]
    for rank in (0, 1, 4):
        seen = {sampler_work(x, rng.normal(size=(size, rank)), monkeypatch) for x in traces}
        assert len(seen) == 1
        ((requests, chunks, points, pairs),) = seen
        assert len(requests) == len(chunks) == 1 and len(points) == pairs == (rank + 1) // 2
