"""`design` for every point of a trace: prior-shaped noise, certified at every time."""

from __future__ import annotations

import math

import numpy as np

from jaxpriv.certificates.arithmetic import square_bounds
from jaxpriv.certificates.cost import cost_upper
from jaxpriv.certificates.verb import certify
from jaxpriv.designs.every_point import equal_variance
from jaxpriv.designs.finish import SHADINGS, finished, floor_cost_upper, infeasible
from jaxpriv.designs.request import Request
from jaxpriv.designs.result import Design
from jaxpriv.designs.targets import epsilon_of_each
from jaxpriv.errors import InputError
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.precision import host_array
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.secret import EveryPoint


def has_closed_form(prior: Prior, every: EveryPoint, request: Request) -> bool:
    """Whether prior-shaped noise is optimal here: equal variances, uncorrelated coordinates, separate weights."""
    if request.weights is not None and request.weights.ndim != 1:
        return False
    try:
        equal_variance(host_array(prior.covariance, "the prior covariance", 2), every.dims)
    except InputError:
        return False
    return True


def design_every_point(prior: Prior, every: EveryPoint, request: Request) -> Design:
    """See `jaxpriv.design`. Called in double precision."""
    covariance = host_array(prior.covariance, "the prior covariance", 2)
    variance = equal_variance(covariance, every.dims)
    secrets = every.secrets(prior)
    values, vectors = np.linalg.eigh(covariance / variance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    reach = float(np.asarray(every.radius)) ** 2
    lower_weight = math.nextafter(request.total_weight * (1.0 - 2.0**-50), 0.0)
    stats = {"method": "prior-shaped", "reason": "every point a secret, all with the same prior variance"}
    if request.epsilon is not None:
        epsilon = float(epsilon_of_each(request, 1)[0])
        target = 2.0 * epsilon / (request.order * reach)
        floor_sd = request.floor_for(request.total_weight / target)
        for shading in SHADINGS:
            mechanism = GaussianMechanism(root * math.sqrt((1.0 + shading) / target), floor_sd, request.resolution)
            certificate = certify(prior, secrets, mechanism, order=request.order, bound=request.bound)
            if certificate.epsilon <= epsilon:
                break
        met = certificate.epsilon <= epsilon
        cost = cost_upper(mechanism.factor, square_bounds(floor_sd)[1], request.weights)
        # Every noise has loss at least 1/G_ii at point i; four roundings in the target.
        lower = lower_weight / (target * (1.0 + 2.0**-50))
        return finished(mechanism, certificate, cost, cost, lower, request, met, {**stats, "shading": shading})
    assert request.budget is not None
    floor_sd = request.floor_for(request.budget)
    floor_cost = floor_cost_upper(floor_sd, request)
    if not floor_cost < request.budget:
        return infeasible(prior, secrets, floor_sd, floor_cost, request)
    scale = math.sqrt((request.budget - floor_cost) / request.total_weight)
    scale *= 1.0 - 2.0**-40
    mechanism = GaussianMechanism(root * scale, floor_sd, request.resolution)
    certificate = certify(prior, secrets, mechanism, order=request.order, bound=request.bound)
    cost = cost_upper(mechanism.factor, square_bounds(floor_sd)[1], request.weights)
    least = lower_weight / request.budget
    lower = 0.5 * request.order * reach * least * (1.0 - 2.0**-50)
    return finished(
        mechanism, certificate, cost, certificate.epsilon, lower, request, math.isfinite(certificate.epsilon), stats
    )
