"""The draws against ball arithmetic and the normal law, to the far tail."""

from __future__ import annotations

import decimal
import random

import numpy as np
import pytest
from fixed_bytes import Counted, coordinates, seeded
from flint import arb, ctx, fmpz
from scipy import stats

from jaxpriv.mechanisms.exact_normal import DRAW_ERROR, FRACTION_BITS, PAIR_FAILURE, exact_normals


@pytest.fixture(autouse=True)
def many_digits():
    before, ctx.prec = ctx.prec, 800
    yield
    ctx.prec = before


def polar(u: arb, v: arb) -> tuple[arb, arb]:
    """The pair of normals that the polar method makes of a point of the unit disc."""
    s = u * u + v * v
    f = (-2 * s.log() / s).sqrt()
    return u * f, v * f


def scaled(a: int) -> arb:
    return arb(fmpz(a)) / arb(2) ** 129


def unit_interval(draws: list[int]) -> np.ndarray:
    return stats.norm.cdf(np.array([z / 2**FRACTION_BITS for z in draws]))


def odd_pair(radius: float, angle: float) -> tuple[int, int]:
    """Odd integers near 2^129 radius (cos, sin), exact to a float's precision: only the radius matters here."""
    return tuple(int(radius * t * 2**64) * 2**65 | 1 for t in (np.cos(angle), np.sin(angle)))


def test_draws_are_the_polar_pair_to_158_bits():
    generator = random.Random(1)
    pairs = []
    while len(pairs) < 300:
        a, b = (2 * generator.getrandbits(129) + 1 - 2**129 for _ in range(2))
        if a * a + b * b < 2**258:
            pairs.append((a, b))
    draws = exact_normals(600, coordinates(pairs))
    for i, (a, b) in enumerate(pairs):
        for z, exact in zip(draws[2 * i :], polar(scaled(a), scaled(b)), strict=False):
            assert abs(arb(fmpz(z)) / arb(2) ** 160 - exact) < arb(2) ** -158


@pytest.mark.parametrize(
    "pair",
    [(1, 1), (-1, 1), (2**64 + 1, 3), (2**94 + 1, 2**93 + 1), (2**129 - 1, 1), (2**128 + 1, -(2**128) + 1)],
    ids=["innermost", "signs", "deep tail", "at the cut", "rim", "middle"],
)
def test_extreme_points_are_within_the_stated_error(pair):
    draws = exact_normals(2, coordinates([pair]))
    for z, exact in zip(draws, polar(*map(scaled, pair)), strict=True):
        assert abs(arb(fmpz(z)) / arb(2) ** 160 - exact) < arb(2) ** -90
    if pair == (1, 1):
        assert draws[0] / 2**160 > 13  # no ceiling such as the 8.2 of an inverse distribution function in float64


def test_every_point_of_a_cell_is_within_the_stated_error_up_to_the_cuts():
    """Move the point anywhere in its cell, at the cuts s = 2^-70 and 1 - 2^-70 and between: less than DRAW_ERROR."""
    generator, worst = np.random.default_rng(2), arb(0)
    inner = 2.0**-35
    for case in range(300):
        angle = generator.uniform(0, 2 * np.pi)
        if case % 3 == 0:
            centre = [scaled(c) for c in odd_pair(inner, angle)]
        elif case % 3 == 1:
            centre = [(arb(1) - arb(2) ** -71) * arb(t) for t in (np.cos(angle), np.sin(angle))]
            norm = (centre[0] ** 2 + centre[1] ** 2).sqrt()
            centre = [c / norm * (arb(1) - arb(2) ** -71) for c in centre]
        else:
            centre = [scaled(c) for c in odd_pair(generator.uniform(0.01, 0.99), angle)]
        offset = [arb(t) * arb(2) ** -129 for t in generator.choice([-1.0, 1.0, generator.uniform(-1, 1)], 2)]
        here, there = polar(*centre), polar(*(c + o for c, o in zip(centre, offset, strict=True)))
        for z, moved in zip(here, there, strict=True):
            assert abs(z - moved) < arb(2) ** -90
            worst = max(worst, abs(z - moved), key=lambda ball: float(ball.mid()))
    assert DRAW_ERROR == 2.0**-90
    assert worst > arb(2) ** -92  # the cases do come near the bound


