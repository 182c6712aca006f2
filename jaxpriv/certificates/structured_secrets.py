"""The losses of secrets under a prior whose covariance is not formed, for `certify`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxpriv.certificates.loss import LossBound
from jaxpriv.certificates.structured import structured_loss_bounds
from jaxpriv.certificates.structured_windows import windowed_loss_bounds
from jaxpriv.errors import InputError


ONE_SIDED = "a prior whose products are with a smaller covariance has no lower bounds of its losses"


def structured_losses(
    prior: Any,
    secrets: Sequence[Any],
    factor: np.ndarray,
    floor_variance: float,
    prior_rtol: float,
    times_of: Callable[[Any, int], np.ndarray] | None,
) -> list[LossBound]:
    """Bounds for each secret, which must be made of fixes of the trace; `times_of` asks for the product of balls.

    `factor` (n, q) is in the unit of the trace, `floor_variance` in its square, a loss in 1 / that. The rounding of the
    kernel is part of the bounds. Raises InputError for other secrets, for positions outside the trace, and for
    `prior_rtol`, which is about given matrices.
    """
    if prior_rtol:
        raise InputError("prior_rtol is for priors given by a matrix: the rounding of this kernel is in its bounds.")
    if factor.shape[0] != prior.size:
        raise InputError(f"the mechanism is for traces of {factor.shape[0]} coordinates, the prior for {prior.size}.")
    for i, secret in enumerate(secrets):
        if not hasattr(secret, "indices"):
            raise InputError(
                f"secret {i} is a {type(secret).__name__}; under this prior secrets are fixes of the trace."
            )
        if max(secret.indices) >= prior.size:
            raise InputError(f"secret position {max(secret.indices)} is outside the trace of {prior.size} coordinates.")
    positions = [secret.indices for secret in secrets]
    if times_of is None:
        return windowed_loss_bounds(prior, positions, factor, floor_variance)
    times = [times_of(secret, len(secret.indices)) for secret in secrets]
    return structured_loss_bounds(prior, positions, factor, floor_variance, times=times)
