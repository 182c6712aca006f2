"""What the page shows beyond the record: positions, beliefs, losses and the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from jaxpriv.errors import InputError


MAX_COVARIANCE_ROWS = 200


@dataclass(frozen=True)
class SecretDetails:
    """One protected secret.

    `label` is how its owner calls it; `first_us` and `last_us` its first and last instant in microseconds since 1970;
    `indices` the fixes it is made of, empty for a place between fixes. `epsilon` is the certified value under the worst
    prior in nats, `odds_factor` the exact factor on odds for the report's δ (None beyond 1e300). `before_m` and
    `after_m` are the 68 % half-widths (of each axis) of an attacker under the worst prior. `independent_epsilon` is the
    ε of independent noise of the same error, None where it is not known.
    """

    label: str
    first_us: int
    last_us: int
    indices: tuple[int, ...]
    radius_m: float
    epsilon: float
    odds_factor: float | None
    before_m: tuple[float, ...]
    after_m: tuple[float, ...]
    independent_epsilon: float | None = None


@dataclass(frozen=True)
class ReleaseDetails:
    """The arrays behind the figures. Positions and half-widths are (n, axes): metres east and north of the origin, or
    one column in its own `unit`.

    `time_us` (n,) increasing microseconds since 1970. `believed_m` and `halfwidth_m` are the posterior mean and its
    68 % half-width under `worst_priors`, one for each of the axes, each one of `prior_labels`; `epsilons` (secrets,
    priors) are certified values in nats, the larger axis's where a prior is that of both. `covariances` (axes, k, k)
    are the noise covariances in squared units at the fixes `covariance_rows` (k,), at most 200 of them, which the
    function of that name chooses. Of a long trace the arrays may hold some fixes only; `points` is then how many it
    has. Raises `InputError` for shapes that do not fit each other and for values that are not finite (ε may be
    infinite).
    """

    time_us: np.ndarray = field(repr=False)
    true_m: np.ndarray = field(repr=False)
    released_m: np.ndarray = field(repr=False)
    believed_m: np.ndarray = field(repr=False)
    halfwidth_m: np.ndarray = field(repr=False)
    secrets: tuple[SecretDetails, ...]
    prior_labels: tuple[str, ...]
    worst_priors: tuple[str, ...]
    epsilons: np.ndarray = field(repr=False)
    covariance_rows: np.ndarray = field(repr=False)
    covariances: np.ndarray = field(repr=False)
    axes: tuple[str, ...] = ("east", "north")
    unit: str = "m"
    points: int | None = None

    def __post_init__(self) -> None:
        n, k, d = len(self.time_us), len(self.covariance_rows), len(self.axes)
        shapes = {
            "time_us": (n,),
            "true_m": (n, d),
            "released_m": (n, d),
            "believed_m": (n, d),
            "halfwidth_m": (n, d),
            "epsilons": (len(self.secrets), len(self.prior_labels)),
            "covariance_rows": (k,),
            "covariances": (d, k, k),
        }
        for name, shape in shapes.items():
            values = np.asarray(getattr(self, name))
            if values.shape != shape:
                raise InputError(f"{name} has shape {values.shape} where the other arrays want {shape}")
            if np.any(np.isnan(values)) or (name != "epsilons" and not np.all(np.isfinite(values))):
                raise InputError(f"{name} holds a value that is not a finite number")
        if not (n and self.secrets and self.prior_labels):
            raise InputError("a report needs at least one fix, one secret and one prior")
        if len(self.worst_priors) != d or not set(self.worst_priors) <= set(self.prior_labels):
            raise InputError("each axis needs a worst prior, which is one of the priors")
        if np.any(np.diff(self.time_us) <= 0):
            raise InputError("the times of the report must increase")
        if not 0 < k <= MAX_COVARIANCE_ROWS:
            raise InputError(f"the noise is shown at 1 to {MAX_COVARIANCE_ROWS} fixes; {k} were given")
        fixes = [*self.covariance_rows, *(index for secret in self.secrets for index in secret.indices)]
        if not all(0 <= index < n for index in fixes):
            raise InputError(f"a fix of the report is none of 0 to {n - 1}")

    @property
    def drawn(self) -> str:
        """A sentence that says how many fixes are drawn; empty when all are."""
        if self.points is None or self.points == len(self.time_us):
            return ""
        return (
            f" Drawn are {len(self.time_us):,} of the {self.points:,} times: some spread evenly, and those near "
            "protected times."
        )

    @property
    def on_map(self) -> bool:
        """Whether the values are places: metres east and north."""
        return len(self.axes) == 2 and self.unit == "m"

    def place(self, secret: SecretDetails, path: np.ndarray) -> np.ndarray:
        """Where a path (n, axes) is at a secret: the mean of its fixes, or on the line between its neighbours."""
        if secret.indices:
            return path[list(secret.indices)].mean(axis=0)
        middle = (secret.first_us + secret.last_us) / 2
        return np.array([np.interp(middle, self.time_us, column) for column in path.T])


def covariance_rows(n: int, secret_indices: Sequence[int] = (), limit: int = MAX_COVARIANCE_ROWS) -> np.ndarray:
    """Choose at most `limit` of n fixes to show the noise at, in order: spread evenly, the secret ones included."""
    if n <= limit:
        return np.arange(n)
    wanted = np.unique(np.asarray(secret_indices, dtype=np.int64))
    wanted = wanted[np.linspace(0, len(wanted) - 1, min(len(wanted), limit // 2)).round().astype(int)]
    spread = np.linspace(0, n - 1, limit - len(wanted)).round().astype(np.int64)
    return np.union1d(wanted, spread)
