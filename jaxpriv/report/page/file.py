"""What was odd in the file, and what was done to it."""

from __future__ import annotations

from jaxpriv.report.page.words import bullets, paragraph
from jaxpriv.report.record import Report


def file(report: Report) -> str:
    """Write what was left as it was although it looks odd, and what was repaired or dropped."""
    odd, cleaning = report.odd, report.cleaning
    return (
        paragraph(f"{report.rows_read} rows were read and {report.rows_written} are written, at {report.points} times.")
        + (bullets(odd, "Left as it is, although it looks odd:") or paragraph("Nothing in it looked odd."))
        + (bullets(cleaning, "Repaired or dropped:") or paragraph("Nothing was repaired or dropped."))
    )
