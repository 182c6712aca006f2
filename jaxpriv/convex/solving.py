"""Size limits, the solver call, and the result that every convex program returns."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxpriv.convex.conditional import symmetric
from jaxpriv.errors import CertificateError, InfeasibleError, InputError


# Peak memory of Clarabel on the one-secret program, two cones of order n: 0.20 GB at n = 50 and 2.87 GB at n = 100,
# that is 60 bytes for each squared number of rows of a cone.
BYTES_PER_SQUARED_ROW = 60.0


@dataclass(frozen=True)
class ConvexSolution:
    """What a convex program returned, with everything that can be recomputed from its matrix recomputed.

    * `covariance` (n, n): the noise covariance, symmetrised and lifted to be positive semidefinite.
    * `cost`: its trace (or weighted trace), squared units.
    * `loss`: its precision gain, recomputed from `covariance` and rounded up, in 1/variance; None where the program
      speaks of floors and not of a secret.
    * `objective`: the solver's own optimal value, of the quantity the program optimises. Never a loss.
    * `status`, `solver`, `seconds`: as the solver reports them; seconds are of the wall clock, compilation included.
    * `repair`: how much noise was added to every coordinate to make the solver's matrix meet its own constraints.
    """

    covariance: np.ndarray
    cost: float
    loss: float | None
    objective: float
    status: str
    solver: str
    seconds: float
    repair: float


def cvxpy() -> Any:
    """The cvxpy module, imported on first use; InputError with the command that installs it when it is absent."""
    try:
        import cvxpy as cp
    except ImportError as error:
        raise InputError('the convex programs need cvxpy and its solvers: pip install "jaxpriv[convex]"') from error
    return cp


def predicted_size(cones: Sequence[int]) -> tuple[int, float]:
    """Rows and bytes that an interior-point solver needs for semidefinite cones of the given orders."""
    rows = [order * (order + 1) // 2 for order in cones]
    return sum(rows), BYTES_PER_SQUARED_ROW * sum(row**2 for row in rows)


def check_size(cones: Sequence[int], n_max: int) -> None:
    """Refuse a program larger than a one-secret program of n_max points, before anything is built.

    Raises InputError that states the predicted rows and memory and what to use instead.
    """
    rows, size = predicted_size(cones)
    _, limit = predicted_size([n_max, n_max + 1])
    if size > limit:
        raise InputError(
            f"this convex program has {rows:,} rows in {len(cones)} semidefinite cones of order up to {max(cones)}: "
            f"about {size / 1e9:.2g} GB, and time growing as the fifth power. The limit is a one-secret program "
            f"with n_max={n_max}. jaxpriv.design needs no convex solver at this size; pass a larger n_max to "
            "try all the same"
        )


def run(problem: Any, solver: str, options: Mapping[str, Any] | None, what: str) -> tuple[str, float]:
    """Solve a CVXPY problem; return its status and the seconds it took.

    Raises InfeasibleError when the solver proves that nothing is feasible, and CertificateError when it fails.
    """
    cp = cvxpy()
    if solver not in cp.installed_solvers():
        raise InputError(f"solver {solver!r} is not installed; cvxpy sees {', '.join(cp.installed_solvers())}")
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Solution may be inaccurate", category=UserWarning)
            problem.solve(solver=solver, **dict(options or {}))
    except cp.error.SolverError as error:
        raise CertificateError(f"{solver} failed on the {what}; nothing is claimed. Try solver='SCS'") from error
    seconds = time.perf_counter() - start
    if problem.status in ("infeasible", "infeasible_inaccurate"):
        raise InfeasibleError(f"{solver} found the {what} infeasible")
    if problem.status not in ("optimal", "optimal_inaccurate"):
        raise CertificateError(f"{solver} ended the {what} with status {problem.status!r}; nothing is claimed")
    return problem.status, seconds


def lifted(noise: np.ndarray) -> tuple[np.ndarray, float]:
    """The symmetric part of a solver's matrix (n, n) plus the multiple of I that makes it PSD, and that multiple."""
    noise = symmetric(noise)
    lift = max(0.0, -float(np.linalg.eigvalsh(noise)[0]))
    return noise + lift * np.eye(len(noise)), lift
