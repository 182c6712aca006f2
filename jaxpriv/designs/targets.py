"""What a request asks of each secret under each prior, as a largest loss, and whether a certificate shows it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from jaxpriv.certificates.arithmetic import fraction_down
from jaxpriv.certificates.verb import Certificate, host_arrays
from jaxpriv.designs.request import Request
from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret


def target_losses(priors: Sequence[Prior], secrets: Sequence[AnySecret], request: Request) -> np.ndarray:
    """t, (secrets, priors), in inverse squared units: the losses to stay below.

    For a budget, those of ε = 1: the common scale is then ε itself.

    Raises:
        InputError: an epsilon for each secret, but not as many as secrets; an uncertainty for a secret of several
            numbers.
        InfeasibleError: an uncertainty that some prior does not have to begin with.
    """
    if request.uncertainty is not None:
        return _for_uncertainty(priors, secrets, request.uncertainty)
    reach = np.array([secret.n_times * float(np.asarray(secret.radius)) ** 2 for secret in secrets])
    epsilons = epsilon_of_each(request, len(secrets))
    return np.repeat((2.0 * epsilons / (request.order * reach))[:, None], len(priors), axis=1)


def epsilon_of_each(request: Request, count: int) -> np.ndarray:
    """The target of each secret in nats, (count,); ones for a budget."""
    if request.epsilon is None:
        return np.ones(count)
    epsilons = np.atleast_1d(np.asarray(request.epsilon, dtype=np.float64))
    if epsilons.size not in (1, count):
        raise InputError(f"epsilon has {epsilons.size} values for {count} secrets; give one for all or one for each.")
    return np.broadcast_to(epsilons, (count,)).copy()


def _for_uncertainty(priors: Sequence[Prior], secrets: Sequence[AnySecret], uncertainty: float) -> np.ndarray:
    targets = np.empty((len(secrets), len(priors)))
    for p, prior in enumerate(priors):
        _, joints = host_arrays(prior, secrets)
        for j, (_, variance) in enumerate(joints):
            if variance.shape != (1, 1):
                raise InputError("uncertainty is for secrets of one number each (one coordinate at one time).")
            # P ≥ u² ⇔ 1/P − 1/Var ≤ 1/u² − 1/Var.
            room = 1 / Fraction(uncertainty) ** 2 - 1 / Fraction(float(variance[0, 0]))
            if room <= 0:
                known = float(variance[0, 0]) ** 0.5
                raise InfeasibleError(
                    f"prior {p} already knows secret {j} to ±{known:.4g} before any release; no noise keeps it at "
                    f"±{uncertainty:.4g}. Ask for less than ±{known:.4g}.",
                    smallest_feasible=known,
                )
            targets[j, p] = fraction_down(room)
    return targets


def met(certificate: Certificate, targets: np.ndarray, request: Request) -> bool:
    """Whether every certified loss is within its target."""
    if request.uncertainty is not None:
        return bool(np.all(certificate.losses <= targets))
    return bool(np.all(certificate.epsilons <= epsilon_of_each(request, targets.shape[0])[:, None]))
