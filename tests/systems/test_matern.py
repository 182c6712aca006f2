"""Matérn processes on a grid as linear systems: the kernel's covariance, exactly."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.priors.linear_system import LinearSystemPrior
from jaxpriv.systems.kalman import steady_state
from jaxpriv.systems.leakage import state_information, state_leakage
from jaxpriv.systems.matern import matern_system


@pytest.mark.parametrize("kernel", ["matern12", "matern32"])
@pytest.mark.parametrize("step", [0.05, 2.0])
def test_same_covariance_as_the_kernel(kernel, step):
    system = matern_system(kernel, 5.0, 2.0, step)
    found = LinearSystemPrior(system.A, system.Q, system.C, steps=6).covariance
    expected = jp.ProcessPrior(getattr(jp.kernels, kernel)(5.0, 2.0), step * np.arange(6.0)).covariance
    # The rounding of Q, ten units of the variance, is added up by a recursion with a memory of 1/(1 − a²) steps.
    assert np.allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_leakage_about_the_value_and_not_its_rate():
    system, noise = matern_system("matern32", 5.0, 2.0, 1.0), np.array([[0.5]])
    value = np.array([[1.0, 0.0]])
    information = jax.jit(
        lambda t: [state_information(system, t, name, directions=value) for name in ("output", "filter", "smoother")]
    )
    output, history, later = (float(one) for one in information(noise))
    assert output == pytest.approx(0.5 * np.log1p(4.0 / 0.5), rel=1e-12)
    left = jax.jit(steady_state)(system, noise)
    assert history == pytest.approx(0.5 * np.log(4.0 / left.filtered[0, 0]), rel=1e-12)
    assert later == pytest.approx(0.5 * np.log(4.0 / left.smoothed[0, 0]), rel=1e-12)
    assert output < history < later
    # One number has one degree of freedom, whoever listens.
    epsilon = float(jax.jit(lambda t: state_leakage(system, t, 0.05, directions=value))(noise))
    assert epsilon == pytest.approx(later + 0.5 * 3.841458820694, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("rbf", 1.0, 1.0, 1.0), "matern12 or matern32"),
        (("matern12", 0.0, 1.0, 1.0), "lengthscale is 0.0"),
        (("matern32", 1.0, 1.0, -1.0), "step is -1.0"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(jp.InputError, match=words):
        matern_system(*arguments)
