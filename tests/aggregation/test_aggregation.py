"""Private aggregation: known answers, the convex program, floors, criteria, listeners, batches, failures."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.aggregation.closed_form import aggregation_node
from jaxpriv.aggregation.design import NodeResult, design_aggregation
from jaxpriv.aggregation.node import AggregationNode
from jaxpriv.convex.aggregation import aggregation_program
from jaxpriv.priors.state_space import LinearSystem
from jaxpriv.systems.certified import certify_system


KNOWN = json.loads((Path(__file__).parents[1] / "known_answers" / "linear_systems.json").read_text())
ZONES, TWO = KNOWN["zones"], KNOWN["aggregation"]
# Designs stay 1e-9 inside the information budget, which costs at most about 4e-9 of the noise at these budgets.
SHADED = 4e-9


def zones(epsilon=3.0, delta=0.05):
    rows = zip(ZONES["a"], ZONES["b"], ZONES["q"], strict=True)
    return [AggregationNode(LinearSystem([[a]], [[b * b * q]]), epsilon, delta, [[0.25]]) for a, b, q in rows]


def two_outputs(floor=None, **options):
    floor = TWO["floor"] if floor is None else floor
    system = LinearSystem(TWO["A"], TWO["floor"] * np.eye(2))
    return AggregationNode(system, TWO["epsilon"], 0.05, TWO["weights"], floor, **options)


@pytest.mark.parametrize(
    ("observer", "noise", "error"),
    [("output", "output_noise", "output_error"), ("filter", "filter_noise", "filter_error"),
     ("smoother", "smoother_noise", "smoother_error")],
)  # fmt: skip
def test_building_of_four_zones(observer, noise, error):
    design = design_aggregation(zones(), observer=observer)
    assert np.allclose([one.noise[0, 0] for one in design.nodes], ZONES[noise], rtol=SHADED)
    assert np.allclose([one.stationary[0, 0] for one in design.nodes], ZONES["stationary"], rtol=1e-12)
    assert design.error == pytest.approx(ZONES[error], rel=SHADED)
    if observer == "output":
        assert design.total_error == pytest.approx(ZONES["total_error"], rel=SHADED)
    for one in design.nodes:
        assert 3.0 - 1e-8 < one.epsilon <= 3.0 and one.rank == 1 and one.result is NodeResult.designed


def test_two_outputs_with_a_floor():
    design = design_aggregation([two_outputs()])
    assert design.output_error == pytest.approx(TWO["output_error"], rel=SHADED)
    assert design.total_error == pytest.approx(TWO["total_error"], rel=SHADED)
    # Everything scales with the floors.
    system = LinearSystem(TWO["A"], 2 * TWO["floor"] * np.eye(2))
    twice = design_aggregation([AggregationNode(system, TWO["epsilon"], 0.05, TWO["weights"], 2 * TWO["floor"])])
    assert twice.output_error == pytest.approx(2 * design.output_error, rel=1e-12)


@pytest.mark.parametrize("metric", ["output", "total"])
def test_convex_program_agrees(metric):
    system = LinearSystem([[0.5, 0.1], [0.2, 0.4]], [[0.3, 0.1], [0.1, 0.2]])
    disturbed = AggregationNode(system, 6.0, 0.1, [[1.0, 0.2], [0.5, 1.0]], [[0.05, 0.01], [0.01, 0.2]])
    nodes = [two_outputs(), disturbed]
    theirs = aggregation_program(nodes, metric)
    ours = design_aggregation(nodes, metric=metric)
    # An interior-point solver's own tolerance is 1e-8.
    assert ours.error == pytest.approx(theirs.error, rel=1e-6)
    for one, noise, disturbance, node in zip(ours.nodes, theirs.noise, theirs.disturbance, nodes, strict=True):
        assert np.allclose(one.noise, noise, atol=1e-4)
        # Adding disturbance never pays (it is free where a floor hides the noise and the signal does not count).
        if metric == "total":
            assert np.allclose(disturbance, node.system.Q, atol=1e-4)


def test_exact_criterion_uses_less_noise_and_no_floor_is_broken():
    for floor in (0.0, 0.02, np.array([[0.03, 0.01], [0.01, 0.02]]), 1.0):
        node = two_outputs(floor)
        least = design_aggregation([node], criterion="inequality").nodes[0]
        exact = design_aggregation([node], criterion="exact").nodes[0]
        assert exact.epsilon <= TWO["epsilon"] and exact.output_error <= least.output_error * (1 + 1e-9)
        assert np.linalg.eigvalsh(exact.noise - node.noise_floor)[0] > -1e-12
        if np.all(np.asarray(floor) == 0.0):
            # Both spend the whole budget; only the trace differs.
            assert exact.epsilon == pytest.approx(least.epsilon, rel=1e-8)
            assert exact.output_error < 0.8 * least.output_error
        if np.all(np.asarray(floor) == 1.0):
            # A floor above what is needed is the design.
            assert np.allclose(exact.noise, np.eye(2), atol=1e-6) and np.allclose(least.noise, np.eye(2), atol=1e-12)


def test_listeners_of_a_node_with_two_outputs():
    node = two_outputs(0.0)
    costs = []
    for observer in ("output", "filter", "smoother"):
        design = design_aggregation([node], observer=observer)
        costs.append(design.error)
        found = certify_system(node.system, design.nodes[0].noise, 0.05)
        assert found.epsilon[observer] <= TWO["epsilon"] * (1 + 1e-12)
        assert found.epsilon[observer] == pytest.approx(TWO["epsilon"], rel=1e-7)
    assert costs[0] < costs[1] < costs[2]


def test_merging_outputs_never_costs_more():
    system = LinearSystem(TWO["A"], np.eye(2))
    merged = AggregationNode.merged(system, 4.0, 0.05, [[1.0, 1.0]], 0.1)
    assert merged.system.outputs == 1
    # The sum receives the same signal and, of the floor, the same noise.
    assert np.allclose(merged.weights @ merged.system.C, [[1.0, 1.0]])
    assert np.allclose(merged.weights @ merged.noise_floor @ merged.weights.T, 0.2)
    # Both outputs with noise that is enough, combined afterwards.
    apart = design_aggregation([AggregationNode(system, 4.0, 0.05, noise_floor=0.1)]).nodes[0].noise
    assert design_aggregation([merged]).error <= np.sum(apart)


def test_batch_equals_one_by_one_and_grows_by_adding():
    rng = np.random.default_rng(5)
    nodes = [AggregationNode(LinearSystem([[a]], [[1 - a * a]]), 3.0, 0.05, [[0.1]]) for a in rng.uniform(-0.9, 0.9, 7)]
    nodes += [AggregationNode(LinearSystem(TWO["A"], np.eye(2), [[1.0, 0.5]]), 2.5, 0.1, [[0.3]])]
    together = design_aggregation(nodes)
    alone = [design_aggregation([node]).nodes[0] for node in nodes]
    for one, other in zip(together.nodes, alone, strict=True):
        assert np.allclose(one.noise, other.noise, rtol=1e-13) and one.epsilon <= 3.0
    assert together.error == pytest.approx(sum(one.output_error for one in alone), rel=1e-12)


def test_gradient_of_the_optimum():
    def cost(a, information, floor):
        system = LinearSystem(jnp.array([[a, 0.2], [0.0, 0.7]]), 0.1 * jnp.eye(2))
        return aggregation_node(system, jnp.array(TWO["weights"]), information, floor * jnp.eye(2)).output_error

    point = (0.9, 2.0, 0.02)
    value = jax.jit(cost)
    for i, one in enumerate(jax.jit(jax.grad(cost, argnums=(0, 1, 2)))(*point)):
        ends = [value(*(p + s * (i == j) for j, p in enumerate(point))) for s in (1e-6, -1e-6)]
        assert float(one) == pytest.approx(float(ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-9)


def test_infeasible_nodes_are_named_with_what_is_feasible():
    nodes = [*zones(), AggregationNode(LinearSystem([[0.5]], [[1.0]]), 1.5, 0.05, [[0.25]]),
             AggregationNode(LinearSystem([[0.5]], [[1.0]]), 2.0, 0.01, [[0.25]])]  # fmt: skip
    with pytest.raises(jp.InfeasibleError, match=r"node 4: .*1\.92073.*2 nodes are infeasible") as raised:
        design_aggregation(nodes)
    # Half the χ² quantile of one degree of freedom at 0.01.
    assert raised.value.smallest_feasible == pytest.approx(3.3174483, rel=1e-7)
    design = design_aggregation(nodes, throw=False)
    assert [one.result for one in design.nodes[3:]] == [
        NodeResult.designed,
        NodeResult.infeasible,
        NodeResult.infeasible,
    ]
    assert design.nodes[4].epsilon == np.inf and "2 of them without a design" in str(design)
    # Against a listener the whole state counts: two degrees of freedom.
    slow = AggregationNode(LinearSystem(TWO["A"], np.eye(2), [[1.0, 0.0]]), 2.5, 0.05, [[1.0]])
    assert design_aggregation([slow]).epsilon <= 2.5
    with pytest.raises(jp.InfeasibleError, match=r"2\.99573"):
        design_aggregation([slow], observer="filter")


GOOD = LinearSystem([[0.9, 0.2], [0.0, 0.7]], np.eye(2))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: AggregationNode(LinearSystem([[1.01]], [[1.0]]), 3, 0.05), "spectral radius is 1.01"),
        (lambda: AggregationNode(LinearSystem(GOOD.A, GOOD.Q, [[1, 1], [2, 2]]), 3, 0.05), "C has rank 1; expected 2"),
        (lambda: AggregationNode(GOOD, 3, 0.05, [[1.0, 1.0]]), "not positive definite.* has rank 1.*merged"),
        (lambda: AggregationNode(GOOD, 3, 0.05, [[1.0]]), "one column for each output"),
        (lambda: AggregationNode(GOOD, 3, 0.05, None, -1.0), "smallest eigenvalue is -1"),
        (lambda: AggregationNode(GOOD, 3, 0.05, None, np.eye(3)), "noise_floor has shape"),
        (lambda: AggregationNode(GOOD, 3, 0.05, [[np.nan, 1.0]]), "not finite"),
        (lambda: AggregationNode.merged(GOOD, 3, 0.05, [[0.0, 0.0]]), "weights is zero"),
        (lambda: design_aggregation([]), "no node"),
        (lambda: design_aggregation([GOOD]), "expected an AggregationNode"),
        (lambda: design_aggregation([*zones(), two_outputs()]), "weights of node 4 have 2 rows"),
        (lambda: design_aggregation(zones(delta=0.0)), "delta is 0.0"),
        (lambda: design_aggregation(zones(epsilon=np.inf)), "epsilon is inf"),
        (lambda: design_aggregation(zones(), metric="mean"), "metric is 'mean'"),
        (lambda: design_aggregation(zones(), criterion="exact", observer="filter"), "exact"),
        (lambda: aggregation_program([], "output"), "at least one node"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(jp.InputError, match=words):
        call()
