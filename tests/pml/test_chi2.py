"""The chi-square functions against scipy and ball arithmetic, and their derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb, ctx
from scipy.stats import chi2

from jaxpriv import InputError, pml


DELTAS = (1e-300, 1e-100, 1e-50, 1e-12, 1e-6, 1e-3, 0.01, 0.05, 0.5, 0.9, 0.99)


@pytest.mark.parametrize("rank", [1, 2, 3, 10, 50, 1000, 10_000, 100_000, 1_000_000])
def test_quantiles_agree_with_scipy(rank):
    found = jax.vmap(lambda delta: pml.chi2_isf(delta, rank))(jnp.array(DELTAS))
    # The incomplete gamma functions of JAX and of scipy agree to about 1e-12 in the tail for a million degrees.
    np.testing.assert_allclose(found, chi2.isf(DELTAS, rank), rtol=2e-12)


@pytest.mark.parametrize(
    ("rank", "x"), [(1, 0.3), (3, 40.0), (7, 900.0), (2, 3e3), (5, 1e5), (1000, 8e3), (10**5, 4e5)]
)
def test_tails_and_logarithms_agree_with_ball_arithmetic(rank, x):
    precision, ctx.prec = ctx.prec, 400
    try:
        tail = arb(x / 2).gamma_upper(arb(rank) / 2) / (arb(rank) / 2).gamma()
        logarithm, small = float(tail.log().mid()), float(tail.mid())
    finally:
        ctx.prec = precision
    # In the logarithm of a far tail the errors of log Γ count, relative to the largest term.
    np.testing.assert_allclose(pml.chi2_log_sf(x, rank), logarithm, rtol=2e-13)
    if small > 1e-300:
        np.testing.assert_allclose(pml.chi2_sf(x, rank), small, rtol=1e-11)


@pytest.mark.parametrize("rank", [1, 2, 5, 40])
def test_derivatives(rank):
    second = jax.jit(jax.grad(jax.grad(lambda delta: pml.chi2_isf(delta, rank))))
    for delta in (1e-6, 0.05, 0.7):
        slope = jax.grad(pml.chi2_isf)(delta, rank)
        np.testing.assert_allclose(slope, -1 / chi2.pdf(chi2.isf(delta, rank), rank), rtol=1e-10)
        quantile = chi2.isf(delta, rank)
        # From q′ = −1/f(q): q″ = −f′(q)/f(q)³.
        curvature = -((rank / 2 - 1) / quantile - 0.5) / chi2.pdf(quantile, rank) ** 2
        np.testing.assert_allclose(second(delta), curvature, rtol=1e-9, atol=1e-9)
    for x in (0.5, 4.0, 60.0):
        np.testing.assert_allclose(jax.grad(pml.chi2_sf)(x, rank), -chi2.pdf(x, rank), rtol=1e-11)
        hazard = chi2.pdf(x, rank) / chi2.sf(x, rank)
        np.testing.assert_allclose(jax.grad(pml.chi2_log_sf)(x, rank), -hazard, rtol=1e-10)


def test_limits_are_finite_or_infinite_and_never_nan():
    assert pml.chi2_isf(jnp.asarray(0.0), 3) == jnp.inf
    assert pml.chi2_isf(jnp.asarray(1.0), 3) == 0.0
    assert pml.chi2_isf(0.3, 0) == 0.0
    assert pml.chi2_sf(-1.0, 3) == 1.0 and pml.chi2_sf(jnp.inf, 3) == 0.0 and pml.chi2_sf(0.0, 0) == 0.0
    assert pml.chi2_log_sf(jnp.inf, 3) == -jnp.inf
    for delta in (0.0, 1.0, 1e-300):
        assert jnp.isfinite(jax.grad(pml.chi2_isf)(jnp.asarray(delta), 2)) or delta == 1e-300
    for x in (-1.0, 0.0, 1e6):
        assert jnp.isfinite(jax.grad(pml.chi2_log_sf)(jnp.asarray(x), 2))


def test_single_precision_and_bad_arguments_are_refused():
    with jax.enable_x64(False), pytest.raises(InputError, match="double precision"):
        pml.chi2_isf(0.05, 1)
    with pytest.raises(InputError, match="rank is -1"):
        pml.chi2_isf(0.05, -1)
    with pytest.raises(InputError, match="probability"):
        pml.chi2_isf(1.5, 1)


def test_a_traced_rank_and_a_batch():
    ranks = jnp.arange(1, 6)
    found = jax.jit(jax.vmap(pml.chi2_isf, (None, 0)))(0.05, ranks)
    np.testing.assert_allclose(found, chi2.isf(0.05, np.arange(1, 6)), rtol=1e-13)
