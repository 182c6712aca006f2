"""The restricted likelihood against independent formulas, dense against O(n), and its gradient."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

from jaxpriv.fitting.families import FAMILIES, NOISE, family_named
from jaxpriv.fitting.fit import Fit, Settings, covariance_of
from jaxpriv.fitting.likelihood import bucket_size, loglik_and_gradient, on_host, pad_trace, restricted_loglik


VALUES = {
    "sd": 1.3, "lengthscale": 0.31, "alpha": 0.7, "sd_velocity": 4.0, "tau": 0.2, "slow": 0.9, "fast": 0.07,
    "periodic_lengthscale": 1.2, "decay": 0.8, "matern_sd": 0.6, "matern_lengthscale": 0.15, NOISE: 0.1,
}  # fmt: skip
PERIOD = 0.23
STRUCTURED = [name for name, family in FAMILIES.items() if family.structured is not None]


@pytest.fixture(autouse=True)
def same_programs_as_a_fit():
    """Evaluate where fits do, so that what they compiled serves here too."""
    with on_host():
        yield


value_only = jax.jit(restricted_loglik, static_argnames=("family", "structured"))


def parameters(kernel: str) -> dict[str, float]:
    return {name: VALUES[name] for name in FAMILIES[kernel].all_parameters}


def vector(kernel: str) -> np.ndarray:
    return np.log(list(parameters(kernel).values()))


def trace(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return np.sort(rng.uniform(0.0, 1.0, n)), np.cumsum(rng.standard_normal(n)) / np.sqrt(n)


@pytest.mark.parametrize("kernel", FAMILIES)
def test_covariance_is_the_printed_formula(kernel, oracle, rng):
    times, _ = trace(29, rng)
    family = FAMILIES[kernel]
    period = PERIOD if family.periodic else None
    fitted = Fit(Settings(kernel, period=period), parameters(kernel), None, 0.0, (0.0,), (), True, 29, 1.0, 1.0)
    expected = oracle.covariance(kernel, parameters(kernel), times, PERIOD) + VALUES[NOISE] ** 2 * np.eye(29)
    # Rounding only: the printed IOU formula cancels terms of order τ t, here below 1.
    np.testing.assert_allclose(covariance_of(fitted, times), expected, rtol=0, atol=1e-13 * np.max(expected))


# A full bucket of 48, and one with fifteen padded points.
@pytest.mark.parametrize(("mean", "n"), [("zero", 33), ("constant", 33), ("linear", 33), ("linear", 48)])
def test_restricted_likelihood_is_the_density_of_contrasts(mean, n, oracle, rng):
    times, values = trace(n, rng)
    full = oracle.covariance("matern52", parameters("matern52"), times) + VALUES[NOISE] ** 2 * np.eye(n)
    padded = pad_trace(times, values, mean, None)
    assert padded.times.shape[0] == 48
    found = value_only(vector("matern52"), padded, family=FAMILIES["matern52"], structured=False)
    assert float(found) == pytest.approx(oracle.loglik(full, times, values, mean), rel=1e-10)


@pytest.mark.parametrize(
    "kernel", [pytest.param(name, marks=pytest.mark.slow) if name == "matern12" else name for name in STRUCTURED]
)
def test_linear_time_likelihood_equals_dense(kernel, oracle, rng):
    times, values = trace(37, rng)
    full = oracle.covariance(kernel, parameters(kernel), times) + VALUES[NOISE] ** 2 * np.eye(37)
    padded = pad_trace(times, values, "constant", None)
    found = value_only(vector(kernel), padded, family=FAMILIES[kernel], structured=True)
    # The condition number is about 1e4, so twelve digits are what is left.
    assert float(found) == pytest.approx(oracle.loglik(full, times, values, "constant"), rel=1e-10)


@pytest.mark.parametrize(
    ("kernel", "n", "structured"),
    [
        ("matern32", 37, False),
        ("matern32", 70, True),
        *(pytest.param(kernel, 37, True, marks=pytest.mark.slow) for kernel in ("matern52", "iou", "damped_iou")),
        *(pytest.param(kernel, 37, False, marks=pytest.mark.slow) for kernel in ("iou", "damped_iou", "rq")),
    ],
)
def test_gradient_is_the_slope(kernel, n, structured, rng):
    times, values = trace(n, rng)
    family, point = FAMILIES[kernel], vector(kernel)
    padded = pad_trace(times, values, "constant", None)
    value, gradient = loglik_and_gradient(point, padded, family=family, structured=structured)
    step = 1e-5
    for i in range(point.size):
        shift = step * np.eye(point.size)[i]
        above, _ = loglik_and_gradient(point + shift, padded, family=family, structured=structured)
        below, _ = loglik_and_gradient(point - shift, padded, family=family, structured=structured)
        # Central differences: error step² times a third derivative, and 1e-16 |ℓ| / step of rounding.
        assert float(gradient[i]) == pytest.approx(
            float(above - below) / (2 * step), rel=1e-6, abs=1e-6 * abs(float(value))
        )


def test_equal_scales_of_the_damped_kernel_are_matern32(rng):
    times, values = trace(37, rng)
    padded = pad_trace(times, values, "constant", None)
    scale = 0.31 / np.sqrt(3.0)
    damped = value_only(np.log([1.3, scale, scale, 0.1]), padded, family=FAMILIES["damped_iou"], structured=True)
    matern = value_only(np.log([1.3, 0.31, 0.1]), padded, family=FAMILIES["matern32"], structured=True)
    assert float(damped) == pytest.approx(float(matern), rel=1e-12)


def test_a_failed_factorisation_is_minus_infinity(rng):
    times = np.linspace(0.0, 1.0, 40)
    padded = pad_trace(times, rng.standard_normal(40), "constant", None)
    value, gradient = loglik_and_gradient(
        np.log([30.0, 20.0, 1e-9]), padded, family=family_named("rbf"), structured=False
    )
    assert float(value) == -np.inf
    assert np.all(np.isfinite(gradient))


def test_one_compilation_serves_a_bucket(rng):
    def evaluate(n: int, mean: str) -> None:
        padded = pad_trace(*trace(n, rng), mean, None)
        loglik_and_gradient(vector("matern32"), padded, family=FAMILIES["matern32"], structured=False)

    evaluate(33, "constant")
    compiled = loglik_and_gradient._cache_size()
    for n, mean in ((34, "zero"), (41, "constant"), (48, "linear")):
        evaluate(n, mean)
    assert loglik_and_gradient._cache_size() == compiled


def test_buckets_grow_by_at_most_half():
    sizes = sorted({bucket_size(n) for n in range(1, 5000)})
    assert sizes[:6] == [32, 48, 64, 96, 128, 192]
    assert all(bucket_size(size) == size for size in sizes)
    assert all(b / a <= 1.5 for a, b in itertools.pairwise(sizes))
