# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 07 Batches and devices
#
# One trace needs one device; a fleet of traces is parallel over its traces. Here: a batch of ragged traces, what
# padding and compilation cost, what happens to traces that cannot be protected, and one trace with a hundred
# thousand fixes.

# %%
import time

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxpriv as jp


jax.config.update("jax_enable_x64", True)
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8C8C8C"
rng = np.random.default_rng(5)
print(jax.devices())

# %% [markdown]
# ## A batch
#
# Two hundred traces of 20 to 50 fixes, each with its own times and its own prior. `design_batch` puts lengths into
# a few buckets and compiles once for each. Every design is certified.


# %%
def trace():
    times = np.sort(rng.uniform(0.0, 300.0, rng.integers(20, 51)))
    kernel = jp.kernels.matern32(lengthscale=rng.uniform(20.0, 120.0), sd=rng.uniform(20.0, 200.0))
    return jp.ProcessPrior(kernel, times, noise_sd=1.0)


priors = [trace() for _ in range(200)]
secret = jp.Secret([10], radius=50.0)
first = time.perf_counter()
batch = jp.design_batch(priors, secret, epsilon=1.0)
compiled = time.perf_counter()
batch = jp.design_batch(priors, secret, epsilon=1.0)
again = time.perf_counter()
print(f"first call {compiled - first:.1f} s, then {again - compiled:.2f} s; largest ε {np.max(batch.epsilon):.9f}")

loop = time.perf_counter()
single = [jp.design(prior, secret, epsilon=1.0) for prior in priors[:5]]
print(f"one by one: {40 * (time.perf_counter() - loop):.1f} s for as many, compilation included")
print("largest difference of the cost:", max(abs(d.cost / batch.cost[i] - 1) for i, d in enumerate(single)))

# %%
rms = np.sqrt(batch.cost / batch.sizes)
figure, axes = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
axes.hist(rms, bins=30, color=BLUE)
axes.set(xlabel="noise for ε = 1, root mean square, m", ylabel="traces")

# %% [markdown]
# ## Traces that cannot be protected
#
# They are listed with their reason; the others go on.

# %%
mixed = jp.design_batch([priors[0], None, priors[1]], [secret, secret, jp.Secret([400], radius=50.0)], epsilon=1.0)
print(mixed.results)
print(mixed.refusals)

# %% [markdown]
# ## One long trace
#
# With Matérn kernels everything is linear in the number of fixes: design, certificate and release.

# %%
n = 100_000
times = np.cumsum(rng.exponential(5.0, n))
long = jp.ProcessPrior(jp.kernels.matern52(lengthscale=100.0, sd=100.0), times, noise_sd=1.0)
start = time.perf_counter()
design = jp.design(long, jp.Secret([n // 2], radius=50.0), epsilon=1.0)
designed = time.perf_counter()
released = design.mechanism.release(np.zeros(n))
done = time.perf_counter()
print(design)
print(f"{n:,} fixes: design and certificate {designed - start:.1f} s, exact release {done - designed:.1f} s")

# %% [markdown]
# ## Devices
#
# A batch is spread over all local devices of the default backend. On a machine with an accelerator `make gpu-check`
# compares it with the CPU. Results there are proposals like any other: certificates are computed on the host.
#
# ## What to watch out for
#
# * Compile for buckets, not for every length: forty lengths cost forty compilations.
# * One BLAS thread for each process when several processes share a machine.
# * Half a refusal is none: read `refusals` before you publish the rest.
# * Long traces of one person are one release; splitting them does not make them independent.
