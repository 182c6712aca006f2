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
# # 03 Gradient-based mechanism search
#
# Not every wish is a floor. A mechanism that is drawn while data arrive, noise shaped by a learned spectrum, a loss
# of your own: whatever is a differentiable function of a factor can be searched. Here, step by step: a known
# optimum as a check, then banded noise for streaming, then two losses at once.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxpriv as jp


jax.config.update("jax_enable_x64", True)
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8C8C8C"

n, budget = 16, 4.0
prior = jp.ProcessPrior(jp.kernels.matern32(lengthscale=6.0), np.arange(float(n)), noise_sd=0.1)
secret = jp.Secret([8], radius=1.0)

# %% [markdown]
# ## A known optimum
#
# `LowRankFactor` is $G = LL^\top + \eta I$; `TraceBudget` projects onto $\operatorname{tr} G \le b$. For one secret
# the optimum is a closed form, so we can see how far the search gets. The history holds the value of every step.


# %%
def loss(noise):
    return jp.cip_loss(prior, secret, noise.covariance)


start = jp.LowRankFactor(np.eye(n), floor_variance=1e-3)
found = jp.search(loss, start, jp.TraceBudget(budget, equality=True))
known = float(jp.least_loss(prior, secret, budget, floor_variance=1e-3))
print(f"{found.result.name}: {found.value:.9f}, closed form {known:.9f}, excess {found.value / known - 1:.0e}")

# %% [markdown]
# A search proposes; a certificate decides. Nothing that was computed under `jit` is a claim.

# %%
proposal = jp.GaussianMechanism(np.asarray(found.mechanism.factor), floor_sd=float(np.sqrt(1e-3)))
print(jp.certify(prior, secret, proposal))

# %% [markdown]
# ## Optimisers
#
# The same problem with Adam. Any optax transformation will do as well; on smooth losses quasi-Newton steps are hard
# to beat.

# %%
histories = {}
for name in ("lbfgs", "adam"):
    run = jp.search(loss, start, jp.TraceBudget(budget, equality=True), optimizer=name, max_steps=200, tolerance=1e-9)
    histories[name] = np.asarray(run.history)
    print(f"{name:9s} {run.result.name:11s} steps {run.steps:4d}  excess {run.value / known - 1:.1e}")

figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
for (name, values), colour, line in zip(histories.items(), (BLUE, ORANGE), ("-", "--"), strict=True):
    axes.semilogy(np.maximum(values / known - 1, 1e-14), color=colour, linestyle=line, label=name)
axes.set(xlabel="step", ylabel="relative excess over the closed form")
axes.legend()

# %% [markdown]
# ## Noise for a stream
#
# Noise that is drawn while the data arrive can only be correlated over a few steps. `MaskedFactor.banded` is a
# factor with so many subdiagonals. How much memory does the noise need?

# %%
pair = [jp.Secret([5], radius=1.0), jp.Secret([11], radius=1.0)]


def both(noise):
    return jnp.stack([jp.cip_loss(prior, one, noise.covariance) for one in pair])


best = jp.design(prior, pair, budget=budget * n, floor_sd=float(np.sqrt(1e-3)))
widths = (0, 4)
streamed = [
    jp.search(
        jp.worst_of(both),
        jp.MaskedFactor.banded(n, width, 1e-3),
        jp.TraceBudget(budget * n, equality=True),
        tolerance=1e-2,
        max_steps=300,
    ).value
    for width in widths
]
for width, value in zip(widths, streamed, strict=True):
    print(f"correlated over {width} steps: {value:.4f}")
print(f"any noise, certified: {best.epsilon:.4f}")

# %% [markdown]
# `jp.design(…, structure="banded", bandwidth=3)` solves this family exactly, as a convex problem; the search is for
# what `design` does not know.
#
# ## What to watch out for
#
# * A stationary point of a loss that is not convex need not be the best: start from several places.
# * Start from a full or low-rank factor, not from a triangular one, when the best noise may have low rank.
# * A constraint met to within `residual` is not met: scale the noise up, and let `certify` have the last word.
# * Search in double precision.
