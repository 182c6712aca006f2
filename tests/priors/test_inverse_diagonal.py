"""The diagonal of an inverse from quasiseparable generators, against a dense inverse."""

from __future__ import annotations

import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.priors.quasiseparable import QuasiseparablePrior


@pytest.mark.parametrize(
    "kernel",
    [
        jp.kernels.matern12(20.0, 3.0),
        jp.kernels.matern32(40.0, 5.0) + jp.kernels.matern52(200.0, 8.0),
        jp.kernels.matern32(40.0, 5.0) * jp.kernels.matern12(100.0, 1.0),
    ],
)
def test_it_is_that_of_the_dense_inverse(kernel):
    rng = np.random.default_rng(1)
    times = rng.permutation(np.cumsum(rng.uniform(0.5, 9.0, 80)))  # any order
    prior = QuasiseparablePrior(kernel, times, 0.5)
    dense = np.linalg.inv(np.asarray(prior.covariance) + 0.3 * np.eye(80))
    # The matrices have a condition of at most 1e5.
    np.testing.assert_allclose(prior.inverse_diagonal(0.3), np.diag(dense), rtol=1e-9)
