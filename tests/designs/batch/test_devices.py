"""The same designs on one device and on several."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


_SCRIPT = """
import jax, numpy as np
import jaxpriv as jp
from jaxpriv.designs.batch.verb import design_batch
rng = np.random.default_rng(3)
priors, sets = [], []
for n in (9, 12, 14, 16, 11, 13):
    times = np.sort(rng.uniform(0.0, 120.0, n))
    sets.append([jp.ProcessPrior(jp.kernels.matern32(20.0 * f, 30.0), times, noise_sd=1.0) for f in (0.5, 1.0, 2.0)])
    priors.append(sets[-1][1])
secret = jp.Secret([4], radius=20.0)
assert len(jax.devices()) == 4
for one in (priors, sets[:4]):
    several = design_batch(one, secret, budget=900.0)
    alone = design_batch(one, secret, budget=900.0, devices=jax.devices()[:1])
    for name in ("epsilon", "cost", "lower_bound"):
        np.testing.assert_allclose(getattr(several, name), getattr(alone, name), rtol=1e-12 if one is priors else 1e-6)
print("equal")
"""


@pytest.mark.slow
def test_four_devices_give_what_one_gives():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().endswith("equal")
