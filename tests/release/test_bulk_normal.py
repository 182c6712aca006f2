"""The draws in double precision: the same attempts as the exact ones, and values within the stated bounds of them."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from fixed_bytes import Counted, coordinates, seeded
from flint import arb, ctx

from jaxpriv.mechanisms import bulk_normal
from jaxpriv.mechanisms.bulk_normal import BulkNormals
from jaxpriv.mechanisms.exact_normal import FRACTION_BITS, exact_normals


DISC = 2**258


@pytest.fixture(autouse=True)
def many_digits():
    before, ctx.prec = ctx.prec, 200
    yield
    ctx.prec = before


def odd(value: float) -> int:
    return int(value * 2.0**64) * 2**65 | 1


def near_rim(rng: random.Random, bits: int) -> tuple[int, int]:
    """A point of the disc with 1 - s close to 2^-bits, or about as far outside."""
    a = 2 * rng.getrandbits(128) + 1
    gap = rng.choice([-1, 1]) * DISC >> bits
    square = max(DISC - gap - a * a, 1)
    b = 1 << square.bit_length() // 2
    for _ in range(9):  # Newton's method from within a factor of two: then exact to more digits than matter
        b = (b + square // b) // 2
    return (a, min(b | 1, 2**129 - 1))


def compare(draws: BulkNormals, exact: list[int]) -> np.ndarray:
    """Error divided by the bound, for draws with a bound; the rest must be rare by construction of the test."""
    known = np.isfinite(draws.errors)
    distance = [abs(Fraction(v) - Fraction(z, 2**FRACTION_BITS)) for v, z in zip(draws.values, exact, strict=True)]
    assert np.all(np.isfinite(draws.values))
    return np.array([float(d) for d in distance])[known] / draws.errors[known]


@pytest.mark.parametrize("count", [1, 2, 7, 200, 4_001])
def test_same_bytes_same_draws(count):
    """The same requests for bytes, the same attempts accepted, and each draw within its bound of the exact one."""
    first, second = Counted(count), Counted(count)
    draws, exact = BulkNormals(count, first), exact_normals(count, second)
    assert first.requests == second.requests
    assert draws.exact(np.arange(count)) == exact
    ratios = compare(draws, exact)
    assert len(ratios) == count  # a draw without a bound has probability 2^-29
    assert np.max(ratios) <= 1
    if count > 1000:
        assert np.max(ratios) > 0.01  # the bound is no larger than its proof makes it


@pytest.mark.slow
def test_bounds_on_many_draws():
    draws, exact = BulkNormals(100_000, seeded(1)), exact_normals(100_000, seeded(1))
    assert np.max(compare(draws, exact)) <= 1
    # the average stated in the module, with the floor of 128 that every bound has
    assert 2.0**-46 < np.mean(draws.errors) < 2.0**-45.3


def test_bounds_towards_the_origin_and_the_rim():
    """Every distance from both, down to the cuts and beyond: the bound is kept, and infinite past the cuts."""
    rng, pairs = random.Random(2), []
    for bits in range(1, 64):
        for _ in range(6):
            angle = rng.uniform(0, 6.283)
            pairs.append(tuple(odd(2.0 ** (-bits / 2) * t) for t in (np.cos(angle), np.sin(angle))))
            pairs.append(near_rim(rng, bits))
    inside = [(a, b) for a, b in pairs if a * a + b * b < DISC]
    assert 0.4 < len(inside) / len(pairs) < 0.9
    count = 2 * len(inside)
    draws, exact = BulkNormals(count, coordinates(pairs)), exact_normals(count, coordinates(pairs))
    assert draws.exact(np.arange(count)) == exact == exact_normals(count, coordinates(inside))
    assert np.max(compare(draws, exact)) <= 1
    s = np.array([Fraction(a * a + b * b, DISC) for a, b in inside for _ in range(2)])
    assert np.all(np.isfinite(draws.errors[(s > 2.0**-29) & (s < 1 - Fraction(1, 2**29))]))
    assert np.all(np.isinf(draws.errors[(s < 2.0**-31) | (s > 1 - Fraction(1, 2**31))]))


def test_acceptance_is_decided_exactly_on_the_rim():
    """Neighbouring odd integers on both sides of the circle: no float64 square tells them apart."""
    rng, pairs = random.Random(3), []
    while len(pairs) < 200:
        a, b = near_rim(rng, 258)
        while a * a + b * b >= DISC:
            b -= 2
        while a * a + (b + 2) ** 2 < DISC:
            b += 2
        if b + 2 < 2**129:
            pairs += [(a, b), (a, b + 2)] if rng.random() < 0.5 else [(a, b + 2), (a, b)]
    draws, inside = BulkNormals(200, coordinates(pairs)), [p for p in pairs if p[0] ** 2 + p[1] ** 2 < DISC]
    assert len(inside) == 100
    assert draws.exact(np.arange(200)) == exact_normals(200, coordinates(inside))


def test_signs_and_extreme_coordinates():
    """All four quadrants, the innermost cells (where all leading bits are equal) and the longest coordinates."""
    top = 2**129 - 1
    pairs = [
        (s * a, t * b) for a, b in [(1, 1), (1, 2**128 + 1), (2**76 + 1, 2**128 + 1)] for s in (1, -1) for t in (1, -1)
    ]
    pairs += [(top, 1), (-top, 1), (1, top), (1, -top), (top, top), (-top, -top), (top, -top)]
    draws, exact = BulkNormals(32, coordinates(pairs)), exact_normals(32, coordinates(pairs))
    assert draws.exact(np.arange(32)) == exact
    assert np.max(compare(draws, exact)) <= 1


def test_several_requests_when_few_attempts_succeed():
    """Almost all of the first requests are rejected: more are made, of the sizes that the exact sampler asks for."""
    outside, pairs = (2**129 - 1, 2**129 - 1), [(2**128 + 1, 2**127 + 2 * i + 1) for i in range(30)]
    mixed = [p for pair in pairs for p in [outside] * 7 + [pair]]
    sizes: list[list[int]] = [[], []]

    def remembering(k: int):
        source = coordinates(mixed)
        return lambda size: sizes[k].append(size) or source(size)

    draws, exact = BulkNormals(60, remembering(0)), exact_normals(60, remembering(1))
    assert sizes[0] == sizes[1] and len(sizes[0]) > 4
    assert draws.exact(np.arange(60)) == exact == exact_normals(60, coordinates(pairs))
    assert np.max(compare(draws, exact)) <= 1


def test_no_draw_and_a_subset_of_draws():
    assert BulkNormals(0, seeded(4)).values.shape == BulkNormals(0, seeded(4)).errors.shape == (0,)
    draws, exact = BulkNormals(99, seeded(5)), exact_normals(99, seeded(5))
    which = np.array([98, 0, 51, 50, 0])
    assert draws.exact(which) == [exact[i] for i in which]


def test_logarithm_of_the_library_is_within_an_eighth_of_what_is_allowed():
    """Allowed: 16 · 2^-53. Points over the whole range, at both ends, and next to powers of two."""
    rng = np.random.default_rng(6)
    tiny = 0.5 ** rng.uniform(0, 30, 700)
    points = np.concatenate([rng.uniform(0, 1, 700), tiny, 1 - tiny, 0.5 ** np.arange(1.0, 31), [1 - 2.0**-30]])
    points = np.concatenate([points, np.nextafter(points, 0.0), np.nextafter(points, 1.0)])
    points = points[(points > 0) & (points < 1)]
    found = np.log(points)
    worst = max(abs(float(arb(float(f)) / arb(float(p)).log() - 1)) for p, f in zip(points, found, strict=True))
    assert worst <= 2 * 2.0**-53
    assert np.array_equal(found, np.array([np.log(points[i : i + 1])[0] for i in range(len(points))]))


def test_an_inaccurate_logarithm_is_noticed(monkeypatch):
    """Every draw then has an infinite bound, so that nothing rests on the library."""
    log, check = np.log, bulk_normal._logarithm_is_accurate
    assert check()
    monkeypatch.setattr(np, "log", lambda x: log(x) * (1 + 2.0**-50))
    assert not check.__wrapped__()
    monkeypatch.setattr(bulk_normal, "_logarithm_is_accurate", check.__wrapped__)
    draws = BulkNormals(10, seeded(7))
    assert np.all(np.isinf(draws.errors))
    assert draws.exact(np.arange(10)) == exact_normals(10, seeded(7))
