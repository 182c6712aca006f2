"""What the page says about the file, and about earlier releases."""

from __future__ import annotations

import dataclasses

from jaxpriv.report.html import report_html
from jaxpriv.report.record import LedgerRecord, ReleasesRecord, TogetherRecord


def test_oddities_and_repairs_are_told_apart(parse, page):
    report, details = page
    content = parse(report_html(report, details)).by_id("file")[2]
    odd, repaired = content.index("Left as it is"), content.index("Repaired or dropped")
    assert odd < content.index(report.odd[0]) < repaired < content.index(report.cleaning[0])
    nothing = parse(report_html(dataclasses.replace(report, odd=(), cleaning=()), details)).by_id("file")[2]
    assert "Nothing in it looked odd." in nothing
    assert "Nothing was repaired or dropped." in nothing


def test_the_record_of_releases_is_shown_entry_by_entry(parse, page):
    report, details = page
    parsed = parse(report_html(dataclasses.replace(report, releases=ReleasesRecord(3, 2)), details))
    assert [row[1] for row in parsed.rows("release-table")] == ["3", "2"]
    unknown = parse(report_html(dataclasses.replace(report, releases=None), details))
    assert "nothing is known of earlier ones" in unknown.by_id("releases")[2]


def test_what_a_ledger_says_of_all_releases_together_is_shown(parse, page):
    report, details = page
    secret = TogetherRecord("the fix at 08:00", 2, 0.5, 1.2345)
    ledger = LedgerRecord(number=4, counted=3, limit=2.0, epsilon=1.2345, secrets=(secret,))
    content = parse(report_html(dataclasses.replace(report, ledger=ledger), details)).by_id("releases")[2]
    assert "release number 4 about this person" in content
    assert "1.24" in content
    assert "The fix at 08:00" in content
