"""Several secrets under several priors as floors: host arrays, the compiled solver's stack, and the rigorous bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np

from jaxpriv.certificates.lower_bounds import majorant_lower_bound
from jaxpriv.certificates.verb import host_arrays
from jaxpriv.designs.majorant.stack import FloorStack, inference_stack, join, low_rank_stack
from jaxpriv.errors import InputError
from jaxpriv.floors.requirements import Requirement, SideInformation
from jaxpriv.losses.side_information import given
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret


@dataclass(frozen=True)
class Floor:
    """One secret under one prior: Cov(X, T), Cov(T), and which covariance and target it belongs to."""

    prior: int
    cross: np.ndarray
    variance: np.ndarray
    target: float  # the loss at scale 1, in inverse squared units
    scales: bool  # False: the target stays where it is when the others are scaled


@dataclass
class FloorProblem:
    """Everything a mechanism must dominate, as float64 host arrays.

    Attributes:
        covariances: Σ_p, (n, n) each; conditioned ones for side information come last.
        floors: prior-major, then secrets; then side information.
        fixed: pairs (E, μ²), E (n, q), with Eᵀ G⁻¹ E ⪯ μ² I required, which is G ⪰ E Eᵀ/μ².
        weights: W of the cost, (n,) or (n, n) or None.
        unit: squared length that the compiled solver counts in, so that it sees numbers near 1.
    """

    covariances: list[np.ndarray]
    floors: list[Floor]
    fixed: list[tuple[np.ndarray, float]] = field(default_factory=list)
    weights: np.ndarray | None = None

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
        requirements: Sequence[Requirement] = (),
        weights: np.ndarray | None = None,
    ) -> FloorProblem:
        """`targets`, (secrets, priors): the losses to meet. Called in double precision."""
        covariances, floors, fixed = [], [], []
        for p, prior in enumerate(priors):
            covariance, joints = host_arrays(prior, secrets)
            if covariances and covariance.shape != covariances[0].shape:
                raise InputError(f"prior {p} has {covariance.shape[0]} coordinates, prior 0 {covariances[0].shape[0]}.")
            covariances.append(covariance)
            floors += [_floor(joint, p, float(targets[j, p]), True) for j, joint in enumerate(joints)]
        for requirement in requirements:
            if isinstance(requirement, SideInformation):
                for prior in priors:
                    informed = given(prior, requirement.known)
                    covariance, (joint,) = host_arrays(informed, [requirement.secret])
                    covariances.append(covariance)
                    reach = requirement.secret.n_times * float(requirement.secret.radius) ** 2
                    target = 2.0 * requirement.epsilon / (requirement.order * reach)
                    floors.append(_floor(joint, len(covariances) - 1, target, False))
            else:
                fixed += requirement.ellipsoids(covariances[0].shape[0])
        return cls(covariances, floors, fixed, weights)

    def stack(self, scale: float, floor_variance: float, shading: float) -> FloorStack:
        """The floors for the compiled solver, in `unit`s, at the targets times `scale`.

        Everything is asked for a little more strictly, by the relative `shading`.

        With weights, in the coordinates W^½ X and with the floor η W inside the prior covariances.
        """
        unit, n = self.unit, self.size
        root = weight_root(self.weights)
        width = max(floor.cross.shape[1] for floor in self.floors)
        cross = np.zeros((len(self.floors), n, width))
        variance = np.zeros((len(self.floors), width, width))
        mask = np.zeros((len(self.floors), width), bool)
        target = np.empty(len(self.floors))
        for i, floor in enumerate(self.floors):
            k = floor.cross.shape[1]
            cross[i, :, :k] = (floor.cross if root is None else root @ floor.cross) / (
                unit if root is None else math.sqrt(unit) * math.sqrt(unit)
            )
            variance[i, :k, :k] = floor.variance / unit
            mask[i, :k] = True
            target[i] = floor.target * unit * (1.0 - shading) * (scale if floor.scales else 1.0)
        shared, owner, shift = _shared([covariance / unit for covariance in self.covariances])
        if root is not None:
            weighted = [
                root @ (covariance + floor_variance * np.eye(n)) @ root / unit for covariance in self.covariances
            ]
            shared, owner, shift = weighted, list(range(len(weighted))), [0.0] * len(weighted)
        stacks = [
            inference_stack(
                np.stack(shared),
                [floor.prior for floor in self.floors],
                cross,
                variance,
                target,
                mask=mask,
                shift=np.array(shift),
                covariance_index=owner,
            )
        ]
        stacks[0] = _with_fixed(stacks[0], [i for i, floor in enumerate(self.floors) if not floor.scales])
        if self.fixed:
            width = max(shape.shape[1] for shape, _ in self.fixed)
            columns = np.zeros((len(self.fixed), n, width))
            for i, (shape, squared) in enumerate(self.fixed):
                height = math.sqrt(squared * (1.0 - shading) * unit)
                columns[i, :, : shape.shape[1]] = (shape if root is None else root @ shape) / height
            base = np.zeros((1, n, n)) if root is None else floor_variance * root[None] @ root[None] / unit
            stacks.append(low_rank_stack(base, [0] * len(self.fixed), columns))
        return join(*stacks) if len(stacks) > 1 else stacks[0]

    def in_units(self, factor: np.ndarray) -> np.ndarray:
        """A factor of the compiled solver's noise in the unit and the coordinates of the trace."""
        factor = np.asarray(factor) * math.sqrt(self.unit)
        root = weight_root(self.weights)
        return factor if root is None else np.linalg.solve(root, factor)

    def cost_lower(self, columns: np.ndarray, scale: float, floor_variance: float) -> float:
        """A verified lower bound of tr(W G) over G ⪰ η I that meets every floor at the targets times `scale`.

        `columns`, (J, n, k): the solver's dual; any values give a valid bound.
        """
        root = weight_root(self.weights)
        columns = np.asarray(columns) if root is None else root @ np.asarray(columns)
        count = len(self.floors)
        duals = [columns[i][:, : floor.cross.shape[1]] for i, floor in enumerate(self.floors)]
        # Rounded up: a looser target than the true one can only lower the bound.
        targets = [floor.target * (scale * (1 + 2.0**-52) if floor.scales else 1.0) for floor in self.floors]
        return majorant_lower_bound(
            [self.covariances[floor.prior] for floor in self.floors],
            [(floor.cross, floor.variance) for floor in self.floors],
            duals,
            targets,
            floor_variance,
            self.weights,
            fixed=[
                (shape / math.sqrt(squared * (1.0 + 2.0**-40)), columns[count + i][:, : shape.shape[1]])
                for i, (shape, squared) in enumerate(self.fixed)
            ],
        )


