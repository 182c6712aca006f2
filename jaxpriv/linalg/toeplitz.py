"""Symmetric Toeplitz matrices on the host: products by FFT with a bound of their rounding, and shifted solves."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from scipy import fft
from scipy.sparse.linalg import LinearOperator, cg

from jaxpriv.errors import InputError


_UNIT = 2.0**-53
_ROUNDED = 1.0 + 2.0**-40  # covers the rounding of the bounds themselves


def embedding_length(count: int) -> int:
    """The power of two N ≥ 2 count − 1 (at least 4) of the circulant matrix that a Toeplitz matrix is a corner of."""
    return max(4, 1 << (2 * count - 2).bit_length())


class Toeplitz:
    """T (n, n) with T_ij = c_|i−j|, as the leading corner of a circulant matrix of order N, a power of two.

    Args:
        lags: c_0 … c_(N/2), float64, with N = `embedding_length(count)`. The entries from c_n on are in the circulant
            matrix only; the true values of a covariance function there keep its eigenvalues positive.
        count: n.

    The entries are taken as exact. Rounding is bounded on the assumption that the library's FFT of a power of two is a
    conventional one in passes of radix 2 and 4 whose twiddle factors are within six rounding units; the derivation is
    in docs/long_traces_approximations.md.

    Raises:
        InputError: a wrong number of lags, or values that are not finite.
    """

    def __init__(self, lags: np.ndarray, count: int):
        self.count, self.length = count, embedding_length(count)
        self.lags = np.asarray(lags, dtype=np.float64)
        if self.lags.shape != (self.length // 2 + 1,):
            raise InputError(f"lags has shape {self.lags.shape}; expected ({self.length // 2 + 1},) for n = {count}.")
        if not np.all(np.isfinite(self.lags)):
            raise InputError(f"lags is not finite at position {int(np.argmin(np.isfinite(self.lags)))}.")

    @functools.cached_property
    def symbol(self) -> np.ndarray:
        """The eigenvalues of the circulant matrix that are distinct by symmetry, (N/2 + 1,), within `symbol_error`.

        Computed in the longest format that the machine has, so that their own error is small beside the products'.
        """
        lags = self.lags.astype(np.longdouble)
        return np.real(_transform(np.concatenate([lags, lags[-2:0:-1]]))).astype(np.float64)

    @functools.cached_property
    def symbol_error(self) -> float:
        """A bound of the error of every entry of `symbol`."""
        size = math.sqrt(2.0 * float(np.dot(self.lags, self.lags)) * (1.0 + 2.0 * self.length * _UNIT) * self.length)
        unit = float(np.finfo(np.longdouble).eps) / 2.0
        return (_transform_error(self.length, unit) * size + _UNIT * float(np.max(np.abs(self.symbol)))) * _ROUNDED

    @property
    def smallest_eigenvalue(self) -> float:
        """A verified lower bound of the eigenvalues of T: the smallest of the circulant matrix that contains it."""
        return float(np.min(self.symbol)) - self.symbol_error

    def product(self, vectors: np.ndarray) -> np.ndarray:
        """T V, (n, m), for V (n, m)."""
        return self._filtered(self.symbol, vectors)

    def product_error(self, vectors: np.ndarray) -> np.ndarray:
        """(m,): a bound of the Euclidean norm of the error of each column of `product`."""
        top = float(np.max(np.abs(self.symbol))) + self.symbol_error
        relative = (2.0 * _transform_error(self.length, _UNIT) + 2.0 * _UNIT) * (1.0 + 2.0**-20)
        lengths = np.sqrt(np.einsum("ij,ij->j", vectors, vectors)) * (1.0 + 2.0 * (self.count + 8) * _UNIT)
        return (relative * top + self.symbol_error) * lengths * _ROUNDED

    def shifted_solve(
        self, shift: float, right: np.ndarray, start: np.ndarray | None = None, tolerance: float = 1e-13
    ) -> np.ndarray:
        """(T + shift I)⁻¹ B, (n, m), by conjugate gradients; a proposal, to be checked by its residual.

        The preconditioner is the corner of the circulant matrix's inverse, its eigenvalues clipped at zero: exact far
        from both ends, and positive definite. `start` (n, m) is a first guess.
        """
        floor = max(shift, 1e-15 * float(np.max(np.abs(self.symbol))))
        inverse = 1.0 / (np.maximum(self.symbol, 0.0) + floor)
        shape = (self.count, self.count)
        matrix: Any = LinearOperator(shape, lambda x: self.product(x.reshape(-1, 1))[:, 0] + shift * x.ravel())
        inside: Any = LinearOperator(shape, lambda x: self._filtered(inverse, x.reshape(-1, 1))[:, 0])
        solution = np.empty_like(right)
        for j in range(right.shape[1]):
            first = None if start is None else start[:, j]
            solution[:, j], _ = cg(matrix, right[:, j], x0=first, rtol=tolerance, maxiter=500, M=inside)
        return solution

    def draw(self, normals: np.ndarray) -> np.ndarray:
        """One draw of N(0, T), (n,), from N standard normals; eigenvalues below rounding count as zero.

        Raises:
            InputError: the circulant matrix has eigenvalues that are truly negative.
        """
        if float(np.min(self.symbol)) < -1e-8 * float(np.max(self.symbol)):
            raise InputError(
                "this covariance function does not fade within the trace, so that the trace cannot be drawn by FFT; "
                "draw from a shorter trace."
            )
        # The Hartley transform of white noise with the root of the (even) symbol has exactly this covariance.
        spectrum = _transform(normals)
        whole = np.sqrt(np.maximum(self.symbol, 0.0)) * spectrum
        return _inverse(whole, self.length)[: self.count]

    def _filtered(self, symbol: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        # Column by column: a wide block would need N numbers for each of its columns at once.
        values = np.empty(vectors.shape)
        for j in range(vectors.shape[1]):
            spectrum = _transform(vectors[:, j], self.length)
            spectrum *= symbol
            values[:, j] = _inverse(spectrum, self.length)[: self.count]
        return values


def _transform(values: np.ndarray, length: int | None = None) -> np.ndarray:
    return np.asarray(fft.rfft(values, n=length))


def _inverse(spectrum: np.ndarray, length: int) -> np.ndarray:
    return np.asarray(fft.irfft(spectrum, n=length))


def _transform_error(length: int, unit: float) -> float:
    """A bound of ‖computed − exact‖/‖exact‖ (Euclidean norms) of a transform of a power of two, or of its inverse."""
    return 6.0 * unit * (length.bit_length() + 1) * (1.0 + 2.0**-20)
