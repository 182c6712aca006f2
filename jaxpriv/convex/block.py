"""One secret under independent noise on it, the structure of Meehan & Chaudhuri (AISTATS 2021), solved exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxpriv.convex.conditional import Conditional, checked_positive, checked_weights, conditional, order
from jaxpriv.convex.solving import ConvexSolution, check_size, cvxpy, run
from jaxpriv.convex.whitening import Whitened, checked_floor, solution, spare_budget
from jaxpriv.errors import InputError


def block_budget(
    covariance: np.ndarray,
    secret: Sequence[int] | np.ndarray,
    budget: float,
    *,
    weights: np.ndarray | None = None,
    floor_sd: float = 0.0,
    solver: str = "CLARABEL",
    options: Mapping[str, Any] | None = None,
    n_max: int = 60,
) -> ConvexSolution:
    """The least loss within a budget when G = blkdiag(σ² I, G_UU): min τ + t, 1/τ ≤ σ², [[t I, Aᵀ], [A, C + G_UU]] ⪰ 0.

    S are the secret's positions, U the others, A the map from the secret to their conditional mean. This is the
    program that SDP_A of the paper approximates. Arguments and errors as in `joint_budget`; a secret that fills the
    trace has no U and raises InputError.
    """
    n = order(covariance, "the prior covariance")
    check_size([n, n + 1], n_max)
    given, cost = _index_secret(covariance, secret), checked_weights(weights, n)
    unit = spare_budget(budget, floor_sd, cost) / float(np.trace(cost))
    program = _Block(given, cost, unit, floor_sd)
    cp = cvxpy()
    problem = cp.Problem(
        cp.Minimize(program.loss / program.loss_unit), [*program.constraints, program.cost <= np.trace(cost) * unit]
    )
    status, seconds = run(problem, solver, options, "block budget program")
    least = float(problem.value) * program.loss_unit
    return solution(given, program.noise(), floor_sd, cost, least, status, solver, seconds)


def block_target(
    covariance: np.ndarray,
    secret: Sequence[int] | np.ndarray,
    loss: float,
    *,
    weights: np.ndarray | None = None,
    floor_sd: float = 0.0,
    solver: str = "CLARABEL",
    options: Mapping[str, Any] | None = None,
    n_max: int = 60,
) -> ConvexSolution:
    """The least noise of the form blkdiag(σ² I, G_UU) at a loss (a precision gain, 1/variance). See `block_budget`."""
    n = order(covariance, "the prior covariance")
    check_size([n, n + 1], n_max)
    given, cost = _index_secret(covariance, secret), checked_weights(weights, n)
    loss, floor_sd = checked_positive(loss, "loss", "1/variance"), checked_floor(floor_sd)
    unit = given.mean_map.shape[1] / (n * loss)
    program = _Block(given, cost, unit, floor_sd)
    cp = cvxpy()
    problem = cp.Problem(
        cp.Minimize(program.cost / (unit * np.trace(cost))),
        [*program.constraints, program.loss / program.loss_unit <= loss / program.loss_unit],
    )
    status, seconds = run(problem, solver, options, "block target program")
    least = (float(problem.value) * unit + floor_sd**2) * float(np.trace(cost))
    return solution(given, program.noise(), floor_sd, cost, least, status, solver, seconds)


def _index_secret(covariance: np.ndarray, secret: Sequence[int] | np.ndarray) -> Conditional:
    given = conditional(covariance, secret)
    if given.positions.size == 0:
        raise InputError("the block structure needs a secret given by positions in the trace")
    if len(given.rest) == 0:
        raise InputError("the secret fills the trace: block noise is then (budget / n) I and needs no program")
    return given


class _Block:
    """The two parts of the block program: the variance on the secret, and the whitened noise on the rest."""

    def __init__(self, given: Conditional, weights: np.ndarray, unit: float, floor_sd: float):
        cp, self.given, rest = cvxpy(), given, given.rest
        inner = np.ix_(rest, rest)
        self.whitened = Whitened(given.mean_map[rest], given.covariance[inner], unit, floor_sd)
        self.unit, base = unit, floor_sd**2 + unit
        self.variance, self.inverse, self.inferred = cp.Variable(nonneg=True), cp.Variable(), cp.Variable()
        self.free = cp.Variable((len(rest), len(rest)), PSD=True)
        noise_on_secret = (floor_sd**2 + unit * self.variance) / base
        self.constraints = [
            cp.bmat([[self.inverse, 1.0], [1.0, noise_on_secret]]) >> 0,
            self.whitened.schur(self.free, self.inferred) >> 0,
        ]
        self.loss = self.inverse / base + self.inferred * self.whitened.loss_unit
        self.loss_unit = 1 / base + self.whitened.loss_unit
        secret = given.positions
        on_rest = self.whitened.cost(self.free, weights[inner]) * float(np.trace(weights[inner]))
        self.cost = unit * (self.variance * float(np.trace(weights[np.ix_(secret, secret)])) + on_rest)

    def noise(self) -> np.ndarray:
        """The noise above the floor, (n, n), in squared units."""
        noise, secret, rest = np.zeros((self.given.size, self.given.size)), self.given.positions, self.given.rest
        noise[secret, secret] = self.unit * float(self.variance.value)
        noise[np.ix_(rest, rest)] = self.whitened.noise(self.free.value)
        return noise
