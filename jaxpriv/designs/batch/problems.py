"""What a batch is made of, checked one by one: a problem, or the reason why it is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxpriv.errors import InputError, JaxprivError
from jaxpriv.priors.gaussian import GaussianPrior
from jaxpriv.secrets.secret import Secret


@dataclass(frozen=True, eq=False)
class Problem:
    """One trace: where it stood in the input, its priors, its secret and what is asked (ε in nats, or a budget)."""

    position: int
    priors: tuple[Any, ...]
    secret: Any
    goal: float
    size: int

    @property
    def basic(self) -> bool:
        """Whether the secret is one coordinate of the trace: the case that is solved for many traces at once."""
        return isinstance(self.secret, Secret) and self.secret.size == 1

    @property
    def radius(self) -> float:
        """The secret's radius."""
        return float(np.asarray(self.secret.radius))


@dataclass(frozen=True)
class Refusal:
    """A trace that is no problem to solve, and why."""

    position: int
    reason: str


def as_problem(position: int, priors: Any, secret: Any, goal: Any) -> Problem | Refusal:
    """Check one element of a batch; never raises for what is wrong with it."""
    try:
        return _checked(position, priors, secret, goal)
    except JaxprivError as error:
        return Refusal(position, str(error))


def _checked(position: int, priors: Any, secret: Any, goal: Any) -> Problem:
    if priors is None:
        raise InputError("there is no prior.")
    if isinstance(priors, BaseException):
        raise InputError(str(priors))
    listed = _priors(priors)
    sizes = {int(one.size) for one in listed}
    if len(sizes) > 1:
        raise InputError(f"the priors have {sorted(sizes)} coordinates; expected the same.")
    (size,) = sizes
    if size < 2:
        raise InputError(f"the trace has {size} point(s); a batch needs at least 2.")
    for one in listed:
        _check_numbers(one)
    if isinstance(secret, BaseException) or secret is None:
        raise InputError("there is no secret." if secret is None else str(secret))
    if isinstance(secret, Secret) and max(secret.indices) >= size:
        raise InputError(f"secret position {max(secret.indices)} is outside the trace of {size} coordinates.")
    try:
        value = float(goal)
    except (TypeError, ValueError) as error:
        raise InputError(f"the target is {goal!r}; expected a number.") from error
    if not (math.isfinite(value) and value > 0.0):
        raise InputError(f"the target is {value:g}; expected a positive, finite number.")
    return Problem(position, listed, secret, value, size)


def _priors(priors: Any) -> tuple[Any, ...]:
    if _is_prior(priors):
        return (priors,)
    if hasattr(priors, "ndim"):
        array = np.asarray(priors, dtype=np.float64)
        if array.ndim not in (2, 3):
            raise InputError(f"the prior has shape {array.shape}; expected covariances (n, n) or (p, n, n).")
        return tuple(_gaussian(one) for one in (array[None] if array.ndim == 2 else array))
    if not isinstance(priors, Sequence) or isinstance(priors, str):
        raise InputError(f"the prior is a {type(priors).__name__}; expected a prior, a list of priors or covariances.")
    if not len(priors):
        raise InputError("the list of priors is empty.")
    return tuple(one if _is_prior(one) else _gaussian(np.asarray(one, dtype=np.float64)) for one in priors)


def _is_prior(value: Any) -> bool:
    # The class is asked: a prior's covariance is computed when it is read.
    known = (*getattr(type(value), "__dataclass_fields__", ()), *dir(type(value)))
    return "covariance" in known and "size" in known


def _gaussian(covariance: np.ndarray) -> GaussianPrior:
    if not np.all(np.isfinite(covariance)):
        raise InputError("the covariance holds values that are not finite.")
    return GaussianPrior(covariance)


def _check_numbers(prior: Any) -> None:
    times = getattr(prior, "times", None)
    if times is not None:
        array = np.asarray(times)
        if not np.all(np.isfinite(array)):
            raise InputError(f"the times are not finite at position {int(np.argmin(np.isfinite(array)))}.")
    noise = getattr(prior, "noise_sd", None)
    if noise is not None and not np.all(np.isfinite(np.asarray(noise))):
        raise InputError("the prior's noise_sd is not finite.")
    if times is None and not np.all(np.isfinite(np.asarray(prior.covariance))):
        raise InputError("the covariance holds values that are not finite.")
