"""Coupling mechanisms, entropic couplings and targets: known answers, other solvers, and approximate knowledge."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv.distribution.approximate import audit_coupling, pair_bounds
from jaxpriv.distribution.coupling import coupling_mechanism
from jaxpriv.distribution.sinkhorn import entropic_coupling
from jaxpriv.distribution.targets import barycentre, line_barycentre, pairwise_distances, relaxed_outputs
from jaxpriv.distribution.transport import optimal_coupling
from jaxpriv.errors import InputError


LINE = np.abs(np.arange(3.0)[:, None] - np.arange(3.0))
PLACES = np.array([[5, 1], [3, 0], [1, 7], [7, 1], [4, 0], [1, 6], [6, 5], [2, 7.0]])
VISITS = np.array([4, 7, 1, 8, 6, 6, 2, 8]) / 42.0
EVEN = np.full(8, 0.125)
PLANE = np.linalg.norm(PLACES[:, None] - PLACES[None], axis=-1)
GROUPS = np.array([[0.3, 0.3, 0.2, 0.1, 0.1, 0.0], [0, 0.1, 0.2, 0.4, 0.2, 0.1], [0.1, 0.1, 0.1, 0.1, 0.2, 0.4]])
SIX = np.abs(np.arange(6.0)[:, None] - np.arange(6.0))


def test_channel_known_answer():
    found = coupling_mechanism([[0.2, 0.5, 0.3]], [0.3, 0.2, 0.5], LINE)
    np.testing.assert_allclose(found.channels[0].matrix, [[1, 0, 0], [0.2, 0.4, 0.4], [0, 0, 1]], atol=1e-14)
    assert found.losses[0] == pytest.approx(0.3, abs=1e-15) and found.worst[0] == 1.0
    independent = coupling_mechanism([[0.2, 0.5, 0.3]], [0.3, 0.2, 0.5], LINE, kind="independent")
    assert independent.losses[0] == pytest.approx(0.88, abs=1e-14)
    minimax = coupling_mechanism([VISITS], EVEN, PLANE, kind="minimax")
    assert minimax.worst[0] == pytest.approx(4.4721359550, abs=5e-11)
    assert coupling_mechanism([VISITS], EVEN, PLANE).losses[0] == pytest.approx(0.6045903094133646, abs=1e-12)
    assert coupling_mechanism([VISITS], EVEN, PLANE, kind="independent").losses[0] == pytest.approx(
        4.3284871080, abs=5e-11
    )


@pytest.mark.parametrize("kind", ["cost", "minimax", "independent", "entropic"])
def test_every_group_leaves_with_the_same_law(kind):
    scale = 1.0 if kind == "entropic" else None
    found = coupling_mechanism(GROUPS, GROUPS.mean(axis=0), SIX, kind=kind, scale=scale)
    # Exact couplings to rounding, the entropic one to what its iteration reached.
    np.testing.assert_allclose(found.outputs(), np.tile(GROUPS.mean(axis=0), (3, 1)), atol=1e-12)
    audit = audit_coupling(found)
    assert audit.actual <= audit.claimed < 1e-9
    assert np.all(audit.losses <= found.worst)


@pytest.mark.parametrize(
    ("scale", "loss", "level"),
    [
        # Log-domain Sinkhorn of three libraries, agreeing within 1e-9.
        (0.05, 0.6054080095, 39.7410),
        (0.25, 0.6154676546, 7.7397),
        (1.0, 0.9174289667, 1.65335),
        (4.0, 2.5287475056, 0.330792),
    ],
)
def test_entropic_known_answers(scale, loss, level):
    found = entropic_coupling(PLANE, VISITS, EVEN, scale)
    assert float(found.cost) == pytest.approx(loss, abs=1e-9)
    rows = np.asarray(found.log_channel)
    off = ~np.eye(8, dtype=bool)
    steepest = np.max(np.abs(rows[:, None] - rows[None]), axis=-1)[off] / PLANE[off]
    assert steepest.max() == pytest.approx(level, rel=2e-5) and steepest.max() <= 2.0 / scale
    # The exponential mechanism with base measure v = μ e^{g/η}.
    base = EVEN * np.exp(np.asarray(found.potentials[1]) / scale)
    weights = base * np.exp(-PLANE / scale)
    np.testing.assert_allclose(np.exp(rows), weights / weights.sum(axis=1, keepdims=True), rtol=1e-10)
    assert float(found.error) < 1e-12


def test_entropic_limits():
    nearly = entropic_coupling(PLANE, VISITS, EVEN, 1e3)
    assert float(nearly.cost) == pytest.approx(VISITS @ PLANE @ EVEN, rel=1e-2)
    costs = [float(entropic_coupling(PLANE, VISITS, EVEN, eta).cost) for eta in (0.1, 0.5, 2.0, 8.0)]
    assert np.all(np.diff(costs) > 0)
    assert costs[0] >= optimal_coupling(VISITS, EVEN, PLANE).cost


def test_entropic_derivatives():
    weights = jnp.cos(jnp.arange(64.0).reshape(8, 8))

    def function(cost, first, second, scale):
        return jnp.sum(weights * jnp.exp(entropic_coupling(cost, first, second, scale).log_channel))

    at = (jnp.asarray(PLANE), jnp.asarray(VISITS), jnp.asarray(EVEN), 1.0)
    compiled = jax.jit(function)
    slopes = jax.jit(jax.grad(function, argnums=(0, 1, 2, 3)))(*at)
    rng = np.random.default_rng(0)
    first, second = (one - one.mean() for one in 0.01 * rng.normal(size=(2, 8)))
    step = 1e-5
    for k, direction in enumerate((rng.normal(size=(8, 8)), first, second, 1.0)):
        moved = [[a + sign * step * direction if i == k else a for i, a in enumerate(at)] for sign in (1, -1)]
        numerical = (float(compiled(*moved[0])) - float(compiled(*moved[1]))) / (2 * step)
        assert float(jnp.sum(slopes[k] * direction)) == pytest.approx(numerical, rel=1e-5)


def test_gradients_of_the_value_are_the_potentials():
    value = lambda first, second: entropic_coupling(PLANE, first, second, 0.5).value  # noqa: E731
    found = entropic_coupling(PLANE, VISITS, EVEN, 0.5)
    by_first, by_second = jax.jit(jax.grad(value, argnums=(0, 1)))(jnp.asarray(VISITS), jnp.asarray(EVEN))
    centred = lambda values: np.asarray(values) - np.mean(values)  # noqa: E731
    np.testing.assert_allclose(centred(by_first), centred(found.potentials[0]), atol=1e-9)
    np.testing.assert_allclose(centred(by_second), centred(found.potentials[1]), atol=1e-9)
    # The gradient of W_1 by λ is the Kantorovich potential, up to a constant; at a small scale both agree.
    exact = optimal_coupling(VISITS, EVEN, PLANE).potentials[0]
    small = np.asarray(entropic_coupling(PLANE, VISITS, EVEN, 0.01).potentials[0])
    shift = np.random.default_rng(1).normal(size=8)
    shift -= shift.mean()
    assert small @ shift == pytest.approx(exact @ shift, abs=0.05)


@pytest.mark.slow
def test_entropic_zeros_and_batches():
    first, second = jnp.array([0.5, 0.5, 0.0]), jnp.array([0.0, 0.25, 0.75])
    found = entropic_coupling(LINE, first, second, 0.5)
    assert np.all(np.asarray(found.log_channel)[:, 0] == -np.inf)
    np.testing.assert_allclose(np.exp(found.log_channel).sum(axis=1), 1.0, atol=1e-14)
    slope = jax.grad(lambda m: entropic_coupling(LINE, first, m, 0.5).cost)(second)
    assert np.all(np.isfinite(slope))
    scales = jnp.array([0.5, 1.0, 2.0])
    batched = jax.vmap(lambda eta: entropic_coupling(LINE, first, second, eta).cost)(scales)
    np.testing.assert_allclose(
        batched, [float(entropic_coupling(LINE, first, second, e).cost) for e in scales], rtol=1e-9
    )


@pytest.mark.parametrize(
    ("epsilon", "published", "kl"),
    [(0.1, 0.2210341836, 0.0190325164), (0.5, 1.6487212707, 0.3934693403), (1.0, 5.4365636569, 1.2642411177),
     (2.0, 29.5562243957, 3.4586588671)],
)  # fmt: skip
def test_bounds_of_approximate_knowledge(epsilon, published, kl):
    found = pair_bounds(epsilon)
    assert found.published_kl == pytest.approx(published, abs=5e-11)
    assert found.kl == pytest.approx(kl, abs=5e-11)
    # Attained by a target with two atoms that trade their multipliers.
    m = 1.0 / (1.0 + math.exp(epsilon))
    first = np.array([math.exp(epsilon) * m, math.exp(-epsilon) * m, math.exp(-epsilon) * (1 - 2 * m)])
    second = np.array([math.exp(-epsilon) * m, math.exp(epsilon) * m, math.exp(-epsilon) * (1 - 2 * m)])
    assert np.sum(first) == pytest.approx(1.0)
    assert np.sum(first * np.log(first / second)) == pytest.approx(kl, abs=5e-11)
    assert 0.5 * np.sum(np.abs(first - second)) == pytest.approx(found.total_variation, abs=1e-12)
    assert found.max_divergence == pytest.approx(2 * epsilon)


def test_bounds_for_two_different_groups():
    assert pair_bounds(0.5, 1.0).kl == pytest.approx(0.7962168957, abs=5e-11)
    assert pair_bounds(1.0, 0.3).kl == pytest.approx(0.6681848478, abs=5e-11)
    rng = np.random.default_rng(2)
    for _ in range(2000):
        e0, e1 = rng.uniform(0.05, 2.0, size=2)
        mu = rng.dirichlet(np.ones(4))
        outputs = []
        for epsilon in (e0, e1):
            factors = np.exp(rng.choice([-epsilon, epsilon], size=4))
            law = mu * factors
            # Blend the extremes until the law sums to one; factors stay inside.
            low, high = mu * math.exp(-epsilon), mu * math.exp(epsilon)
            edge = high if law.sum() < 1.0 else low
            t = (1.0 - law.sum()) / (edge.sum() - law.sum())
            outputs.append((1 - t) * law + t * edge)
        bound = pair_bounds(e0, e1)
        assert np.sum(outputs[0] * np.log(outputs[0] / outputs[1])) <= bound.kl + 1e-12
        assert 0.5 * np.sum(np.abs(outputs[0] - outputs[1])) <= bound.total_variation + 1e-12
    with pytest.raises(InputError):
        pair_bounds(-0.1)


def test_approximate_knowledge_known_answer():
    found = coupling_mechanism([[0.2, 0.5, 0.3]], [0.3, 0.2, 0.5], LINE)
    audit = audit_coupling(found, [[0.25, 0.45, 0.30]])
    assert audit.knowledge[0] == pytest.approx(math.log(1.25), abs=1e-12)
    np.testing.assert_allclose(found.outputs([[0.25, 0.45, 0.30]])[0], [0.34, 0.18, 0.48], atol=1e-14)
    assert audit.losses[0] == pytest.approx(0.27, abs=1e-14)
    assert audit.losses[0] <= math.exp(audit.knowledge[0]) * 0.3


def test_claims_hold_for_random_truths_even_with_unseen_inputs():
    rng = np.random.default_rng(4)
    tightest = 0.0
    for _ in range(150):
        known = rng.dirichlet(np.ones(4), size=2)
        known[0, rng.integers(4)] = 0.0
        known /= known.sum(axis=1, keepdims=True)
        true = known * np.exp(rng.uniform(-0.5, 0.5, size=(2, 4))) + rng.uniform(0, 0.05) * (known == 0)
        true /= true.sum(axis=1, keepdims=True)
        cost = np.abs(np.arange(4.0)[:, None] - np.arange(4.0))
        found = coupling_mechanism(known, rng.dirichlet(np.ones(4)), cost)
        audit = audit_coupling(found, true)
        assert audit.actual <= audit.claimed + 1e-12
        assert audit.actual_variation <= audit.claimed_variation + 1e-12
        assert np.isfinite(audit.claimed) and audit.remarks
        tightest = max(tightest, audit.actual / audit.claimed)
    assert tightest > 0.3
    void = coupling_mechanism(known, rng.dirichlet(np.ones(4)), cost, unseen="nearest")
    assert audit_coupling(void, true).claimed == np.inf


def test_barycentres():
    for weights, cost, mixture in (
        (np.array([0.5, 0.3, 0.2]), 0.88, 0.886),
        (np.array([0.4, 0.35, 0.25]), 0.78, 0.8725),
    ):
        program, closed = barycentre(GROUPS, SIX, weights), line_barycentre(GROUPS, np.arange(6.0), weights)
        assert program.cost == pytest.approx(cost, abs=1e-9) and closed.cost == pytest.approx(cost, abs=1e-12)
        mixed = coupling_mechanism(GROUPS, np.array(weights) @ GROUPS, SIX).losses @ weights
        assert mixed == pytest.approx(mixture, abs=1e-12)
    np.testing.assert_allclose(closed.target, [0.1, 0.1, 0.1, 0.4, 0.2, 0.1], atol=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "value"),
    [
        (0.0, 0.78),
        (0.25, 0.6764420253),
        (0.5, 0.5421121306),
        (1.0, 0.2704622280),
        (2.0, 0.0358638501),
        (4.0, 0.0048536443),
    ],
)
def test_relaxed_outputs_known_answers(epsilon, value):
    found = relaxed_outputs(GROUPS, SIX, epsilon, [0.4, 0.35, 0.25])
    assert found.cost == pytest.approx(value, abs=1e-8)
    assert found.lower_bound <= value + 1e-10
    # Never more than asked, up to the rounding of the evaluation itself.
    assert found.epsilon <= epsilon + 1e-13
    for s in range(3):
        for t in range(3):
            assert np.all(found.outputs[s] <= math.exp(epsilon) * found.outputs[t] * (1 + 1e-13))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_two_opposite_points(epsilon):
    found = relaxed_outputs(np.eye(2), 1.0 - np.eye(2), epsilon)
    assert found.cost == pytest.approx(1.0 / (1.0 + math.exp(epsilon)), abs=1e-9)


def test_relaxed_outputs_relative_to_the_distance_of_groups():
    between = pairwise_distances(GROUPS, SIX)
    found = relaxed_outputs(GROUPS, SIX, 0.3, between=between)
    for s in range(3):
        for t in range(3):
            assert np.all(found.outputs[s] <= math.exp(0.3 * between[s, t]) * found.outputs[t] * (1 + 1e-12))
    assert found.cost <= relaxed_outputs(GROUPS, SIX, 0.3 * between[between > 0].min()).cost + 1e-9


def test_wrong_arguments():
    for wrong, message in (
        ({"kind": "entropic"}, "scale"),
        ({"scale": 1.0}, "scale"),
        ({"kind": "entropic", "scale": 0.0}, "positive"),
        ({"kind": "best"}, "kind"),
        ({"unseen": "drop"}, "unseen"),
    ):
        with pytest.raises(InputError, match=message):
            coupling_mechanism([[0.2, 0.5, 0.3]], [0.3, 0.2, 0.5], LINE, **wrong)
    with pytest.raises(InputError, match="sums to"):
        coupling_mechanism([[0.2, 0.5, 0.2]], [0.3, 0.2, 0.5], LINE)
    with pytest.raises(InputError, match="outputs"):
        coupling_mechanism([[0.2, 0.5, 0.3]], [0.5, 0.5], LINE)
    with pytest.raises(InputError, match="epsilon"):
        relaxed_outputs(GROUPS, SIX, -1.0)
    with pytest.raises(InputError, match="increasing"):
        line_barycentre(GROUPS, np.zeros(6))
    with pytest.raises(InputError, match="linear program"):
        barycentre(np.full((3, 1000), 1e-3), np.zeros((1000, 1000)))
