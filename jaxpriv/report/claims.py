"""What a release is certified to do, and what it does not promise: said in every report."""

from __future__ import annotations

from jaxpriv.report.rounding import significant


_SOME = (
    "Other times: points far in time from the protected one are published almost as they were recorded.",
    "That this time is sensitive: the noise is stronger around it, and the released trace shows where in time.",
)
_EVERY = ("Places between the fixes, and facts about several fixes at once, such as the way taken or its length.",)


def guarantee(tau: float | None, ledger: bool = False) -> str:
    """Say what is certified, in one breath; `tau` is None for simulated output, about which nothing is.

    With a `ledger` its own joint certificate stands beside this one.
    """
    if tau is None:
        return "Nothing is certified about this file: it is simulated output, made from a seed."
    return (
        f"The published integers are distributed within total variation τ = {significant(tau, 2, 'up')} of an exact "
        "Gaussian release rounded to the public grid, provided that the operating system's random generator cannot be "
        "told from uniform bytes and the attacker sees the output and nothing else. ε is a rigorous upper bound for "
        "that exact release under each stated prior, for its float64 parameters taken exactly; τ is a probability that "
        "comes on top of δ. Nothing is claimed if the true law of the trace is none of the stated priors, if facts "
        "outside them are known, about running time or memory, or about "
        + ("releases that are not in the ledger." if ledger else "several releases together.")
    )


def not_claimed(simulated: bool, every: bool = False) -> tuple[str, ...]:
    """List what the promise does not cover; `every` is True when all fixes are protected, each by itself."""
    claims = (
        "Times are published in clear, and so are their gaps: the promise is about places, given the times.",
        *(_EVERY if every else _SOME),
        "Facts outside the prior: a receipt, a photograph, a companion's trace or a door that is the only one "
        "near by can tell more than the odds above.",
        "An attacker whose prior differs: a smoother or longer-ranging one can undo part of the noise.",
        "Several protected times jointly: each is protected by itself, not all of them together.",
        "Repeated releases: a second release of the same trace, or of an overlapping one, combines with the first and "
        "can reveal far more than both promises added.",
        "Places farther apart than the radius: odds between them can change more, with the square of their distance.",
    )
    first = ("Anything, for this file: it is simulated output and not private.",) if simulated else ()
    return first + claims
