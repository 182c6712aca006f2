"""One secret, any noise covariance: the least loss within a budget, and the least noise at a loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxpriv.convex.conditional import SecretLike, checked_positive, checked_weights, conditional, order
from jaxpriv.convex.solving import ConvexSolution, check_size, cvxpy, run
from jaxpriv.convex.whitening import Whitened, checked_floor, solution, spare_budget


def joint_budget(
    covariance: np.ndarray,
    secret: SecretLike,
    budget: float,
    *,
    weights: np.ndarray | None = None,
    floor_sd: float = 0.0,
    solver: str = "CLARABEL",
    options: Mapping[str, Any] | None = None,
    n_max: int = 60,
) -> ConvexSolution:
    """The least loss that noise of a given cost can buy: min t with [[t I, Hᵀ], [H, C + G]] ⪰ 0, tr(W G) ≤ budget.

    `covariance` (n, n) is the prior's; `secret` is a list of positions or the pair (cross (n, k), variance (k, k));
    `budget` is in squared units, the floor G ⪰ floor_sd² I included; `weights` W is None, n positive weights or a
    positive definite matrix. The condition is the Schur form of the precision gain, of which the loss of Theorem 3.4
    of Meehan & Chaudhuri (AISTATS 2021) is the case of independent noise on the secret; proof in docs/design.md.

    Raises InputError (a bad argument, or a program above `n_max`), InfeasibleError (the floor costs the budget), and
    CertificateError (the solver fails).
    """
    n = order(covariance, "the prior covariance")
    check_size([n, n + 1], n_max)
    given, cost = conditional(covariance, secret), checked_weights(weights, n)
    spare = spare_budget(budget, floor_sd, cost)
    whitened = Whitened(given.mean_map, given.covariance, spare / float(np.trace(cost)), floor_sd)
    cp = cvxpy()
    loss, noise = cp.Variable(), cp.Variable((n, n), PSD=True)
    constraints = [whitened.schur(noise, loss) >> 0, whitened.cost(noise, cost) <= 1]
    status, seconds = run(cp.Problem(cp.Minimize(loss), constraints), solver, options, "joint budget program")
    least = float(loss.value) * whitened.loss_unit
    return solution(given, whitened.noise(noise.value), floor_sd, cost, least, status, solver, seconds)


def joint_target(
    covariance: np.ndarray,
    secret: SecretLike,
    loss: float,
    *,
    weights: np.ndarray | None = None,
    floor_sd: float = 0.0,
    solver: str = "CLARABEL",
    options: Mapping[str, Any] | None = None,
    n_max: int = 60,
) -> ConvexSolution:
    """The least noise at a loss: min tr(W G) with [[t I, Hᵀ], [H, C + G]] ⪰ 0 and G ⪰ floor_sd² I.

    `loss` is the precision gain t = 2 epsilon / (order · s · radius²), in 1/variance. Otherwise as `joint_budget`.
    """
    n = order(covariance, "the prior covariance")
    check_size([n, n + 1], n_max)
    given, cost = conditional(covariance, secret), checked_weights(weights, n)
    loss, floor_sd = checked_positive(loss, "loss", "1/variance"), checked_floor(floor_sd)
    whitened = Whitened(given.mean_map, given.covariance, given.mean_map.shape[1] / (n * loss), floor_sd)
    cp = cvxpy()
    noise = cp.Variable((n, n), PSD=True)
    problem = cp.Problem(
        cp.Minimize(whitened.cost(noise, cost)), [whitened.schur(noise, loss / whitened.loss_unit) >> 0]
    )
    status, seconds = run(problem, solver, options, "joint target program")
    least = (float(problem.value) * whitened.noise_unit + floor_sd**2) * float(np.trace(cost))
    return solution(given, whitened.noise(noise.value), floor_sd, cost, least, status, solver, seconds)
