"""What a bound on one divergence implies about another, and the inequality that says so."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from jaxpriv.errors import InputError


NOTIONS = ("max", "max_both", "kl", "chi_squared", "hellinger", "total_variation")


@dataclass(frozen=True)
class Implication:
    """`value` bounds the divergence `to`; `steps` are the inequalities used, in order."""

    to: str
    value: float
    steps: tuple[str, ...]


# From, to, the bound as a function of the bound, and its statement. H is 1 − Σ√(pq); D is the max divergence, and
# max_both its larger value over both orders. Sources: Tsybakov (2009), section 2.4; Sason and Verdú (2016); the two
# sharp bounds for D in both directions are derived here, proof in docs/distribution.md.
_STEPS = (
    ("hellinger", "total_variation", lambda h: math.sqrt(min(h, 1.0) * (2.0 - min(h, 1.0))), "TV ≤ √(H(2 − H))"),
    ("total_variation", "hellinger", lambda v: v, "H ≤ TV"),
    ("kl", "hellinger", lambda k: 0.5 * k, "2H ≤ KL"),
    ("kl", "total_variation", lambda k: math.sqrt(0.5 * k), "TV ≤ √(KL/2)"),
    ("chi_squared", "kl", math.log1p, "KL ≤ log(1 + χ²)"),
    ("max", "kl", lambda d: d, "KL ≤ D"),
    ("max", "chi_squared", math.expm1, "χ² ≤ e^D − 1"),
    ("max", "total_variation", lambda d: -math.expm1(-d), "TV ≤ 1 − e^−D"),
    ("max_both", "max", lambda d: d, "one order is at most both"),
    ("max_both", "kl", lambda d: d * math.tanh(0.5 * d), "KL ≤ D tanh(D/2)"),
    ("max_both", "total_variation", lambda d: math.tanh(0.5 * d), "TV ≤ tanh(D/2)"),
    ("max_both", "chi_squared", lambda d: 2.0 * (math.cosh(d) - 1.0), "χ² ≤ 2 cosh D − 2"),
    ("max_both", "hellinger", lambda d: 1.0 - 1.0 / math.cosh(0.5 * d), "H ≤ 1 − 1/cosh(D/2)"),
)
_CEILING = {"total_variation": 1.0, "hellinger": 1.0}


def implied(notion: str, value: float, to: str) -> Implication | None:
    """The best bound on the divergence `to` that follows from D(p‖q) ≤ `value` for the divergence `notion`.

    Names: "max" (one order), "max_both" (both orders), "kl", "chi_squared", "hellinger" (1 − Σ√(pq)) and
    "total_variation".
    Values are rounded to nearest, then up by a few units. None where nothing follows: a bound on KL says nothing of a
    ratio.

    Raises:
        InputError: an unknown name, or a value that is negative or not a number.
    """
    for name in (notion, to):
        if name not in NOTIONS:
            raise InputError(f"{name!r} is not one of {', '.join(NOTIONS)}.")
    if not value >= 0.0:
        raise InputError(f"value is {value}; expected a divergence of at least 0.")
    best = {notion: Implication(notion, value, ())}
    waiting = deque([notion])
    while waiting:
        here = best[waiting.popleft()]
        for start, end, bound, statement in _STEPS:
            if start != here.to:
                continue
            reached = _bounded(bound, here.value, end)
            if end not in best or reached < best[end].value:
                best[end] = Implication(end, reached, (*here.steps, statement))
                waiting.append(end)
    return best.get(to)


def _bounded(bound, value: float, end: str) -> float:
    ceiling = _CEILING.get(end, math.inf)
    if math.isinf(value):
        return ceiling
    try:
        reached = bound(value)
    except (OverflowError, ValueError):
        return ceiling
    return min(reached * (1.0 + 8 * 2.0**-53), ceiling)
