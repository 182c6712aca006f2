"""Entropic mechanisms with an exact output law: after any number of steps, and never with a larger level."""

import jax
import numpy as np
import pytest

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.levels import geo_level, pair_levels
from jaxpriv.distribution.coupling import coupling_mechanism
from jaxpriv.distribution.redirected import entropic_mechanism, redirected
from jaxpriv.errors import InputError


GROUPS = np.array([[0.3, 0.3, 0.2, 0.1, 0.1, 0.0], [0, 0.1, 0.2, 0.4, 0.2, 0.1], [0.1, 0.1, 0.1, 0.1, 0.2, 0.4]])
SIX = np.abs(np.arange(6.0)[:, None] - np.arange(6.0))


def test_any_channel_is_sent_to_any_target_without_a_larger_level():
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows, law, target = rng.dirichlet(np.ones(4), size=5), rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(4))
        target[0] = 0.0
        target /= target.sum()
        sent = redirected(rows, law, target)
        np.testing.assert_allclose(law @ sent, target, atol=1e-15)
        before, after = (np.asarray(pair_levels(Channel.from_matrix(one))) for one in (rows, sent))
        assert np.all(after <= before + 1e-12)
        moved = 0.5 * np.sum(np.abs(law @ rows - target))
        assert law @ np.sum(np.abs(sent - rows), axis=1) <= 2.0 * moved + 1e-14
    np.testing.assert_array_equal(redirected(rows, law, law @ rows), rows)


@pytest.mark.parametrize("steps", [10, 2000])
def test_mechanism(steps):
    target, scale = GROUPS.mean(axis=0), 0.2
    with jax.enable_x64(steps == 10):
        found = entropic_mechanism(GROUPS, target, SIX, scale, max_steps=steps)
    for law, channel, loss in zip(GROUPS, found.channels, found.losses, strict=True):
        rows = np.exp(channel.log_matrix)
        np.testing.assert_allclose(law @ rows, target, rtol=1e-13)
        assert float(geo_level(channel, SIX)) <= 2.0 / scale * (1 + 1e-12)
        assert np.sum(law[:, None] * rows * SIX) == pytest.approx(loss, abs=1e-13)
    converged = coupling_mechanism(GROUPS, target, SIX, kind="entropic", scale=scale)
    if steps == 2000:
        np.testing.assert_allclose(found.losses, converged.losses, atol=1e-9)
    else:
        assert np.any(np.abs(found.losses - converged.losses) > 1e-9)
    with pytest.raises(InputError, match="scale"):
        entropic_mechanism(GROUPS, target, SIX, 0.0)
