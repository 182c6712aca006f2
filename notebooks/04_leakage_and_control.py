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
# # 04 Leakage and control
#
# Pointwise maximal leakage asks how much *any* guess about the data gains from an output, without saying what the
# guess is about. For Gaussian data it is a random number, and $(\varepsilon, \delta)$ says that it exceeds
# $\varepsilon$ nats with probability at most $\delta$ (Liu, Kawano and Cao, arXiv:2511.10771). Then: a system that
# moves, and what a filter makes of outputs that were each private.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxpriv as jp
from jaxpriv import pml, systems


jax.config.update("jax_enable_x64", True)
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8C8C8C"
DELTA = 0.05

# %% [markdown]
# ## Least noise for a target
#
# Five correlated readings. A Gaussian prior is unbounded, so some outputs always tell something: below half the χ²
# quantile no noise reaches $\varepsilon$. Above it, three criteria with a guarantee; the designs are certified.

# %%
n = 5
covariance = 0.8 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
limit = 0.5 * float(pml.chi2_isf(DELTA, n))
print(f"no noise reaches less than {limit:.3f} nats at δ = {DELTA}")

design = jp.design_leakage(covariance, np.eye(n), epsilon=limit + 1.0, delta=DELTA)
print(design)

# %%
levels = limit + np.geomspace(0.05, 8, 25)
power = [jp.design_leakage(covariance, np.eye(n), epsilon=float(e), delta=DELTA).cost for e in levels]
figure, axes = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
axes.semilogy(levels, power, color=BLUE, label="least noise power")
axes.axvspan(limit - 1, limit, color="#DDDDDD", label="no noise is enough")
axes.set(xlabel="ε, nats, but for 5 % of the outputs", ylabel="noise power, prior variances", xlim=(limit - 1, None))
axes.legend()

# %% [markdown]
# ## A system: one output, all outputs, later outputs
#
# A state that forgets slowly is measured with noise. Each output keeps its promise. An eavesdropper who keeps a
# record runs a Kalman filter; one who waits runs a smoother.

# %%
system = jp.LinearSystem([[0.9]], [[0.19]])
figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
noises = np.geomspace(0.05, 20, 15)
rows = {"one output": [], "all outputs so far": [], "later outputs, too": []}
for noise in noises:
    found = jp.certify_system(system, [[noise]], DELTA).epsilon
    for name, value in zip(rows, (found["output"], found["filter"], found["smoother"]), strict=True):
        rows[name].append(value)
for (name, values), colour, line in zip(rows.items(), (BLUE, ORANGE, GREEN), ("-", "--", ":"), strict=True):
    axes.semilogx(noises, values, color=colour, linestyle=line, label=name)
axes.set(xlabel="variance of the noise on each output, prior variances", ylabel="certified ε, nats (δ = 5 %)")
axes.legend()

# %% [markdown]
# The gap between the curves is what a promise about single outputs leaves open. `systems.filter_noise` and
# `systems.smoother_noise` give the noise that keeps it over time.

# %%
budget = pml.information_budget(3.0, DELTA, 1)
rules = {"output": systems.output_noise, "filter": systems.filter_noise, "smoother": systems.smoother_noise}
for name, rule in rules.items():
    print(f"ε = 3 against the {name:8s}: noise variance {float(rule(0.9, 0.19, budget)):.4f}")

# %% [markdown]
# The notebook `smart_building` does this for a thousand zones of a building that publishes its mean.
#
# ## What to watch out for
#
# * δ averages over the prior: for an unusual state the probability is far larger.
# * A promise for one output never protects the series.
# * Leakage adds over releases only with the rules of `jaxpriv.pml`; they refuse what is false.
# * Numbers from `jit` are estimates; `certify_leakage` and `certify_system` round up.
