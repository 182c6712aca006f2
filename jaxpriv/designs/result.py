"""What a design verb returns."""

from __future__ import annotations

import enum
from typing import Any

import equinox as eqx
import numpy as np

from jaxpriv.certificates.verb import Certificate
from jaxpriv.mechanisms.gaussian import GaussianMechanism


class DesignResult(enum.Enum):
    """How a design ended; the value is the message."""

    optimal = "certified, and no mechanism of this structure is better by more than the tolerance"
    suboptimal = "certified, but the lower bound leaves room for a mechanism that is better by more than the tolerance"
    not_certified = (
        "the loss of the proposed mechanism could not be verified: prior plus noise is singular to working precision. "
        "Raise floor_sd, or give the prior the nugget that the data have"
    )
    target_not_certified = (
        "no mechanism within a thousandth of the least noise could be verified to meet the target. "
        "Raise floor_sd, or give the prior the nugget that the data have"
    )
    budget_infeasible = "the budget does not exceed what the floor alone costs"


class Design(eqx.Module):
    """A mechanism and what is known about it.

    Attributes:
        mechanism: the noise.
        epsilon: certified loss in nats at the certificate's order, the largest over secrets and priors; never below the
            true one, infinite if nothing could be verified.
        cost: verified tr(W G), floor included, in squared units of the trace; never below the true one.
        lower_bound: of the quantity that was minimised (cost for a target, epsilon for a budget): no mechanism of the
            same structure with the same floor goes below it.
        gap: (achieved − lower_bound)/achieved of that quantity.
        result: how it ended.
        stats: method, why it was chosen, and its counts.
        certificate: the losses of every secret under every prior, both bounds, and what else they mean.
    """

    mechanism: GaussianMechanism
    epsilon: float
    cost: float
    lower_bound: float
    gap: float
    result: DesignResult = eqx.field(static=True)
    stats: dict[str, Any] = eqx.field(static=True)
    certificate: Certificate = eqx.field(static=True)

    @property
    def epsilons(self) -> np.ndarray:
        """Certified losses, (secrets, priors), in nats."""
        return self.certificate.epsilons

    def __str__(self) -> str:
        rms = (self.cost / self.mechanism.size) ** 0.5
        return (
            f"ε ≤ {self.epsilon:.6g} nats at order {self.certificate.order:g}; total noise power {self.cost:.6g} "
            f"({rms:.4g} a coordinate); gap {self.gap:.1e}; {self.stats['method']}: {self.result.value}"
        )
