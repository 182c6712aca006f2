"""Linear families of symmetric matrices: which entries of a covariance are free, and which of them are one number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


_NARROW = 16  # bandwidth up to which diagonals are worked on one pair at a time


@dataclass(frozen=True)
class Pattern:
    """Symmetric (n, n) matrices whose entry (rows[e], columns[e]) is parameter `owner[e]`, and 0 where none is named.

    `owner` is sorted, so that entries of one parameter are adjacent. The noises of a banded pattern are exactly those
    whose Cholesky factor has that band: factorisation fills nothing in, and L Lᵀ has the band of L.
    """

    size: int
    rows: np.ndarray
    columns: np.ndarray
    owner: np.ndarray
    bandwidth: int | None = None

    @property
    def count(self) -> int:
        """The number of parameters."""
        return int(self.owner[-1]) + 1

    @classmethod
    def banded(cls, size: int, bandwidth: int) -> Pattern:
        """Entries at most `bandwidth` off the diagonal; 0 is independent noise, n − 1 any covariance."""
        offsets = range(min(bandwidth, size - 1) + 1)
        rows = np.concatenate([np.arange(offset, size) for offset in offsets])
        columns = np.concatenate([np.arange(size - offset) for offset in offsets])
        return cls(size, rows, columns, np.arange(rows.size), min(bandwidth, size - 1))

    @classmethod
    def block(cls, size: int, positions: Sequence[int]) -> Pattern:
        """White noise at `positions`, independent of any noise on the rest."""
        inside = np.asarray(sorted(set(positions)), dtype=int)
        rest = np.setdiff1d(np.arange(size), inside)
        down, across = np.tril_indices(rest.size)
        owner = np.concatenate([np.zeros(inside.size, int), 1 + np.arange(down.size)])
        return cls(size, np.concatenate([inside, rest[down]]), np.concatenate([inside, rest[across]]), owner)

    @property
    def identity(self) -> np.ndarray:
        """The parameters of I, (m,)."""
        values = np.zeros(self.count)
        values[self.owner[self.rows == self.columns]] = 1.0
        return values

    def matrix(self, parameters: np.ndarray) -> np.ndarray:
        """Σ x_m B_m, (n, n)."""
        out = np.zeros((self.size, self.size))
        out[self.rows, self.columns] = out[self.columns, self.rows] = parameters[self.owner]
        return out

    def traces(self, matrix: np.ndarray) -> np.ndarray:
        """tr(B_m A) for a symmetric A, (m,)."""
        entries = matrix[self.rows, self.columns] * np.where(self.rows == self.columns, 1.0, 2.0)
        return self._gathered(entries)

    def products(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """tr(A B_m C B_l) for symmetric A and C, (m, m)."""
        if self.bandwidth is not None and self.bandwidth <= _NARROW:
            return self._banded_products(first, second)
        a, b = self.rows, self.columns
        half = np.where(a == b, 0.5, 1.0)
        first_b, second_b = first[:, b], second[:, b]
        first_a, second_a = first[:, a], second[:, a]
        entries = first_a[a] * second_b[b] + first_b[b] * second_a[a]
        entries += first_b[a] * second_a[b] + first_a[b] * second_b[a]
        entries *= half[:, None] * half
        return self._gathered(self._gathered(entries).T).T

    def _banded_products(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The same, one pair of diagonals at a time: their entries are slices, not gathers."""
        out = np.empty((self.count, self.count))
        assert self.bandwidth is not None
        heads = np.cumsum([0] + [self.size - offset for offset in range(self.bandwidth + 1)])
        for p in range(self.bandwidth + 1):
            low_p, high_p = slice(None, self.size - p), slice(p, None)
            for q in range(p + 1):
                low_q, high_q = slice(None, self.size - q), slice(q, None)
                part = first[high_p, high_q] * second[low_p, low_q]
                if p:
                    part += first[low_p, low_q] * second[high_p, high_q]
                if p and q:
                    part += first[low_p, high_q] * second[high_p, low_q]
                    part += first[high_p, low_q] * second[low_p, high_q]
                out[heads[p] : heads[p + 1], heads[q] : heads[q + 1]] = part
                out[heads[q] : heads[q + 1], heads[p] : heads[p + 1]] = part.T
        return out

    def _gathered(self, entries: np.ndarray) -> np.ndarray:
        if self.owner.size == self.count:
            return entries
        starts = np.flatnonzero(np.diff(self.owner, prepend=-1))
        return np.add.reduceat(entries, starts, axis=0)
