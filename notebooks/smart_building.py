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
# # A building that publishes its mean temperature
#
# Each zone of a building measures how far its temperature is from the set point. A control centre needs the mean over
# the zones; what a single zone does tells when somebody is there. So each zone adds noise of its own before it sends
# anything, and the centre averages.
#
# The deviation of a zone follows $x_{k+1} = a\,x_k + b\,w_k$ with $w_k$ of variance $q$: $a$ says how slowly the zone
# forgets, $b^2 q$ how much is stirred up in a step. It publishes $y_k = x_k + v_k$. The question is how large
# $\mathrm{Var}\,v_k = \theta$ must be.
#
# The promise is $(\varepsilon, \delta)$-pointwise maximal leakage (Liu, Kawano and Cao, arXiv:2511.10771): but for a
# probability $\delta$, no output makes any value of $x_k$ more than $e^{\varepsilon}$ times as likely as it was. All
# numbers here are invented; none is measured in a real building.

# %%
import os
import time

import jax
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import chi2

from jaxpriv.aggregation.design import design_aggregation
from jaxpriv.aggregation.node import AggregationNode
from jaxpriv.pml import conditional_failure, information_budget, leakage_epsilon
from jaxpriv.priors.state_space import LinearSystem
from jaxpriv.systems.certified import certify_system
from jaxpriv.systems.leakage import state_information
from jaxpriv.systems.scalar_noise import filter_noise, output_noise, smoother_noise


jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(2024)

# Okabe and Ito's palette: told apart with every common colour vision; line styles say it again.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8C8C8C"
LOOKS = {
    "output": {"color": BLUE, "linestyle": "-"},
    "filter": {"color": ORANGE, "linestyle": "--"},
    "smoother": {"color": GREEN, "linestyle": ":", "linewidth": 2.5},
}
WORDS = {"output": "its own output only", "filter": "all outputs so far", "smoother": "later outputs too"}

# %% [markdown]
# ## Four zones
#
# `design_aggregation` returns the least noise for each zone, with a certified $\varepsilon$. Against an eavesdropper
# who sees one output and forgets it, $\theta = \Sigma/(e^{2\varepsilon - q_1(\delta)} - 1)$, $\Sigma = b^2 q/(1 - a^2)$
# the variance of the zone and $q_1(\delta)$ the χ² quantile.

# %%
a = np.array([0.9, 0.8, 0.7, 0.95])
b = np.array([0.5, 0.4, 0.6, 0.3])
q = np.array([1.0, 2.0, 1.5, 0.5])
EPSILON, DELTA = 3.0, 0.05

zones = [
    AggregationNode(LinearSystem([[x]], [[y]]), EPSILON, DELTA, [[1 / 4]]) for x, y in zip(a, b**2 * q, strict=True)
]
designs = {observer: design_aggregation(zones, observer=observer) for observer in ("output", "filter", "smoother")}
for observer, design in designs.items():
    print(f"{WORDS[observer]:22s} J = {design.error:.10f}   θ =", np.round([n.noise[0, 0] for n in design.nodes], 6))

# %% [markdown]
# The first line is the published design. It keeps its promise against one output. An eavesdropper who keeps a record
# runs a Kalman filter, or waits and runs a smoother, and learns more about the same $x_k$:

# %%
for i, (zone, node) in enumerate(zip(zones, designs["output"].nodes, strict=True)):
    leakage = certify_system(zone.system, node.noise, DELTA)
    print(f"zone {i}:", ", ".join(f"{WORDS[name]} ε ≤ {value:.5f}" for name, value in leakage.epsilon.items()))

# %% [markdown]
# ## A thousand zones
#
# One batch: the zones of one shape are solved together under `vmap`; each is certified by itself.

# %%
N = int(os.environ.get("JAXPRIV_ZONES", "1000"))
a = rng.uniform(0.6, 0.97, N)
sd = rng.uniform(0.4, 1.5, N)  # °C
Q = sd**2 * (1 - a**2)
building = [AggregationNode(LinearSystem([[x]], [[y]]), EPSILON, DELTA, [[1 / N]]) for x, y in zip(a, Q, strict=True)]
start = time.perf_counter()
design = design_aggregation(building)
print(design, f"\n{time.perf_counter() - start:.1f} s with certificates")

# %% [markdown]
# ### What privacy costs
#
# The error of the published mean, as a standard deviation in °C, against the $\varepsilon$ of every zone. No noise
# reaches $\varepsilon \le q_1(\delta)/2 = 1.92$: a Gaussian prior is unbounded, and some outputs always tell.
# Averaging makes the noise of a single zone (a few tenths of a degree) vanish in the mean of many.

# %%
limit = 0.5 * chi2.isf(DELTA, 1)
grid = limit + np.geomspace(0.03, 3.1, 120)
rules = {"output": output_noise, "filter": filter_noise, "smoother": smoother_noise}
budgets = jax.vmap(lambda e: information_budget(e, DELTA, 1))(grid)

figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
for name, rule in rules.items():
    noise = jax.jit(jax.vmap(lambda tau, rule=rule: rule(a, Q, tau)))(budgets)
    axes.plot(grid, np.sqrt(np.sum(np.asarray(noise), axis=1)) / N, label=WORDS[name], **LOOKS[name])
