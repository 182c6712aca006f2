"""Upper bounds of privacy levels that hold to the last bit, for tables of whole numbers and for float64 matrices.

Every float is a dyadic rational, so a channel given as float64 probabilities is an exact table once its rows are
divided by their exact sums; an `IntegerTable` is exact as it is. Levels are first found in float64 logarithms, which
are assumed to be right to 256 units in the last place; the entries that may attain the maximum within that error are
then compared as exact fractions, with logarithms rounded outward. Where more entries tie than `_CANDIDATES`, the
float64 maximum plus its error bound is returned instead: larger by about 1e-13, never smaller than the truth.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Float

from jaxpriv.certificates.arithmetic import down, fraction_up, up
from jaxpriv.channels.channel import Channel
from jaxpriv.channels.table import IntegerTable
from jaxpriv.errors import InputError
from jaxpriv.precision import host_array


_CANDIDATES = 500
_LOG_ERROR = 2.0**-44
_DIGITS = 50


@dataclass(frozen=True)
class Level:
    """A level in nats (per unit of distance for a slope) and where it is attained.

    `value` is an upper bound of the exact one; `pair` (x, y) and `output` z have the log-ratio log f[x, z]/f[y, z].
    `pair` is None where no two rows differ or no pair was compared.
    """

    value: float
    pair: tuple[int, int] | None
    output: int | None


@dataclass(frozen=True)
class ExactRows:
    """Rows of non-negative exact numbers with enclosures of their sums, and float64 logarithms of the normalised rows.

    `entries` (n, m) are float64 or integers, taken as exact; the law of row x is entries[x] / their exact sum.
    """

    entries: np.ndarray = field(repr=False)
    sums_below: list[Fraction] = field(repr=False)
    sums_above: list[Fraction] = field(repr=False)
    logs: Float[np.ndarray, "n m"] = field(repr=False)
    largest_log: float
    exact_sums: bool

    @classmethod
    def of(cls, channel: Channel | IntegerTable) -> ExactRows:
        """The rows of a table, or of a channel's probabilities exp(log f) rounded to float64. Host only."""
        if isinstance(channel, IntegerTable):
            total = Fraction(1 << channel.bits)
            with np.errstate(divide="ignore"):
                logs = np.log(channel.weights.astype(np.float64)) - channel.bits * math.log(2.0)
            sums = [total] * channel.n_inputs
            return cls(channel.weights, sums, sums, logs, channel.bits * math.log(2.0), True)
        logs = np.asarray(channel.log_matrix)
        if logs.ndim != 2:
            raise InputError("an audit is of one channel; audit each of a batch.")
        matrix = np.exp(logs.astype(np.float64))
        if np.any((matrix == 0.0) & (logs > -np.inf)):
            raise InputError(
                "a probability is positive but below the range of float64; make an IntegerTable of the channel, with "
                "enough bits, and audit that: it is what can be released."
            )
        totals = [math.fsum(row) for row in matrix]
        with np.errstate(divide="ignore"):
            normalised = np.log(matrix) - np.log(totals)[:, None]
        below, above = [Fraction(down(total)) for total in totals], [Fraction(up(total)) for total in totals]
        largest = float(np.max(np.abs(normalised[np.isfinite(normalised)])))
        return cls(matrix, below, above, normalised, largest, False)

    @property
    def log_error(self) -> float:
        """Bound of the error of a difference of two finite entries of `logs`."""
        return 2.0 * _LOG_ERROR * (1.0 + self.largest_log)

    def ratio_log(self, x: int, y: int, z: int) -> float:
        """Upper bound of log f[x, z]/f[y, z], both positive, as exact fractions."""
        top = Fraction(int(self.entries[x, z])) if self.exact_sums else Fraction(float(self.entries[x, z]))
        low = Fraction(int(self.entries[y, z])) if self.exact_sums else Fraction(float(self.entries[y, z]))
        return log_up(top * self.sums_above[y] / (low * self.sums_below[x]))


def log_up(value: Fraction) -> float:
    """A double not below the natural logarithm of a positive fraction, and within a few units of it."""
    context = decimal.Context(prec=_DIGITS, rounding=decimal.ROUND_CEILING, Emin=-999999, Emax=999999)
    context.traps[decimal.Inexact] = False
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return fraction_up(Fraction(context.next_plus(context.ln(quotient))))


