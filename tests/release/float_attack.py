"""An attacker who knows two possible inputs and sees published float64 values, bit by bit."""

from __future__ import annotations

import numpy as np


def lowest_bit(values: np.ndarray) -> np.ndarray:
    """Exponent of the lowest set bit of each float64; 5000 for zero."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    low = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(whole == 0, 5000, exponent - 53 + low)


def one_shot_proofs(train_a: np.ndarray, train_b: np.ndarray, test_a: np.ndarray) -> float:
    """Fraction of outputs of `a` whose lowest set bit was common (50 times) under `a` and never seen under `b`."""
    bits, counts = np.unique(lowest_bit(train_a), return_counts=True)
    proofs = np.setdiff1d(bits[counts >= 50], lowest_bit(train_b))
    return float(np.mean(np.isin(lowest_bit(test_a), proofs)))


def features(values: np.ndarray, step: float) -> np.ndarray:
    """(N, f): the value, its lowest set bit and its position modulo 2, 4, 8 and 16 steps, for each column of values."""
    columns = []
    for v in values.T:
        j = np.rint(v / step)
        columns += [v, np.minimum(lowest_bit(v), 60)]
        columns += [(np.mod(j, 2**m) == c).astype(float) for m in range(1, 5) for c in range(2**m)]
    return np.column_stack(columns)


def trained_advantage(a: np.ndarray, b: np.ndarray, step: float) -> float:
    """Largest P(say a | a) - P(say a | b), on held-out halves, of logistic regression and of the best single threshold.

    a, b: (N, n) outputs of each input.
    """
    table = features(np.concatenate([a, b]), step)
    label = np.repeat([1.0, 0.0], [len(a), len(b)])
    train = np.arange(len(label)) % 2 == 0
    table = (table - table[train].mean(0)) / np.maximum(table[train].std(0), 1e-9)
    design = np.column_stack([np.ones(len(label)), table])
    weights = np.zeros(design.shape[1])
    for _ in range(8):  # Newton's method on the logistic loss, with a ridge because the features are collinear
        p = 1 / (1 + np.exp(-np.clip(design[train] @ weights, -30, 30)))
        hessian = (design[train].T * (p * (1 - p))) @ design[train] + np.eye(len(weights))
        weights += np.linalg.solve(hessian, design[train].T @ (label[train] - p) - weights)
    test = label[~train] == 1
    says = [design[~train] @ weights > 0]
    best, choice = 0.0, None
    for column in table.T:  # the threshold and direction that did best in training
        for cut in np.quantile(column[train], np.linspace(0.1, 0.9, 9)):
            gap = np.mean(column[train][label[train] == 1] > cut) - np.mean(column[train][label[train] == 0] > cut)
            if abs(gap) > best:
                best, choice = abs(gap), (column[~train] > cut) == (gap > 0)
    if choice is not None:
        says.append(choice)
    return max(float(np.mean(say[test]) - np.mean(say[~test])) for say in says)
