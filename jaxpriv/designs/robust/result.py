"""What a robust design is and what is known about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import numpy as np

from jaxpriv.certificates.verb import certify
from jaxpriv.designs.result import Design, DesignResult
from jaxpriv.designs.robust.region import Family, Region
from jaxpriv.errors import InputError
from jaxpriv.losses.misspecified import misspecified_loss
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.precision import double_precision
from jaxpriv.secrets.collection import AnySecret


_judged = eqx.filter_jit(misspecified_loss)


@dataclass(frozen=True)
class LossUnderPrior:
    """One line of `RobustDesign.losses`, in nats.

    `epsilon` and `epsilon_lower` bracket the loss under the prior at `theta` of family number `family` (the largest
    over secrets, verified); `theorem` is what Theorem 3.3 of Meehan and Chaudhuri (AISTATS 2021) allows it to be for
    an adversary with that prior when the noise is judged by the assumed prior alone.
    """

    family: int
    theta: dict[str, float]
    epsilon: float
    epsilon_lower: float
    theorem: float


@dataclass(frozen=True, eq=False)
class RobustDesign:
    """A mechanism whose loss holds for a continuous set of priors.

    Attributes:
        mechanism: the noise.
        epsilon: verified loss in nats, the largest over secrets and over what `covers` says.
        epsilons: the same for each secret, (secrets,).
        covers: "region", the bound is proven for every prior of the region; "points", it is proven for the priors
            at `stats["checked"]` points, and between them only what the search found is known.
        cost: verified tr(W G), floor included, in squared units of the trace.
        lower_bound: of the quantity that was minimised (cost for a target, epsilon for a budget): no noise with the
            same floor that withstands the whole region goes below it.
        gap: (achieved − lower_bound)/achieved; it includes the margin between the points of the design.
        result: how it ended.
        worst: the parameters under which the search found the largest loss, and its value in nats, or relative to the
            target where secrets have different ones (an estimate).
        points: the priors designed for: family number and parameters of each.
        design: the design for those priors, with its certificate for each of them.
        stats: rounds of the exchange, boxes or points checked, margin, largest violation found.
    """

    mechanism: GaussianMechanism
    epsilon: float
    epsilons: np.ndarray
    covers: Literal["region", "points"]
    cost: float
    lower_bound: float
    gap: float
    result: DesignResult
    worst: tuple[dict[str, float], float]
    points: tuple[tuple[int, dict[str, float]], ...]
    design: Design
    stats: dict[str, Any]
    families: tuple[Family, ...]
    region: Region
    secrets: tuple[AnySecret, ...]

    @property
    def order(self) -> float:
        """Rényi order of every ε here."""
        return self.design.certificate.order

    def losses(
        self,
        thetas: Sequence[Mapping[str, float]] | None = None,
        assumed: Mapping[str, float] | None = None,
        family: int = 0,
    ) -> list[LossUnderPrior]:
        """The loss under each prior beside the bound of Theorem 3.3; by default under the priors designed for.

        Args:
            thetas: parameters of the true prior, of family number `family`; any values, also outside the region.
            assumed: parameters of the assumed prior of that theorem, of family 0; by default the region's middle.
        """
        where = list(self.points) if thetas is None else [(family, dict(theta)) for theta in thetas]
        with double_precision():
            middle = self.region.named(np.full(self.region.size, 0.5)) if assumed is None else dict(assumed)
            believed = self._prior(0, middle)
            lines = []
            for number, theta in where:
                prior = self._prior(number, theta)
                certificate = certify(prior, list(self.secrets), self.mechanism, self.order)
                bounds = [
                    float(_judged(believed, prior, one, self.mechanism, self.order).bound) for one in self.secrets
                ]
                below = float(np.max(certificate.epsilon_lower))
                lines.append(LossUnderPrior(number, theta, certificate.epsilon, below, max(bounds)))
        return lines

    def _prior(self, family: int, theta: Mapping[str, float]) -> Any:
        if not 0 <= family < len(self.families):
            raise InputError(f"family is {family}; there are {len(self.families)}.")
        if self.region.names is None:
            return self.families[family](np.array(list(theta.values())))
        if set(theta) != set(self.region.names):
            raise InputError(f"theta has {sorted(theta)}; expected {sorted(self.region.names)}.")
        return self.families[family](**theta)

    def __str__(self) -> str:
        extent = "under every prior of the region" if self.covers == "region" else "under every checked prior"
        theta = ", ".join(f"{name} {value:.4g}" for name, value in self.worst[0].items())
        return (
            f"ε ≤ {self.epsilon:.6g} nats at order {self.order:g} {extent} ({self.stats['checked']} "
            f"{'boxes' if self.covers == 'region' else 'points'}); total noise power {self.cost:.6g}; gap "
            f"{self.gap:.1e}; worst prior found: {theta} (ε ≈ {self.worst[1]:.6g}): {self.result.value}"
        )
