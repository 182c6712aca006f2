"""docs/file_format.md names every entry that is written."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import protect_file
from jaxpriv.jobs.target import Target
from jaxpriv.jobs.verify import verify_folder
from jaxpriv.report.reading import LATER
from jaxpriv.report.record import Report


DOCUMENT = (Path(__file__).parents[2] / "docs/file_format.md").read_text(encoding="utf-8")


def _names(content) -> set[str]:
    """All names in parsed JSON, at any depth."""
    if isinstance(content, dict):
        return set(content) | {name for value in content.values() for name in _names(value)}
    if isinstance(content, list):
        return {name for value in content for name in _names(value)}
    return set()


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("format")
    rows = [f"{20 * i},{45 + math.sin(i * i) * 1e-3:.7f},{-30 + math.cos(i) * 1e-3:.7f}" for i in range(6)]
    (folder / "in.csv").write_text("time,lat,lon\n" + "\n".join(rows) + "\n")
    prior = PriorChoice("matern32", 60.0, 300.0, 1.0)
    protect_file(folder / "in.csv", folder / "out", [60 * 10**6], Target(200.0, 1.0), prior)
    return folder / "out"


@pytest.mark.parametrize("name", ["share/release.json", "private/report.json", "private/record.json"])
def test_every_entry_is_described_with_its_version(out, name):
    content = json.loads((out / name).read_text())
    file = name.split("/")[1]
    (section,) = re.findall(
        rf"^## {re.escape(file)}, version {content['format_version']}\b.*?(?=^## )", DOCUMENT, re.S | re.M
    )
    assert f"`{content['format']}`" in section
    described = set(re.findall(r"`([a-z0-9_]+)`", section))
    assert _names(content) - {"format", "format_version"} <= described


def test_a_report_without_the_later_entries_is_checked_as_one_with_them(out, tmp_path):
    older = tmp_path / "older"
    shutil.copytree(out, older)
    path = older / "private/report.json"
    content = json.loads(path.read_text())
    later = {one.name for one in dataclasses.fields(Report) if one.metadata == LATER}
    assert later == {"odd", "unit", "ledger"}
    path.write_text(json.dumps({name: value for name, value in content.items() if name not in later}))
    assert verify_folder(older) == verify_folder(out)
    assert verify_folder(older).verified
    for name in later:
        (row,) = re.findall(rf"^\|[^|]*`{name}`.*\|$", DOCUMENT.partition("## report.json")[2], re.M)
        assert "later" in row


def test_every_array_is_described_with_its_version(out):
    with np.load(out / "private/mechanism.npz") as stored:
        (section,) = re.findall(
            rf"^## mechanism\.npz, version {int(stored['format_version'])}\b.*?(?=^## )", DOCUMENT, re.S | re.M
        )
        assert f"`{stored['format']}`" in section
        assert set(stored.files) == set(re.findall(r"`([a-z_]+)`", section.partition("| array |")[2])) - {"release"}


def test_the_tree_is_what_is_written(out):
    tree = DOCUMENT.partition("```")[2].partition("```")[0]
    files = {path.name for path in out.rglob("*") if path.is_file()}
    assert files == set(re.findall(r"^    (\S+\.\w+) ", tree, re.M))
