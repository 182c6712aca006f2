"""Standard normal draws as integers, from the operating system's random generator, with a stated distance from exact.

A pair comes from Marsaglia's polar method on two odd integers a, b with |a|, |b| < 2^129, so that (u, v) = (a, b)/2^129
is the centre of a square cell of side 2^-128, and the cells tile [-1, 1]². The draws are u f and v f with
f² = -2 ln s / s and s = u² + v² < 1, evaluated with 60 decimal digits and written with 160 bits after the binary point.

How far from exact. Let the ideal pair use a point uniform in the same cell.
(1) The two disagree on being inside the unit disc with probability below 2^-126 an accepted pair (cells that meet the
    circle). (2) The ideal s, uniform on (0, 1) once accepted, is outside [2^-70, 1 - 2^-70] with probability 2^-69.
(3) Otherwise the map from the point to the pair has slope max(2/(ρ R), R/ρ), with ρ² = s and R² = -2 ln s: below
    2^38.4 there, over a distance of at most 2^-128.5. Rounding to 60 digits and to 160 bits moves a draw by less than
    2^-158 more. Hence, but for probability `PAIR_FAILURE` a pair, each draw is within `DRAW_ERROR` of an exact standard
    normal, independent of the others. (Derived here; proof in docs/design.md.)

The assumption is that the generator's bytes cannot be told from uniform ones. Nothing is buffered between calls, so a
forked process shares no draw with its parent, and there is no seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction


#: Bits after the binary point of a draw.
FRACTION_BITS = 160
#: A pair of draws is within DRAW_ERROR of an exact pair, but for at most this probability.
PAIR_FAILURE = Fraction(1, 2**68)
#: Largest distance between a draw and the exact normal it stands for.
DRAW_ERROR = Fraction(1, 2**90)

#: Bytes of the generator that one attempt at a pair takes.
PAIR_BYTES = 33

_COORDINATE_BITS = 129
_DIGITS = 60
_MASK = 2**_COORDINATE_BITS - 1
_DISC = 2 ** (2 * _COORDINATE_BITS)
_DISC_DECIMAL = Decimal(_DISC)
_SCALE_DECIMAL = Decimal(-(2 ** (2 * FRACTION_BITS + 1 + 2 * _COORDINATE_BITS)))
_HALF = 2 ** (_COORDINATE_BITS - 1)


def exact_normals(count: int, _bytes: Callable[[int], bytes] = os.urandom) -> list[int]:
    """`count` independent standard normals, each an integer z that stands for z / 2^160.

    `_bytes` answers a number of bytes and exists for tests only; nothing public passes it on.
    """
    context = polar_context()
    draws: list[int] = []
    while len(draws) < count:
        pairs = attempts((count - len(draws) + 1) // 2)
        block = _bytes(PAIR_BYTES * pairs)
        for position in range(pairs):
            point = point_of_disc(block, position)
            if point is None:
                continue
            draws.extend(polar_pair(*point, context))
            if len(draws) >= count:
                break
    return draws[:count]


def attempts(missing: int) -> int:
    """Attempts whose bytes are asked for at once when `missing` pairs are missing; π/4 of them succeed."""
    return missing + missing // 3 + 8


def point_of_disc(block: bytes, position: int) -> tuple[int, int] | None:
    """The odd integers (a, b) of attempt `position`, or None if they are not inside the disc a² + b² < 2^258."""
    start = PAIR_BYTES * position
    word = int.from_bytes(block[start : start + PAIR_BYTES], "little")
    a = 2 * (word & _MASK) - _MASK
    b = 2 * ((word >> _COORDINATE_BITS) & _MASK) - _MASK
    return (a, b) if a * a + b * b < _DISC else None


def polar_pair(a: int, b: int, context: Context) -> tuple[int, int]:
    """The two draws, integers over 2^160, of a point of the disc."""
    square = a * a + b * b
    exact_square = Decimal(square)
    log = context.ln(context.divide(exact_square, _DISC_DECIMAL))
    scale = int(context.sqrt(context.divide(context.multiply(log, _SCALE_DECIMAL), exact_square)))
    return (a * scale + _HALF) >> _COORDINATE_BITS, (b * scale + _HALF) >> _COORDINATE_BITS


def polar_context() -> Context:
    """A decimal context with everything set, so that neither the caller's nor the module's default changes a draw."""
    return Context(
        prec=_DIGITS,
        rounding=ROUND_HALF_EVEN,
        Emin=-999999,
        Emax=999999,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[InvalidOperation, DivisionByZero, Overflow],
    )
