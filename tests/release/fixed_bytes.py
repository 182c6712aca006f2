"""Sources of bytes for tests of the release: seeded, counted or written by hand. The code under test is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np


BITS = 129


def seeded(seed: int) -> Callable[[int], bytes]:
    """Reproducible bytes."""
    return np.random.default_rng(seed).bytes


class Counted:
    """Seeded bytes that remember the sizes asked for."""

    def __init__(self, seed: int):
        self.source, self.requests = seeded(seed), []

    def __call__(self, size: int) -> bytes:
        self.requests.append(size)
        return self.source(size)


def coordinates(pairs: list[tuple[int, int]]) -> Callable[[int], bytes]:
    """Bytes that make the sampler see these odd integers (a, b), |a|, |b| < 2^129, and (1, 1) afterwards."""
    words: Iterator[tuple[int, int]] = iter(pairs)

    def source(size: int) -> bytes:
        block = b""
        for _ in range(size // 33):
            a, b = next(words, (1, 1))
            assert a % 2 and b % 2 and abs(a) < 2**BITS and abs(b) < 2**BITS
            shifted = (a + 2**BITS - 1) // 2 | (b + 2**BITS - 1) // 2 << BITS
            block += shifted.to_bytes(33, "little")
        return block

    return source
