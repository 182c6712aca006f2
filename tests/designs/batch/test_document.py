"""The code of the document about batches runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_code_runs():
    text = (Path(__file__).parents[3] / "docs" / "batches.md").read_text()
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(block, "batches.md", "exec"), names)
    assert (names["batch"].epsilon <= 1.0).all()
    assert len(names["fits"]) == 2
