"""Designs for one secret through structured solves, against the dense solver and against what they promise."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import numpy as np
import pytest
from tinygp.kernels import Constant

import jaxpriv as jp
from jaxpriv.designs.long.dispatch import structured_priors
from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.priors import kernels
from jaxpriv.priors.quasiseparable import QuasiseparablePrior
from jaxpriv.priors.structured import is_structured


SIZE = 300
KERNELS = {
    "matern12": kernels.matern12(1.0, 2.0),
    "matern32": kernels.matern32(1.0, 2.0),
    "matern52": kernels.matern52(1.0, 2.0),
    "sum": kernels.matern52(1.0, 2.0) + kernels.matern32(0.5, 1.5),
}
SECRETS = [(150,), (150, 151), (0, 170, 299)]


def irregular(size: int, spacing: float = 0.05, seed: int = 0) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).exponential(spacing, size))


def both(kernel, times: np.ndarray, noise_sd: float):
    return QuasiseparablePrior(kernel, times, noise_sd), jp.ProcessPrior(kernel, times, noise_sd)


def agrees(structured: jp.Design, dense: jp.Design, rtol: float) -> None:
    """Same noise, same numbers."""
    np.testing.assert_allclose(structured.cost, dense.cost, rtol=rtol)
    np.testing.assert_allclose(structured.lower_bound, dense.lower_bound, rtol=rtol)
    np.testing.assert_allclose(structured.epsilon, dense.epsilon, rtol=rtol)
    scale = float(np.max(np.abs(dense.mechanism.covariance)))
    np.testing.assert_allclose(
        structured.mechanism.covariance, dense.mechanism.covariance, rtol=0.0, atol=10 * rtol * scale
    )


# Targets are shaded by what the certificate needs: 1e-9, and up to 1e-8 for adjacent points of a smooth kernel (their
# own covariance has a condition number of 1e4, and the kernel's rounding is part of the certificate).
@pytest.mark.parametrize("secret", SECRETS, ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_equals_the_dense_design_for_a_target(name, secret):
    structured, dense = both(KERNELS[name], irregular(SIZE), 0.02)
    found = jp.design(structured, jp.Secret(secret, 0.5), epsilon=0.5)
    known = jp.design(dense, jp.Secret(secret, 0.5), epsilon=0.5)
    agrees(found, known, 1e-8)
    assert found.result is jp.DesignResult.optimal
    assert 0.5 * (1 - 1e-6) <= found.epsilon <= 0.5
    assert found.stats["method"] == "spectral"


@pytest.mark.parametrize(("name", "secret"), list(zip(KERNELS, [*SECRETS, (10, 290)], strict=True)))
def test_equals_the_dense_design_for_a_budget(name, secret):
    structured, dense = both(KERNELS[name], irregular(SIZE), 0.02)
    found = jp.design(structured, jp.Secret(secret, 0.5), budget=3.0)
    agrees(found, jp.design(dense, jp.Secret(secret, 0.5), budget=3.0), 1e-8)
    assert found.cost <= 3.0
    assert found.gap <= 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("secret", [(1000,), (1000, 1001), (3, 900, 1999)], ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_equals_the_dense_design_at_two_thousand_points(name, secret):
    structured, dense = both(KERNELS[name], irregular(2000), 0.02)
    agrees(
        jp.design(structured, jp.Secret(secret, 0.5), epsilon=0.5),
        jp.design(dense, jp.Secret(secret, 0.5), epsilon=0.5),
        1e-8,
    )


def test_far_points_are_left_out_of_the_solves_and_nothing_changes():
    times = irregular(450, 1.2)
    structured, dense = both(KERNELS["matern32"], times, 0.02)
    kept = structured.near([220])
    assert kept is not None and 100 < kept.size < 225
    found = jp.design(structured, jp.Secret((220,), 0.5), epsilon=0.5)
    assert not np.any(np.delete(found.mechanism.factor, kept, axis=0))
    agrees(found, jp.design(dense, jp.Secret((220,), 0.5), epsilon=0.5), 1e-8)
    with_constant = QuasiseparablePrior(KERNELS["matern32"] + Constant(1.0), times, 0.02)
    assert with_constant.near([220]) is None


def test_order_of_the_times_and_repeated_times_do_not_matter(rng):
    times = irregular(SIZE)
    times[151] = times[150]
    order = rng.permutation(SIZE)
    secret = (150, 152)
    moved = tuple(int(np.flatnonzero(order == i)[0]) for i in secret)
    sorted_, shuffled = (QuasiseparablePrior(KERNELS["matern52"], t, 0.1) for t in (times, times[order]))
    one = jp.design(sorted_, jp.Secret(secret, 0.5), epsilon=1.0)
    other = jp.design(shuffled, jp.Secret(moved, 0.5), epsilon=1.0)
    np.testing.assert_allclose(other.cost, one.cost, rtol=1e-9)
    # The permuted columns are solved one by one: the sign of a direction is free, its outer product is not.
    np.testing.assert_allclose(
        other.mechanism.covariance, one.mechanism.covariance[np.ix_(order, order)], atol=1e-9 * one.cost
    )
    agrees(one, jp.design(jp.ProcessPrior(KERNELS["matern52"], times, 0.1), jp.Secret(secret, 0.5), epsilon=1.0), 1e-8)


def test_unix_seconds_lose_nothing():
    times = np.round(irregular(SIZE, 20.0), 2)
    kernel = kernels.matern32(400.0, 50.0)
    plain = jp.design(QuasiseparablePrior(kernel, times, 3.0), jp.Secret((100,), 100.0), epsilon=1.0)
    exact = np.round(times * 4) / 4  # quarters of a second are exact at 1.7e9
    late = jp.design(QuasiseparablePrior(kernel, exact + 1.7e9, 3.0), jp.Secret((100,), 100.0), epsilon=1.0)
    early = jp.design(QuasiseparablePrior(kernel, exact, 3.0), jp.Secret((100,), 100.0), epsilon=1.0)
    assert late.cost == pytest.approx(early.cost, rel=1e-12)
    assert late.cost == pytest.approx(plain.cost, rel=1e-2)


def test_equal_powers_are_told_apart():
    """Two distant fixes of a regular grid have equal powers: their directions come out orthogonal all the same."""
    times = np.arange(200.0)
    structured, dense = both(kernels.matern32(2.0), times, 0.1)
    found = jp.design(structured, jp.Secret((50, 149), 1.0), epsilon=1.0)
    agrees(found, jp.design(dense, jp.Secret((50, 149), 1.0), epsilon=1.0), 1e-8)


def test_a_long_process_prior_is_converted():
    times = irregular(6000)
    prior = jp.ProcessPrior(KERNELS["matern32"], times, 0.02)
    secret = jp.Secret((3000,), 0.5)
    found = jp.design(prior, secret, epsilon=0.5)
    assert found.gap <= 1e-8 and found.epsilon <= 0.5
    certificate = jp.certify(prior, secret, found.mechanism)
    assert certificate.epsilon == found.epsilon
    assert found.mechanism.factor.shape == (6000, 1)
    noisy = found.mechanism.simulate(jax.random.key(0), np.zeros(6000)).values
    assert noisy.shape == (6000,)
    (converted,) = structured_priors([prior]) or []
    assert is_structured(converted) and structured_priors([jp.ProcessPrior(prior.kernel, times[:9])]) is None


def test_axes_share_a_budget():
    times = irregular(200)
    axes = [QuasiseparablePrior(kernels.matern32(1.0, sd), times, 0.1) for sd in (2.0, 3.0)]
    dense = [jp.ProcessPrior(kernels.matern32(1.0, sd), times, 0.1) for sd in (2.0, 3.0)]
    found = jp.design_axes(axes, jp.Secret((100,), 0.5), budget=8.0)
    known = jp.design_axes(dense, jp.Secret((100,), 0.5), budget=8.0)
    assert found.epsilon == pytest.approx(known.epsilon, rel=1e-7)
    assert found.cost <= 8.0


def test_a_floor_and_a_resolution_are_kept():
    prior = QuasiseparablePrior(KERNELS["matern32"], irregular(SIZE), 0.02)
    found = jp.design(prior, jp.Secret((150,), 0.5), epsilon=0.5, resolution=0.05)
    assert float(found.mechanism.floor_sd) == 0.1
    assert found.gap <= 1e-7
    with pytest.raises(InfeasibleError) as error:
        jp.design(prior, jp.Secret((150,), 0.5), budget=2.0, floor_sd=0.1)
    assert error.value.smallest_feasible == pytest.approx(3.0)


def test_the_product_of_balls_is_certified_as_for_the_dense_prior():
    structured, dense = both(KERNELS["matern52"], irregular(SIZE), 0.02)
    mechanism = jp.GaussianMechanism(np.random.default_rng(0).standard_normal((SIZE, 3)), 0.3)
    secret = jp.Secret((20, 150, 151), 0.5)
    found = jp.certify(structured, secret, mechanism, bound="product")
    known = jp.certify(dense, secret, mechanism, bound="product")
    assert found.epsilon == pytest.approx(known.epsilon, rel=1e-6)
    assert found.epsilon_lower[0, 0] == pytest.approx(known.epsilon_lower[0, 0], rel=1e-6)
    assert found.prior_psd == "verified"


def test_what_does_not_apply_is_refused_in_words():
    prior = jp.ProcessPrior(KERNELS["matern32"], irregular(5100), 0.02)
    secret = jp.Secret((3, 4), 0.5)
    with pytest.raises(InputError, match="structure='joint' only"):
        jp.design(prior, secret, epsilon=1.0, structure="diagonal")
    with pytest.raises(InputError, match="bound='ball'"):
        jp.design(prior, secret, epsilon=1.0, bound="product")
    with pytest.raises(InputError, match="every point"):
        jp.design(prior, jp.EveryPoint(1.0), epsilon=1.0)
    with pytest.raises(InputError, match="outside the trace of 5100"):
        jp.design(prior, jp.Secret((5100,), 0.5), epsilon=1.0)
    with pytest.raises(InputError, match="above the limit of 5000 for this prior"):
        jp.design(jp.ProcessPrior(kernels.rbf(1.0), irregular(5100), 0.1), secret, epsilon=1.0)
    repeated = QuasiseparablePrior(KERNELS["matern32"], np.array([0.0, 1.0, 1.0, 2.0]), 0.0)
    with pytest.raises(InputError, match="perfectly correlated"):
        jp.design(repeated, jp.Secret((1, 2), 0.5), epsilon=1.0)


def test_a_short_structured_prior_does_all_that_its_matrix_can():
    prior = QuasiseparablePrior(KERNELS["matern32"], irregular(40), 0.1)
    dense = jp.ProcessPrior(KERNELS["matern32"], irregular(40), 0.1)
    secret = jp.Secret((20,), 0.5)
    found = jp.design(prior, secret, epsilon=1.0, structure="diagonal")
    assert found.cost == pytest.approx(jp.design(dense, secret, epsilon=1.0, structure="diagonal").cost, rel=1e-5)
    weights = np.linspace(1.0, 2.0, 40)
    found = jp.design(prior, secret, epsilon=1.0, weights=weights)
    assert found.cost == pytest.approx(jp.design(dense, secret, epsilon=1.0, weights=weights).cost, rel=1e-7)


def test_the_code_of_the_document_runs():
    text = (Path(__file__).parents[3] / "docs" / "long_traces.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/long_traces.md", "exec"), {})
