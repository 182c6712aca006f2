"""The arrays of a chunk of problems of one bucket, in units in which every secret has a variance of about one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaxpriv.certificates.arithmetic import power_of_two
from jaxpriv.designs.batch.covariances import KERNEL_ROUNDING, padded_covariances, uses_kernels
from jaxpriv.designs.batch.problems import Problem


@dataclass(frozen=True, eq=False)
class Chunk:
    """m problems with p priors each, padded to N points.

    `covariance` (m, p, N, N) and `nugget` (m, p) are multiplied by `unit`² (m,), powers of two, so nothing is rounded:
    a noise factor is in the trace's units after division by `unit`, a loss after multiplication by `unit`². Padded
    points have the secret's variance and no correlation. `scale` (m,) turns a loss in the trace's units into ε, `goal`
    (m,) is ε or a budget in the trace's units, `rows` is the number of problems that programs are compiled for, and
    `rounding` the relative error of the covariances that certificates shall cover.
    """

    covariance: np.ndarray
    nugget: np.ndarray
    position: np.ndarray
    sizes: np.ndarray
    unit: np.ndarray
    scale: np.ndarray
    goal: np.ndarray
    rows: int
    rounding: float

    @classmethod
    def of(cls, problems: Sequence[Problem], bucket: int, rows: int, order: float) -> Chunk:
        """Evaluate the covariances and pad them."""
        covariance, nugget = padded_covariances(problems, bucket)
        position = np.array([problem.secret.indices[0] for problem in problems])
        sizes = np.array([problem.size for problem in problems])
        own = covariance[np.arange(len(problems)), :, position, position]
        usable = (own[:, 0] > 1e-100) & (own[:, 0] < 1e100)
        unit = power_of_two(np.where(usable, own[:, 0], 1.0))
        covariance *= (unit * unit)[:, None, None, None]
        for i, size in enumerate(sizes):
            rest = np.arange(size, bucket)
            covariance[i, :, rest, rest] = own[i] * unit[i] ** 2
        radius = np.array([problem.radius for problem in problems])
        return cls(
            covariance,
            nugget * (unit * unit)[:, None],
            position,
            sizes,
            unit,
            0.5 * order * radius * radius,
            np.array([problem.goal for problem in problems]),
            rows,
            KERNEL_ROUNDING if uses_kernels(problems) else 0.0,
        )

    @property
    def count(self) -> int:
        """m."""
        return self.covariance.shape[0]

    @property
    def priors(self) -> int:
        """p."""
        return self.covariance.shape[1]

    @property
    def bucket(self) -> int:
        """N."""
        return self.covariance.shape[2]

    @property
    def own(self) -> np.ndarray:
        """(m, p) the secret's variances, scaled."""
        return self.covariance[np.arange(self.count), :, self.position, self.position]

    @property
    def mask(self) -> np.ndarray:
        """(m, N) whether a point is one of the trace."""
        return np.arange(self.bucket) < self.sizes[:, None]

    def padded(self, array: np.ndarray) -> np.ndarray:
        """An array (m, …) with its first row repeated up to the compiled number of rows."""
        missing = self.rows - len(array)
        return array if missing == 0 else np.concatenate([array, np.repeat(array[:1], missing, axis=0)])

    def rows_of(self, chosen: np.ndarray) -> Chunk:
        """The chosen problems (m,) alone."""
        names = ("covariance", "nugget", "position", "sizes", "unit", "scale", "goal")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})
