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
# # 01 Protect a trace
#
# A made-up person spends a made-up day between home, a clinic and work, and wants to publish the day without the
# visit to the clinic being readable in it. This notebook does it twice: with the command line, as one would, and
# step by step in Python, to see what happens.

# %%
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxpriv as jp
from jaxpriv.jobs.demo_trace import ORIGIN, demo_day
from jaxpriv.traces.files import read_trace


jax.config.update("jax_enable_x64", True)

# Okabe and Ito's palette: told apart with every common colour vision; line styles say it again.
BLUE, ORANGE, SKY, GREY = "#0072B2", "#D55E00", "#56B4E9", "#8C8C8C"
folder = Path(tempfile.mkdtemp())
day = demo_day(points=60)
(folder / "day.csv").write_text(day.csv)
print(day.csv[:150])

# %% [markdown]
# ## On the command line
#
# The prior is written down before anybody looks at this trace: positions stay alike over half an hour, within some
# 3 km, and a fix is off by 5 m. `--radius 500m` says that any two places up to 500 m apart must stay hard to tell
# apart at the secret time.

# %%
command = (
    "protect day.csv --secret 2024-05-06T08:24:00Z --radius 500m --epsilon 1 --out safe --kernel matern32 "
    "--lengthscale 30min --sd 3km --nugget 5m --quiet"
)
# The record of releases goes to the temporary folder, too.
environment = os.environ | {"XDG_STATE_HOME": str(folder / "state")}
run = [sys.executable, "-m", "jaxpriv"]
subprocess.run([*run, *command.split()], cwd=folder, env=environment, check=True)
print(sorted(str(path.relative_to(folder)) for path in (folder / "safe").rglob("*.*")))
print((folder / "safe/private/report.txt").read_text()[:1500])

# %% [markdown]
# `safe/share` may be shared; `safe/private` may not. `verify` computes every number again from the stored
# mechanism.

# %%
done = subprocess.run([*run, "verify", "safe"], cwd=folder, env=environment, check=True, capture_output=True, text=True)
print(done.stdout)

# %% [markdown]
# ## The same in Python
#
# East and north are independent, so each gets a design. The design never sees the trace: only times, prior, secret
# and target.

# %%
trace = read_trace(folder / "day.csv")
seconds = (trace.time_us - trace.time_us[0]) / 1e6
metres = ORIGIN.to_metres(trace.latitude, trace.longitude)
at = int(np.argmin(np.abs(trace.time_us - day.secret_us)))

prior = jp.ProcessPrior(jp.kernels.matern32(lengthscale=1800.0, sd=3000.0), seconds, noise_sd=5.0)
secret = jp.Secret([at], radius=500.0)
design = jp.design(prior, secret, epsilon=1.0, resolution=0.5)
print(design)

# %% [markdown]
# The noise is correlated. Its standard deviation is largest around the secret and falls to the floor elsewhere;
# independent noise with the same ε needs the dashed level at *every* fix.

# %%
hours = 6.5 + seconds / 3600
independent = jp.baselines.smallest_uniform(prior, secret, 1.0)
profile = np.sqrt(np.diagonal(np.asarray(design.mechanism.covariance)))
figure, axes = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
axes.plot(hours, profile, color=BLUE, label="least noise for ε = 1")
axes.axhline(float(independent.floor_sd), color=ORANGE, linestyle="--", label="independent noise for ε = 1")
axes.axvline(hours[at], color=GREY, linewidth=0.8, linestyle=":", label="the secret time")
axes.set(xlabel="hour of the day (UTC)", ylabel="standard deviation of the noise, m", ylim=(0, None))
axes.legend()
print(f"root mean square: {np.sqrt(np.mean(profile**2)):.0f} m instead of {float(independent.floor_sd):.0f} m")

# %% [markdown]
# ## Release, and what an attacker makes of it
#
# `release` uses exact arithmetic and the operating system's randomness, so every run of this notebook is another
# release. The attacker knows the prior, the mechanism and the output; the posterior is all that can be had from
# them.

# %%
released = np.stack([design.mechanism.release(metres[:, axis]).values for axis in (0, 1)], axis=1)
attack = jp.posterior(prior, design.mechanism)
spread = np.sqrt(np.diagonal(np.asarray(attack.covariance)))
figure, axes = plt.subplots(figsize=(7.5, 5.0), layout="constrained")
axes.plot(*metres.T / 1e3, color=GREY, linewidth=3, label="true (kept private)")
axes.plot(*released.T / 1e3, color=ORANGE, marker=".", linewidth=1, label="released")
axes.plot(*metres[at] / 1e3, "*", color=BLUE, markersize=14, label="the secret place")
axes.set(xlabel="km east", ylabel="km north", aspect="equal")
axes.legend()
print(f"after the release the attacker is left with ± {spread[at]:.0f} m at the secret, of ± 3000 m before")

# %% [markdown]
# ## What to watch out for
#
# * The promise is relative to the prior. Here it was made up with the day; from real traces of *other* people it
#   comes from `jaxpriv fit`.
# * The noise shows when something was protected. Choose secret times from a calendar, not from visits.
# * Publish one release. Two of the same trace combine, and can tell more than both promises added.
# * Times are published in clear: when somebody recorded is in the file.
# * `release` has no seed. Reproducible noise is `simulate`, and is not private.
