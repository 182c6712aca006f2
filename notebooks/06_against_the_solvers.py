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
# # 06 Against the convex solvers
#
# The least-noise problem is a semidefinite program. A cone solver can do it for small traces, and that is what
# jaxpriv uses cone programs for: to check answers. Here both, side by side, on the same problems in the same
# process.

# %%
import time

import cvxpy as cp
import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxpriv as jp


jax.config.update("jax_enable_x64", True)
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8C8C8C"


def problem(n):
    prior = jp.ProcessPrior(jp.kernels.matern32(lengthscale=5.0), np.arange(float(n)), noise_sd=0.1)
    return prior, [jp.Secret([n // 3], radius=1.0), jp.Secret([2 * n // 3], radius=1.0)]


def timed(run):
    start = time.perf_counter()
    found = run()
    return found, time.perf_counter() - start


# %% [markdown]
# ## The same answers
#
# `method="convex"` gives the program to a cone solver by CVXPY. What comes back is repaired, if need be, and judged
# by the same certificate.

# %%
prior, secrets = problem(12)
ours = jp.design(prior, secrets, epsilon=1.0)
cone = jp.design(prior, secrets, epsilon=1.0, method="convex")
print(ours)
print(cone)
print(f"relative difference of the costs {abs(ours.cost / cone.cost - 1):.1e}")

# %% [markdown]
# ## Time against size
#
# Warm times: each is run once before, so that compilation is not counted. The cone solver stops here at a size that
# takes seconds; `python -m benchmarks convex` goes on to where it takes minutes, and compares three solvers at
# equal accuracy.

# %%
sizes = {"jaxpriv": (8, 12, 16, 50), "cone solver": (8, 12, 16)}
seconds = {name: [] for name in sizes}
for n in sizes["jaxpriv"]:
    prior, secrets = problem(n)
    jp.design(prior, secrets, epsilon=1.0)
    seconds["jaxpriv"].append(timed(lambda p=prior, s=secrets: jp.design(p, s, epsilon=1.0))[1])
for n in sizes["cone solver"]:
    prior, secrets = problem(n)
    seconds["cone solver"].append(timed(lambda p=prior, s=secrets: jp.design(p, s, epsilon=1.0, method="convex"))[1])
figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
looks = {"jaxpriv": (BLUE, "o", "-"), "cone solver": (ORANGE, "s", "--")}
for name, values in seconds.items():
    colour, marker, line = looks[name]
    axes.loglog(sizes[name], values, color=colour, marker=marker, linestyle=line, label=name)
axes.set(xlabel="points in the trace", ylabel="seconds, certificate included")
axes.legend()

# %% [markdown]
# ## "Optimal" is not a certificate
#
# A solver's status says that its tolerances are met, not that the noise is private. Compare the noise matrix as it
# comes back with the target, without repair:

# %%
prior = jp.ProcessPrior(jp.kernels.rbf(lengthscale=4.0), np.arange(12.0), noise_sd=0.01)
floors = [np.asarray(jp.cip_floor(prior, one, jp.target_loss(1.0, one, order=2.0))) for one in secrets]
noise = cp.Variable((12, 12), PSD=True)
program = cp.Problem(cp.Minimize(cp.trace(noise)), [noise >> floor for floor in floors])
program.solve(solver="SCS")
raw = (noise.value + noise.value.T) / 2
below = min(np.linalg.eigvalsh(raw - floor)[0] for floor in floors)
print(f"status {program.status!r}; smallest eigenvalue of noise minus floor {below:.1e}")

# %% [markdown]
# ## What to watch out for
#
# * Compare at equal accuracy: a solver that stops at 1e-3 is quick.
# * A negative eigenvalue of 1e-6 is a privacy failure of unknown size until the loss of the very matrix that is
#   drawn from is computed. `jp.certify` does that for any noise.
# * First calls compile. Count that too when you design once; nothing is compiled again for new values of the same
#   size.
