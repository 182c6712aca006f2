"""Private aggregation as one semidefinite program: problem (35) of Liu, Kawano and Cao (arXiv:2511.10771)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jaxpriv.aggregation.node import AggregationNode
from jaxpriv.convex.solving import check_size, cvxpy, run
from jaxpriv.errors import InputError
from jaxpriv.floors.leakage import information_allowed


@dataclass(frozen=True)
class AggregationProgram:
    """What the solver returned: J and, for each node, Σ, the disturbance Q = Σ − A Σ Aᵀ that it implies, and Θ."""

    error: float
    stationary: tuple[np.ndarray, ...]
    disturbance: tuple[np.ndarray, ...]
    noise: tuple[np.ndarray, ...]
    status: str
    seconds: float


def aggregation_program(
    nodes: Sequence[AggregationNode],
    metric: Literal["output", "total"] = "output",
    *,
    solver: str = "CLARABEL",
    options: Mapping[str, Any] | None = None,
    n_max: int = 30,
) -> AggregationProgram:
    """Minimise J over Σ_i, Q̂_i ⪰ Q_i and Θ_i ⪰ Θ₀_i, with Σ_i ⪰ A_i Σ_i A_iᵀ + Q̂_i and the matrix inequality.

    The cross-check of `design_aggregation`, whose closed form it reaches: disturbances are variables here.

    Raises:
        InputError: no node, an unknown metric, or a program larger than a one-secret program of `n_max` points.
        InfeasibleError: 2ε ≤ q_l(δ) at a node.
        CertificateError: the solver fails.
    """
    if not nodes or metric not in ("output", "total"):
        raise InputError(f"expected at least one node and the metric output or total; got {len(nodes)}, {metric!r}.")
    cones = [order for node in nodes for order in (*(3 * [node.system.states]), *(2 * [node.system.outputs]))]
    check_size(cones, n_max)
    cp = cvxpy()
    constraints, variables, cost = [], [], 0
    for node in nodes:
        A, Q, C = (np.asarray(one) for one in (node.system.A, node.system.Q, node.system.C))
        n, m = len(A), len(C)
        share = 1.0 / np.expm1(information_allowed(node.epsilon, node.delta, m) / m)
        state, disturbance, noise = (cp.Variable((order, order), symmetric=True) for order in (n, n, m))
        signal = C @ state @ C.T
        constraints += [
            disturbance - Q >> 0,
            state - A @ state @ A.T - disturbance >> 0,
            noise - node.noise_floor >> 0,
            noise - share * signal >> 0,
        ]
        spent = noise if metric == "output" else noise + signal
        cost = cost + cp.trace(node.gram @ spent)
        variables.append((A, state, noise))
    problem = cp.Problem(cp.Minimize(cost), constraints)
    status, seconds = run(problem, solver, options, "aggregation program")
    states = tuple(np.asarray(state.value) for _, state, _ in variables)
    implied = tuple(one - A @ one @ A.T for (A, _, _), one in zip(variables, states, strict=True))
    noises = tuple(np.asarray(noise.value) for _, _, noise in variables)
    return AggregationProgram(float(problem.value), states, implied, noises, status, seconds)
