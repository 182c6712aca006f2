"""Which requests about long traces are answered, and by what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from jaxpriv.designs.long.many import design_many_secrets
from jaxpriv.designs.long.one_secret import design_long_secret
from jaxpriv.designs.request import LARGEST_SIZE, Request
from jaxpriv.designs.result import Design
from jaxpriv.errors import InputError
from jaxpriv.floors.requirements import Requirement
from jaxpriv.priors.markov_kernels import is_markov
from jaxpriv.priors.process import ProcessPrior
from jaxpriv.priors.protocol import Prior
from jaxpriv.priors.quasiseparable import QuasiseparablePrior
from jaxpriv.priors.structured import StructuredPrior, is_structured
from jaxpriv.secrets.secret import EveryPoint, Secret


MATRIX_MOST = 1000  # coordinates up to which several floors take matrices
_MOST_FLOORS, _MOST_COORDINATES = 120, 16  # that one problem on a wide window may have


def structured_priors(priors: Sequence[Prior], above: int = LARGEST_SIZE) -> list[Prior] | None:
    """The priors in their structured form where one of them is, or has more than `above` coordinates. Else None.

    A `ProcessPrior` of Matérn kernels becomes a `QuasiseparablePrior`.
    """
    if not any(is_structured(prior) or prior.size > above for prior in priors):
        return None
    converted = [prior if is_structured(prior) else _converted(prior) for prior in priors]
    return converted if all(is_structured(prior) for prior in converted) else None


def _converted(prior: Prior) -> Prior:
    if isinstance(prior, ProcessPrior) and is_markov(prior.kernel):
        return QuasiseparablePrior(prior.kernel, prior.times, float(prior.noise_sd))
    return prior


def without_matrix(priors: Sequence[Prior], secret: Any) -> list[Prior] | None:
    """The structured form of priors of more than 1,000 coordinates where designs are much quicker with it, else None.

    For several floors of few secrets under Matérn priors at sorted times. Gaps are then 1e-4 to 1e-3 rather than 1e-6.
    """
    secrets = _listed(secret)
    if not all(isinstance(one, Secret) for one in secrets):
        return None
    floors, coordinates = len(secrets) * len(priors), sum(one.size for one in secrets)
    if not (1 < floors <= _MOST_FLOORS and coordinates <= _MOST_COORDINATES):
        return None
    if not all(type(prior) is ProcessPrior and prior.size > MATRIX_MOST for prior in priors):
        return None
    times = np.asarray(priors[0].times)  # pyright: ignore[reportAttributeAccessIssue]
    return structured_priors(priors, MATRIX_MOST) if np.all(np.diff(times) > 0.0) else None


def needs_matrix(priors: Sequence[Prior], secret: Any, requirements: Sequence[Requirement], request: Request) -> bool:
    """Whether a structured prior of at most 5,000 coordinates is asked for something that only its matrix can do."""
    return priors[0].size <= LARGEST_SIZE and _refusal(priors, secret, requirements, request) is not None


def design_long(priors: Sequence[Prior], secret: Any, requirements: Sequence[Requirement], request: Request) -> Design:
    """The design under structured priors. Called in double precision; raises InputError for what has no such solver."""
    refusal = _refusal(priors, secret, requirements, request)
    if refusal is not None:
        raise InputError(refusal)
    secrets = _listed(secret)
    if len(secrets) == 1 and len(priors) == 1:
        return design_long_secret(cast(StructuredPrior, priors[0]), secrets[0], request)
    return design_many_secrets(priors, secrets, request)


def _refusal(priors: Sequence[Prior], secret: Any, requirements: Sequence[Requirement], request: Request) -> str | None:
    """Why no structured solver applies; None where one does."""
    if request.structure != "joint":
        return "a long trace is designed for any noise: structure='joint' only."
    if request.method not in (None, "spectral"):
        return f"method={request.method!r} needs the whole covariance matrix; leave method out here."
    if request.weights is not None:
        return "weights are not supported on a long trace; leave them out."
    if requirements or request.least_floor_sd > 0.0:
        return "further requirements are not supported on a long trace; raise floor_sd instead."
    if request.uncertainty is not None:
        return "uncertainty is not supported on a long trace; ask for epsilon or a budget."
    for one in _listed(secret):
        if isinstance(one, EveryPoint):
            return "every point of a long trace is not supported: list the secrets, or use at most 5,000 coordinates."
        if not isinstance(one, Secret):
            return f"a {type(one).__name__} on a long trace is not supported: use a Secret made of the trace's fixes."
        if max(one.indices) >= priors[0].size:
            return f"secret position {max(one.indices)} is outside the trace of {priors[0].size} coordinates."
        if request.bound == "product" and one.n_times > 1:
            return "bound='product' with several times needs one number for each time: use bound='ball' here."
    return None


def _listed(secret: Any) -> list[Any]:
    listed = list(secret) if isinstance(secret, (list, tuple)) else [secret]
    if not listed:
        raise InputError("no secret was given.")
    return listed