def test_the_failure_probability_covers_its_two_parts():
    """s outside [2^-70, 1 - 2^-70]: 2^-69. Cells on the circle: an annulus of half-width √2 2^-129, π/4 a round."""
    circle = arb.pi() * 4 * (arb(2).sqrt() * arb(2) ** -129) / 4 * 4 / arb.pi()
    assert arb(2) ** -69 + circle < arb(fmpz(PAIR_FAILURE.numerator)) / arb(fmpz(PAIR_FAILURE.denominator))


def test_points_outside_the_disc_are_rejected():
    outside, inside = (2**129 - 1, 2**129 - 1), (2**127 + 1, 2**120 + 1)
    assert exact_normals(2, coordinates([outside, outside, inside])) == exact_normals(2, coordinates([inside]))


def test_law_in_forty_cells():
    counts = np.histogram(unit_interval(exact_normals(20_000, seeded(3))), 40, (0, 1))[0]
    assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.slow
def test_law_in_two_hundred_cells_and_tails():
    draws = exact_normals(200_000, seeded(4))  # a million: test_output_law.py
    assert stats.chisquare(np.histogram(unit_interval(draws), 200, (0, 1))[0]).pvalue > 1e-7
    z = np.abs(np.array([d / 2**160 for d in draws]))
    for threshold in (3.0, 4.0, 5.0):
        expected = len(draws) * 2 * stats.norm.sf(threshold)
        low, high = stats.poisson.ppf([1e-7, 1 - 1e-7], expected)
        assert low <= np.sum(z > threshold) <= high
    assert stats.kstest(unit_interval(draws), "uniform").pvalue > 1e-7


@pytest.mark.parametrize("bits", [10, 50])
def test_law_deep_in_the_tail(bits):
    """Points uniform in a disc of radius 2^-bits: exp(-(z² + z'²)/2) must be uniform below 2^(-2 bits), z to 12."""
    generator, pairs, radius = random.Random(5), [], 2 ** (129 - bits)
    while len(pairs) < 1_000:
        a, b = (2 * generator.randrange(radius) + 1 - radius for _ in range(2))
        if a * a + b * b < radius * radius:
            pairs.append((a, b))
    z = np.array([d / 2**160 for d in exact_normals(2_000, coordinates(pairs))]).reshape(-1, 2)
    assert np.all(np.sum(z**2, axis=1) > 4 * bits * np.log(2))
    assert stats.kstest(np.exp(2 * bits * np.log(2) - np.sum(z**2, axis=1) / 2), "uniform").pvalue > 1e-7
    assert stats.kstest(np.arctan2(z[:, 1], z[:, 0]) / (2 * np.pi) + 0.5, "uniform").pvalue > 1e-7
    assert np.max(np.abs(z)) > 5.3 + (bits > 10) * 4  # more than a float32 (or float64) uniform could reach


def test_each_pair_has_bytes_of_its_own():
    """Changing one pair's bytes changes that pair and no other."""
    pairs = [(2**100 + 2 * i + 1, 2**101 + 1) for i in range(20)]
    before = exact_normals(40, coordinates(pairs))
    for i in range(20):
        changed = [*pairs[:i], (2**99 + 1, 2**98 + 1), *pairs[i + 1 :]]
        after = exact_normals(40, coordinates(changed))
        assert [k // 2 for k in range(40) if before[k] != after[k]] == [i, i]


def test_the_callers_decimal_context_changes_nothing():
    expected = exact_normals(20, seeded(6))
    with decimal.localcontext(decimal.Context(prec=5, rounding=decimal.ROUND_UP, traps=[decimal.Inexact])):
        assert exact_normals(20, seeded(6)) == expected


def test_requests_for_bytes_follow_the_count_alone():
    first, second = Counted(7), Counted(7)
    exact_normals(101, first), exact_normals(101, second)
    assert first.requests == second.requests
    assert all(size % 33 == 0 for size in first.requests)
    assert exact_normals(0, Counted(8)) == []
