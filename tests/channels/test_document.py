"""The example of the page on channels runs and prints an audit."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np


def test_example_runs(capsys):
    text = (Path(__file__).parents[2] / "docs" / "channels.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict = {}
    exec(compile(code, "channels.md", "exec"), names)
    words = capsys.readouterr().out
    assert "the exact integer table" in words and "fails" not in words
    assert names["published"].shape == (3,) and np.all(names["published"] < 8)
