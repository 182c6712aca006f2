"""The map of eight places, and slow definitions to compare with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from jaxpriv.channels.prior import DiscretePrior


sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def known() -> dict:
    """Known answers of the map of eight places; digits as printed there."""
    path = Path(__file__).parents[1] / "known_answers" / "obfuscation.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def eight(known) -> DiscretePrior:
    return DiscretePrior.from_counts(np.array(known["locations"], float), np.array(known["counts"], float))


@pytest.fixture(scope="session")
def eight_order(known) -> np.ndarray:
    return np.array(known["order"])


@pytest.fixture
def line():
    """Places on a line with given probabilities (uniform by default)."""

    def build(positions, probabilities=None) -> DiscretePrior:
        x = np.asarray(positions, float)
        mass = np.full(len(x), 1.0 / len(x)) if probabilities is None else np.asarray(probabilities, float)
        return DiscretePrior(np.stack([x, np.zeros_like(x)], axis=1), mass)

    return build


@pytest.fixture
def random_map(rng):
    """A random map: places in a square of side 10, Dirichlet probabilities."""

    def build(size: int, concentration: float = 1.0) -> DiscretePrior:
        return DiscretePrior(rng.uniform(size=(size, 2)) * 10.0, rng.dirichlet(np.full(size, concentration)))

    return build
