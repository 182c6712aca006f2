"""What docs/linear_systems.md says in numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from jaxpriv.pml import conditional_failure


TESTS = Path(__file__).parents[1]
TEXT = (TESTS.parent / "docs" / "linear_systems.md").read_text(encoding="utf-8")
ZONES = json.loads((TESTS / "known_answers" / "linear_systems.json").read_text())["zones"]


def test_example_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(code, "docs/linear_systems.md", "exec"), {})
    found = [float(line.rsplit(" ", 1)[1]) for line in capsys.readouterr().out.strip().splitlines()[1:]]
    assert len(found) == 4 and found == sorted(found)


def test_numbers_of_the_caveats():
    (filters, smoothers) = re.search(r"filter gets (.*?) and the\s+smoother (.*?),", " ".join(TEXT.split())).groups()
    for words, name in ((filters, "filter_epsilon"), (smoothers, "smoother_epsilon")):
        assert words == f"{min(ZONES[name]):.2f} to {max(ZONES[name]):.2f}"
    assert f"smoother up to {max(ZONES['smoother_epsilon_of_filter_noise']):.2f}" in " ".join(TEXT.split())
    assert [f"{value:.1f}" for value in ZONES["trajectory_epsilon"].values()] == ["3.0", "15.2", "117.6"]
    assert "3.0, 15.2 and 117.6 nats" in TEXT
    information = 3.0 - 0.5 * 3.841458820694
    assert float(conditional_failure(information, 3.0, 2.0)) == pytest.approx(0.41, abs=5e-3)
    assert float(conditional_failure(information, 3.0, 3.0)) == pytest.approx(0.99, abs=5e-3)
