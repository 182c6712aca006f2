"""The head of a report's page: where the prior came from, what is promised, and that the page is private."""

from __future__ import annotations

from html import escape

from jaxpriv.report.page.details import ReleaseDetails
from jaxpriv.report.page.words import percent
from jaxpriv.report.plain import odds_factor, with_unit
from jaxpriv.report.record import Report
from jaxpriv.report.rounding import given, significant
from jaxpriv.report.text import SIMULATED, prior_sentence
from jaxpriv.report.together import alone_words


def header(report: Report, details: ReleaseDetails) -> str:
    """Write the head as HTML."""
    count, unit = len(details.secrets), details.unit
    where = "At the protected time" if count == 1 else f"At each of the {count} protected times"
    alone = alone_words(report)
    where = f"{alone} {where[0].lower()}{where[1:]}" if alone else where
    radii = {secret.radius_m for secret in details.secrets}
    apart = (
        f"at most {with_unit(given(max(radii)), unit)} apart" if len(radii) == 1 else "no farther apart than its radius"
    )
    what, moved = ("places", "points were displaced") if details.on_map else ("values", "values were changed")
    banner = f'<p id="simulated" class="banner">{escape(SIMULATED)}</p>\n' if report.simulated else ""
    return (
        f'<header>\n<p id="prior" class="provenance">{escape(prior_sentence(report))}</p>\n{banner}'
        f'<h1 id="result">{where}, an attacker’s odds between any two {what} {escape(apart)} change by at most a '
        f"factor of {odds_factor(report.odds.exact_factor)}, except with a probability of "
        f"{percent(report.odds.delta)}; "
        f"{moved} by {escape(with_unit(significant(report.rms_noise_m), unit))} (root mean square).</h1>\n"
        f'<p class="private">Private: this page shows the true {"positions" if details.on_map else "values"}. Keep it '
        "where the original is kept; only the folder <code>share</code> may leave your hands.</p>\n</header>"
    )
