"""Divergences: known answers, zeros, derivatives, and what they imply about one another."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

from jaxpriv.distribution.divergences import (
    approximate_max_divergence,
    by_name,
    check_distribution,
    chi_squared,
    f_divergence,
    hellinger,
    hockey_stick,
    kl,
    max_divergence,
    renyi,
    reverse_kl,
    total_variation,
)
from jaxpriv.distribution.ladder import NOTIONS, implied
from jaxpriv.errors import InputError


P, Q = jnp.array([0.5, 0.3, 0.2]), jnp.array([0.25, 0.25, 0.5])
SMOOTH = {"kl": kl, "reverse_kl": reverse_kl, "chi_squared": chi_squared, "hellinger": hellinger}


def test_known_answers():
    # Printed to ten digits.
    assert float(kl(P, Q)) == pytest.approx(0.2180119109, abs=5e-11)
    assert float(reverse_kl(P, Q)) == pytest.approx(0.2392781816, abs=5e-11)
    assert float(total_variation(P, Q)) == pytest.approx(0.3, abs=1e-15)
    assert float(chi_squared(P, Q)) == pytest.approx(0.44, abs=1e-15)
    assert float(chi_squared(Q, P)) == pytest.approx(0.5833333333, abs=5e-11)
    assert float(hellinger(P, Q)) == pytest.approx(0.0563575646, abs=5e-11)
    assert float(max_divergence(P, Q)) == pytest.approx(0.6931471806, abs=5e-11)
    assert float(max_divergence(Q, P)) == pytest.approx(0.9162907319, abs=5e-11)
    for delta, value in ((0.05, 0.5877866649), (0.1, 0.4700036292), (0.25, 0.0953101798), (0.3, 0.0)):
        assert float(approximate_max_divergence(P, Q, delta)) == pytest.approx(value, abs=5e-11)


@pytest.mark.parametrize("seed", range(20))
def test_approximate_max_divergence_against_every_set_and_the_hockey_stick(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    delta = float(rng.uniform(0.0, 0.3))
    value = float(approximate_max_divergence(jnp.asarray(p), jnp.asarray(q), delta))
    sets = [list(s) for k in range(1, 7) for s in itertools.combinations(range(6), k)]
    best = max(math.log((p[s].sum() - delta) / q[s].sum()) for s in sets if p[s].sum() > delta)
    assert value == pytest.approx(best, abs=1e-12)
    if delta > 0.0:
        root = optimize.brentq(lambda t: float(np.sum(np.maximum(p - np.exp(t) * q, 0.0))) - delta, -30.0, 30.0)
        assert value == pytest.approx(root, abs=1e-9)
        assert float(hockey_stick(jnp.asarray(p), jnp.asarray(q), value)) == pytest.approx(delta, abs=1e-12)


def test_approximate_max_divergence_at_its_edges():
    p, q = jnp.array([0.1, 0.9]), jnp.array([0.0, 1.0])
    assert float(approximate_max_divergence(p, q, 0.1)) == pytest.approx(math.log(0.9), abs=1e-15)
    assert float(approximate_max_divergence(p, q, 0.05)) == np.inf
    assert float(approximate_max_divergence(p, p, 0.1)) == pytest.approx(math.log(0.9), abs=1e-15)
    assert float(approximate_max_divergence(P, Q, 0.0)) == pytest.approx(float(max_divergence(P, Q)), abs=1e-15)
    with pytest.raises(InputError, match="delta"):
        approximate_max_divergence(P, Q, 1.0)


def test_zeros():
    only_p, only_q = jnp.array([0.5, 0.5, 0.0]), jnp.array([0.5, 0.0, 0.5])
    assert float(kl(only_p, only_q)) == np.inf
    assert float(reverse_kl(only_p, only_q)) == np.inf
    assert float(chi_squared(only_p, only_q)) == np.inf
    assert float(max_divergence(only_p, only_q)) == np.inf
    assert float(total_variation(only_p, only_q)) == 0.5
    assert float(hellinger(only_p, only_q)) == pytest.approx(0.5)
    narrow, wide = jnp.array([1.0, 0.0]), jnp.array([0.5, 0.5])
    assert float(kl(narrow, wide)) == pytest.approx(math.log(2.0))
    assert float(reverse_kl(narrow, wide)) == np.inf
    assert float(chi_squared(narrow, wide)) == pytest.approx(1.0)
    assert float(max_divergence(narrow, wide)) == pytest.approx(math.log(2.0))
    nothing = jnp.array([0.0, 0.5, 0.5]), jnp.array([0.0, 0.25, 0.75])
    for divergence in (*SMOOTH.values(), max_divergence):
        trimmed = divergence(nothing[0][1:], nothing[1][1:])
        assert float(divergence(*nothing)) == pytest.approx(float(trimmed), abs=1e-15)


@pytest.mark.parametrize("name", SMOOTH)
def test_agree_with_the_general_form(name):
    functions = {
        "kl": (lambda t: jnp.where(t > 0, t * jnp.log(jnp.where(t > 0, t, 1.0)), 0.0), np.inf, None),
        "reverse_kl": (lambda t: -jnp.log(t), 0.0, np.inf),
        "chi_squared": (lambda t: (t - 1.0) ** 2, np.inf, None),
        "hellinger": (lambda t: 0.5 * (jnp.sqrt(t) - 1.0) ** 2, 0.5, None),
    }
    f, far, zero = functions[name]
    general = f_divergence(f, at_infinity=far, at_zero=zero)
    cases = [(P, Q), (jnp.array([0.5, 0.5, 0.0]), Q), (P, jnp.array([0.5, 0.0, 0.5]))]
    for p, q in cases:
        assert float(general(p, q)) == pytest.approx(float(SMOOTH[name](p, q)), abs=1e-14)


def test_functions_that_are_no_divergence_are_refused():
    with pytest.raises(InputError, match="not convex"):
        f_divergence(lambda t: jnp.sqrt(t) - 1.0)
    with pytest.raises(InputError, match=r"f\(1\)"):
        f_divergence(lambda t: t**2)
    with pytest.raises(InputError, match="one of kl"):
        by_name("jensen")
    assert by_name("kl") is kl and by_name(hellinger) is hellinger


@pytest.mark.parametrize("name", [*SMOOTH, "max", "total_variation", "renyi", "approximate"])
def test_derivatives_jit_and_vmap(name):
    if name == "renyi":
        function = lambda p, q: renyi(p, q, 1.7)  # noqa: E731
    elif name == "approximate":
        function = lambda p, q: approximate_max_divergence(p, q, 0.1)  # noqa: E731
    else:
        function = by_name(name)
    rng = np.random.default_rng(4)
    p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
    direction = rng.normal(size=(2, 5)) * 0.1
    both = jax.jit(jax.value_and_grad(function, argnums=(0, 1)))
    slopes = both(p, q)[1]
    step = 1e-6
    ahead = float(both(p + step * direction[0], q + step * direction[1])[0])
    behind = float(both(p - step * direction[0], q - step * direction[1])[0])
    # Central differences with this step carry about 1e-10.
    along = sum(np.sum(np.asarray(s) * d) for s, d in zip(slopes, direction, strict=True))
    assert along == pytest.approx((ahead - behind) / (2 * step), abs=1e-7)
    many = rng.dirichlet(np.ones(5), size=4)
    batched = jax.jit(jax.vmap(function, in_axes=(0, None)))(many, q)
    np.testing.assert_allclose(batched, [float(both(one, q)[0]) for one in many], rtol=1e-12)


@pytest.mark.parametrize("name", [*SMOOTH, "max"])
def test_infinite_values_have_no_nan_in_their_derivative(name):
    slope = jax.grad(by_name(name))(jnp.array([0.5, 0.5, 0.0]), jnp.array([0.5, 0.0, 0.5]))
    assert np.all(np.isfinite(slope))


def test_single_precision_keeps_its_type():
    for divergence in (*SMOOTH.values(), max_divergence, total_variation):
        value = divergence(P.astype(jnp.float32), Q.astype(jnp.float32))
        assert value.dtype == jnp.float32
        # A few dozen roundings of 6e-8 in each.
        assert float(value) == pytest.approx(float(divergence(P, Q)), rel=1e-5)


def test_implications_hold_on_random_pairs():
    rng = np.random.default_rng(0)
    values = {
        "kl": lambda p, q: np.sum(p * np.log(p / q)),
        "chi_squared": lambda p, q: np.sum(p**2 / q) - 1.0,
        "hellinger": lambda p, q: 1.0 - np.sum(np.sqrt(p * q)),
        "total_variation": lambda p, q: 0.5 * np.sum(np.abs(p - q)),
        "max": lambda p, q: np.max(np.log(p / q)),
        "max_both": lambda p, q: np.max(np.abs(np.log(p / q))),
    }
    closest = {}
    for _ in range(2000):
        shape = 10.0 ** rng.uniform(-1, 2)
        p, q = rng.dirichlet(np.full(3, shape), size=2) * (1 - 1e-9) + 1e-9 / 3
        measured = {name: float(function(p, q)) for name, function in values.items()}
        for start, end in itertools.product(NOTIONS, NOTIONS):
            found = implied(start, measured[start], end)
            if found is None:
                continue
            assert measured[end] <= found.value * (1 + 1e-9) + 1e-12, (start, end)
            if start != end and measured[end] > 1e-3:
                closest[start, end] = max(closest.get((start, end), 0.0), measured[end] / found.value)
    # Two-point pairs attain the bounds of the max divergence in both directions; the draws come near.
    assert closest["max_both", "total_variation"] > 0.9
    assert closest["total_variation", "hellinger"] > 0.5


def test_implications_name_their_steps():
    found = implied("max_both", 1.0, "total_variation")
    assert found.value == pytest.approx(math.tanh(0.5)) and found.steps == ("TV ≤ tanh(D/2)",)
    chained = implied("chi_squared", 0.5, "total_variation")
    assert chained.steps == ("KL ≤ log(1 + χ²)", "TV ≤ √(KL/2)")
    assert implied("kl", 1.0, "max") is None
    assert implied("hellinger", 1.5, "total_variation").value == 1.0
    assert implied("kl", np.inf, "total_variation").value == 1.0
    with pytest.raises(InputError, match="value"):
        implied("kl", -1.0, "hellinger")
    with pytest.raises(InputError, match="one of"):
        implied("entropy", 1.0, "kl")


def test_checks_of_distributions():
    honest = stats.dirichlet.rvs(np.ones(1000), random_state=0)[0].astype(np.float32)
    np.testing.assert_array_equal(check_distribution(honest), honest.astype(np.float64))
    for wrong, message in (
        ([0.5, 0.6], "sums to"),
        ([1.5, -0.5], r"\[1\] is -0.5"),
        ([np.nan, 1.0], "nan"),
        ([], "shape"),
        ([[1.0]], "shape"),
    ):
        with pytest.raises(InputError, match=message):
            check_distribution(wrong)
    with pytest.raises(InputError, match="shape"):
        check_distribution([0.5, 0.5], size=3)
