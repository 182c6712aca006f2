"""The covariances of many priors, padded to a bucket: kernels of one form are evaluated together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxpriv.designs.batch.buckets import prior_bucket
from jaxpriv.designs.batch.problems import Problem
from jaxpriv.precision import double_precision
from jaxpriv.priors.process import ProcessPrior


# Evaluated together, a kernel may differ in its last digits from the matrix of one prior alone; the certificates cover
# every matrix this close.
KERNEL_ROUNDING = 2.0**-50


def padded_covariances(problems: Sequence[Problem], bucket: int) -> tuple[np.ndarray, np.ndarray]:
    """Covariances (m, p, N, N), a padded point having unit variance and no correlation, and nuggets (m, p).

    Where a kernel cannot be evaluated the matrix is NaN.
    """
    m, p = len(problems), prior_bucket(max(len(problem.priors) for problem in problems))
    covariance = np.zeros((m, p, bucket, bucket))
    nugget = np.zeros((m, p))
    groups: dict[Any, list[tuple[int, int, list[Any]]]] = {}
    for i, problem in enumerate(problems):
        for j, prior in enumerate(problem.priors):
            nugget[i, j] = float(np.asarray(getattr(prior, "nugget", 0.0)))
            if isinstance(prior, ProcessPrior):
                leaves, form = jax.tree.flatten(prior.kernel)
                if all(np.ndim(leaf) == 0 for leaf in leaves):
                    groups.setdefault(form, []).append((i, j, leaves))
                    continue
            n = problem.size
            with double_precision():
                covariance[i, j, :n, :n] = np.asarray(prior.covariance, dtype=np.float64)
    for form, members in groups.items():
        values = _evaluated(form, members, problems, bucket)
        for (i, j, _), matrix in zip(members, values[: len(members)], strict=True):
            n = problems[i].size
            covariance[i, j, :n, :n] = matrix[:n, :n]
            covariance[i, j, np.arange(n), np.arange(n)] += nugget[i, j]
    for i, problem in enumerate(problems):
        own = len(problem.priors)
        covariance[i, own:], nugget[i, own:] = covariance[i, own - 1], nugget[i, own - 1]
        rest = np.arange(problem.size, bucket)
        covariance[i, :, rest, rest] = 1.0
    return covariance, nugget


def _evaluated(form: Any, members: list[tuple[int, int, list[Any]]], problems: Sequence[Problem], bucket: int):
    # A power of two of them, so that few numbers of problems are compiled for.
    count = 1 << (len(members) - 1).bit_length()
    times = np.zeros((count, bucket))
    leaves = np.ones((len(members[0][2]), count))
    for row, (i, j, numbers) in enumerate(members):
        own = np.asarray(problems[i].priors[j].times, dtype=np.float64)
        times[row, : own.size] = own
        times[row, own.size :] = own[-1]
        leaves[:, row] = [float(number) for number in numbers]
    times[len(members) :] = np.arange(bucket)
    with double_precision():
        return np.asarray(_kernels(form)(tuple(jnp.asarray(leaf) for leaf in leaves), jnp.asarray(times)))


def _kernels(form: Any):
    if form not in _COMPILED:

        def one(leaves, times):
            matrix = jax.tree.unflatten(form, leaves)(times, times)
            return jnp.tril(matrix) + jnp.tril(matrix, -1).T

        _COMPILED[form] = jax.jit(jax.vmap(one))
    return _COMPILED[form]


_COMPILED: dict[Any, Any] = {}


def uses_kernels(problems: Sequence[Problem]) -> bool:
    """Whether any covariance is evaluated together with others."""
    return any(isinstance(prior, ProcessPrior) for problem in problems for prior in problem.priors)
