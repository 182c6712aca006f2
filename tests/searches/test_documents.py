"""The examples of the document run, and show what the text says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest


DOCUMENT = Path(__file__).parents[2] / "docs" / "mechanism_search.md"
BLOCKS = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


def run(*positions: int) -> dict:
    names: dict = {}
    for position in positions:
        exec(compile(BLOCKS[position], f"{DOCUMENT.name}, example {position}", "exec"), names)
    return names


def test_a_known_optimum_in_under_thirty_lines():
    assert len(BLOCKS) == 4 and len(BLOCKS[0].strip().splitlines()) < 30
    names = run(0)
    assert names["found"].result.name == "stationary"
    assert 0.0 <= names["found"].value / names["known"] - 1.0 <= 1e-8


@pytest.mark.slow
def test_a_learned_spectrum():
    names = run(0, 1)
    found = names["every_point"]
    # Never below the bound 1/variance; the text calls it close, and white noise is not.
    assert 0.25 <= found.value <= 0.27 < names["white"]
    power = np.asarray(found.mechanism.power)
    assert np.min(power) >= 0.0
    np.testing.assert_allclose(np.trace(found.mechanism.covariance), 64.0, rtol=1e-12)


@pytest.mark.slow
def test_banded_noise():
    names = run(0, 1, 2)
    streamed, best = names["streamed"], names["best"]
    covariance = np.asarray(streamed.mechanism.covariance)
    assert np.all(covariance[np.abs(np.subtract.outer(np.arange(16), np.arange(16))) > 3] == 0.0)
    assert best.lower_bound <= streamed.value


@pytest.mark.slow
def test_two_kinds_of_requirements():
    names = run(0, 1, 3)
    mixed = names["mixed"]
    assert mixed.result.name in ("stationary", "stalled")
    assert 0.0 <= mixed.residual <= 1e-5
    assert float(np.max(names["inferential"](mixed.mechanism))) <= 1e-5
    assert float(names["leakage"](mixed.mechanism)) <= 1e-5
