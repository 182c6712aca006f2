"""audit: one Gaussian mechanism under every notion of privacy that the library knows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import cho_factor, cho_solve

from jaxpriv.certificates.arithmetic import down, fraction_up, up
from jaxpriv.certificates.definiteness import eigenvalue_bounds
from jaxpriv.certificates.leakage import LeakageBound
from jaxpriv.certificates.scalars import divergence, gaussian_epsilon, renyi_epsilon
from jaxpriv.certificates.sensitivity import squared_sensitivity
from jaxpriv.certificates.verb import Certificate, certify, host_arrays
from jaxpriv.designs.audit.noise import audited_noise
from jaxpriv.designs.audit.printed import printed_losses
from jaxpriv.designs.audit.table import Audit, AuditRow
from jaxpriv.designs.certified_leakage import certify_leakage, certify_trace_leakage
from jaxpriv.errors import InputError
from jaxpriv.floors.requirements import SensitivityEllipsoid
from jaxpriv.losses.odds import check_probability
from jaxpriv.losses.renyi import check_order
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.precision import double_precision
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret, as_secrets
from jaxpriv.secrets.linear import LinearSecret
from jaxpriv.secrets.secret import EveryPoint, Secret


Sensitivity = float | Float[Array | np.ndarray, "n q"] | SensitivityEllipsoid

_RANK = "it cannot go below {limit:.4g} at this delta, whatever the noise"
_TRACE = "the whole trace"


def audit(
    prior: Prior | Sequence[Prior] | None,
    mechanism: GaussianMechanism | Float[Array | np.ndarray, "n n"],
    *,
    secrets: AnySecret | EveryPoint | Sequence[AnySecret | EveryPoint] = (),
    sensitivity: Sensitivity | None = None,
    delta: float = 0.01,
    order: float = 2.0,
    unit: str = "unit",
) -> Audit:
    """Evaluate one release X + N(0, G) under every notion at once; `str` gives a table, `rows` the values.

    For each secret: conditional inferential privacy, the exact (ε′, δ) curve of its pairs, mutual information,
    pointwise maximal leakage and what an attacker still does not know. For the whole trace: information, leakage and
    uncertainty. For a `sensitivity`: Rényi loss, zero-concentrated, Gaussian and (ε, δ)-differential privacy.

    Upper and lower bounds are verified, with every rounding accounted for; with several priors they are the worst over
    them. Estimates are marked. δ means different things in different rows (docs/leakage.md).

    Args:
        prior: of the trace, (n,); one, several, or None if only the sensitivity is asked about.
        mechanism: or the covariance G, (n, n), of its noise.
        secrets: each is protected by itself.
        sensitivity: how far two traces may differ: an l2 radius, or E, (n, q), of an ellipsoid {E u: ‖u‖ ≤ 1}.
        delta: of all rows that have one, in (0, 1).
        order: Rényi order λ > 1.
        unit: the name of the trace's unit, for the table.

    Raises:
        InputError: bad arguments, nothing to audit, or a call inside jit, grad or vmap.
    """
    check_order(order, above=1.0)
    check_probability(delta)
    priors = [] if prior is None else list(prior) if isinstance(prior, Sequence) else [prior]
    if not priors and sensitivity is None:
        raise InputError("there is nothing to audit: give a prior, a sensitivity, or both.")
    given = not isinstance(secrets, Sequence) or len(secrets) > 0
    if given and not priors:
        raise InputError("secrets need a prior: what a release tells about them depends on it.")
    noise = audited_noise(mechanism, priors[0].size if priors else None)
    listed = as_secrets(secrets, priors[0]) if given else []
    rows = [_cost(noise.mechanism, noise.note, unit)]
    with double_precision():
        if listed:
            rows += _secret_rows(priors, listed, noise.mechanism, delta, order, unit)
        if priors:
            rows += _trace_rows(priors, noise.mechanism, delta, unit)
        if sensitivity is not None:
            rows += _differential_rows(noise.mechanism, sensitivity, delta, order)
    return Audit(tuple(rows), float(delta), float(order), noise.mechanism.size)


def _cost(mechanism: GaussianMechanism, note: str, unit: str) -> AuditRow:
    power = float(np.sum(np.asarray(mechanism.factor) ** 2)) / mechanism.size + float(mechanism.floor_sd) ** 2
    return AuditRow("(cost)", "noise, root mean square of a coordinate", math.sqrt(power), unit, "estimate", note)


def _secret_rows(
    priors: list[Prior], secrets: list[AnySecret], mechanism: GaussianMechanism, delta: float, order: float, unit: str
) -> list[AuditRow]:
    certificate = certify(priors, secrets, mechanism, order)
    leakages = certify_leakage(priors, secrets, mechanism)
    joints = [host_arrays(one, secrets) for one in priors]
    noise = np.asarray(mechanism.covariance)
    rows = []
    for j, (secret, leakage) in enumerate(zip(secrets, leakages, strict=True)):
        name = f"secret {j}: {_describe(secret)}"
        epsilon = float(np.max(certificate.epsilons[j]))
        why = "" if math.isfinite(epsilon) else _why_infinite(mechanism)
        curve = max(_curve(loss, secret, delta) for loss in certificate.losses[j].tolist())
        rows += [
            AuditRow(name, f"conditional inferential privacy, order {order:g}", epsilon, "nats", "upper", why),
            AuditRow(name, f"(ε, {delta:g}) curve of its pairs", curve, "nats", "upper", ""),
        ]
        rows += _leakage_rows(name, leakage, delta, why)
        owns = [(joint[1][j][1], _rounding(secret, joint[0])) for joint in joints]
        rows.append(_uncertainty(name, owns, certificate.losses[j], unit))
        if isinstance(secret, Secret):
            rows += _printed_rows(name, secret, [joint[0] for joint in joints], noise, certificate, j)
    return rows


def _curve(loss: float, secret: AnySecret, delta: float) -> float:
    if not math.isfinite(loss):
        return math.inf
    return gaussian_epsilon(divergence(loss, secret.n_times, float(secret.radius)), delta)


def _printed_rows(
    name: str, secret: Secret, covariances: list[np.ndarray], noise: np.ndarray, certificate: Certificate, j: int
) -> list[AuditRow]:
    """What published formulas say, under the prior of the largest loss, where that is less than the truth."""
    worst = int(np.argmax(certificate.losses[j]))
    truth = float(certificate.losses_lower[j, worst])
    rows = []
    for formula, loss in printed_losses(covariances[worst], secret, noise, truth):
        said = renyi_epsilon(loss, secret.n_times, float(secret.radius), certificate.order)
        note = f"under-reports by a factor of {truth / loss:.4g}: the loss above is the true one"
        rows.append(AuditRow(name, formula, said, "nats", "not a bound", note))
    return rows


def _leakage_rows(name: str, leakage: LeakageBound, delta: float, why: str) -> list[AuditRow]:
    epsilon = leakage.epsilon(delta)
    limit = epsilon - leakage.information if math.isfinite(epsilon) else LeakageBound(0.0, leakage.rank).epsilon(delta)
    note = _RANK.format(limit=limit)
    if not math.isfinite(leakage.information):
        note = why or "no finite value could be verified: raise the floor or the nugget"
    return [
        AuditRow(name, "mutual information", leakage.information, "nats", "upper", ""),
        AuditRow(
            name, f"pointwise maximal leakage, delta {delta:g}, rank {leakage.rank}", epsilon, "nats", "upper", note
        ),
    ]


def _trace_rows(priors: list[Prior], mechanism: GaussianMechanism, delta: float, unit: str) -> list[AuditRow]:
    leakage = certify_trace_leakage(priors, mechanism)
    rows = _leakage_rows(_TRACE, leakage, delta, _why_infinite(mechanism))
    covariances = [host_arrays(one, [])[0] for one in priors]
    before = [math.sqrt(float(np.trace(one)) / len(one)) for one in covariances]
    after = [_root_mean_variance(one, np.asarray(mechanism.covariance)) for one in covariances]
    least = int(np.argmin(after))
    if math.isfinite(after[least]):
        note = f"of {before[least]:.5g} before the release"
        rows.append(
            AuditRow(_TRACE, "attacker's standard deviation, root mean square", after[least], unit, "estimate", note)
        )
    return rows


def _root_mean_variance(covariance: np.ndarray, noise: np.ndarray) -> float:
    try:
        factor = cho_factor(covariance + noise, lower=True)
    except np.linalg.LinAlgError:
        return math.inf
    transfer = cho_solve(factor, covariance).T
    rest = np.eye(len(covariance)) - transfer
    left = np.sum((rest @ covariance) * rest) + np.sum((transfer @ noise) * transfer)
    return math.sqrt(max(float(left), 0.0) / len(covariance))


def _rounding(secret: AnySecret, covariance: np.ndarray) -> float:
    """Bound of the norm by which the secret's covariance was rounded when it was computed."""
    if not isinstance(secret, LinearSecret):
        return 0.0
    return float(np.linalg.norm(secret.rounding(covariance)[1])) * (1 + 2.0**-40)


