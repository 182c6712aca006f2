"""Fits of many traces at once against one fit after the other."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv import ProcessPrior, kernels
from jaxpriv.errors import InputError
from jaxpriv.fitting.batch import fit_batch
from jaxpriv.fitting.batch_likelihood import BatchTraces, negative_loglik
from jaxpriv.fitting.families import FAMILIES
from jaxpriv.fitting.fit import Fit, fit
from jaxpriv.fitting.likelihood import pad_trace, restricted_loglik


def draws(
    rng: np.random.Generator, count: int, sizes: tuple[int, int] = (56, 64)
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    times, values = [], []
    for _ in range(count):
        own = np.cumsum(rng.choice([3.0, 5.0, 6.0], rng.integers(*sizes)))
        covariance = np.asarray(ProcessPrior(kernels.matern32(25.0, 80.0), own, noise_sd=8.0).covariance)
        times.append(own)
        values.append(np.linalg.cholesky(covariance) @ rng.standard_normal(own.size))
    return times, values


KERNELS, MEANS = ("matern12", "matern32", "matern52"), ("zero", "constant", "linear")


@pytest.mark.parametrize(
    ("kernel", "mean"),
    [
        *zip(KERNELS, MEANS, strict=True),
        *(
            pytest.param(kernel, mean, marks=pytest.mark.slow)
            for kernel in KERNELS
            for mean in MEANS
            if KERNELS.index(kernel) != MEANS.index(mean)
        ),
    ],
)
def test_the_likelihood_is_that_of_the_dense_formula(rng, kernel, mean):
    times = np.sort(rng.uniform(0.0, 1.0, 20))
    times = (times - times[0]) / (times[-1] - times[0])
    values = rng.standard_normal(20)
    trace = pad_trace(times, values, mean, None)
    log_parameters = np.log([0.8, 0.2, 0.1])
    dense = float(restricted_loglik(jnp.asarray(log_parameters), trace, FAMILIES[kernel], False))
    n = trace.times.shape[0]
    gaps = np.zeros((n, 1))
    gaps[1:20, 0] = np.diff(times)
    columns = np.concatenate([np.asarray(trace.values)[:, None], np.asarray(trace.means)], axis=1)[:, :, None]
    used = int(np.sum(np.any(columns[:, 1:, 0] != 0.0, axis=0)))
    batch = BatchTraces(
        gaps, np.asarray(trace.present, float)[:, None], columns, np.array([20.0 - used]), np.array([trace.log_gram])
    )
    found = float(negative_loglik(jnp.asarray(log_parameters)[:, None], batch, kernel)[0])
    # Two different factorisations of a covariance of condition 1e3.
    assert -found == pytest.approx(dense, rel=1e-9, abs=1e-9)


@pytest.mark.slow
def test_the_optimum_is_that_of_fit(rng):
    times, values = draws(rng, 3)
    fitted = fit_batch(times, values)
    for own, value, one in zip(times, values, fitted, strict=True):
        alone = fit(own, value)
        assert isinstance(alone, Fit)
        assert one.loglik >= alone.loglik - 1e-6
        for name, parameter in alone.parameters.items():
            # The other search stops when ℓ does not change any more, short of this one in flat directions.
            assert np.log(one.parameters[name] / parameter) == pytest.approx(0.0, abs=1e-3)
        # Both searches for the nugget's limit stop within 1e-3 of a normal quantile.
        assert one.noise_sd_lower == pytest.approx(alone.noise_sd_lower, rel=5e-3)
        assert one.converged and one.bound_hits == alone.bound_hits


def test_each_refusal_is_in_its_place(rng):
    # All of one padded length, and of the kernel with the smallest state: what is refused, and where, is theirs, too.
    times, values = draws(rng, 2, (25, 31))
    short, still, unsorted = np.arange(5.0), np.arange(25.0), np.arange(25.0)[::-1]
    all_times = [times[0], short, still, unsorted, times[1]]
    moving = np.stack([np.zeros(25), 50.0 * rng.standard_normal(25)], axis=1)
    fitted = fit_batch(
        all_times, [values[0], short, moving, np.zeros(25), values[1]], kernel="matern12", confidence=None
    )
    assert isinstance(fitted[1], InputError) and "5 points" in str(fitted[1])
    assert isinstance(fitted[2][0], InputError) and "does not vary" in str(fitted[2][0])
    assert fitted[2][1].sd > 0.0
    assert isinstance(fitted[3], InputError) and "before its predecessor" in str(fitted[3])
    assert fitted[4].noise_sd_lower is None


def test_arguments_that_are_wrong_for_all_are_refused():
    with pytest.raises(InputError, match="call fit for each"):
        fit_batch([], [], kernel="rbf")
    with pytest.raises(InputError, match="1 arrays of times and 0"):
        fit_batch([np.arange(30.0)], [])