def weight_root(weights: np.ndarray | None) -> np.ndarray | None:
    """W^½, (n, n), or None for equal weights."""
    if weights is None:
        return None
    if weights.ndim == 1:
        return np.diag(np.sqrt(weights))
    values, vectors = np.linalg.eigh(weights)
    return (vectors * np.sqrt(values)) @ vectors.T


def _floor(joint: tuple[np.ndarray, np.ndarray], index: int, target: float, scales: bool) -> Floor:
    cross, variance = joint
    if np.linalg.matrix_rank(variance, hermitian=True) < variance.shape[0]:
        raise InputError(
            "parts of a secret are perfectly correlated under a prior (equal times without a nugget, or a variance of "
            "zero): leave out what the rest determines."
        )
    return Floor(index, cross, variance, target, scales)


def _shared(covariances: list[np.ndarray]) -> tuple[list[np.ndarray], list[int], list[float]]:
    """Covariances that differ by a multiple of the identity only are multiplied once."""
    kept: list[np.ndarray] = []
    owner: list[int] = []
    shift: list[float] = []
    for covariance in covariances:
        for i, other in enumerate(kept):
            difference = np.diagonal(covariance) - np.diagonal(other)
            even = float(np.ptp(difference)) <= 1e-14 * float(np.max(np.diagonal(covariance)))
            if even and float(np.min(difference)) >= 0.0 and np.array_equal(np.triu(covariance, 1), np.triu(other, 1)):
                owner.append(i)
                shift.append(float(np.mean(difference)))
                break
        else:
            owner.append(len(kept))
            shift.append(0.0)
            kept.append(covariance)
    return kept, owner, shift


def _with_fixed(stack: FloorStack, fixed: list[int]) -> FloorStack:
    """The same floors with some whose targets do not scale: their slope moves into the base."""
    if not fixed:
        return stack
    keep = jnp.asarray(np.isin(np.arange(stack.count), fixed))[:, None, None]
    return FloorStack(
        covariances=stack.covariances,
        directions=stack.directions,
        base=jnp.where(keep, stack.base + stack.slope, stack.base),
        slope=jnp.where(keep, 0.0, stack.slope),
        shift=stack.shift,
        prior_index=stack.prior_index,
        covariance_index=stack.covariance_index,
        fixed=tuple(fixed),
    )