def _uncertainty(name: str, owns: list[tuple[np.ndarray, float]], losses: np.ndarray, unit: str) -> AuditRow:
    """The posterior standard deviation in the direction that is known best: 1/P ≤ 1/λ_min(Cov T) + loss."""
    after, before = math.inf, math.inf
    for (own, rounding), loss in zip(owns, losses.tolist(), strict=True):
        lowest = float(own[0, 0]) if own.size == 1 else float(eigenvalue_bounds(own)[0][0])
        lowest = max(down(lowest - rounding) if rounding else lowest, 0.0)
        left = 0.0
        if lowest > 0.0 and math.isfinite(loss):
            left = down(math.sqrt(down(1.0 / fraction_up(1 / Fraction(lowest) + Fraction(loss)))))
        if left <= after:
            after, before = left, math.sqrt(lowest)
    note = f"of {before:.5g} before the release" + (", in the direction known best" if owns[0][0].size > 1 else "")
    return AuditRow(name, "attacker's standard deviation", max(after, 0.0), unit, "lower", note)


def _differential_rows(mechanism: GaussianMechanism, sensitivity: Any, delta: float, order: float) -> list[AuditRow]:
    if isinstance(sensitivity, SensitivityEllipsoid):
        sensitivity = sensitivity.shape
    radius = np.ndim(sensitivity) == 0
    name = f"changes of at most {float(sensitivity):g} in l2 norm" if radius else "changes in the given ellipsoid"
    squared = squared_sensitivity(mechanism, sensitivity)
    why = "" if math.isfinite(squared) else _why_infinite(mechanism)
    if math.isinf(squared):
        values = [math.inf] * 4
    else:
        values = [
            fraction_up(Fraction(order) / 2 * Fraction(squared)),
            fraction_up(Fraction(squared) / 2),
            up(math.sqrt(squared)),
            gaussian_epsilon(squared, delta),
        ]
    notions = (f"Rényi differential privacy, order {order:g}", "zero-concentrated differential privacy, ρ",
               "Gaussian differential privacy, μ", f"(ε, {delta:g})-differential privacy")  # fmt: skip
    units = ("nats", "nats", "", "nats")
    return [
        AuditRow(name, notion, value, unit, "upper", why if i == 0 else "")
        for i, (notion, value, unit) in enumerate(zip(notions, values, units, strict=True))
    ]


def _why_infinite(mechanism: GaussianMechanism) -> str:
    missing = mechanism.size - mechanism.factor.shape[1]
    if float(mechanism.floor_sd) == 0.0 and missing > 0:
        return (
            f"infinite: the noise has rank {mechanism.factor.shape[1]} and no floor, so {missing} of {mechanism.size} "
            "directions of the trace are published exactly"
        )
    return "infinite: no finite value could be verified; the noise is nearly singular, raise its floor"


def _describe(secret: AnySecret) -> str:
    radius = f"radius {float(secret.radius):g}"
    if isinstance(secret, Secret):
        shown = ", ".join(map(str, secret.indices[:6])) + (", …" if len(secret.indices) > 6 else "")
        return f"position{'s' * (len(secret.indices) > 1)} {shown}, {radius}"
    return f"{type(secret).__name__}, {radius}"
