"""A window of a long trace by itself: its covariance, and what an adversary may know from outside it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jaxpriv.certificates.structured_markov import Term, chain
from jaxpriv.priors.inducing import InducingPrior
from jaxpriv.priors.kernel_values import kernel_values
from jaxpriv.priors.quasiseparable import QuasiseparablePrior
from jaxpriv.priors.regular_grid import GridPrior


class Belief(NamedTuple):
    """A secret S of a window under a prior.

    Attributes:
        covariance: of the window's fixes, (w, w), given what the adversary knows from outside.
        cross: with the secret, (w, k), likewise; variance: of the secret, (k, k).
        gained: (k, k), the precision about the secret that the outside has given the adversary already.
    """

    covariance: np.ndarray
    cross: np.ndarray
    variance: np.ndarray
    gained: np.ndarray


def restricted(prior: Any, start: int, stop: int) -> Any:
    """The prior of the fixes `start` … `stop` − 1 alone, of the same kind."""
    if isinstance(prior, GridPrior):
        return GridPrior(prior.kernel, prior.step, stop - start, prior.noise_sd)
    if isinstance(prior, InducingPrior):
        return InducingPrior(prior.kernel, prior.times[start:stop], prior.noise_sd, prior.spacing)
    return QuasiseparablePrior(prior.kernel, prior.times[start:stop], prior.noise_sd)


def window_covariance(prior: Any, start: int, stop: int) -> np.ndarray:
    """Σ[W, W] for the fixes `start` … `stop` − 1, nugget included, (w, w), exactly symmetric."""
    times = np.asarray(prior.times)[start:stop]
    # The times as they are: a lag is then rounded once, however far the first fix is from the others.
    values = kernel_values(prior.kernel, times, times)
    values = np.tril(values) + np.tril(values, -1).T
    values[np.diag_indices_from(values)] += float(prior.noise_sd) ** 2
    return values


def covariance_beyond(prior: Any, lags: np.ndarray) -> np.ndarray:
    """For each of `lags` (n,) a bound of |k| at it and at every longer lag; 0 for an infinite one.

    Off a grid the kernel must not rise with the lag, as sums and products of Matérn kernels do not.
    """
    finite = np.isfinite(lags)
    bounds = np.zeros(lags.shape)
    if isinstance(prior, GridPrior):
        rest = np.maximum.accumulate(np.abs(prior.toeplitz.lags[: prior.count])[::-1])[::-1]
        first = np.maximum((lags[finite] / prior.step).astype(int) - 1, 0)
        bounds[finite] = rest[np.minimum(first, prior.count - 1)]
        return bounds
    shortened = lags[finite] * (1.0 - 2.0**-40)
    values = np.abs(kernel_values(prior.kernel, np.zeros(1), shortened)[0]) if shortened.size else shortened
    bounds[finite] = values * (1.0 + 2.0**-30) + 1e-300
    return bounds


def has_edges(prior: Any) -> bool:
    """Whether the process has a finite state, so that its state at an edge tells all that the outside could."""
    return isinstance(prior, QuasiseparablePrior)


def known_edges(prior: Any, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    """The covariance of the window's fixes with the exact states at its edges, (w, m), and of the states, (m, m).

    The states are those of the process at the last fix before the window and the first after it, where there are such.
    Given them, everything outside is independent of everything inside: whatever is known or released there tells no
    more about the inside than the states do.
    """
    times = np.asarray(prior.times)
    inside = times[start:stop]
    edges = [times[i] for i in (start - 1, stop) if 0 <= i < times.size]
    before = start > 0
    crosses, own = [], []
    for term in prior.terms:
        sd, width = math.sqrt(term.variance), term.states
        ahead = _transitions(term, np.full(inside.size, edges[0]), inside) if before else None
        behind = _transitions(term, inside, np.full(inside.size, edges[-1])) if stop < times.size else None
        columns = []
        if ahead is not None:
            columns.append(sd * ahead[:, 0, :])
        if behind is not None:
            columns.append(sd * behind[:, :, 0])
        crosses.append(np.concatenate(columns, axis=1) if columns else np.zeros((inside.size, 0)))
        block = np.eye(width * len(columns))
        if ahead is not None and behind is not None:
            through = _transitions(term, np.array([edges[0]]), np.array([edges[1]]))[0]
            block[width:, :width], block[:width, width:] = through, through.T
        own.append(block)
    total = sum(block.shape[0] for block in own)
    states = np.zeros((total, total))
    place = 0
    for block in own:
        states[place : place + block.shape[0], place : place + block.shape[0]] = block
        place += block.shape[0]
    return np.concatenate(crosses, axis=1), states


def belief(prior: Any, start: int, stop: int, local: np.ndarray, edges: bool = True) -> Belief:
    """What the prior says of the window and of the secret at its positions `local`, (k,).

    With `edges`, for an adversary who also knows the exact state of a Markov process at both edges: noise designed
    against that is private whatever is known or released outside the window.
    """
    return beliefs(prior, start, stop, [local], edges)[0]


def beliefs(prior: Any, start: int, stop: int, locals_: list[np.ndarray], edges: bool = True) -> list[Belief]:
    """`belief` for several secrets of one window; they share the covariance."""
    covariance = window_covariance(prior, start, stop)
    if not edges or not has_edges(prior) or (start == 0 and stop == np.asarray(prior.times).size):
        return [
            Belief(covariance, covariance[:, s], covariance[np.ix_(s, s)], np.zeros((s.size, s.size))) for s in locals_
        ]
    cross, states = known_edges(prior, start, stop)
    explained = cross @ np.linalg.solve(states, cross.T)
    given = covariance - (explained + explained.T) / 2
    found = []
    for s in locals_:
        variance = given[np.ix_(s, s)]
        gained = np.linalg.inv(variance) - np.linalg.inv(covariance[np.ix_(s, s)])
        found.append(Belief(given, given[:, s], variance, (gained + gained.T) / 2))
    return found


def _transitions(term: Term, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Φ from each time of `first` to the same place of `second`, (n, m, m)."""
    pairs = np.zeros(2 * first.size)
    # `chain` reads the gaps of a sorted sequence: a step of each gap, then one of nothing.
    pairs[1::2] = second - first
    return chain(term, np.cumsum(pairs)).transitions[1::2]
