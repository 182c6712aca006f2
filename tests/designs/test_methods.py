"""Which method answers a request, what a forced one does, and that independent methods agree within their gaps."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.convex.published import sdp_a_printed
from jaxpriv.designs.certified import certify
from jaxpriv.designs.design import design
from jaxpriv.designs.spectral import least_loss, least_trace
from jaxpriv.designs.structured.pattern import Pattern
from jaxpriv.designs.structured.requirements import GainLimit
from jaxpriv.designs.structured.solve import least_structured_noise


def rbf(scale: float, n: int, nugget: float = 1e-3) -> np.ndarray:
    i = np.arange(n)
    return np.exp(-((i[:, None] - i) ** 2) / (2 * scale**2)) + nugget * np.eye(n)


def secret(positions, target):
    """A secret whose target at ε = 1 and order 2 is the loss `target`."""
    return jp.Secret(positions, radius=1.0 / np.sqrt(target * len(positions)))


PRIOR = jp.GaussianPrior(rbf(2.0, 12))
THREE = [secret([3], 2.0), secret([4], 2.0), secret([7, 8], 5.0)]
KNOWN = 4.160088361842  # both bounds of a primal–dual method agree to these digits


@pytest.mark.parametrize(
    ("secrets", "options", "method"),
    [
        (THREE[0], {}, "spectral"),
        (THREE[0], {"structure": "diagonal"}, "majorant"),
        (jp.EveryPoint(1.0), {}, "prior-shaped"),
        (jp.EveryPoint(1.0), {"structure": "banded", "bandwidth": 1}, "majorant"),
    ],
)
def test_the_method_is_chosen_and_named(secrets, options, method):
    found = design(PRIOR, secrets, epsilon=1.0, **options)
    assert found.stats["method"] == method
    assert found.stats["reason"]
    assert found.result is jp.DesignResult.optimal


def test_methods_that_do_not_apply_say_what_they_are_for():
    with pytest.raises(jp.InputError, match="one secret under one prior"):
        design(PRIOR, THREE, epsilon=1.0, method="spectral")
    with pytest.raises(jp.InputError, match="structure='joint'"):
        design(PRIOR, THREE[0], epsilon=1.0, method="spectral", structure="diagonal")
    with pytest.raises(jp.InputError, match="bound='ball'"):
        design(PRIOR, THREE, epsilon=1.0, method="gradient", bound="product")
    with pytest.raises(jp.InputError, match="no further requirements"):
        design(
            PRIOR,
            THREE,
            epsilon=1.0,
            method="gradient",
            requirements=[jp.GeoIndistinguishability(1.0, 1.0, moving="point")],
        )
    with pytest.raises(jp.InputError, match="rows in 3 semidefinite cones"):
        design(jp.GaussianPrior(np.eye(90)), THREE[:2], epsilon=1.0, method="convex")


def test_without_cvxpy_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(jp.InputError, match=r'pip install "jaxpriv\[convex\]"'):
        design(PRIOR, THREE, epsilon=1.0, method="convex")


def test_one_secret_by_every_method():
    """At a budget: the closed form, the ascent, the cone program."""
    closed = design(PRIOR, THREE[2], budget=2.0)
    for method in ("majorant", "convex"):
        other = design(PRIOR, THREE[2], budget=2.0, method=method)
        assert other.stats["method"] == method
        assert other.gap <= 1e-5
        assert other.epsilon == pytest.approx(closed.epsilon, rel=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"structure": "diagonal"}, {"structure": "banded", "bandwidth": 2}])
def test_projected_gradient_reaches_the_others(options):
    """First-order: the noise to about 1e-5; its dual weights, from least squares, to about 1e-3 for bands."""
    found = design(PRIOR, THREE, budget=1.0, method="gradient", **options)
    best = design(PRIOR, THREE, budget=1.0, **options)
    assert found.stats["method"] == "gradient"
    assert found.epsilon == pytest.approx(best.epsilon, rel=1e-4)
    assert found.gap <= 2e-3
    assert found.lower_bound <= best.epsilon


@pytest.mark.slow
def test_projected_gradient_meets_a_target():
    found = design(PRIOR, THREE, epsilon=1.0, method="gradient", floor_sd=0.0)
    assert found.epsilon <= 1.0
    assert found.cost == pytest.approx(KNOWN, rel=1e-5)


def test_fixed_point_primal_dual_and_ascent_agree():
    """The full-rank fixed point of Ježek, Řeháček and Fiurášek (Phys. Rev. A 65, 2002), of minimum-error
    discrimination: with A_j = F_j + cI ⪰ 0 and L = (Σ A_jY_jA_j)^½ the step Y_j ← L⁻¹A_jY_jA_jL⁻¹ keeps ΣY_j = I and
    raises Σ tr(A_jY_j), and L tends to the least majorant of the A_j."""
    covariance, n = rbf(2.0, 12), 12
    floors = [np.zeros((n, n))]
    for one in THREE:
        at = list(one.indices)
        own = covariance[np.ix_(at, at)]
        regression = np.linalg.solve(own, covariance[at]).T
        target = 1.0 / (len(at) * float(one.radius) ** 2)
        floors.append(regression @ (own + np.eye(len(at)) / target) @ regression.T - covariance)
    shift = max(-np.linalg.eigvalsh(floor)[0] for floor in floors)
    raised = np.array(floors) + shift * np.eye(n)
    duals = np.broadcast_to(np.eye(n) / len(raised), raised.shape)
    values = []
    for _ in range(3000):
        moved = raised @ duals @ raised
        powers, vectors = np.linalg.eigh(np.sum(moved, axis=0))
        inverse = (vectors / np.sqrt(powers)) @ vectors.T
        duals = inverse @ moved @ inverse
        values.append(float(np.sum(raised * duals)))
    assert np.all(np.diff(values) >= -1e-9)
    root = (vectors * np.sqrt(powers)) @ vectors.T
    # Repaired into a majorant: an upper bound, as the value is a lower one. The fixed point converges like 1/k.
    upper, lower = np.copy(root), values[-1] - n * shift
    for floor in raised:
        excess, directions = np.linalg.eigh(floor - upper)
        upper = upper + (directions * np.maximum(excess, 0.0)) @ directions.T
    assert lower <= KNOWN * (1 + 1e-9)
    assert np.trace(upper) - n * shift >= KNOWN * (1 - 1e-9)
    assert lower == pytest.approx(KNOWN, rel=2e-3)
    limits = [
        GainLimit(
            0,
            covariance[:, list(one.indices)],
            covariance[np.ix_(one.indices, one.indices)],
            np.zeros(one.size, int),
            1.0 / (one.size * float(one.radius) ** 2),
        )
        for one in THREE
    ]
    newton = least_structured_noise(Pattern.banded(n, n - 1), [covariance], limits, tolerance=1e-8)
    assert newton.value == pytest.approx(KNOWN, rel=2e-8)
    assert design(PRIOR, THREE, epsilon=1.0, floor_sd=0.0).cost == pytest.approx(KNOWN, rel=1e-6)


@pytest.mark.slow
def test_every_point_and_compound_secrets_of_200_points():
    """Every point a secret and ten compound ones besides, with their own targets and weights, both bounds."""
    n = 200
    prior = jp.GaussianPrior(rbf(6.0, n, 1e-2))
    compound = [secret([start, start + 1, start + 5], 40.0) for start in range(5, 190, 20)]
    secrets = [jp.EveryPoint(1.0), *compound]
    weights = 1.0 + 0.5 * np.cos(np.arange(n))
    points = [1.0 + 0.2 * (i % 3) for i in range(n)]
    for bound in ("ball", "product"):
        found = design(prior, secrets, epsilon=points + [1.0] * len(compound), weights=weights, bound=bound)
        assert found.epsilons.shape == (n + len(compound), 1)
        assert np.all(found.epsilons[:, 0] <= [*points, *[1.0] * len(compound)])
        assert found.gap <= 1e-5


def test_printed_program_may_return_noise_that_hides_nothing():
    """SDP_A as printed by Meehan and Chaudhuri has a linear objective for one time; here it spends the whole budget off
    the secret. Its own value promises a loss below one, and the certificate of the same matrix none at all."""
    covariance = rbf(3.0, 9, 0.0)
    found = sdp_a_printed(covariance, [4], 2.0)
    assert 1 / found.objective < 3.0
    noise = np.where(np.arange(9)[:, None] == 4, 0.0, found.covariance)
    noise[:, 4] = 0.0
    values, vectors = np.linalg.eigh(noise)
    mechanism = jp.GaussianMechanism(vectors * np.sqrt(np.maximum(values, 0.0)))
    certificate = certify(jp.GaussianPrior(covariance), jp.Secret([4], 1.0), mechanism)
    # The secret is released as it is, up to the rounding of the factor: its loss is infinite in exact arithmetic.
    assert certificate.epsilon > 1e6
    as_returned = np.linalg.cholesky(found.covariance + 1e-12 * np.eye(9))
    kept = certify(jp.GaussianPrior(covariance), jp.Secret([4], 1.0), jp.GaussianMechanism(as_returned))
    assert kept.epsilon_lower[0, 0] > 1e4


PAIR = jp.Secret([2, 3], 1.0)
AT = {
    "the surface of white noise": (np.eye(6), PAIR),  # an identity prior: every eigenvalue of the floor repeated
    "repeated eigenvalues": (np.kron(rbf(1.0, 3, 1e-2), np.eye(2)), PAIR),
    "a rank-deficient optimum": (rbf(2.0, 6, 1e-2), PAIR),
}


@pytest.mark.parametrize("name", AT)
def test_gradients_of_optimal_values_against_differences(name):
    """∂ of the least trace and of the least loss in the prior: central differences of step h err by h² ≈ 1e-10."""
    covariance, one = AT[name]
    direction = np.cos(np.arange(36.0)).reshape(6, 6)
    direction = direction + direction.T

    def trace(matrix):
        return least_trace(jp.GaussianPrior(matrix), one, 2.0)

    def loss(matrix):
        return least_loss(jp.GaussianPrior(matrix), one, 1.5)

    for function in (trace, loss):
        both = jax.jit(jax.value_and_grad(function))
        slope = float(jnp.sum(both(jnp.asarray(covariance))[1] * direction))
        h = 1e-5
        difference = (both(covariance + h * direction)[0] - both(covariance - h * direction)[0]) / (2 * h)
        assert np.isfinite(slope)
        assert slope == pytest.approx(float(difference), rel=1e-5, abs=1e-7)


def test_single_precision_states_its_accuracy():
    """float32 in, float32 out: about n ε κ of the noise's eigenproblem, here 6 · 1.2e-7 · 100."""
    covariance = rbf(2.0, 6, 1e-2)
    single = jp.GaussianPrior(jnp.asarray(covariance, jnp.float32))
    for function, number in ((jax.jit(least_trace), 2.0), (jax.jit(least_loss), 1.5)):
        found = function(single, jp.Secret([2, 3], 1.0), jnp.float32(number))
        assert found.dtype == jnp.float32
        assert float(found) == pytest.approx(float(function(jp.GaussianPrior(covariance), PAIR, number)), rel=1e-4)


@pytest.mark.slow
def test_more_floors_than_the_ascent_takes_end_close_to_the_optimum():
    """Every point of 60 under twelve priors: 720 floors, one lift after an ascent of as many steps as fit."""

    def matern(smoothness: int, scale: float, nugget: float) -> jp.GaussianPrior:
        i = np.arange(60)
        d = np.abs(i[:, None] - i) * np.sqrt(smoothness) / scale
        shape = (1 + d) if smoothness == 3 else (1 + d + d**2 / 3)
        return jp.GaussianPrior(shape * np.exp(-d) + nugget * np.eye(60))

    priors = [matern(p, 8.0 * s, nugget) for p in (3, 5) for s in (0.5, 1.0, 2.0) for nugget in (1e-4, 1e-2)]
    found = design(priors, jp.EveryPoint(1.0), epsilon=1.0)
    assert found.stats["method"] == "sweep"
    assert found.epsilon <= 1.0
    assert found.gap <= 1e-3
