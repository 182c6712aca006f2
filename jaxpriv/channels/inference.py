"""What a Bayesian adversary infers from a published place, and what the user pays.

All functions take a channel, a `DiscretePrior` and options, can be differentiated, compiled and mapped (over channels,
probabilities and adversary priors), and return no NaN: an output that is never published has a mask, see `posterior`.
A distance is Euclidean between locations unless a loss matrix is given.

Definitions after Shokri et al. (S&P 2011) and Zhang et al. (arXiv:2101.12602, section 3), written here from the
optimal Bayesian attack. `guesses` says where the adversary may place a guess:

* None: at the prior's places, as in those papers;
* an array (g, 2): at these places;
* "half": anywhere, by the safe factor one half: the best of the prior's places is never worse than twice the best point
  of any metric space around them;
* "plane": anywhere in the plane, by the geometric median (`plane_errors`), a certified lower bound of its error.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.geometric_median import plane_errors
from jaxpriv.channels.geometry import pairwise_distances
from jaxpriv.channels.prior import DiscretePrior, check_probabilities
from jaxpriv.errors import InputError


Guesses = Float[Array | np.ndarray, "g 2"] | str | None
"""Where the adversary may guess: None (the prior's places), places (g, 2), "half" or "plane"."""


def posterior(
    channel: Channel, prior: DiscretePrior, adversary_prior: Float[Array | np.ndarray, " n"] | None = None
) -> Float[Array, "n m"]:
    """Pr(x | z) = π(x) f(z|x) / Σ_y π(y) f(z|y), one column for each output, (n, m).

    A column whose output is never published (`published` is False) is zero instead of 0/0. The columns are formed
    relative to their largest likelihood, so outputs of tiny probability keep a posterior.
    """
    return _posterior(jnp.asarray(channel.log_matrix), _beliefs(channel, prior, adversary_prior))


def published(
    channel: Channel, prior: DiscretePrior, adversary_prior: Float[Array | np.ndarray, " n"] | None = None
) -> Bool[Array, " m"]:
    """Which outputs have positive probability under the prior, (m,)."""
    return _published(channel, _beliefs(channel, prior, adversary_prior))


def inference_attack(
    channel: Channel,
    prior: DiscretePrior,
    guesses: Float[Array | np.ndarray, "g 2"] | None = None,
    adversary_prior: Float[Array | np.ndarray, " n"] | None = None,
) -> Int[Array, " m"]:
    """The optimal guess for each output: the position in `guesses` of least posterior expected distance, (m,).

    Ties and outputs that are never published go to the smallest position.
    """
    losses = guess_distances(prior, guesses) @ posterior(channel, prior, adversary_prior)
    return jnp.argmin(losses, axis=0)


def conditional_error(
    channel: Channel,
    prior: DiscretePrior,
    guesses: Guesses = None,
    adversary_prior: Float[Array | np.ndarray, " n"] | None = None,
) -> Float[Array, " m"]:
    """ExpEr(z) = min over guesses g of Σ_x Pr(x|z) d(g, x), (m,), in the unit of the locations.

    +inf for an output that is never published: it is no violation of any bound. With `adversary_prior` (n,) the
    adversary believes that instead of the prior and is right to: it is error under that belief.
    """
    return _conditional_error(channel, _beliefs(channel, prior, adversary_prior), prior, guesses)


def expected_error(
    channel: Channel,
    prior: DiscretePrior,
    guesses: Guesses = None,
    adversary_prior: Float[Array | np.ndarray, " n"] | None = None,
) -> Float[Array, ""]:
    """ExpEr = Σ_z min over guesses of Σ_x π(x) f(z|x) d(g, x): the mean error, without any division.

    Never above the prior error; never above the quality loss when the outputs are among the guesses.
    """
    joint = _beliefs(channel, prior, adversary_prior)[:, None] * channel.matrix
    return jnp.sum(least_losses(joint.T, prior, guesses))


def narrowed_error(
    channel: Channel,
    prior: DiscretePrior,
    members: Bool[Array | np.ndarray, " n"],
    guesses: Guesses = None,
    adversary_prior: Float[Array | np.ndarray, " n"] | None = None,
) -> Float[Array, " m"]:
    """PivEr(z), (m,): the error of an adversary who also knows that the secret lies in the set of `members`, (n,).

    The condition is the event that the secret is in the set, nothing else: an adversary who learns *which* protection
    set was used may learn more (the places that use it). +inf where the set cannot produce the output.
    """
    weights = jnp.where(jnp.asarray(members), _beliefs(channel, prior, adversary_prior), 0.0)
    return _conditional_error(channel, weights, prior, guesses)


def prior_error(
    prior: DiscretePrior,
    guesses: Guesses = None,
    adversary_prior: Float[Array | np.ndarray, " n"] | None = None,
) -> Float[Array, ""]:
    """min over guesses of Σ_x π(x) d(g, x): the error before anything is published."""
    if adversary_prior is not None:
        check_probabilities(adversary_prior, prior.size)
    weights = prior.probabilities if adversary_prior is None else adversary_prior
    return least_losses(jnp.asarray(weights)[None], prior, guesses)[0]


def quality_loss(
    channel: Channel,
    prior: DiscretePrior,
    outputs: Float[Array | np.ndarray, "m 2"] | None = None,
    loss: Float[Array | np.ndarray, "n m"] | None = None,
) -> Float[Array, ""]:
    """QLoss = Σ_x π(x) Σ_z f(z|x) loss(x, z); the loss is the distance from x to the output place unless given.

    `outputs` (m, 2) are the published places; without them the outputs are the prior's own places.
    """
    costs = output_losses(channel, prior, outputs, loss)
    return jnp.sum(jnp.asarray(prior.probabilities)[:, None] * channel.matrix * costs)


def optimal_remap(
    channel: Channel,
    prior: DiscretePrior,
    targets: Float[Array | np.ndarray, "k 2"] | None = None,
    loss: Float[Array | np.ndarray, "n k"] | None = None,
) -> Int[Array, " m"]:
    """For each output the place to publish instead: the target of least posterior expected loss, (m,).

    Post-processing, so no privacy level changes: `channel.then(Channel.deterministic(remap, k))` is the remapped
    channel (Chatzikokolakis, Elsalamouny and Palamidessi, PETS 2017). With targets = guesses and loss = distance the
    quality loss becomes the expected error. Targets are the prior's places unless given.
    """
    costs = jnp.asarray(loss).T if loss is not None else guess_distances(prior, targets)
    if costs.shape[1] != prior.size:
        raise InputError(f"the loss has shape {costs.T.shape}; expected one row for each of {prior.size} places.")
    return jnp.argmin(costs @ posterior(channel, prior), axis=0)


def guess_distances(
    prior: DiscretePrior, guesses: Float[Array | np.ndarray, "g 2"] | None = None
) -> Float[Array, "g n"]:
    """Distances from each allowed guess to each place, (g, n); the guesses are the prior's places unless given."""
    if isinstance(guesses, str):
        raise InputError(f"guesses={guesses!r} names no list of places; pass an array (g, 2) or None here.")
    if guesses is not None and (guesses.ndim != 2 or guesses.shape[1] != 2 or guesses.shape[0] == 0):
        raise InputError(f"guesses have shape {guesses.shape}; expected (g, 2).")
    return jnp.asarray(pairwise_distances(prior.locations if guesses is None else guesses, prior.locations))


def output_losses(
    channel: Channel,
    prior: DiscretePrior,
    outputs: Float[Array | np.ndarray, "m 2"] | None = None,
    loss: Float[Array | np.ndarray, "n m"] | None = None,
) -> Float[Array, "n m"]:
    """The loss of publishing z for x, (n, m), checked against the channel's shape."""
    if loss is None:
        loss = pairwise_distances(prior.locations, prior.locations if outputs is None else outputs)
    expected = (prior.size, channel.n_outputs)
    if channel.n_inputs != prior.size or loss.shape != expected:
        raise InputError(
            f"a channel of shape ({channel.n_inputs}, {channel.n_outputs}), {prior.size} places and losses of shape "
            f"{loss.shape} do not fit; pass outputs= when the outputs are other places than the inputs."
        )
    return jnp.asarray(loss)


def least_losses(beliefs: Float[Array, "k n"], prior: DiscretePrior, guesses: Guesses = None) -> Float[Array, " k"]:
    """min over guesses g of Σ_x belief(x) d(g, x), one for each row of beliefs (they need not sum to one), (k,)."""
    if isinstance(guesses, str):
        if guesses == "plane":
            return plane_errors(jnp.asarray(beliefs), jnp.asarray(prior.locations))
        if guesses == "half":
            return 0.5 * jnp.min(beliefs @ guess_distances(prior).T, axis=1)
        raise InputError(f'guesses is {guesses!r}; expected None, "half", "plane" or places (g, 2).')
    return jnp.min(beliefs @ guess_distances(prior, guesses).T, axis=1)


@jax.jit
def _posterior(logs: Float[Array, "n m"], weights: Float[Array, " n"]) -> Float[Array, "n m"]:
    possible = weights[:, None] > 0.0
    top = jax.lax.stop_gradient(jnp.max(jnp.where(possible, logs, -jnp.inf), axis=0, keepdims=True))
    some = top > -jnp.inf
    # Rows without prior mass may exceed the top: they are cut far above it, where their weight of zero is still zero.
    relative = jnp.minimum(logs - jnp.where(some, top, 0.0), 0.5 * float(np.log(jnp.finfo(logs.dtype).max)))
    joint = weights[:, None] * jnp.exp(relative)
    total = jnp.sum(joint, axis=0, keepdims=True)
    return jnp.where(some, joint / jnp.where(some, total, 1.0), 0.0)


def _published(channel: Channel, weights: Float[Array, " n"]) -> Bool[Array, " m"]:
    return jnp.any((weights[:, None] > 0.0) & (jnp.asarray(channel.log_matrix) > -jnp.inf), axis=0)


def _conditional_error(
    channel: Channel, weights: Float[Array, " n"], prior: DiscretePrior, guesses: Guesses
) -> Float[Array, " m"]:
    errors = least_losses(_posterior(jnp.asarray(channel.log_matrix), weights).T, prior, guesses)
    return jnp.where(_published(channel, weights), errors, jnp.inf)


def _beliefs(
    channel: Channel, prior: DiscretePrior, adversary_prior: Float[Array | np.ndarray, " n"] | None
) -> Float[Array, " n"]:
    if channel.n_inputs != prior.size:
        raise InputError(f"a channel of {channel.n_inputs} inputs does not fit a map of {prior.size} places.")
    if adversary_prior is None:
        return jnp.asarray(prior.probabilities)
    check_probabilities(adversary_prior, prior.size)
    return jnp.asarray(adversary_prior)
