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
# # 02 The floor: from one secret to many
#
# For Gaussian noise, "private enough" is a matrix inequality. There is a matrix $F$ made of prior, secret and
# target such that noise with covariance $G$ meets the target exactly when $G - F$ has no negative eigenvalue. This
# notebook shows what follows: a formula for one secret, a convex problem for many, a certificate for both.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxpriv as jp


jax.config.update("jax_enable_x64", True)
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8C8C8C"
rng = np.random.default_rng(3)

n = 30
prior = jp.ProcessPrior(jp.kernels.rbf(lengthscale=4.0), np.arange(float(n)), noise_sd=0.1)
secret = jp.Secret([15], radius=1.0)
epsilon = 1.0

# %% [markdown]
# ## One floor
#
# `target_loss` turns ε into a bound $t$ on the largest eigenvalue of the precision gain; `cip_floor` is $F(t)$.

# %%
t = jp.target_loss(epsilon, secret, order=2.0)
floor = np.asarray(jp.cip_floor(prior, secret, t))
eigenvalues = np.linalg.eigvalsh(floor)
print(f"{np.sum(eigenvalues > 1e-12)} of {n} eigenvalues of the floor are positive: {eigenvalues[-1]:.4f}")

# %% [markdown]
# Is $G \succeq F$ really the same as "loss at most $t$"? Random covariances, scaled up and down, on both sides of
# the border:

# %%
agree = 0
for _ in range(200):
    root = rng.normal(size=(n, n)) / np.sqrt(n)
    noise = np.exp(rng.normal()) * root @ root.T
    above = np.linalg.eigvalsh(noise - floor)[0] >= 0
    agree += above == (float(jp.cip_loss(prior, secret, noise)) <= t)
print(f"{agree} of 200 agree")

# %% [markdown]
# The least noise above one floor is its positive part: as many directions as the secret has coordinates, here one.
# `design` adds a small independent floor, which the exact release needs, and certifies.

# %%
design = jp.design(prior, secret, epsilon=epsilon)
print(design)
print(f"positive part of the floor: {np.sum(np.maximum(eigenvalues, 0)):.8f}")

values, vectors = np.linalg.eigh(floor)
shape = vectors[:, -1] * np.sqrt(values[-1]) * np.sign(vectors[15, -1])
figure, axes = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
axes.plot(shape, color=BLUE, marker=".", label="the one direction of the noise, one standard deviation")
axes.axvline(15, color=GREY, linestyle=":", label="the secret")
axes.set(xlabel="fix", ylabel="prior standard deviations")
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)

# %% [markdown]
# ## Many floors
#
# Several secrets, or several priors, are several floors, and the least noise above all of them has no formula.
# Adding the single designs is private and wasteful. `design` solves the convex problem; its dual gives the lower
# bound.

# %%
secrets = [jp.Secret([i], radius=1.0) for i in (10, 14, 18)]
joint = jp.design(prior, secrets, epsilon=epsilon)
alone = [jp.design(prior, one, epsilon=epsilon) for one in secrets]
print(f"sum of the single designs {sum(one.cost for one in alone):.4f}, together {joint.cost:.4f}")
print(f"no noise does it for less than {joint.lower_bound:.6f}: gap {joint.gap:.1e}")

# %% [markdown]
# ## Every point
#
# With equal variances under one prior, the least noise that protects every point is shaped like the prior itself.

# %%
every = jp.design(prior, jp.EveryPoint(radius=1.0), epsilon=epsilon)
covariance = np.asarray(every.mechanism.covariance)
ratio = covariance[0] / np.asarray(prior.covariance)[0]
print(f"noise/prior, entry by entry: {ratio.min():.4f} to {ratio.max():.4f}; cost {every.cost:.3f}")

# %% [markdown]
# ## The price of a promise
#
# Noise power against ε, by the closed form under `vmap`, and its slope by `grad`.

# %%
levels = np.geomspace(0.05, 10, 60)
power = jax.vmap(lambda e: jp.least_trace(prior, secret, jp.target_loss(e, secret, order=2.0)))(levels)
uniform = [float(jp.baselines.smallest_uniform(prior, secret, float(e)).floor_sd) ** 2 * n for e in levels[::6]]
figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
axes.loglog(levels, power, color=BLUE, label="least noise")
axes.loglog(levels[::6], uniform, color=ORANGE, linestyle="--", marker="s", label="independent noise")
axes.set(xlabel="ε, nats", ylabel="total noise power, prior variances")
axes.legend()
slope = jax.grad(lambda e: jnp.log(jp.least_trace(prior, secret, jp.target_loss(e, secret, order=2.0))))(1.0)
print(f"around ε = 1, one per cent more ε saves {-float(slope):.2f} per cent of the noise")

# %% [markdown]
# ## What to watch out for
#
# * The optimum for one prior leaves directions free of noise. Under a smoother truth they give the secret away:
#   protect against a *list* of priors, as the command line does by default.
# * Secrets are protected each, not all together. A secret with several times is a promise about their combination,
#   and far dearer.
# * Under one prior a gap of 1e-9 is normal; under many secrets and priors, look at `gap` and `stats`.
