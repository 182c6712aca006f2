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
# # 05 Maps and channels
#
# When places come from a finite list (cells, counties, check-ins), noise is a matrix: the probability of publishing
# $z$ for $x$. Three ways to fill it, and two promises: levels (how far an output moves the odds between two places)
# and errors (how far off the best guess is). PIVE promised both and keeps neither; its repairs, and the optimum,
# keep both.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

from jaxpriv import channels, distribution


jax.config.update("jax_enable_x64", True)
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8C8C8C"

places = np.array([[5, 1], [3, 0], [1, 7], [7, 1], [4, 0], [1, 6], [6, 5], [2, 7]], float)
prior = channels.DiscretePrior.from_counts(places, [4, 7, 1, 8, 6, 6, 2, 8])

# %% [markdown]
# ## PIVE, audited
#
# Every place uses the diameter of its own protection set, so two members of a set publish on different scales. The
# audit compares what is claimed with what is true, in exact arithmetic.

# %%
broken = channels.pive(prior, epsilon=1.0, min_error=0.2)
print("\n".join(channels.audit(broken).sentences()))

# %% [markdown]
# ## Repaired: personalized sets that are a partition

# %%
personalized = channels.personalized_mechanism(prior, epsilon=1.0, min_error=0.2)
print("\n".join(channels.audit(personalized).sentences()))

# %% [markdown]
# ## Optimal
#
# Both knobs at once are a linear program. `optimal_channel` solves it and proves how close it is;
# `gradient_channel` does so for maps where the program would have a billion rows.

# %%
levels = np.geomspace(0.1, 3, 8)
loss = {"optimal": [], "optimal, error at least 1": [], "exponential": []}
for level in levels:
    loss["optimal"].append(channels.optimal_channel(prior, float(level)).quality_loss)
    loss["optimal, error at least 1"].append(channels.optimal_channel(prior, float(level), min_error=1.0).quality_loss)
    # Half the slope comes from the normaliser: the mechanism is run at half the level.
    plain = channels.exponential_channel(prior.distances, 0.5 * float(level))
    loss["exponential"].append(float(channels.quality_loss(plain, prior)))
figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
for (name, values), colour, line in zip(loss.items(), (BLUE, GREEN, ORANGE), ("-", ":", "--"), strict=True):
    axes.semilogx(levels, values, color=colour, linestyle=line, marker="o", label=name)
axes.set(xlabel="level, nats per unit of distance", ylabel="expected displacement, units", ylim=(0, None))
axes.legend()

# %%
best = channels.optimal_channel(prior, 0.5, min_error=1.0)
print(f"loss {best.quality_loss:.6f}, no channel below {best.lower_bound:.6f}; error {best.min_error:.4f}")
first = channels.gradient_channel(prior, 0.5, min_error=1.0, tolerance=1e-3)
print(f"first-order method: {first.quality_loss:.6f}, certified bound {first.lower_bound:.6f}, {first.steps} steps")

# %% [markdown]
# ## The group, not the place
#
# Two groups visit the same places with different habits, and which group somebody belongs to is the secret. A
# coupling moves every group to one common law with the least movement, so the published place says nothing about
# the group.

# %%
night = np.array([1, 2, 1, 6, 8, 1, 1, 2], float)
groups = np.stack([np.asarray(prior.probabilities), night / night.sum()])
target = distribution.barycentre(groups, prior.distances).target
exact = distribution.coupling_mechanism(groups, target, prior.distances)
entropic = distribution.entropic_mechanism(groups, target, prior.distances, scale=1.0)
for name, mechanism in (("least movement", exact), ("entropic", entropic)):
    audit = distribution.audit_coupling(mechanism)
    print(f"{name:14s} level between groups {audit.actual:.1e}, mean displacement {np.mean(audit.losses):.3f}")

# %% [markdown]
# ## What to watch out for
#
# * A level inside a set says nothing about places in different sets.
# * An error is a promise against *one* adversary, the one with the named prior. No positive error survives one who
#   is sure.
# * Publishing the same place k times multiplies the level by k.
# * A coupling hides the group and not the place; the entropic one hides both.
# * Draw from an `IntegerTable`, the thing that was audited, not from floats.
