"""What a release does not promise: said in every report."""

from __future__ import annotations


def not_claimed(simulated: bool) -> tuple[str, ...]:
    """List what the promise does not cover."""
    claims = (
        "Times are published in clear, and so are their gaps: the promise is about places, given the times.",
        "Other times: points far in time from the protected one are published almost as they were recorded.",
        "That this time is sensitive: the noise is stronger around it, and the released trace shows where in time.",
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
