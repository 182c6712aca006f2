"""Several secrets under several priors as floors: host arrays, and the rigorous bound of what meeting them costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jaxpriv.certificates.lower_bounds import majorant_lower_bound
from jaxpriv.certificates.verb import host_arrays, times_of
from jaxpriv.designs.request import Request
from jaxpriv.designs.structured.pattern import Pattern
from jaxpriv.designs.structured.requirements import GainLimit
from jaxpriv.errors import InputError
from jaxpriv.floors.requirements import Requirement, SecretLeakage, SideInformation
from jaxpriv.losses.side_information import given
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.secret import Secret


LARGEST_PATTERN = 3000  # free numbers of a structured covariance: Newton's method factorises matrices of that order


@dataclass(frozen=True)
class Floor:
    """One secret under one prior: Cov(X, T), Cov(T), and which covariance and target it belongs to."""

    prior: int
    cross: np.ndarray
    variance: np.ndarray
    target: float  # the loss at scale 1, in inverse squared units
    scales: bool  # False: the target stays where it is when the others are scaled
    times: np.ndarray | None = None  # the time of each coordinate, where each time has a d of its own
    margin: float = 2.0**-52  # relative, by which a lower bound loosens the target


@dataclass
class FloorProblem:
    """Everything a mechanism must dominate, as float64 host arrays.

    Attributes:
        covariances: Σ_p, (n, n) each; conditioned ones for side information come last.
        floors: prior-major, then secrets; then side information.
        fixed: pairs (E, μ²), E (n, q), with Eᵀ G⁻¹ E ⪯ μ² I required, which is G ⪰ E Eᵀ/μ².
        weights: W of the cost, (n,) or (n, n) or None.
        structure, bandwidth: of the noise.
        positions: the coordinates of all secrets, for structure "block".
        unit: squared length that the compiled solver counts in, so that it sees numbers near 1.
    """

    covariances: list[np.ndarray]
    floors: list[Floor]
    fixed: list[tuple[np.ndarray, float]] = field(default_factory=list)
    weights: np.ndarray | None = None
    structure: str = "joint"
    bandwidth: int | None = None
    positions: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """n."""
        return self.covariances[0].shape[0]

    @property
    def unit(self) -> float:
        """The mean prior variance of the first prior, as a power of two."""
        return 2.0 ** round(math.log2(max(float(np.mean(np.diagonal(self.covariances[0]))), 1e-300)))

    @classmethod
    def of(
        cls,
        priors: Sequence[Prior],
        secrets: Sequence[AnySecret],
        targets: np.ndarray,
        requirements: Sequence[Requirement],
        request: Request,
    ) -> FloorProblem:
        """`targets`, (secrets, priors): the losses to meet. Called in double precision."""
        covariances, floors, fixed = [], [], []
        positions: set[int] = set()
        if request.structure == "block":
            if not all(isinstance(secret, Secret) for secret in secrets):
                raise InputError("structure='block' needs secrets made of fixes of the trace.")
            positions = {index for secret in secrets if isinstance(secret, Secret) for index in secret.indices}
        for p, prior in enumerate(priors):
            covariance, joints = host_arrays(prior, secrets)
            if covariances and covariance.shape != covariances[0].shape:
                raise InputError(f"prior {p} has {covariance.shape[0]} coordinates, prior 0 {covariances[0].shape[0]}.")
            covariances.append(covariance)
            for j, (joint, secret) in enumerate(zip(joints, secrets, strict=True)):
                several = request.bound == "product" and secret.n_times > 1
                times = times_of(secret, joint[1].shape[0]) if several else None
                floors.append(_floor(joint, p, float(targets[j, p]), True, times))
        for requirement in requirements:
            if isinstance(requirement, SideInformation):
                for prior in priors:
                    informed = given(prior, requirement.known)
                    covariance, (joint,) = host_arrays(informed, [requirement.secret])
                    covariances.append(covariance)
                    reach = requirement.secret.n_times * float(requirement.secret.radius) ** 2
                    target = 2.0 * requirement.epsilon / (requirement.order * reach)
                    floors.append(_floor(joint, len(covariances) - 1, target, False))
            elif isinstance(requirement, SecretLeakage):
                for p, prior in enumerate(priors):
                    _, (joint,) = host_arrays(prior, [requirement.secret])
                    floors.append(_leakage_floor(joint, p, requirement.ratio))
            else:
                fixed += requirement.ellipsoids(covariances[0].shape[0])
        return cls(
            covariances,
            floors,
            fixed,
            request.weights,
            request.structure,
            request.bandwidth,
            tuple(sorted(positions)),
        )

    def pattern(self) -> Pattern:
        """Which entries of the noise covariance are free.

        Raises:
            InputError: more free numbers than Newton's method can take.
        """
        n = self.size
        if self.structure == "block":
            pattern_size = (n - len(self.positions)) * (n - len(self.positions) + 1) // 2 + 1
        else:
            pattern_size = n * (1 + (self.bandwidth or 0) if self.structure != "joint" else n)
        if pattern_size > LARGEST_PATTERN:
            raise InputError(
                f"structure={self.structure!r} has {pattern_size} free numbers here; at most {LARGEST_PATTERN} can be "
                "optimised. Lower the bandwidth, thin the trace, or use structure='joint'."
            )
        if self.structure == "block":
            return Pattern.block(n, self.positions)
        return Pattern.banded(n, n - 1 if self.structure == "joint" else self.bandwidth or 0)

    def limits(self, scale: float, shading: float) -> list[GainLimit]:
        """The floors, then the fixed ones, as limits of precision gains in `unit`s, at the targets times `scale`."""
        unit = self.unit
        found = []
        for floor in self.floors:
            target = floor.target * unit * (1.0 - shading) * (scale if floor.scales else 1.0)
            times = np.zeros(floor.variance.shape[0], int) if floor.times is None else floor.times
            found.append(GainLimit(floor.prior, floor.cross / unit, floor.variance / unit, times, target, floor.scales))
        for shape, squared in self.fixed:
            times = np.zeros(shape.shape[1], int)
            found.append(GainLimit(-1, shape, None, times, squared * unit * (1.0 - shading), False))
        return found

    def cost_lower(self, duals: Sequence[np.ndarray], scale: float, floor_variance: float) -> float:
        """A verified lower bound of tr(W G) over G ⪰ η I of the structure that meets every floor at the targets times
        `scale`.

        `duals`, one (n, k_j) a floor: any values, and any common factor, give a valid bound.
        """
        count = len(self.floors)
        # Rounded up: a looser target than the true one can only lower the bound.
        targets = [floor.target * (1.0 + floor.margin) * (scale if floor.scales else 1.0) for floor in self.floors]
        return majorant_lower_bound(
            [self.covariances[floor.prior] for floor in self.floors],
            [(floor.cross, floor.variance) for floor in self.floors],
            list(duals[:count]),
            targets,
            floor_variance,
            self.weights,
            fixed=[
                (shape / math.sqrt(squared * (1.0 + 2.0**-40)), dual)
                for (shape, squared), dual in zip(self.fixed, duals[count:], strict=True)
            ],
            structure=self.structure,
            indices=list(self.positions),
            bandwidth=self.bandwidth,
            times=[floor.times for floor in self.floors],
        )


def _floor(
    joint: tuple[np.ndarray, np.ndarray], index: int, target: float, scales: bool, times: np.ndarray | None = None
) -> Floor:
    cross, variance = joint
    if np.linalg.matrix_rank(variance, hermitian=True) < variance.shape[0]:
        raise InputError(
            "parts of a secret are perfectly correlated under a prior (equal times without a nugget, or a variance of "
            "zero): leave out what the rest determines."
        )
    return Floor(index, cross, variance, target, scales, times)


def _leakage_floor(joint: tuple[np.ndarray, np.ndarray], index: int, ratio: float) -> Floor:
    """Cov(T)^½ M Cov(T)^½ ⪯ ratio I as a loss: that of the secret in coordinates in which its covariance is I."""
    checked = _floor(joint, index, ratio, False)
    if checked.variance.shape == (1, 1):
        target = ratio / float(checked.variance[0, 0]) * (1.0 - 2.0**-50)
        return replace(checked, target=target, margin=2.0**-46)
    inverse = np.linalg.inv(np.linalg.cholesky(checked.variance))
    variance = inverse @ checked.variance @ inverse.T
    # The change of coordinates is rounded: the certificate is taken of the secret as it is, and the bound loosened.
    return replace(checked, cross=checked.cross @ inverse.T, variance=0.5 * (variance + variance.T), margin=1e-9)
