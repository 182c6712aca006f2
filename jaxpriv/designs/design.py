"""`design`: the least-noise mechanism for a target, or the least loss for a budget, with its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from jaxpriv.designs.every_point_verb import design_every_point, has_closed_form
from jaxpriv.designs.long.dispatch import design_long, needs_matrix, structured_priors
from jaxpriv.designs.many_floors import design_many
from jaxpriv.designs.one_secret import design_one_secret, one_secret_has_closed_form
from jaxpriv.designs.request import GAP_TOLERANCE, Request, check_request
from jaxpriv.designs.result import Design, DesignResult
from jaxpriv.errors import CertificateError, InfeasibleError, InputError
from jaxpriv.floors.requirements import GeoIndistinguishability, Requirement
from jaxpriv.precision import double_precision
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret, as_secrets
from jaxpriv.secrets.secret import EveryPoint


def design(
    prior: Prior | Sequence[Prior],
    secret: AnySecret | EveryPoint | Sequence[AnySecret | EveryPoint],
    *,
    epsilon: float | Sequence[float] | None = None,
    budget: float | None = None,
    uncertainty: float | None = None,
    order: float = 2.0,
    structure: Literal["joint", "block", "diagonal", "banded"] = "joint",
    bandwidth: int | None = None,
    bound: Literal["ball", "product"] = "ball",
    method: Literal["spectral", "majorant", "gradient", "convex"] | None = None,
    weights: Any = None,
    requirements: Sequence[Requirement] = (),
    floor_sd: float | None = None,
    resolution: float = 0.0,
    tolerance: float = GAP_TOLERANCE,
    effort: Literal["low", "normal", "high"] = "normal",
    throw: bool = True,
) -> Design:
    """Gaussian noise of least error for a privacy target, or of least loss for an error budget, certified.

    Give exactly one of

    * `epsilon` (nats at Rényi `order`; one for all secrets or one for each): the noise of least tr(W G) whose losses
      are at most that;
    * `budget` (total tr(W G) in squared units of the trace, floor included): the noise whose largest loss is least;
    * `uncertainty` (units of the trace): the noise of least tr(W G) that leaves the posterior standard deviation of
      every secret, which is the half-width of its 68 % interval, at or above that under every prior.

    Args:
        prior: what the adversary is assumed to believe, or several such beliefs: the promise holds for each.
        secret: what must stay uncertain; several are protected each, not jointly. `EveryPoint` stands for every time.
        order: Rényi order λ > 1. It enters only through ε/λ.
        structure: "joint", any noise covariance; "diagonal", independent noise; "banded", correlated over at most
            `bandwidth` steps; "block", the published paper's: white noise on the secrets' coordinates, independent of
            the noise on the rest. Each is a convex family and its lower bound is for that family.
        bandwidth: of "banded": the number of subdiagonals of the covariance, which are those of its Cholesky factor.
        bound: how the worst pair of a secret of several times is bounded, in the target and in what is reported:
            "ball", Theorem 3.4 of Meehan and Chaudhuri (AISTATS 2021); "product", never more (docs/design.md), with
            one number d for each time that is optimised together with the noise. The same for secrets of one time.
        method: None chooses. "spectral": the closed form for one secret under one prior. "majorant": all requirements
            as floors, by their dual ("joint") or by Newton's method on the structure's numbers. "gradient": projected
            gradients over Cholesky factors, slower, a check of the others. "convex": a cone program by CVXPY, for
            small problems (`pip install "jaxpriv[convex]"`). All are certified alike.
        weights: W of the error tr(W G): (n,) positive, or (n, n) positive definite. The default weighs all
            coordinates alike.
        requirements: what the noise must satisfy besides, at heights that a budget does not scale
            (`GeoIndistinguishability`, `SensitivityEllipsoid`, `SideInformation`, `SecretLeakage`).
        floor_sd: standard deviation of the independent noise that every coordinate gets at least, in units of the
            trace. The default is max(2 resolution, 1e-4 sqrt(cost/n)), which costs 1e-8 of the noise. With 0 the
            noise has low rank, `release` refuses it, and `epsilon` may be infinite.
        resolution: step to which the trace is recorded, in units of the trace; the floor is at least twice that.
        tolerance: relative gap at which a design counts as optimal.
        effort: how many steps the solver for several secrets or priors may take; what it reached is in `gap`.
        throw: raise when nothing certified can be returned; otherwise return it with its `result`.

    Returns:
        A `Design`. Its `epsilon` is certified under `bound` with the precision gain of any noise, never below the true
        loss; for a target, at most the target. `stats` says which method was used and why.

    Raises:
        InputError: an argument is wrong, or the method does not apply; the message says what it applies to.
        InfeasibleError: the budget is not above what the floor and the requirements cost, or a prior is already more
            certain than `uncertainty`; the message and `smallest_feasible` say what can be asked for.
        CertificateError: no mechanism close to the proposal could be verified.
    """
    priors = list(prior) if isinstance(prior, Sequence) else [prior]
    if not priors:
        raise InputError("no prior was given.")
    for requirement in requirements:
        if not isinstance(requirement, Requirement):
            raise InputError(f"a {type(requirement).__name__} is not a requirement.")
    structured = structured_priors(priors)
    request = check_request(
        priors if structured is None else structured,
        epsilon=epsilon,
        budget=budget,
        uncertainty=uncertainty,
        order=order,
        structure=structure,
        weights=weights,
        floor_sd=floor_sd,
        resolution=resolution,
        tolerance=tolerance,
        effort=effort,
        requirements=requirements,
        method=method,
        bound=bound,
        bandwidth=bandwidth,
    )
    others = [one for one in requirements if not (isinstance(one, GeoIndistinguishability) and one.moving != "point")]
    with double_precision():
        if structured is None or needs_matrix(structured, secret, others, request):
            outcome = _dispatch(priors, secret, others, request)
        else:
            outcome = design_long(structured, secret, others, request)
    if throw:
        _raise_if_useless(outcome, request)
    return outcome


def _dispatch(priors: list[Prior], secret: Any, requirements: list[Requirement], request: Request) -> Design:
    alone = secret[0] if isinstance(secret, (list, tuple)) and len(secret) == 1 else secret
    plain = len(priors) == 1 and not requirements and request.uncertainty is None
    closed = plain and request.method in (None, "spectral")
    if isinstance(alone, EveryPoint):
        shaped = request.structure == "joint" and not isinstance(request.epsilon, tuple)
        if closed and shaped and has_closed_form(priors[0], alone, request):
            return design_every_point(priors[0], alone, request)
    secrets = as_secrets(alone, priors[0])
    if closed and len(secrets) == 1 and one_secret_has_closed_form(secrets[0], request):
        return design_one_secret(priors[0], secrets[0], request)
    if request.method == "spectral":
        raise InputError(
            "method='spectral' is for one secret under one prior without other requirements: any noise "
            "(structure='joint'), or 'block' with equal weights; with bound='product' for secrets of one time only; "
            "and for every point with equal variances. Leave method out to have one chosen."
        )
    return design_many(priors, secrets, requirements, request)


def _raise_if_useless(outcome: Design, request: Request) -> None:
    if outcome.result is DesignResult.budget_infeasible:
        needed = float(outcome.stats["needed"])
        raise InfeasibleError(
            f"the budget {request.budget:.6g} does not exceed the {needed:.6g} that the floor of "
            f"{float(outcome.mechanism.floor_sd):.4g} on every coordinate and the other requirements cost; raise the "
            "budget above that, or lower floor_sd, resolution or the requirements.",
            smallest_feasible=needed,
        )
    if outcome.result is DesignResult.target_not_certified:
        raise CertificateError(
            f"{outcome.result.value}. Verified: ε ≤ {outcome.epsilon:.6g}; asked for: "
            f"{request.epsilon if request.epsilon is not None else f'±{request.uncertainty:.4g}'}."
        )
    if outcome.result is DesignResult.not_certified and request.floor_sd != 0.0:
        raise CertificateError(f"{outcome.result.value}.")
