"""Integer tables: exact row sums, exact draws, and the law that float sampling would have."""

from __future__ import annotations

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.exact_levels import ExactRows, exact_set_level
from jaxpriv.channels.exponential import exponential_channel
from jaxpriv.channels.table import IntegerTable
from jaxpriv.errors import InputError


@pytest.mark.parametrize("bits", [16, 62, 200])
def test_rows_sum_exactly_and_stay_close(rng, bits):
    channel = Channel.from_matrix(rng.dirichlet(np.full(30, 0.3), size=20))
    table = IntegerTable.from_channel(channel, bits)
    assert all(sum(int(w) for w in row) == 2**bits for row in table.weights)
    assert np.all(table.weights > 0)
    exact = np.asarray(table.weights, dtype=object) * Fraction(1, 2**bits)
    # Rounding to the nearest weight moves an entry by half a unit, the rest of a row by at most 15 units in all.
    np.testing.assert_allclose(exact.astype(float), np.exp(channel.log_matrix), rtol=1e-12, atol=16.0 / 2**bits)


def test_zeros_stay_zero_and_tiny_entries_stay_positive():
    channel = Channel.from_log_weights(np.array([[0.0, -np.inf, -600.0], [0.0, 0.0, -1.0]]))
    table = IntegerTable.from_channel(channel)
    assert table.weights[0, 1] == 0 and table.weights[0, 2] == 1
    many = IntegerTable.from_channel(channel, bits=1000).weights[0, 2]
    # The logarithm 600 is held to 1.1e-13, and so is the weight, relatively.
    assert float(np.log(float(many))) == pytest.approx(1000 * np.log(2.0) - 600.0, abs=5e-13)


def test_every_uniform_number_is_drawn_as_often_as_the_table_says():
    table = IntegerTable(np.array([[3, 0, 250, 3], [64, 64, 64, 64]]), 8)
    for x in range(2):
        stream = iter(range(256))
        drawn = table.release(np.full(256, x), _bytes=lambda length, s=stream: next(s).to_bytes(length, "little"))
        np.testing.assert_array_equal(np.bincount(drawn, minlength=4), table.weights[x])


def test_release_uses_the_systems_entropy(rng):
    table = IntegerTable.from_channel(Channel.from_matrix(rng.dirichlet(np.ones(6), size=2)))
    first, second = (table.release(np.zeros(200, dtype=int)) for _ in range(2))
    assert not np.array_equal(first, second)
    # A chi-square statistic with 5 degrees of freedom exceeds 45 with probability 1.4e-8.
    expected = 4000 * np.exp(table.channel.log_matrix)[1]
    counts = np.bincount(table.release(np.ones(4000, dtype=int)), minlength=6)
    assert float(np.sum((counts - expected) ** 2 / expected)) < 45.0


def test_float32_sampling_has_another_law_than_the_audited_one(line):
    """Outputs 30 nats down are never drawn in float32 noise, whatever the key; the table draws them when it must."""
    channel = exponential_channel(line([0.0, 1.0, 60.0]).distances, 0.5)
    logs = jnp.asarray(channel.log_matrix, jnp.float32)
    tiny = jnp.finfo(jnp.float32).tiny
    noise_range = -jnp.log(-jnp.log(jnp.array([tiny, 1.0 - jnp.finfo(jnp.float32).epsneg], jnp.float32)))
    assert float(logs[0, 2] + noise_range[1]) < float(logs[0, 0] + noise_range[0])
    drawn = jax.random.categorical(jax.random.key(1), logs[0], shape=(100_000,))
    assert int(jnp.max(drawn)) < 2
    table = IntegerTable.from_channel(channel)
    last = table.release(np.array([0]), _bytes=lambda length: b"\xff" * length)
    assert last[0] == 2
    level = exact_set_level(ExactRows.of(table), np.ones(3, dtype=bool))
    assert np.isfinite(level.value)


def test_tables_that_are_refused(rng):
    with pytest.raises(InputError, match="row 1 of the table sums to 255"):
        IntegerTable(np.array([[256, 0], [255, 0]]), 8)
    with pytest.raises(InputError, match="negative weight"):
        IntegerTable(np.array([[257, -1]]), 8)
    with pytest.raises(InputError, match="expected integers"):
        IntegerTable(np.array([[0.5, 0.5]]), 8)
    with pytest.raises(InputError, match="bits"):
        IntegerTable.from_channel(Channel.from_matrix(np.eye(2)), 2000)
    with pytest.raises(InputError, match="do not fit"):
        IntegerTable.from_channel(Channel.from_matrix(np.full((1, 300), 1 / 300)), 8)
    table = IntegerTable.from_channel(Channel.from_matrix(np.eye(2)), 8)
    with pytest.raises(InputError, match="outside"):
        table.release(np.array([2]))
    with pytest.raises(InputError, match="whole numbers"):
        table.release(np.array([0.0]))
