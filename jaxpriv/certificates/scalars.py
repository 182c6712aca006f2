"""Scalar functions rounded outward: Python's `decimal`, whose operations, exp and ln are correctly rounded.

Every function returns a double that is provably on the safe side of the exact value for the exact doubles it is given.
"""

from __future__ import annotations

import contextlib
import decimal
import functools
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction

from scipy import special

from jaxpriv.certificates.arithmetic import fraction_up, up
from jaxpriv.errors import InputError


_DIGITS = 60
_LARGEST = 1e300  # a squared ratio above this is treated as infinite


def renyi_epsilon(loss: float, times: int, radius: float, order: float) -> float:
    """Upper bound of `(order / 2) times radius^2 loss` (nats): Theorem 3.4 of Meehan & Chaudhuri (AISTATS 2021).

    `loss` in 1 / squared unit of `radius`. Raises InputError for negative or NaN arguments or an order not above 1.
    """
    if not (order > 1 and math.isfinite(order)):
        raise InputError(f"order must be above 1 and finite; it is {order}.")
    if loss == math.inf:
        return math.inf
    return fraction_up(Fraction(order) / 2 * divergence(loss, times, radius))


def divergence(loss: float, times: int, radius: float) -> Fraction:
    """The exact squared signal-to-noise ratio `times radius^2 loss` for a finite loss."""
    if not (loss >= 0 and times >= 1 and 0 < radius < math.inf):
        raise InputError(f"loss, times and radius must be non-negative, >= 1, positive: {loss}, {times}, {radius}.")
    return Fraction(times) * Fraction(radius) ** 2 * Fraction(loss)


def odds_bound(epsilon: float, delta: float, order: float) -> float:
    """Upper bound of `epsilon + log(1/delta) / (order - 1)` (nats).

    The log-odds of two hypotheses move by no more than this with probability at least `1 - delta` (Theorem 3.1 of
    Meehan & Chaudhuri, AISTATS 2021; a Markov bound). Raises InputError unless 0 < delta < 1, order > 1, epsilon >= 0.
    """
    _check_delta(delta)
    if not (order > 1 and math.isfinite(order)) or not epsilon >= 0:
        raise InputError(f"order must be above 1 and epsilon non-negative; they are {order} and {epsilon}.")
    if math.isinf(epsilon):
        return math.inf
    with _precision(_DIGITS):
        return _decimal_up(Decimal(epsilon) - Decimal(delta).ln() / (Decimal(order) - 1), relative=-50)


def log_bounds(value: float) -> tuple[float, float]:
    """Bounds `(lower, upper)` of the natural logarithm of a positive double."""
    if not (value > 0 and math.isfinite(value)):
        raise InputError(f"a logarithm needs a positive finite number; it is {value}.")
    with _precision(_DIGITS):
        exact = Decimal(value).ln()
        return -_decimal_up(-exact, relative=-50), _decimal_up(exact, relative=-50)


def exp_upper(value: float) -> float:
    """Upper bound of the exponential of a double (`inf` above the range of doubles)."""
    if math.isnan(value):
        raise InputError("an exponential needs a number; it is NaN.")
    if value > 709:
        return math.inf
    if value < -745:
        return math.ulp(0.0)
    with _precision(_DIGITS):
        return _decimal_up(Decimal(value).exp(), relative=-50)


