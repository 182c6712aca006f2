"""Smooth constraints: a known optimum, what cannot be met, and what is claimed."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.searches.projections import NonNegative
from jaxpriv.searches.result import SearchResult
from jaxpriv.searches.verb import search


CENTRE = jnp.array([2.0, 1.0, -1.0])


def distance(x):
    return 1.0 + jnp.sum((x - CENTRE) ** 2)


def test_a_known_optimum_with_its_multipliers():
    # Nearest point of {Σx ≤ 0, x₀ ≤ 0.5}: both bind. 2 (x − c) + λ 1 + μ e₀ = 0 gives x, λ = 0.5 and μ = 2.5 by hand.
    constraints = [lambda x: jnp.stack([jnp.sum(x), x[0] - 0.5])]
    seen = []
    found = search(
        distance, jnp.zeros(3), constraints, tolerance=1e-7, progress=lambda report: seen.append(report.step)
    )
    assert found.result is SearchResult.stationary, found
    np.testing.assert_allclose(found.mechanism, [0.5, 0.75, -1.25], atol=1e-6)
    assert 0.0 <= found.residual <= 1e-7
    np.testing.assert_allclose(found.residual, max(0.0, *(float(g) for g in constraints[0](found.mechanism))))
    np.testing.assert_allclose(found.stats["multipliers"], [0.5, 2.5], atol=1e-5)
    assert seen == sorted(seen) and seen[-1] == found.steps
    assert np.all(np.isfinite(found.history[: found.steps])) and np.all(np.isnan(found.history[found.steps :]))


@pytest.mark.slow
def test_what_cannot_be_met_is_not_claimed():
    constraints = [NonNegative(), lambda x: jnp.sum(x) + 1.0]
    with pytest.raises(jp.InfeasibleError, match=r"violates a constraint by 1, more than the tolerance"):
        search(distance, jnp.ones(3), constraints, max_steps=400)
    # The same functions: nothing is compiled again.
    found = search(distance, jnp.ones(3), constraints, max_steps=400, throw=False)
    assert found.result is SearchResult.constraints_violated
    np.testing.assert_allclose(found.residual, 1.0, atol=1e-9)
    assert "constraints violated by 1.0e+00" in str(found)


@pytest.mark.slow
def test_a_certificate_counts_only_where_the_constraints_hold():
    constraints = [lambda x: jnp.sum(x) - 1.0]
    best = 1.0 + 1.0 / 3.0
    found = search(distance, jnp.zeros(3), constraints, certificate=lambda x: (float(distance(x)), best * (1 - 1e-9)))
    assert found.result is SearchResult.certified and found.residual <= 1e-6
    assert found.gap <= 1e-6 and found.lower_bound == best * (1 - 1e-9)
