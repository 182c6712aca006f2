"""The integers of the release: double precision decides where it provably can, exact integers elsewhere.

Every integer is the one that `exact_grid_integers` makes of the same draws. In units of the step Δ let
t_i = Σ_j l_ij ξ_j + φ ζ_i + x_i with l = L/Δ, φ = floor_sd/Δ, x = X/Δ: divisions by a power of two, exact. Wanted is
⌊t_i + ½⌋. With ε = 2^-53:

* The q shared draws are taken exactly, as h_j + ℓ_j of two float64 numbers, which leaves an error below ε²|ξ_j|. The
  product l_ij h_j is p + e without error (Dekker's product with Veltkamp's splitting, Numerische Mathematik 18, 1971),
  c = l_ij ℓ_j is rounded once: together less than 2.1 ε²|p| off.
* Let M_i bound the sum of the sizes of all terms of t_i. Where M_i < 2^51 every p, φζ and x is split into its nearest
  integer and the rest, exactly; the integers add without error, being below 2^53; Σ|e| and Σ|c| are below ½ each.
* What remains, V = ½ + Σ_j (r_j + e_j + c_j) + r_ζ + r_x with each |r| ≤ ½, is a sum of 3q + 3 numbers whose sizes add
  up to at most q/2 + 2.5. In any order of summation its error is below ε(3q + 8)(q/2 + 3).
* φζ is off by φ times the error of the draw (see `bulk_normal`; its slack covers the rounding of the product).

So V is within B_i = φ errors_i + ε((3q + 8)(q/2 + 3) + 8) of the exact value (derived here), and ⌊V⌋ is right where the
distance of V to the nearest integer is above B_i. Where it is not, where M_i ≥ 2^51, and where anything overflowed
(every comparison is then false), the entry is computed in integers. Underflow is below 2^-1000 and covered by the 8.

How rare that is: V modulo 1 is close to uniform, so an entry is redone with a probability near 2B_i: below 2^-43 φ +
2^-52 (3q + 8)(q/2 + 3), to which `bulk_normal` adds 2^-29 for draws without a bound. On the default grid φ < 2: about
two entries in 10^9. With a step of 2^-24 floor_sd: below two in 10^6.

How many are redone depends on the output to be published and on the noise, so the time taken does, slightly; nothing is
claimed about timing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxpriv.mechanisms.bulk_normal import BulkNormals
from jaxpriv.mechanisms.exact_normal import FRACTION_BITS
from jaxpriv.mechanisms.exact_rounding import exact_grid_integers


#: Stands for every integer that does not fit below 2^53.
OUT_OF_RANGE = 2**53

_UNIT = 2.0**-53
_SPLITTER = 2.0**27 + 1.0
_LARGEST_TERMS = 2.0**51
_CHUNK = 1 << 15


def bulk_grid_integers(
    trace: np.ndarray, factor: np.ndarray, floor_sd: float, exponent: int, source: Callable[[int], bytes]
) -> np.ndarray:
    """⌊(trace + factor ξ + floor_sd ζ) / 2^exponent + ½⌋, (n,) int64, with draws from `source`.

    Equal to `exact_grid_integers` with the draws that `exact_normals` makes of the same bytes; `OUT_OF_RANGE` stands
    for integers that are not between -2^53 and 2^53.
    """
    size, rank = factor.shape
    draws = BulkNormals(rank + size, source)
    shared = draws.exact(np.arange(rank))
    head, tail = _in_two_parts(shared)
    integers = np.empty(size, dtype=np.int64)
    rows = max(1, _CHUNK // max(rank, 1))
    doubtful = []
    with np.errstate(all="ignore"):  # whatever overflows is found doubtful
        for start in range(0, size, rows):
            part = slice(start, min(start + rows, size))
            own = slice(rank + part.start, rank + part.stop)
            decided, found = _decide(
                np.ldexp(trace[part], -exponent),
                np.ldexp(factor[part], -exponent),
                np.ldexp(floor_sd, -exponent),
                head,
                tail,
                draws.values[own],
                draws.errors[own],
            )
            integers[part] = np.where(decided, found, 0.0)
            if not decided.all():
                doubtful.append(np.flatnonzero(~decided) + start)
    if doubtful:
        again = np.concatenate(doubtful)
        exactly = exact_grid_integers(
            trace[again], factor[again], floor_sd, shared + draws.exact(rank + again), exponent
        )
        integers[again] = [j if -OUT_OF_RANGE < j < OUT_OF_RANGE else OUT_OF_RANGE for j in exactly]
    return integers


def _decide(
    x: np.ndarray,
    load: np.ndarray,
    floor: float,
    head: np.ndarray,
    tail: np.ndarray,
    values: np.ndarray,
    errors: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Where double precision decides, (m,) booleans, and ⌊t + ½⌋ there, (m,) float64; all in units of the step."""
    rank = len(head)
    own = floor * values
    whole_x, whole_own = np.rint(x), np.rint(own)
    whole = whole_x + whole_own
    rest = (x - whole_x) + (own - whole_own) + 0.5
    terms = np.abs(x) + np.abs(own)
    if rank:
        product, error = _exact_product(load, head)
        whole_product = np.rint(product)
        whole += np.sum(whole_product, axis=1)
        rest += np.sum((product - whole_product) + (error + load * tail), axis=1)
        terms += np.sum(np.abs(product), axis=1)
    bound = floor * errors + _UNIT * ((3 * rank + 8) * (rank / 2 + 3) + 8)
    decided = (np.abs(rest - np.rint(rest)) > bound) & (terms < _LARGEST_TERMS)
    return decided, whole + np.floor(rest)


def _exact_product(load: np.ndarray, head: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two float64 arrays whose sum is load · head exactly, unless something under- or overflows; (m, q) each."""
    product = load * head
    load_high, load_low = _halves(load)
    head_high, head_low = _halves(head)
    error = load_low * head_low - (((product - load_high * head_high) - load_low * head_high) - load_high * head_low)
    return product, error


def _halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers of at most 26 bits whose sum is a."""
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


def _in_two_parts(draws: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """The draws as sums of two float64 arrays, (q,) each: the nearest one, and what is left, rounded."""
    first = [float(z) for z in draws]
    second = [float(z - int(near)) for z, near in zip(draws, first, strict=True)]
    return np.ldexp(np.array(first), -FRACTION_BITS), np.ldexp(np.array(second), -FRACTION_BITS)
