"""One node of a private aggregation: its dynamics, its weight in the sum, and what it asks for."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.precision import host_array
from jaxpriv.priors.state_space import LinearSystem, checked_covariance, require_stable


class AggregationNode(eqx.Module):
    """A node publishes y = C x + v, and the fusion centre uses L y.

    Args:
        system: x_{k+1} = A x_k + w_k with its natural disturbance Q, which is a floor: more may be added, never less.
            A stable, C of full row rank.
        epsilon: the leakage about x_k exceeds ε nats …
        delta: … with at most this probability.
        weights: L, (q, m), the same q for all nodes; the identity by default (m = q). LᵀL must be positive definite:
            for a weighted sum of several outputs of one node see `merged`.
        noise_floor: Θ₀, the noise that is there in any case: a variance (times the identity) or an (m, m) covariance.

    Raises:
        InputError: shapes that do not fit; A unstable (with its spectral radius); C without full row rank (with its
            rank); LᵀL not positive definite (with the rank of L); a floor that is no covariance.
    """

    system: LinearSystem
    epsilon: float
    delta: float
    weights: np.ndarray
    noise_floor: np.ndarray

    def __init__(self, system: LinearSystem, epsilon: float, delta: float, weights: Any = None, noise_floor: Any = 0.0):
        A, Q, C = (host_array(one, name, 2) for one, name in ((system.A, "A"), (system.Q, "Q"), (system.C, "C")))
        outputs = len(C)
        require_stable(A)
        _require_rank(C, "C", outputs, "Publish as many outputs as are independent")
        weights = np.eye(outputs) if weights is None else host_array(weights, "weights", 2)
        if weights.shape[1] != outputs:
            raise InputError(f"weights has shape {weights.shape}; expected (q, {outputs}), one column for each output.")
        _require_rank(
            weights, "weights (L, with LᵀL not positive definite)", outputs,
            "Publish L y instead of y: AggregationNode.merged(...) builds that node, never at a higher cost",
        )  # fmt: skip
        floor = host_array(noise_floor, "noise_floor", (0, 2))
        floor = floor * np.eye(outputs) if floor.ndim == 0 else floor
        if floor.shape != (outputs, outputs):
            raise InputError(f"noise_floor has shape {floor.shape}; expected a variance or {(outputs, outputs)}.")
        self.system = LinearSystem(A, checked_covariance(Q, "Q"), C)
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.weights = weights
        self.noise_floor = checked_covariance(floor, "noise_floor")

    @classmethod
    def merged(
        cls, system: LinearSystem, epsilon: float, delta: float, weights: Any, noise_floor: Any = 0.0
    ) -> AggregationNode:
        """The node that publishes only what the sum needs of its outputs: B y with L = R B, B of full row rank.

        What the sum receives is the same, the rank of the release is smaller, and with it χ²'s share of ε; the noise
        L Θ Lᵀ of any design for y is feasible here, so that the cost never rises (derived here). Needed when L has
        fewer independent rows than the node has outputs.
        """
        rows = host_array(weights, "weights", 2)
        C = host_array(system.C, "C", 2)
        if rows.shape[1] != len(C):
            raise InputError(f"weights has shape {rows.shape}; expected (q, {len(C)}), one column for each output.")
        left, values, right = np.linalg.svd(rows, full_matrices=False)
        rank = int(np.sum(values > len(rows) * 1e-12 * max(values[0], 1e-300)))
        if rank == 0:
            raise InputError("weights is zero: the sum needs nothing from this node.")
        basis, outer = right[:rank], left[:, :rank] * values[:rank]
        floor = host_array(noise_floor, "noise_floor", (0, 2))
        floor = float(floor) * np.eye(len(C)) if floor.ndim == 0 else floor
        inner = basis @ floor @ basis.T
        merged = LinearSystem(system.A, system.Q, basis @ C)
        return cls(merged, epsilon, delta, outer, 0.5 * (inner + inner.T))

    @property
    def gram(self) -> np.ndarray:
        """W = LᵀL, (m, m): the cost of noise at this node."""
        return self.weights.T @ self.weights


def _require_rank(matrix: np.ndarray, name: str, rank: int, advice: str) -> None:
    values = np.linalg.svd(matrix, compute_uv=False)
    found = int(np.sum(values > max(matrix.shape) * 1e-12 * max(values[0], 1e-300)))
    if found < rank:
        raise InputError(f"{name} has rank {found}; expected {rank}, the number of outputs. {advice}.")
