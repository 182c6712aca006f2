"""The draws of `exact_normal` in double precision, many at a time, each with a bound on its error.

The bytes asked for, their order, the attempts accepted and so the draws are those of `exact_normals`; only the value of
a draw is approximate, and any of them can be had exactly.

The bound. Let ε = 2^-53, (u, v) the point of an accepted attempt, s = u² + v², ρ = √s, R = √(-2 ln s), f = R/ρ, so
that the draws are z = u f and v f, with |z| ≤ R. Hats are computed values.

* û and v̂ are the leading 54 bits of the coordinates, exact in float64, and less than ε from them. So
  |û² + v̂² - s| < 2ε(√2 ρ + ε), and two squares and a sum add less than 2.01 ε s. As ρ ≤ √2 for every attempt,
  |ŝ - s| < 9ε: where |ŝ - 1| > `_CUT` = 2^-30 the float decides s < 1 rightly, elsewhere the integers decide.
* Draws with ŝ < 2^-30 or ŝ > 1 - 2^-30 get the bound infinity. Elsewhere R ≤ 6.45, |ŝ/s - 1| ≤ σ = ε(2.83/ρ + 2.01),
  and
* ln ŝ differs from ln s by at most 1.001 σ, and the library's logarithm by a factor within 1 ± 16ε (eight units in
  the last place; the libraries in use stay below one, and `_logarithm_is_accurate` looks). Division and square root are
  correctly rounded. With one ε for the division and one for the root, |f̂/f - 1| ≤ σ/|2 ln s| + σ/2 + 9.5ε, up to a
  factor 1.01 for products of small terms (the largest is σ/|ln s| < 2^-20).
* |ẑ - z| ≤ ε f + R |f̂/f - 1| + εR ≤ ε(f + R(10.5 + 1.005) + 1.415 f) + σ/R, and σ/R = ε(2.83/(ρR) + 2.01/R).
  If s ≥ 1/4, 1/R ≤ 2/f and 1/(ρR) ≤ 4/f; else R > 1.66, 1/R < 0.61 and 1/(ρR) = f/R² < 0.37 f. In all

      |ẑ - z| ≤ ε(76 + 3.5 f + 15.4/f) · 1.01  <  ε(128 + 8 f̂ + 32/f̂).                       (derived here)

The bound grows near the origin (f large) and near the rim (f small), and is 2^-45.4 on average. The exact draw is
rounded to a multiple of 2^-160 and to 60 digits, which the slack covers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from decimal import Decimal

import numpy as np

from jaxpriv.mechanisms.exact_normal import PAIR_BYTES, attempts, point_of_disc, polar_context, polar_pair


_CUT = 2.0**-30
_UNIT = 2.0**-53
_CHUNK = 1 << 14


class BulkNormals:
    """`count` draws: approximately at once, exactly on request.

    Args:
        count: number of draws.
        source: answers a number of bytes with as many bytes.
    """

    __slots__ = ("_block", "_positions", "errors", "values")

    #: The draws, (count,) float64.
    values: np.ndarray
    #: A bound on the distance of each value from the exact draw, (count,) float64; infinite where none is known.
    errors: np.ndarray

    def __init__(self, count: int, source: Callable[[int], bytes]):
        pairs = (count + 1) // 2
        z, bound = np.empty((pairs, 2)), np.empty(pairs)
        positions = np.empty(pairs, dtype=np.int64)
        blocks: list[bytes] = []
        have = tried = 0
        while have < pairs:
            size = attempts(pairs - have)
            block = source(PAIR_BYTES * size)
            blocks.append(block)
            for start in range(0, size, _CHUNK):
                accepted, draws, errors = _polar_chunk(block, start, min(_CHUNK, size - start))
                took = min(len(accepted), pairs - have)
                place = slice(have, have + took)
                z[place], bound[place] = draws[:took], errors[:took]
                positions[place] = accepted[:took] + (start + tried)
                have += took
                if have == pairs:
                    break
            tried += size
        if not _logarithm_is_accurate():
            bound[:] = np.inf
        self.values = z.reshape(-1)[:count]
        self.errors = np.repeat(bound, 2)[:count]
        self._block = blocks[0] if len(blocks) == 1 else b"".join(blocks)
        self._positions = positions

    def exact(self, which: np.ndarray) -> list[int]:
        """The draws `which`, (m,) indices, as integers over 2^160: those that `exact_normals` makes of the bytes."""
        context, made = polar_context(), {}
        draws = []
        for pair, side in zip((which // 2).tolist(), (which % 2).tolist(), strict=True):
            if pair not in made:
                point = point_of_disc(self._block, int(self._positions[pair]))
                if point is None:
                    raise AssertionError("an attempt outside the disc was accepted")
                made[pair] = polar_pair(*point, context)
            draws.append(made[pair][side])
        return draws


def _polar_chunk(block: bytes, start: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Accepted attempts (m,), counted from `start`; their draws (m, 2) and bounds (m,)."""
    u, v = _leading_bits(block, start, size)
    s = u * u + v * v
    inside = s < 1.0
    undecided = np.abs(s - 1.0) <= _CUT
    if undecided.any():
        for i in np.flatnonzero(undecided).tolist():
            inside[i] = point_of_disc(block, start + i) is not None
    accepted = np.flatnonzero(inside)
    u, v, s = u[accepted], v[accepted], s[accepted]
    unknown = (s < _CUT) | (s > 1.0 - _CUT)
    if unknown.any():
        s[unknown] = 0.5  # any number that gives no warning: the bound says that the draw is not known
    f = np.sqrt(-2.0 * np.log(s) / s)
    errors = _UNIT * (128.0 + 8.0 * f + 32.0 / f)
    errors[unknown] = np.inf
    return accepted, np.stack([u * f, v * f], axis=1), errors


def _leading_bits(block: bytes, start: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates of the attempts, cut down to multiples of 2^-53: (size,) each, less than 2^-53 below them.

    With w the 129 bits of a coordinate, it is (2w + 1)/2^129 - 1, and 54 leading bits of w are kept.
    """

    def field(offset: int, kind: str) -> np.ndarray:
        return np.ndarray((size,), kind, block, PAIR_BYTES * start + offset, (PAIR_BYTES,))

    # bits 0 to 128 of an attempt are a, bits 129 to 257 are b
    last = field(32, "u1").astype(np.int64)
    a = ((field(16, "u1").astype(np.int64) & 1) << 53) + (field(8, "<u8") >> np.uint64(11)).astype(np.int64)
    b = ((last & 3) << 52) + (field(24, "<u8") >> np.uint64(12)).astype(np.int64)
    return ((a - 2**53).astype(np.float64) * _UNIT, (b - 2**53).astype(np.float64) * _UNIT)


@functools.cache
def _logarithm_is_accurate() -> bool:
    """Whether np.log stays within a quarter of the error allowed for it, at points that sample (2^-30, 1)."""
    context = polar_context()
    steps = np.arange(1.0, 65.0)
    points = np.concatenate([steps / 65.0, 0.5 ** (steps * 0.46), 1.0 - 0.5 ** (steps * 0.46)])
    return all(
        abs(Decimal(found) / context.ln(Decimal(point)) - 1) <= Decimal(4 * _UNIT)
        for point, found in zip(points.tolist(), np.log(points).tolist(), strict=True)
    )
