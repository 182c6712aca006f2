"""`design`: the least-noise mechanism for a target, or the least loss for a budget, with its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from jaxpriv.designs.every_point_verb import design_every_point
from jaxpriv.designs.one_secret import design_one_secret
from jaxpriv.designs.request import Request, check_request
from jaxpriv.designs.result import Design, DesignResult
from jaxpriv.errors import CertificateError, InfeasibleError, InputError
from jaxpriv.precision import double_precision
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.secret import EveryPoint


def design(
    prior: Prior,
    secret: AnySecret | EveryPoint,
    *,
    epsilon: float | None = None,
    budget: float | None = None,
    order: float = 2.0,
    structure: Literal["joint", "block"] = "joint",
    weights: Any = None,
    floor_sd: float | None = None,
    resolution: float = 0.0,
    throw: bool = True,
) -> Design:
    """Gaussian noise of least error for a privacy target, or of least loss for an error budget, certified.

    Give exactly one of `epsilon` (nats at Rényi `order`: the noise of least tr(W G) whose loss is at most that) and
    `budget` (total tr(W G) in squared units of the trace, floor included: the noise of least loss).

    Args:
        prior: what the adversary is assumed to believe; `GaussianPrior` or `ProcessPrior`.
        secret: what must stay uncertain. `EveryPoint` protects every time, each by itself.
        order: Rényi order λ > 1. It enters only through ε/λ.
        structure: "joint", any noise covariance; "block", the published paper's: white noise on the secret,
            independent of the noise on the rest (never less noise than "joint").
        weights: W of the error tr(W G): (n,) positive, or (n, n) positive definite. The default weighs all
            coordinates alike.
        floor_sd: standard deviation of the independent noise that every coordinate gets at least, in units of the
            trace. The default is max(2 resolution, 1e-4 sqrt(cost/n)), which costs 1e-8 of the noise. With 0 the
            noise has low rank, `release` refuses it, and `epsilon` may be infinite.
        resolution: step to which the trace is recorded, in units of the trace; the floor is at least twice that.
        throw: raise when nothing certified can be returned; otherwise return it with its `result`.

    Returns:
        A `Design`. Its `epsilon` is certified by Theorem 3.4 of Meehan and Chaudhuri (AISTATS 2021) with the precision
        gain of any noise, never below the true loss; for a target, at most the target.

    Raises:
        InputError: an argument is wrong.
        InfeasibleError: the budget is not above what the floor costs; the message and `smallest_feasible` say what is.
        CertificateError: no mechanism close to the proposal could be verified.
    """
    request = check_request(prior, epsilon, budget, order, structure, weights, floor_sd, resolution)
    if isinstance(secret, Sequence):
        if len(secret) != 1:
            raise InputError("the closed forms design for one secret; pass one, or EveryPoint for all times.")
        secret = secret[0]
    with double_precision():
        if isinstance(secret, EveryPoint):
            outcome = design_every_point(prior, secret, request)
        else:
            outcome = design_one_secret(prior, secret, request)
    if throw:
        _raise_if_useless(outcome, request)
    return outcome


def _raise_if_useless(outcome: Design, request: Request) -> None:
    if outcome.result is DesignResult.budget_infeasible:
        floor_cost = float(outcome.stats["floor_cost"])
        raise InfeasibleError(
            f"the budget {request.budget:.6g} does not exceed the {floor_cost:.6g} that the floor of "
            f"{float(outcome.mechanism.floor_sd):.4g} on every coordinate costs; raise the budget above that, or lower "
            "floor_sd or resolution.",
            smallest_feasible=floor_cost,
        )
    if outcome.result is DesignResult.target_not_certified:
        raise CertificateError(
            f"{outcome.result.value}. Verified: ε ≤ {outcome.epsilon:.6g} for a target of {request.epsilon:.6g}."
        )
    if outcome.result is DesignResult.not_certified and request.floor_sd != 0.0:
        raise CertificateError(f"{outcome.result.value}.")