def gaussian_delta(squared_ratio: float | Fraction, epsilon: float) -> float:
    """Upper bound of `Phi(m/2 - e/m) - exp(e) Phi(-m/2 - e/m)`, m^2 = `squared_ratio`, e = `epsilon` (nats).

    The exact trade-off of two Gaussians of one covariance (Balle & Wang, ICML 2018): the smallest delta for which every
    event's probability under one hypothesis is at most `exp(epsilon)` times that under the other, plus delta.
    """
    if not (squared_ratio >= 0 and 0 <= epsilon < math.inf):
        raise InputError(f"squared ratio and epsilon must be non-negative: {squared_ratio}, {epsilon}.")
    if squared_ratio == 0:
        return 0.0
    if squared_ratio > _LARGEST:
        return 1.0
    squared = Fraction(squared_ratio)
    tiny = max(0, -math.floor(math.log10(max(float(squared), 1e-300))))
    with _precision(_DIGITS + 2 * tiny) as digits:
        step = Decimal(10) ** (8 - digits)
        ratio = (Decimal(squared.numerator) / Decimal(squared.denominator)).sqrt() * (1 + step)
        half, part = ratio / 2, Decimal(epsilon) / ratio
        reach = (half + part) * step
        high = _normal_cdf(half - part + reach)[1]
        low = _normal_cdf(-half - part - reach)[0]
        try:
            subtracted = Decimal(epsilon).exp() * low * (1 - step)
        except decimal.Overflow:
            subtracted = Decimal(0)
        exact = high * (1 + step) - subtracted
        return min(max(_decimal_up(exact, relative=8 - digits), math.ulp(0.0)), 1.0)


def gaussian_epsilon(squared_ratio: float | Fraction, delta: float) -> float:
    """Upper bound of the smallest epsilon (nats) with `gaussian_delta(squared_ratio, epsilon) <= delta`."""
    _check_delta(delta)
    if not squared_ratio >= 0:
        raise InputError(f"the squared ratio must not be negative; it is {squared_ratio}.")
    if squared_ratio > _LARGEST:
        return math.inf
    if gaussian_delta(squared_ratio, 0.0) <= delta:
        return 0.0
    ratio = math.sqrt(squared_ratio)
    start = ratio * (ratio / 2 + max(float(-special.ndtri(delta)), 1e-3))
    return _smallest_accepted(lambda epsilon: gaussian_delta(squared_ratio, epsilon) <= delta, start)


def chi_square_tail(quantile: float, degrees: int) -> float:
    """Upper bound of the probability that a chi-square variable of `degrees` degrees of freedom exceeds `quantile`."""
    if not (degrees >= 1 and int(degrees) == degrees and quantile >= 0):
        raise InputError(f"degrees must be a positive integer, the quantile non-negative: {degrees}, {quantile}.")
    if quantile == math.inf:
        return 0.0
    with _precision(_DIGITS) as digits:
        x = Decimal(quantile) / 2
        if degrees % 2 == 0:
            term, total, steps = Decimal(1), Decimal(1), degrees // 2 - 1
            offset = Decimal(0)
        else:
            # terms x^(j - 1/2) / Gamma(j + 1/2), j = 1 .. (degrees - 1) / 2
            term = 2 * (x / _pi(digits)).sqrt()
            steps, offset = (degrees - 1) // 2 - 1, Decimal("0.5")
            total = term if degrees > 1 else Decimal(0)
        for j in range(1, steps + 1):
            term = term * x / (j + offset)
            total += term
        tail = (-x).exp() * total
        if degrees % 2:
            root = x.sqrt()
            tail += 2 * _normal_cdf(-root * Decimal(2).sqrt() * (1 - Decimal(10) ** (2 - digits)))[1]
        return min(max(_decimal_up(tail, relative=9 + len(str(degrees)) - digits), math.ulp(0.0)), 1.0)


@functools.lru_cache(maxsize=1024)
def chi_square_quantile(degrees: int, delta: float) -> float:
    """Upper bound of the quantile that a chi-square variable exceeds with probability `delta`.

    Accepted only when a rigorous bound of the tail beyond it is at most `delta`.
    """
    _check_delta(delta)
    start = 2 * float(special.gammainccinv(degrees / 2, delta))
    if not (0 < start < math.inf):
        start = float(degrees)
    return _smallest_accepted(lambda quantile: chi_square_tail(quantile, degrees) <= delta, start)


