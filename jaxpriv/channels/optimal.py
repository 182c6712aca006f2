"""The channel of least expected loss, exactly: a sparse linear program, for small maps and as a cross-check."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float
from scipy.optimize import linprog

from jaxpriv.channels.channel_design import ChannelDesign, finished, within_limits
from jaxpriv.channels.inference import Guesses
from jaxpriv.channels.limits import geo_limits
from jaxpriv.channels.lower_bound import certified_lower_bound
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.problem import ChannelProblem, channel_problem
from jaxpriv.errors import CertificateError, InputError


# Rows that HiGHS solves in about a minute on one core (80,000 rows: 12 s).
MAX_ROWS = 200_000
# For the message only: 77,750 rows (50 places) took a peak of 118 MB beyond the process's start, the solver's code
# included.
_BYTES_PER_ROW = 1.5e3
# Beyond this many rows the interior point method is the faster.
_SIMPLEX_ROWS = 5_000


def optimal_channel(
    prior: DiscretePrior,
    epsilon: float | Sequence[float],
    *,
    sets: Sequence[Sequence[int]] | None = None,
    min_error: float = 0.0,
    outputs: Float[np.ndarray, "m 2"] | None = None,
    loss: Float[np.ndarray, "n m"] | None = None,
    guesses: Guesses = None,
    adversary_prior: Float[np.ndarray, " n"] | None = None,
    stretch: float | None = None,
    max_rows: int = MAX_ROWS,
    force: bool = False,
    drop: float = 1e-9,
) -> ChannelDesign:
    """The channel of least expected loss within its limits (Bordenabe et al. 2014), by linear programming.

    Without `sets` the limits are ε-geo-indistinguishability on the whole map, ε in nats for each unit of distance. With
    `sets` they are ε-differential privacy inside each set, in nats, and nothing is claimed across sets. `min_error`
    adds the second knob of Zhang et al. (arXiv:2101.12602) exactly: after any output the adversary's expected error is
    at least that; both knobs together are still one linear program.

    The solver's matrix is repaired and audited: its limits hold rounding included, outputs that no input publishes with
    more than `drop` are merged into others, and the loss and lower bound are those of what is returned.

    Args:
        prior: places (n, 2) and probabilities; they weigh the loss and, unless given, are the adversary's belief.
        epsilon: ε, or one for each set.
        sets: lists of positions.
        min_error: E_m, in the unit of the map; 0 for none.
        outputs: (m, 2), the places to publish; the map's own unless given.
        loss: (n, m), the loss of publishing z for x; the distance unless given.
        guesses: where the adversary may guess: None (the map's places), "half" (anywhere, safely) or places (g, 2).
        adversary_prior: (n,), the adversary's belief where it is not the prior.
        stretch: solve on the edges of a greedy spanner instead, at ε over its measured dilation (a channel for the full
            problem, a few percent dearer), and again at ε for a lower bound on the full problem.
        max_rows: programs with more rows are refused …
        force: … unless forced.
        drop: largest probability of an output that is merged away.

    Raises:
        InputError: wrong input, or a program with more than `max_rows` rows; the message gives the number.
        UnattainableError: min_error above the prior error; it names the guess and the largest attainable error.
        CertificateError: the solver failed, or its repaired matrix does not pass the audit.
    """
    began = time.perf_counter()
    problem = channel_problem(
        prior,
        epsilon,
        sets=sets,
        min_error=min_error,
        outputs=outputs,
        loss=loss,
        guesses=guesses,
        adversary_prior=adversary_prior,
        stretch=stretch,
        stricter=stretch is not None,
    )
    if problem.rows > max_rows and not force:
        raise InputError(
            f"the linear program of {prior.size} places has {problem.rows:,} rows, about "
            f"{problem.rows * _BYTES_PER_ROW / 1e9:.2g} GB, and the limit is {max_rows:,}. Pass stretch=1.1 for a "
            "spanner, use gradient_channel, which needs no linear program, or force=True to try all the same"
        )
    found = solve_program(problem)
    asked, bound = problem.limits, found.lower_bound
    if stretch is not None:
        asked = geo_limits(np.asarray(problem.prior.distances), float(np.asarray(epsilon)), stretch, reach=np.inf)
        bound = solve_program(problem.with_limits(asked)).lower_bound
    audited = problem.with_limits(asked)
    matrix, moved = within_limits(audited, found.matrix, drop)
    return finished(
        problem,
        matrix,
        asked=asked,
        lower_bound=bound,
        moved=moved,
        drop=drop,
        method="linear program" if stretch is None else f"linear program on a spanner, dilation {asked.dilation:.5f}",
        status=found.status,
        seconds=time.perf_counter() - began,
    )


class Solution(NamedTuple):
    """What the solver returned: `matrix` (n, m) unrepaired, its `value`, and a certified `lower_bound`."""

    matrix: np.ndarray
    value: float
    lower_bound: float
    status: str


def solve_program(problem: ChannelProblem) -> Solution:
    """Solve the program with HiGHS; the bound is recomputed from the multipliers in directed rounding.

    Raises CertificateError if HiGHS does not report an optimum.
    """
    n, m = problem.cost.shape
    directed, levels, limits = limit_rows(problem)
    rows = [limits]
    if problem.errors is not None:
        rows.append(error_rows(problem.errors, m))
    inequalities = sp.csr_matrix(sp.vstack(rows))
    sums = sp.csr_matrix((np.ones(n * m), (np.repeat(np.arange(n), m), np.arange(n * m))), shape=(n, n * m))
    # Costs of order one, whatever the unit: the solver's tolerances are absolute.
    scale = float(np.max(np.abs(problem.cost))) or 1.0
    result = linprog(
        problem.cost.ravel() / scale,
        A_ub=inequalities,
        b_ub=np.zeros(problem.rows - n),
        A_eq=sums,
        b_eq=np.ones(n),
        method="highs-ds" if problem.rows <= _SIMPLEX_ROWS else "highs-ipm",
    )
    if result.status != 0:
        raise CertificateError(f"HiGHS ended the linear program with: {result.message} Nothing is claimed")
    prices = -scale * np.asarray(result.ineqlin.marginals)
    count = len(directed) * m
    # The rows were scaled by 1/(1 + e^level), see `limit_rows`.
    row_scale = _row_scale(levels)
    bound = certified_lower_bound(
        problem.cost,
        directed,
        levels,
        prices[:count].reshape(-1, m) * row_scale[:, None],
        problem.errors,
        prices[count:].reshape(-1, m) if problem.errors is not None else None,
    )
    return Solution(result.x.reshape(n, m), scale * float(result.fun), bound, str(result.message))


def limit_rows(problem: ChannelProblem) -> tuple[np.ndarray, np.ndarray, sp.csr_matrix]:
    """Directed pairs (E, 2), their levels (E,), and the rows (K[x, z] − e^c K[y, z])/(1 + e^c) <= 0, (E m, n m)."""
    n, m = problem.cost.shape
    directed = np.concatenate([problem.limits.pairs, problem.limits.pairs[:, ::-1]])
    levels = np.concatenate([problem.limits.levels, problem.limits.levels])
    scale = _row_scale(levels)
    columns = np.arange(m)
    rows = np.arange(len(directed) * m)
    own = (directed[:, 0][:, None] * m + columns).ravel()
    other = (directed[:, 1][:, None] * m + columns).ravel()
    values = np.concatenate([np.repeat(scale, m), -np.repeat(1.0 - scale, m)])
    shape = (len(rows), n * m)
    matrix = sp.csr_matrix((values, (np.tile(rows, 2), np.concatenate([own, other]))), shape=shape)
    return directed, levels, matrix


def error_rows(errors: Float[np.ndarray, "g n"], m: int) -> sp.csr_matrix:
    """The rows −Σ_x errors[g, x] K[x, z] <= 0 for every guess and output, (g m, n m)."""
    return sp.csr_matrix(sp.kron(sp.csr_matrix(-errors), sp.identity(m)))


def _row_scale(levels: np.ndarray) -> np.ndarray:
    shrink = np.exp(-levels)
    return shrink / (1.0 + shrink)
