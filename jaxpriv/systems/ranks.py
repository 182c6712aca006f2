"""The rank of what outputs say about a state: a diagnostic in double precision, on the host."""

from __future__ import annotations

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.precision import double_precision
from jaxpriv.priors.state_space import LinearSystem


def history_rank(
    system: LinearSystem, observer: str = "filter", *, steps: int | None = None, tolerance: float = 1e-9
) -> int:
    """The numerical rank of [ΣCᵀ, AΣCᵀ, …, A^{n−1}ΣCᵀ], for the smoother with the blocks Σ(Aᵀ)^jCᵀ beside.

    That is the rank of the cross-covariance of a state and all outputs heard so far (`steps` of them), the
    controllability of (A, ΣCᵀ) and not the observability of (A, C): either can be the smaller. A diagnostic: an ε
    computed with a rank that a tolerance made too small is too small, so that `state_leakage` uses n unless told that
    the structure of the system makes the rank smaller.

    Raises:
        InputError: an observer other than "filter" or "smoother", an unstable system, no step.
    """
    if observer not in ("filter", "smoother"):
        raise InputError(f"observer is {observer!r}; expected filter or smoother.")
    if steps is not None and steps < 1:
        raise InputError(f"steps is {steps}; expected the number of outputs, at least 1.")
    with double_precision():
        stationary = np.asarray(system.stationary)
    if not np.all(np.isfinite(stationary)):
        raise InputError("A is not stable: there is no stationary covariance.")
    A, C = np.asarray(system.A, dtype=np.float64), np.asarray(system.C, dtype=np.float64)
    count = len(A) if steps is None else min(len(A), steps)
    past, rows = stationary @ C.T, C.T
    blocks = []
    for _ in range(count):
        blocks.append(past)
        if observer == "smoother":
            blocks.append(stationary @ rows)
        past, rows = A @ past, A.T @ rows
    return int(np.linalg.matrix_rank(np.concatenate(blocks, axis=1), tol=tolerance * np.linalg.norm(blocks[0], 2)))
