"""The loss against an adversary who already knows some fixes of the trace exactly."""

from __future__ import annotations

from collections.abc import Iterable

import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.losses.cip import cip_loss
from jaxpriv.losses.compound import Bound
from jaxpriv.losses.precision_gain import Noise
from jaxpriv.priors.gaussian import GaussianPrior
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.conditional import conditional
from jaxpriv.secrets.linear import LinearSecret
from jaxpriv.secrets.secret import Secret
from jaxpriv.shapes import Scalar


def given(prior: Prior, known: Iterable[int]) -> GaussianPrior:
    """The prior of an adversary to whom the fixes at the positions `known` are known exactly.

    Its covariance is that of the trace given those fixes, zero on their rows and columns.

    Raises:
        InputError: no position, a repeated one, one outside the trace, all of them, or perfectly correlated ones.
    """
    fixes = Secret(known, 1.0)
    if fixes.size >= prior.size:
        raise InputError("an adversary who knows every fix has nothing left to learn; leave at least one out.")
    parts = conditional(prior, fixes)
    if not isinstance(parts.exists, Tracer) and not bool(parts.exists):
        raise InputError(
            "the known fixes are perfectly correlated under the prior: leave out what the others determine."
        )
    # Under jit the failure travels on as an infinite loss.
    return GaussianPrior(jnp.where(parts.exists, parts.residual, jnp.inf))


def loss_given(
    prior: Prior,
    secret: Secret | LinearSecret,
    noise: Noise,
    known: Iterable[int],
    order: Scalar = 2.0,
    bound: Bound = "ball",
) -> Float[Array, ""]:
    """`cip_loss` against an adversary who knows the fixes at the positions `known` exactly, in nats.

    A check-in, a receipt, a photograph: a fact about a neighbouring fix combines with the directions that low-rank
    noise leaves exact, and the loss can be far above that without the fact. A noise floor bounds the damage.

    Raises:
        InputError: a known fix that is part of the secret, and whatever `given` refuses.
    """
    known = list(known)
    if isinstance(secret, Secret) and set(known) & set(secret.indices):
        raise InputError("a position of the secret cannot be among the known ones.")
    return cip_loss(given(prior, known), secret, noise, order, bound)
