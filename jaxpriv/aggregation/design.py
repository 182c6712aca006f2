"""`design_aggregation`: the noise of every node of a private weighted sum, with certified leakage."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxpriv.aggregation.closed_form import aggregation_node
from jaxpriv.aggregation.listeners import exact_noise, listener_noise
from jaxpriv.aggregation.node import AggregationNode
from jaxpriv.errors import CertificateError, InfeasibleError, InputError
from jaxpriv.floors.leakage import BUDGET_SHADING, information_allowed
from jaxpriv.precision import double_precision
from jaxpriv.priors.state_space import LinearSystem
from jaxpriv.systems.certified import certify_system
from jaxpriv.systems.leakage import Observer


class NodeResult(enum.Enum):
    """How the design of a node ended; the value is the message."""

    designed = "certified"
    infeasible = "no noise is enough: ε does not exceed half the χ² quantile of the node's rank"
    not_certified = "the leakage of the proposed noise could not be verified; nothing is claimed"


@dataclass(frozen=True)
class NodeDesign:
    """One node's noise and what is known about it.

    Attributes:
        noise: Θ, (m, m), in squared units of the outputs; ∞ on the diagonal where nothing is enough.
        stationary: Σ, (n, n), with the disturbance at its floor Q.
        information, epsilon: mutual information and ε(δ) about x_k in nats for the design's observer, rounded up. They
            say nothing of what other nodes' outputs reveal: nodes are taken to be independent.
        rank: degrees of freedom of the leakage.
        output_error, total_error: this node's terms of the two errors.
        result: how it ended.
    """

    noise: np.ndarray
    stationary: np.ndarray
    information: float
    epsilon: float
    rank: int
    output_error: float
    total_error: float
    result: NodeResult


@dataclass(frozen=True)
class AggregationDesign:
    """Noise for all nodes; J is `error`, the one of the two errors that was asked for."""

    nodes: tuple[NodeDesign, ...]
    metric: str
    observer: str

    @property
    def output_error(self) -> float:
        """lim E‖Ȳ − Σ L C x‖²: what the noise adds to the sum."""
        return float(sum(node.output_error for node in self.nodes))

    @property
    def total_error(self) -> float:
        """lim E‖Ȳ‖² about the noise-free aggregate: disturbances and noise together."""
        return float(sum(node.total_error for node in self.nodes))

    @property
    def error(self) -> float:
        """J, by the metric of the design, in squared units of the sum."""
        return self.output_error if self.metric == "output" else self.total_error

    @property
    def epsilon(self) -> float:
        """The largest ε of a node."""
        return max(node.epsilon for node in self.nodes)

    def __str__(self) -> str:
        failed = sum(node.result is not NodeResult.designed for node in self.nodes)
        return (
            f"{len(self.nodes)} nodes, {failed} of them without a design; J = {self.error:.6g} ({self.metric}); "
            f"largest ε {self.epsilon:.6g} nats to the {self.observer} observer"
        )


def design_aggregation(
    nodes: Sequence[AggregationNode],
    *,
    metric: Literal["output", "total"] = "output",
    criterion: Literal["inequality", "exact"] = "inequality",
    observer: Observer = "output",
    throw: bool = True,
) -> AggregationDesign:
    """The noise of least J at every node, so that each node's own (ε, δ) holds.

    Problem (34) of Liu, Kawano and Cao (arXiv:2511.10771) with their relaxation (35), which loses nothing: it decouples
    over the nodes, disturbances stay at their floor, and the noise has a closed form (`aggregation_node`). Nodes of one
    shape are solved in one batch. J has two readings, `metric`; the optimum is the same for both.

    Args:
        nodes: with equal numbers of rows in their weights; independent of each other (states and noises): what one
            node's outputs say about another's state is not counted, coupled zones need one node for all of them.
        criterion: "inequality" (κ Σ remains; exact for one output a node) or "exact" (the information itself, less
            noise for several outputs; only for the "output" observer).
        observer: who listens. "output", the published problem, protects x_k against its own output alone and promises
            nothing for a series; "filter" and "smoother" protect it against all outputs so far, or all outputs. For a
            scalar node with one output that is the least noise (closed form); otherwise the static noise is multiplied
            by the least factor that is enough, which is feasible and not optimal.
        throw: raise when a node has no design; otherwise its `result` says why.

    Raises:
        InputError: no node, weights of different heights, options that are none.
        InfeasibleError: 2ε ≤ q_l(δ) at a node; the message names the nodes, `smallest_feasible` is the ε above which
            all of them are feasible.
        CertificateError: a node's leakage could not be verified.
    """
    nodes = list(nodes)
    _check(nodes, metric, criterion, observer)
    ranks = [node.system.outputs if observer == "output" else node.system.states for node in nodes]
    budgets, complaints, limits = _budgets(nodes, ranks)
    if complaints and throw:
        more = f" ({len(complaints)} nodes are infeasible)" if len(complaints) > 1 else ""
        raise InfeasibleError(f"{complaints[0]}{more}", smallest_feasible=max(limits))
    with double_precision():
        solved = _solve(nodes, budgets)
        designs = [
            _design(node, rank, tau, *one, metric, criterion, observer)
            for node, rank, tau, one in zip(nodes, ranks, budgets, solved, strict=True)
        ]
    if throw:
        for i, one in enumerate(designs):
            if one.result is NodeResult.not_certified:
                raise CertificateError(f"node {i}: {one.result.value}.")
    return AggregationDesign(tuple(designs), metric, observer)


def _check(nodes, metric, criterion, observer) -> None:
    if not nodes:
        raise InputError("no node was given.")
    for i, node in enumerate(nodes):
        if not isinstance(node, AggregationNode):
            raise InputError(f"node {i} is a {type(node).__name__}; expected an AggregationNode.")
        if len(node.weights) != len(nodes[0].weights):
            raise InputError(
                f"the weights of node {i} have {len(node.weights)} rows, those of node 0 {len(nodes[0].weights)}; "
                "they are added."
            )
    for name, value, allowed in (
        ("metric", metric, ("output", "total")),
        ("criterion", criterion, ("inequality", "exact")),
        ("observer", observer, ("output", "filter", "smoother")),
    ):
        if value not in allowed:
            raise InputError(f"{name} is {value!r}; expected {' or '.join(allowed)}.")
    if criterion == "exact" and observer != "output":
        raise InputError("criterion='exact' is for observer='output'; the others have their own designs.")


def _budgets(nodes, ranks) -> tuple[list[float], list[str], list[float]]:
    budgets, complaints, limits = [], [], []
    for i, (node, rank) in enumerate(zip(nodes, ranks, strict=True)):
        try:
            budgets.append(information_allowed(node.epsilon, node.delta, rank) * (1.0 - BUDGET_SHADING))
        except InfeasibleError as error:
            budgets.append(np.nan)
            complaints.append(f"node {i}: {error}")
            limits.append(error.smallest_feasible)
    return budgets, complaints, limits


@eqx.filter_jit
def _batch(systems: LinearSystem, weights, information, floors):
    return jax.vmap(aggregation_node)(systems, weights, information, floors)


def _solve(nodes, budgets) -> list[tuple[np.ndarray, np.ndarray]]:
    """(Σ, Θ) for every node under the inequality, batched by shape; a harmless budget where there is none."""
    groups = defaultdict(list)
    for i, node in enumerate(nodes):
        groups[node.system.C.shape].append(i)
    found: list[tuple[np.ndarray, np.ndarray]] = [(np.empty(0), np.empty(0))] * len(nodes)
    for members in groups.values():
        one = [nodes[i] for i in members]
        systems = jax.tree.map(lambda *arrays: jnp.asarray(np.stack(arrays)), *[node.system for node in one])
        information = np.array([budgets[i] if budgets[i] > 0 else 1.0 for i in members])
        solution = _batch(
            systems, np.stack([n.weights for n in one]), information, np.stack([n.noise_floor for n in one])
        )
        for i, stationary, noise in zip(
            members, np.asarray(solution.stationary), np.asarray(solution.noise), strict=True
        ):
            found[i] = stationary, noise
    return found


def _design(node, rank, tau, stationary, noise, metric, criterion, observer) -> NodeDesign:
    if not tau > 0:
        nothing = np.diag(np.full(len(noise), np.inf))
        return NodeDesign(nothing, stationary, np.inf, np.inf, rank, np.inf, np.inf, NodeResult.infeasible)
    if observer != "output":
        noise = listener_noise(node, noise, tau, observer)
    elif criterion == "exact" and len(noise) > 1:
        noise = exact_noise(node, stationary, tau)
    noise = 0.5 * (noise + noise.T)
    signal = node.system.C @ stationary @ node.system.C.T
    output_error = float(np.trace(node.gram @ noise))
    total_error = output_error + float(np.trace(node.gram @ signal))
    try:
        leakage = certify_system(node.system, noise, node.delta, observers=(observer,))
        information, epsilon = leakage.information[observer], leakage.epsilon[observer]
    except (CertificateError, InfeasibleError):
        information = epsilon = np.inf
    result = NodeResult.designed if epsilon <= node.epsilon else NodeResult.not_certified
    return NodeDesign(noise, stationary, information, epsilon, rank, output_error, total_error, result)