axes.axvspan(1.6, limit, color="#DDDDDD", label="no noise is enough")
axes.set_xlim(1.6, grid[-1])
axes.set(
    yscale="log",
    xlabel="ε of every zone (nats, δ = 0.05)",
    ylabel="error of the mean, standard deviation (°C)",
    title=f"What {N:,} zones pay for privacy, by what the eavesdropper hears",
)
axes.legend(frameon=False)
axes.grid(alpha=0.3)
plt.show()

# %% [markdown]
# ### Leakage is random
#
# The leakage of an output is $I + \xi/2$ with $\xi \sim \chi^2_1$: small for an ordinary state, large for an unusual
# one. Simulated for every zone at once, with the χ² law that the design relies on. The probability to the right of
# $\varepsilon$ is $\delta$, *on average over states*.

# %%
theta = np.array([node.noise[0, 0] for node in design.nodes])
information = 0.5 * np.log1p(sd**2 / theta)
draws = max(1, 300_000 // N)
x = sd * rng.standard_normal((draws, N))
y = x + np.sqrt(theta) * rng.standard_normal((draws, N))
leakage = information + 0.5 * y**2 / (sd**2 + theta)
beyond = np.mean(leakage > EPSILON)
print(
    f"P(leakage > {EPSILON:g}) = {beyond:.4f} ± {2 * np.sqrt(DELTA * (1 - DELTA) / leakage.size):.4f}, promised {DELTA}"
)

figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
low, high = float(information[0]), 7.0
edges = np.linspace(low, high, 90)
axes.hist(leakage.ravel(), bins=edges, density=True, color="#56B4E9", label=f"simulated, {leakage.size:,} outputs")
middle = 0.5 * (edges[1:] + edges[:-1])
share = np.diff(chi2.cdf(2 * (edges - low), 1)) / np.diff(edges)
axes.plot(middle, share, color=ORANGE, label="I + χ²₁/2")
axes.axvline(EPSILON, color="black", linestyle="--", linewidth=1, label=f"ε = {EPSILON:g}; {beyond:.1%} lie beyond")
axes.set(
    yscale="log",
    xlabel="leakage of an output (nats)",
    ylabel="probability density (per nat)",
    title="Leakage of single outputs",
)
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# δ is no promise to a person in an unusual state. Two standard deviations from the mean (an empty office on a cold
# day, say) the promise fails far more often:

# %%
for deviation in (0.0, 1.0, 2.0, 3.0):
    failing = float(conditional_failure(information[0], EPSILON, deviation))
    print(f"{deviation:.0f} standard deviations from the mean: P(leakage > {EPSILON:g}) = {failing:.2g}")

# %% [markdown]
# ### One output, the history, and the future
#
# The same noise, three eavesdroppers. The slower a zone forgets, the more its other outputs say about $x_k$. The design
# against smoothing restores $\varepsilon = 3$ for all of them, at the price shown above.


# %%
@jax.jit
@jax.vmap
def heard(a, Q, theta):
    system = LinearSystem(a[None, None], Q[None, None])
    return {name: leakage_epsilon(state_information(system, theta[None, None], name), DELTA, 1) for name in rules}


tau = information_budget(EPSILON, DELTA, 1)
of_static = heard(a, Q, theta)
of_safe = heard(a, Q, smoother_noise(a, Q, tau))
order = np.argsort(a)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
for panel, found, title in (
    (left, of_static, "noise for a single output"),
    (right, of_safe, "noise against the smoother"),
):
    for name in rules:
        panel.plot(a[order], np.asarray(found[name])[order], label=WORDS[name], **LOOKS[name])
    panel.axhline(EPSILON, color="black", linewidth=0.8)
    panel.set(xlabel="memory a of the zone (per step)", title=title)
    panel.grid(alpha=0.3)
left.set_ylabel("ε about one state (nats, δ = 0.05)")
left.legend(frameon=False, title="eavesdropper hears", loc="upper left")
plt.show()

# %% [markdown]
# ### A whole day
#
# None of this protects the course of a day. What $T$ outputs say about $T$ states together grows in proportion to $T$;
# already the χ² quantile of $T$ degrees of freedom does, whatever the noise.

# %%
lengths = (1, 10, 24, 48, 96)
whole = [certify_system(zones[0].system, designs["output"].nodes[0].noise, DELTA, steps=t, observers=("output",))
         for t in lengths]  # fmt: skip
BESIDE = {"textcoords": "offset points", "ha": "right"}
figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
axes.plot(lengths, [w.trajectory_epsilon for w in whole], "o-", color=BLUE, label="outputs about the trajectory")
axes.plot(lengths, [0.5 * chi2.isf(DELTA, t) for t in lengths], "s--", color=GREY, label="limit of infinite noise")
axes.axhline(EPSILON, color="black", linewidth=0.8)
axes.annotate(
    "ε = 3, the promise about one state", (96, EPSILON), xytext=(-4, 5), textcoords="offset points", ha="right"
)
axes.set(
    xlabel="outputs T (steps)",
    ylabel="ε about all T states (nats, δ = 0.05)",
    title="The ε of an output is not the ε of a series (zone 0)",
)
axes.legend(frameon=False)
axes.grid(alpha=0.3)
plt.show()
for t, w in zip(lengths, whole, strict=True):
    print(f"T = {t:3d}: ε ≤ {w.trajectory_epsilon:.5f}")
