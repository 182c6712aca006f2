"""Certified pointwise maximal leakage, with priors evaluated in double precision whatever the global flag."""

from __future__ import annotations

from collections.abc import Sequence

from jaxpriv.certificates.leakage import LeakageBound, secret_leakage, trace_leakage
from jaxpriv.errors import InputError
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.precision import double_precision
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret, as_secrets
from jaxpriv.secrets.secret import EveryPoint


def certify_leakage(
    prior: Prior | Sequence[Prior],
    secrets: AnySecret | EveryPoint | Sequence[AnySecret | EveryPoint],
    mechanism: GaussianMechanism,
) -> tuple[LeakageBound, ...]:
    """Verify what a release leaks about each secret by itself: its information in nats, and ε(δ) from it.

    Host-side, with every rounding accounted for; with several priors the largest over them. The radius of a secret
    plays no part: leakage is about all of its values at once. Infinite where nothing could be verified.

    Raises:
        InputError: bad arguments, or a call inside jit, grad or vmap.
        CertificateError: the arithmetic of this machine cannot be trusted.
    """
    priors = _listed(prior)
    with double_precision():
        listed = as_secrets(secrets, priors[0])
        found = [secret_leakage(one, listed, mechanism) for one in priors]
    return tuple(_largest(bounds) for bounds in zip(*found, strict=True))


def certify_trace_leakage(prior: Prior | Sequence[Prior], mechanism: GaussianMechanism) -> LeakageBound:
    """Verify what a release leaks about the whole trace; its rank is the number of coordinates.

    As `certify_leakage`. Infinite for noise that leaves a direction of the trace exact.
    """
    with double_precision():
        return _largest([trace_leakage(one, mechanism) for one in _listed(prior)])


def _listed(prior: Prior | Sequence[Prior]) -> list[Prior]:
    priors = list(prior) if isinstance(prior, Sequence) else [prior]
    if not priors:
        raise InputError("no prior was given.")
    return priors


def _largest(bounds: Sequence[LeakageBound]) -> LeakageBound:
    return max(bounds, key=lambda bound: bound.information)
