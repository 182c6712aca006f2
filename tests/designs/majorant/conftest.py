"""Floors of secrets under RBF and Matern priors, in their own shape or padded to a common one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from jaxpriv.designs.majorant.stack import FloorStack, inference_stack


def rbf(n: int, lengthscale: float, nugget: float) -> np.ndarray:
    i = np.arange(n)
    return np.exp(-((i[:, None] - i) ** 2) / (2 * lengthscale**2)) + nugget * np.eye(n)


def matern(n: int, lengthscale: float, order: int, nugget: float) -> np.ndarray:
    i = np.arange(n)
    a = np.sqrt(order) * np.abs(i[:, None] - i) / lengthscale
    return (1 + a + (a**2 / 3 if order == 5 else 0)) * np.exp(-a) + nugget * np.eye(n)


def stack_of(
    covariances: Sequence[np.ndarray],
    secrets: Sequence[Sequence[int]],
    targets: Sequence[float] | float,
    pad: tuple[int, int, int] | None = None,
) -> FloorStack:
    """Every secret under every covariance; `pad` = (n, J, k) pads coordinates with unit variance and no correlation,
    floors with empty secrets, and gives every floor a covariance of its own, so that all cases compile once."""
    targets = np.broadcast_to(np.asarray(targets, float), len(secrets))
    pairs = [(p, j) for p in range(len(covariances)) for j in range(len(secrets))]
    size = covariances[0].shape[0]
    n, count, k = pad or (size, len(pairs), max(map(len, secrets)))
    wide = np.stack([np.eye(n)] * len(covariances))
    wide[:, :size, :size] = covariances
    cross, variance = np.zeros((count, n, k)), np.stack([np.eye(k)] * count)
    mask, target = np.zeros((count, k), bool), np.ones(count)
    for i, (p, j) in enumerate(pairs):
        s = list(secrets[j])
        cross[i, :, : len(s)] = wide[p][:, s]
        variance[i, : len(s), : len(s)] = wide[p][np.ix_(s, s)]
        mask[i, : len(s)] = True
        target[i] = targets[j]
    index = [p for p, _ in pairs]
    if pad:
        wide, index = wide[index + [0] * (count - len(index))], list(range(count))
    return inference_stack(wide, index, cross, variance, target, mask=mask)


@pytest.fixture(scope="session")
def rbf_stack() -> Callable[..., FloorStack]:
    """(n, lengthscales, secrets, targets, nugget=1e-3, pad=None) -> FloorStack."""

    def build(n, lengthscales, secrets, targets, nugget=1e-3, pad=None):
        return stack_of([rbf(n, scale, nugget) for scale in lengthscales], secrets, targets, pad)

    return build


@pytest.fixture(scope="session")
def matern_stack() -> Callable[..., FloorStack]:
    """(n, secrets, targets): Matern-3/2 and 5/2 at length scales 3.05, 6.1, 12.2, nugget 1e-6."""

    def build(n, secrets, targets):
        return stack_of([matern(n, 6.1 * f, o, 1e-6) for o in (3, 5) for f in (0.5, 1, 2)], secrets, targets)

    return build


COMMON = (12, 11, 2)
"""n, J and k that hold every known answer, with the last floor always empty."""


@pytest.fixture(scope="session")
def common() -> tuple[int, int, int]:
    """The common shape of the known answers, so that tests share compiled programs."""
    return COMMON


@pytest.fixture(scope="session")
def known_answers(rbf_stack) -> list[tuple[str, FloorStack, float]]:
    """(name, floors in the common shape, least trace) of the six designs of known answers."""
    path = Path(__file__).parents[2] / "known_answers" / "majorants.json"
    cases = []
    for case in json.loads(path.read_text())["designs"]:
        secrets, targets = zip(*case["requirements"], strict=True)
        stack = rbf_stack(case["n"], case["lengthscales"], secrets, targets, pad=COMMON)
        cases.append((case["name"], stack, case["trace"]))
    return cases
