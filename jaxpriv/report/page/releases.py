"""What is on record about earlier releases, and what all of them tell together."""

from __future__ import annotations

from jaxpriv.report.page.parameters import flat_rows
from jaxpriv.report.page.words import bullets, paragraph, two_columns
from jaxpriv.report.record import Report
from jaxpriv.report.together import together_lines


_NAMES = {
    "number": "This is release number",
    "overlapping": "Earlier releases with fixes at the same times",
}


def releases(report: Report) -> str:
    """Write what the ledger says, where one is kept, and every entry of the private record of releases."""
    parts = []
    if report.ledger is not None:
        parts.append(bullets(together_lines(report.ledger)))
    if report.releases is not None:
        rows = [
            (_NAMES.get(name, name.replace(".", ": ").replace("_", " ")), value)
            for name, value in flat_rows(report.releases)
        ]
        parts.append(two_columns("release-table", "Releases on record", rows))
    return "".join(parts) or paragraph(
        "No record of releases was kept for this file, so nothing is known of earlier ones."
    )