def _smallest_accepted(accept: Callable[[float], bool], start: float) -> float:
    """About the smallest double accepted by a predicate that is true above some point; always an accepted one."""
    step = 2.0**-51
    if accept(start):
        high = low = start
        while low > 0 and accept(low):
            high, low = low, low * (1 - min(step, 0.9375))
            step *= 4
        if low <= 0:
            return high
    else:
        low = high = start
        while not accept(high):
            low, high = high, high * (1 + step)
            step *= 4
            if math.isinf(high):
                return math.inf
    while high - low > 2 * math.ulp(high):
        middle = math.sqrt(low) * math.sqrt(high) if high > 4 * low else low + (high - low) / 2
        if not low < middle < high:
            break
        if accept(middle):
            high = middle
        else:
            low = middle
    return high


def _normal_cdf(x: Decimal) -> tuple[Decimal, Decimal]:
    """Bounds of the standard normal distribution function at an exact decimal, in the current precision."""
    digits = decimal.getcontext().prec
    slack = Decimal(10) ** (6 - digits)
    half = _complementary_error(abs(x), slack)
    if x <= 0:
        return half
    return 1 - half[1] - slack, 1 - half[0] + slack


def _complementary_error(x: Decimal, slack: Decimal) -> tuple[Decimal, Decimal]:
    """Bounds of `erfc(x / sqrt 2) / 2 = Phi(-x)`, x >= 0, both relative to the value."""
    square = x * x
    if square < 9:
        # Phi(x) - 1/2 = density(x) (x + x^3/3 + x^5/15 + ...): positive terms; what follows is below the last one
        # once the ratio of terms is below one half.
        term, total, j = x, x, 1
        while term > slack * slack * (1 + total) or square > j + Decimal("0.5"):
            term = term * square / (2 * j + 1)
            total += term
            j += 1
        density = (-square / 2).exp() / (2 * _pi(decimal.getcontext().prec)).sqrt()
        return Decimal("0.5") - density * (total + 2 * term) - slack, Decimal("0.5") - density * total + slack
    # Mills ratio 1/(x + 1/(x + 2/(x + 3/(x + ...)))): successive convergents lie on both sides.
    digits = decimal.getcontext().prec
    depth = int((digits * 2.4) ** 2 / float(min(8 * square / 2, Decimal(10) ** 12))) + 20
    density = (-square / 2).exp() / (2 * _pi(digits)).sqrt()
    first, second = sorted(density * _convergent(x, n) for n in (depth, depth + 1))
    return first * (1 - slack * depth), second * (1 + slack * depth)


def _convergent(x: Decimal, depth: int) -> Decimal:
    value = x
    for j in range(depth, 0, -1):
        value = x + j / value
    return 1 / value


@functools.lru_cache(maxsize=64)
def _pi(digits: int) -> Decimal:
    """pi to `digits` digits by Machin's formula in integers."""

    def arctangent_of_inverse(n: int, unit: int) -> int:
        power, total, j = unit // n, unit // n, 1
        while power:
            power //= n * n
            j += 2
            total += power // j if j % 4 == 1 else -(power // j)
        return total

    unit = 10 ** (digits + 20)
    scaled = 4 * (4 * arctangent_of_inverse(5, unit) - arctangent_of_inverse(239, unit))
    with decimal.localcontext() as context:
        context.prec = digits + 10
        return Decimal(scaled) / Decimal(unit)


def _decimal_up(value: Decimal, relative: int) -> float:
    """The double above `value (1 + 10^relative)` away from the exact value, whatever its sign."""
    enlarged = value + abs(value) * Decimal(10) ** relative
    rounded = float(enlarged)
    if math.isinf(rounded) and enlarged < 0:
        return -1.7976931348623157e308
    return rounded if math.isinf(rounded) or Decimal(rounded) >= enlarged else up(rounded)


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InputError(f"delta must lie strictly between 0 and 1; it is {delta}.")


@contextlib.contextmanager
def _precision(digits: int) -> Iterator[int]:
    """A local decimal context of so many digits and the widest exponents; gives the number of digits."""
    with decimal.localcontext() as context:
        context.prec, context.Emax, context.Emin = digits, decimal.MAX_EMAX, decimal.MIN_EMIN
        context.rounding = decimal.ROUND_HALF_EVEN
        yield digits
