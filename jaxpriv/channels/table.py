"""Channels as tables of whole numbers: what is drawn is, bit for bit, what was audited.

A channel computed in floating point has rows that sum to one only up to rounding, and a sampler that compares float
noise with float logarithms never draws an output some 20 nats below the likeliest: the law of the draws is not the law
on paper, and its real privacy level can be infinite. Here each row is rounded once to whole numbers that sum to 2^bits
exactly, that table is what is audited and kept, and a draw compares a uniform whole number from the operating system
with the row's running sums. The time a draw takes may depend on the input; that is outside what is claimed.
"""

from __future__ import annotations

import bisect
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int

from jaxpriv.channels.channel import Channel
from jaxpriv.errors import InputError


_MOST_BITS = 1000  # so that every weight is within the range of float64, for the logarithms of an audit
_LARGEST_WORD = 62  # bits of a row sum up to which int64 holds every running sum


@dataclass(frozen=True)
class IntegerTable:
    """A channel whose probabilities are weights[x, z] / 2^bits, exactly.

    Args:
        weights: (n, m) non-negative whole numbers (int64, or Python integers in an object array above 62 bits).
        bits: every row sums to 2^bits.

    Raises:
        InputError: not whole numbers, a negative one, or a row with another sum.
    """

    weights: np.ndarray = field(repr=False)
    bits: int

    def __post_init__(self) -> None:
        table = np.asarray(self.weights)
        if table.ndim != 2 or table.size == 0 or table.dtype.kind not in "iuO":
            raise InputError(f"weights have shape {table.shape} and dtype {table.dtype}; expected integers (n, m).")
        if not (isinstance(self.bits, int) and 1 <= self.bits <= _MOST_BITS):
            raise InputError(f"bits is {self.bits!r}; expected a whole number from 1 to {_MOST_BITS}.")
        rows = [[int(weight) for weight in row] for row in table]
        for number, row in enumerate(rows):
            if min(row) < 0:
                raise InputError(f"row {number} of the table has a negative weight.")
            if sum(row) != 1 << self.bits:
                raise InputError(f"row {number} of the table sums to {sum(row)}, not to 2^{self.bits}.")
        frozen = np.array(rows, dtype=np.int64 if self.bits <= _LARGEST_WORD else object)
        frozen.flags.writeable = False
        object.__setattr__(self, "weights", frozen)

    @classmethod
    def from_channel(cls, channel: Channel, bits: int = 62) -> IntegerTable:
        """Round a channel to a table: each entry to the nearest weight, and what is left to the row's largest entry.

        A positive probability keeps a weight of at least 1 and a zero stays zero, so no ratio becomes infinite. An
        entry of weight w moves by a factor of at most 1 + 1/w: audit the table, not the channel. More bits (the row
        sum is 2^bits) bring the two closer where probabilities fall below about 1e-12.

        Raises InputError: a batch of channels, bits outside 8 … 1000, or so few bits that the positive entries of a
        row do not fit.
        """
        if channel.log_matrix.ndim != 2:
            raise InputError("a table is made of one channel; make one for each of a batch.")
        if not (isinstance(bits, int) and 8 <= bits <= _MOST_BITS):
            raise InputError(f"bits is {bits!r}; expected a whole number from 8 to {_MOST_BITS}.")
        logs = np.asarray(channel.log_matrix, dtype=np.float64)
        return cls(np.array([_rounded_row(row, bits) for row in logs], dtype=object), bits)

    @property
    def n_inputs(self) -> int:
        """n, the number of inputs."""
        return self.weights.shape[0]

    @property
    def n_outputs(self) -> int:
        """m, the number of outputs."""
        return self.weights.shape[1]

    @property
    def channel(self) -> Channel:
        """The same channel in floating point, in the log domain."""
        return Channel.from_integer_weights(self.weights)

    def release(self, inputs: Int[np.ndarray, " k"], _bytes: Callable[[int], bytes] = os.urandom) -> np.ndarray:
        """Draw one output for each input, (k,), independently, with exactly the probabilities of the table.

        Randomness comes from the operating system; there is no seed (`_bytes` exists for tests). Drawing twice for the
        same secret is two releases: their levels add.

        Raises InputError: an input that is not a position of the table.
        """
        positions = np.asarray(inputs)
        if positions.ndim != 1 or positions.dtype.kind not in "iu":
            raise InputError("inputs must be a list of whole numbers, positions of the table's rows.")
        if positions.size and (positions.min() < 0 or positions.max() >= self.n_inputs):
            raise InputError(f"an input lies outside 0 … {self.n_inputs - 1}.")
        sums = {int(x): list(itertools.accumulate(int(w) for w in self.weights[x])) for x in np.unique(positions)}
        length = (self.bits + 7) // 8
        drawn = np.empty(positions.shape, dtype=np.int64)
        for place, x in enumerate(positions):
            uniform = int.from_bytes(_bytes(length), "little") & ((1 << self.bits) - 1)
            drawn[place] = bisect.bisect_right(sums[int(x)], uniform)
        return drawn


def _rounded_row(logs: np.ndarray, bits: int) -> list[int]:
    positive = np.isfinite(logs)
    top = int(np.argmax(logs))
    if np.count_nonzero(positive) > (1 << (bits - 1)):
        raise InputError(f"{np.count_nonzero(positive)} positive entries do not fit a table of {bits} bits.")
    row = [_scaled(float(value), bits) if kept else 0 for value, kept in zip(logs, positive, strict=True)]
    row[top] += (1 << bits) - sum(row)
    if row[top] < 1:
        raise InputError(f"a row does not fit a table of {bits} bits; use more.")
    return row


def _scaled(log_probability: float, bits: int) -> int:
    # exp(log p + bits log 2) in two factors, so that probabilities below the range of doubles keep their weight.
    halvings = int(np.floor(log_probability / np.log(2.0)))
    mantissa = int(np.ldexp(np.exp(log_probability - halvings * np.log(2.0)), 53))
    shift = bits + halvings - 53
    weight = mantissa << shift if shift >= 0 else (mantissa + (1 << (-shift - 1))) >> -shift
    return max(weight, 1)
