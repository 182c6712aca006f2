"""SDP_A and Algorithm 1 of Meehan & Chaudhuri (AISTATS 2021), as printed and as their published code solves them.

SDP_A replaces the inverse in the loss by an approximate one, so its optimal value β says nothing about privacy: 1/β
under-reports the loss of its own matrix, at times several-fold. Every `loss` here is recomputed from the matrix.
SDP_B is `least_majorant` with positive semidefinite floors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxpriv.convex.conditional import Conditional, checked_positive, conditional, order
from jaxpriv.convex.majorant import least_majorant
from jaxpriv.convex.solving import ConvexSolution, check_size, cvxpy, run
from jaxpriv.convex.whitening import solution
from jaxpriv.errors import InputError


def sdp_a_printed(
    covariance: np.ndarray,
    secret: Sequence[int] | np.ndarray,
    budget: float,
    *,
    solver: str = "CLARABEL",
    options: Mapping[str, Any] | None = None,
    n_max: int = 60,
) -> ConvexSolution:
    """SDP_A word by word: max β with H⁺(C + G)H⁺ᵀ ⪰ β I, G = blkdiag(σ² I, G_UU) ⪰ 0 and tr G ≤ budget.

    Degenerate, and kept to show it: for a secret of one coordinate the left side is linear in (σ², G_UU), so the whole
    budget goes to one of them. When it goes to G_UU the secret itself gets no noise and `loss` is infinite in exact
    arithmetic (huge, in a solver's). `covariance` (n, n), `secret` positions, `budget` in squared units.
    """
    given, inverse = _surrogate(covariance, secret, n_max)
    budget = checked_positive(budget, "budget", "squared units")
    n, unit, own, rest = given.size, budget / given.size, given.positions, given.rest
    cp = cvxpy()
    beta, variance = cp.Variable(), cp.Variable(nonneg=True)
    free: Any = cp.Variable((len(rest), len(rest)), PSD=True) if len(rest) else np.zeros((0, 0))
    on_secret, on_rest = inverse[:, own], inverse[:, rest]
    scale = _surrogate_value(given, inverse, unit)
    achieved = inverse @ given.covariance @ inverse.T + unit * variance * (on_secret @ on_secret.T)
    cost = len(own) * variance
    if len(rest):
        achieved = achieved + unit * (on_rest @ free @ on_rest.T)
        cost = cost + cp.trace(free)
    problem = cp.Problem(cp.Maximize(beta), [achieved / scale >> beta * np.eye(len(own)), cost <= n])
    status, seconds = run(problem, solver, options, "printed SDP_A")
    noise = np.zeros((n, n))
    noise[own, own] = unit * float(variance.value)
    noise[np.ix_(rest, rest)] = unit * free.value if len(rest) else free
    return solution(given, noise, 0.0, np.eye(n), float(beta.value) * scale, status, solver, seconds)


def sdp_a_coded(
    covariance: np.ndarray,
    secret: Sequence[int] | np.ndarray,
    budget: float,
    *,
    stabiliser: float = 1.0,
    drop_cross: bool = True,
    solver: str = "CLARABEL",
    options: Mapping[str, Any] | None = None,
    n_max: int = 60,
) -> ConvexSolution:
    """SDP_A as the authors' published code has it: a full matrix G, cut down to the paper's structure afterwards.

    max β with H⁺(C + G)H⁺ᵀ ⪰ β I, G ⪰ 0, tr G ≤ stabiliser · budget; then G is divided by `stabiliser`, its cross
    block between the secret and the rest dropped and its block on the secret replaced by the mean of that block's
    diagonal. The published figures use a stabiliser of 10, 1,000 or 10,000; for a secret of several coordinates it
    changes the answer, because the prior is not scaled with it. `drop_cross=False` returns G before it is cut down.
    """
    stabiliser = checked_positive(stabiliser, "stabiliser", "no unit")
    given, inverse = _surrogate(covariance, secret, n_max)
    budget = checked_positive(budget, "budget", "squared units")
    n, unit, own, rest = given.size, stabiliser * budget / given.size, given.positions, given.rest
    cp = cvxpy()
    beta, variable = cp.Variable(), cp.Variable((n, n), PSD=True)
    scale = _surrogate_value(given, inverse, unit)
    achieved = inverse @ given.covariance @ inverse.T / scale + inverse @ variable @ inverse.T * (unit / scale)
    problem = cp.Problem(cp.Maximize(beta), [achieved >> beta * np.eye(len(own)), cp.trace(variable) <= n])
    status, seconds = run(problem, solver, options, "SDP_A of the published code")
    noise = budget / n * variable.value
    if drop_cross:
        noise[np.ix_(own, rest)] = 0.0
        noise[np.ix_(rest, own)] = 0.0
        noise[np.ix_(own, own)] = np.eye(len(own)) * np.mean(np.diag(noise)[own])
    return solution(given, noise, 0.0, np.eye(n), float(beta.value) * scale, status, solver, seconds)


def algorithm_1(
    covariance: np.ndarray,
    secrets: Sequence[Sequence[int] | np.ndarray],
    budget: float,
    *,
    stabiliser: float = 1.0,
    solver: str = "CLARABEL",
    options: Mapping[str, Any] | None = None,
    n_max: int = 60,
) -> ConvexSolution:
    """Algorithm 1 (Multiple Secrets): SDP_A of the published code for each secret, then the least matrix above all.

    Each secret's matrix has trace `budget`; the result's trace, `cost`, is not the budget but anything up to their
    sum. `loss` is the largest of the secrets' losses under the returned matrix.
    """
    n = order(covariance, "the prior covariance")
    if len(secrets) == 0:
        raise InputError("secrets is empty; give at least one list of positions")
    check_size([n] * (len(secrets) + 1), n_max)
    seeds = [
        sdp_a_coded(covariance, secret, budget, stabiliser=stabiliser, solver=solver, options=options, n_max=n_max)
        for secret in secrets
    ]
    above = least_majorant([seed.covariance for seed in seeds], solver=solver, options=options, n_max=n_max)
    loss = max(conditional(covariance, secret).loss(above.covariance) for secret in secrets)
    seconds = above.seconds + sum(seed.seconds for seed in seeds)
    return ConvexSolution(
        above.covariance, above.cost, loss, above.objective, above.status, solver, seconds, above.repair
    )


def _surrogate(
    covariance: np.ndarray, secret: Sequence[int] | np.ndarray, n_max: int
) -> tuple[Conditional, np.ndarray]:
    """The secret's conditional law and H⁺ (k, n), the pseudo-inverse that SDP_A uses in place of an inverse."""
    check_size([order(covariance, "the prior covariance")], n_max)
    given = conditional(covariance, secret)
    if given.positions.size == 0:
        raise InputError("SDP_A needs a secret given by positions in the trace")
    return given, np.linalg.pinv(given.mean_map)


def _surrogate_value(given: Conditional, inverse: np.ndarray, unit: float) -> float:
    """The surrogate's value under independent noise of variance `unit`: the scale of the program."""
    noisy = inverse @ (given.covariance + unit * np.eye(given.size)) @ inverse.T
    return float(np.linalg.eigvalsh(noisy)[0])