def exact_set_level(rows: ExactRows, members: Bool[np.ndarray, " n"]) -> Level:
    """Least ε for which the channel is ε-DP on a set of places, (n,), as an upper bound: every pair counts."""
    places = np.flatnonzero(members)
    if len(places) < 2 or np.all(rows.entries[places] == rows.entries[places[0]]):
        return Level(0.0, None, None)
    logs = rows.logs[places]
    high, low = np.max(logs, axis=0), np.min(logs, axis=0)
    reached = high > -np.inf
    spread = np.where(reached, np.where(reached, high, 0.0) - np.where(reached, low, 0.0), -np.inf)
    worst = int(np.argmax(spread))
    pair = (int(places[np.argmax(logs[:, worst])]), int(places[np.argmin(logs[:, worst])]))
    if math.isinf(spread[worst]):
        return Level(math.inf, pair, worst)
    error = rows.log_error
    found: list[tuple[int, int, int]] = []
    for z in np.flatnonzero(spread >= spread[worst] - 2.0 * error):
        tops = places[logs[:, z] >= high[z] - error]
        lows = places[logs[:, z] <= low[z] + error]
        found += [(int(x), int(y), int(z)) for x in tops for y in lows if x != y]
        if len(found) > _CANDIDATES:
            return Level(up(spread[worst] + error), pair, worst)
    value, (x, y, z) = max(((rows.ratio_log(*entry), entry) for entry in found), key=lambda item: item[0])
    return Level(max(value, 0.0), (x, y), z)


def exact_geo_level(rows: ExactRows, distances: Float[np.ndarray, "n n"]) -> Level:
    """Least ε per unit of distance with f[x, z] ≤ e^{ε d(x, y)} f[y, z] for all, as an upper bound.

    `distances` (n, n) are float64 Euclidean distances, taken to be right to 8 rounding units. Works on one row of
    pairs at a time: memory n m. Pairs at distance zero must have the same law, else the level is +inf.
    """
    d = host_array(distances, "distances", 2)
    size = rows.logs.shape[0]
    if d.shape != (size, size):
        raise InputError(f"the distances have shape {d.shape}; expected ({size}, {size}).")
    if np.all(rows.entries == rows.entries[0]):
        return Level(0.0, None, None)
    error = rows.log_error
    levels = np.stack([_row_levels(rows.logs, x) for x in range(size)])
    if np.any(np.isposinf(levels)):
        x, y = (int(i) for i in np.argwhere(np.isposinf(levels))[0])
        output = int(np.argmax(np.isneginf(rows.logs[y]) & np.isfinite(rows.logs[x])))
        return Level(math.inf, (x, y), output)
    together = (d == 0.0) & ~np.eye(size, dtype=bool)
    for x, y in np.argwhere(together & (levels > 0.0)):
        if levels[x, y] > error or not _same_law(rows, int(x), int(y)):
            output = int(np.argmax(_row_ratio(rows.logs, int(x), int(y))))
            return Level(math.inf, (int(x), int(y)), output)
    apart = d > 0.0
    shorter = np.where(apart, d * (1.0 - 2.0**-49), 1.0)
    upper = np.where(apart, (levels + error) / shorter * (1.0 + 2.0**-51), -np.inf)
    lower = np.where(apart, (levels - error) / np.where(apart, d * (1.0 + 2.0**-49), 1.0), -np.inf)
    best = float(np.max(lower))
    if not np.any(apart):
        return Level(0.0, None, None)
    first, second = (int(i) for i in np.unravel_index(np.argmax(upper), upper.shape))
    at = int(np.argmax(_row_ratio(rows.logs, first, second)))
    candidates = np.argwhere(upper >= best)
    result = Level(-math.inf, None, None)
    count = 0
    for x, y in candidates:
        ratio = _row_ratio(rows.logs, int(x), int(y))
        for z in np.flatnonzero(ratio >= np.max(ratio) - 2.0 * error):
            count += 1
            if count > _CANDIDATES:
                return Level(max(float(np.max(upper)), 0.0), (first, second), at)
            slope = fraction_up(Fraction(rows.ratio_log(int(x), int(y), int(z))) / Fraction(float(shorter[x, y])))
            if slope > result.value:
                result = Level(slope, (int(x), int(y)), int(z))
    return result if result.value > 0.0 else Level(0.0, None, None)


def _row_ratio(logs: np.ndarray, x: int, y: int) -> np.ndarray:
    reached = logs[x] > -np.inf
    return np.where(reached, np.where(reached, logs[x], 0.0) - logs[y], -np.inf)


def _row_levels(logs: np.ndarray, x: int) -> np.ndarray:
    reached = logs[x] > -np.inf
    return np.max(logs[x, reached][None, :] - logs[:, reached], axis=1)


def _same_law(rows: ExactRows, x: int, y: int) -> bool:
    return bool(np.all(rows.entries[x] == rows.entries[y]))
