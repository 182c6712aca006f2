"""The design for one secret: closed form, certificate, and repair until the certificate holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxpriv.certificates.arithmetic import square_bounds
from jaxpriv.certificates.cost import cost_upper
from jaxpriv.certificates.lower_bounds import cost_lower_bound, loss_lower_bound
from jaxpriv.certificates.trial_design import trial_from_design
from jaxpriv.certificates.verb import Certificate, certify, host_arrays
from jaxpriv.designs.finish import SHADINGS, finished, floor_cost_upper, infeasible, within_budget
from jaxpriv.designs.proposal import Proposal, propose
from jaxpriv.designs.request import Request
from jaxpriv.designs.result import Design
from jaxpriv.designs.targets import epsilon_of_each
from jaxpriv.errors import InputError
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret, as_secrets
from jaxpriv.secrets.secret import Secret


@dataclass(frozen=True)
class Arrays:
    """One secret under one prior as float64 host arrays: Σ, Cov(X, T), Cov(T), and where T's fixes are."""

    covariance: np.ndarray
    cross: np.ndarray
    variance: np.ndarray
    positions: np.ndarray | None
    reach: float  # s r²

    @classmethod
    def of(cls, prior: Prior, secret: AnySecret) -> Arrays:
        covariance, ((cross, variance),) = host_arrays(prior, [secret])
        positions = np.array(secret.indices) if isinstance(secret, Secret) else None
        if np.linalg.matrix_rank(variance, hermitian=True) < variance.shape[0]:
            raise InputError(
                "parts of the secret are perfectly correlated under the prior (equal times without a nugget, or a "
                "variance of zero): leave out what the rest determines."
            )
        return cls(covariance, cross, variance, positions, float(secret.n_times * np.asarray(secret.radius) ** 2))


def one_secret_has_closed_form(secret: AnySecret, request: Request) -> bool:
    """Whether the request about one secret under one prior is answered by a formula."""
    if request.bound == "product" and secret.n_times > 1:
        return False
    return request.structure == "joint" or (request.structure == "block" and request.weights is None)


def design_one_secret(prior: Prior, secret: AnySecret, request: Request) -> Design:
    """See `jaxpriv.design`. Called in double precision."""
    (secret,) = as_secrets(secret, prior)
    arrays = Arrays.of(prior, secret)
    if request.structure == "block" and arrays.positions is None:
        raise InputError("structure='block' needs a secret made of fixes of the trace.")
    if request.epsilon is not None:
        return _for_target(prior, secret, arrays, request, float(epsilon_of_each(request, 1)[0]))
    assert request.budget is not None
    return _for_budget(prior, secret, arrays, request, request.budget)


def _propose(arrays: Arrays, request: Request, floor_sd: float, **target: float) -> Proposal:
    return propose(
        arrays.covariance,
        arrays.cross,
        arrays.variance,
        arrays.positions,
        structure=request.structure,
        floor_variance=floor_sd**2,
        weights=request.weights,
        **target,
    )


def _for_target(prior: Prior, secret: AnySecret, arrays: Arrays, request: Request, epsilon: float) -> Design:
    target = 2.0 * epsilon / (request.order * arrays.reach)
    bare: Proposal | None = None
    floor_sd = request.floor_for(0.0)
    if request.floor_sd is None:
        bare = _propose(arrays, request, 0.0, loss=target * (1.0 - SHADINGS[0]))
        floor_sd = request.floor_for(bare.trace)
    for shading in SHADINGS:
        if bare is not None and shading == SHADINGS[0] and request.structure == "joint" and request.weights is None:
            factor = _above_floor(bare.factor, floor_sd**2)
        else:
            factor = _propose(arrays, request, floor_sd, loss=target * (1.0 - shading)).factor
        mechanism = GaussianMechanism(factor, floor_sd, request.resolution)
        certificate = certify(prior, secret, mechanism, order=request.order, bound=request.bound)
        if certificate.epsilon <= epsilon:
            break
    met = certificate.epsilon <= epsilon
    cost = _cost(certificate, mechanism, request)
    lower = 0.0
    if np.isfinite(certificate.epsilon):
        # Four roundings separate the target from what the exact formula would ask for.
        loosened = target * (1.0 + 2.0**-50)
        V, Z, options = _trial(arrays, request, mechanism)
        joint, floor = (arrays.cross, arrays.variance), square_bounds(floor_sd)[0]
        lower = cost_lower_bound(arrays.covariance, joint, V, Z, loosened, floor, **options)
    stats = {**_named(request), "shading": shading, "target_loss": target}
    return finished(mechanism, certificate, cost, cost, lower, request, met, stats)


def _above_floor(factor: np.ndarray, floor_variance: float) -> np.ndarray:
    """A factor of (F − η I)₊ from one of F₊ with orthogonal columns: the same directions, each with η less power."""
    power = np.sum(factor**2, axis=0)
    kept = np.sqrt(np.maximum(1.0 - floor_variance / np.where(power > 0.0, power, np.inf), 0.0))
    return factor * np.where(power > floor_variance, kept, 0.0)


def _cost(certificate: Certificate, mechanism: GaussianMechanism, request: Request) -> float:
    if request.weights is None:
        return certificate.cost
    return cost_upper(mechanism.factor, square_bounds(float(mechanism.floor_sd))[1], request.weights)


def _for_budget(prior: Prior, secret: AnySecret, arrays: Arrays, request: Request, budget: float) -> Design:
    floor_sd = request.floor_for(budget)
    floor_cost = floor_cost_upper(floor_sd, request)
    if not floor_cost < budget:
        return infeasible(prior, secret, floor_sd, floor_cost, request)
    factor = within_budget(_propose(arrays, request, floor_sd, budget=budget).factor, floor_sd, budget, request)
    mechanism = GaussianMechanism(factor, floor_sd, request.resolution)
    certificate = certify(prior, secret, mechanism, order=request.order, bound=request.bound)
    cost = _cost(certificate, mechanism, request)
    lower = 0.0
    if np.isfinite(certificate.epsilon):
        V, Z, options = _trial(arrays, request, mechanism)
        joint, floor = (arrays.cross, arrays.variance), square_bounds(floor_sd)[0]
        least = loss_lower_bound(arrays.covariance, joint, V, Z, budget, floor, **options)
        lower = 0.5 * request.order * arrays.reach * least * (1.0 - 2.0**-50)
    stats = {**_named(request), "budget": budget}
    return finished(
        mechanism, certificate, cost, certificate.epsilon, lower, request, np.isfinite(certificate.epsilon), stats
    )


def _named(request: Request) -> dict[str, str]:
    method = "spectral" if request.structure == "joint" else "block"
    return {"method": method, "reason": "one secret under one prior has a closed form"}


def _trial(
    arrays: Arrays, request: Request, mechanism: GaussianMechanism
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """The arguments of a lower bound that is tight when the mechanism is optimal."""
    joint = (arrays.cross, arrays.variance)
    blocked = request.structure == "block" and arrays.positions is not None
    indices = [int(i) for i in arrays.positions] if blocked and arrays.positions is not None else None
    factor, floor_variance = np.asarray(mechanism.factor), float(mechanism.floor_sd) ** 2
    V, Z = trial_from_design(
        arrays.covariance, joint, factor, floor_variance, request.structure, indices, request.weights
    )
    options = {"structure": request.structure, "weights": request.weights, "indices": indices}
    return V, Z, options
