"""`certify` with priors evaluated in double precision, whatever the global flag."""

from __future__ import annotations

from collections.abc import Sequence

from jaxpriv.certificates.verb import Bound, Certificate, certify as _certify
from jaxpriv.designs.long.dispatch import structured_priors
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.precision import double_precision
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.secret import EveryPoint


def certify(
    prior: Prior | Sequence[Prior],
    secrets: AnySecret | EveryPoint | Sequence[AnySecret | EveryPoint],
    mechanism: GaussianMechanism,
    order: float = 2.0,
    *,
    prior_rtol: float = 0.0,
    bound: Bound = "ball",
) -> Certificate:
    """Verify what a mechanism gives away about each secret under each prior, and what it costs.

    Host-side, in float64 with every rounding accounted for: the reported epsilon is never below the true one for the
    given arrays, and the lower bounds never above. A bound that cannot be verified is infinite.

    Args:
        prior: one or several. Kernels are evaluated in double precision.
        secrets: one or several; each is protected by itself.
        mechanism: its factor and floor are taken as exact.
        order: Rényi order λ > 1 of the reported epsilon (nats).
        prior_rtol: relative error of the prior's entries that the bounds shall also cover (2⁻⁵⁰ covers the rounding of
            most kernels).
        bound: how the worst pair of a secret of several times is bounded: "ball" (Theorem 3.4 of Meehan and Chaudhuri)
            or "product", never more (Proposition 3 of docs/design.md).

    Raises:
        InputError: bad arguments, or a call inside jit, grad or vmap.
        CertificateError: the arithmetic of this machine cannot be trusted.
    """
    priors = list(prior) if isinstance(prior, Sequence) else [prior]
    with double_precision():
        # A prior too long for its matrix is certified through structured products where its kernel allows them.
        return _certify(
            structured_priors(priors) or priors, secrets, mechanism, order, prior_rtol=prior_rtol, bound=bound
        )
