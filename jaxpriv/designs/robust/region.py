"""The box of kernel parameters that a robust design must withstand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float
from scipy.stats import qmc

from jaxpriv.errors import InputError
from jaxpriv.priors.protocol import Prior


Family = Callable[..., Prior]
Bounds = Mapping[str, tuple[float, float]] | Float[ArrayLike, "p 2"] | Sequence[tuple[float, float]]

_FACTORIAL = 64  # points of a full grid above which a low-discrepancy sequence takes its place


class Region(eqx.Module):
    """A box low ≤ θ ≤ high of p parameters, seen through coordinates u in [0, 1]^p.

    `low`, `high` (p,) in the parameters' own units; `names` are those under which the family takes them, or None where
    it takes one vector; `log` says which of them run on a logarithmic scale.
    """

    low: Float[np.ndarray, " p"]
    high: Float[np.ndarray, " p"]
    names: tuple[str, ...] | None = eqx.field(static=True)
    log: tuple[bool, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, bounds: Bounds, log_scale: bool | Sequence[bool] | Mapping[str, bool] = True) -> Region:
        """Raises InputError for bounds that are no box, or a logarithmic scale for bounds that are not positive."""
        names = tuple(str(name) for name in bounds) if isinstance(bounds, Mapping) else None
        try:
            pairs = np.asarray(list(bounds.values()) if isinstance(bounds, Mapping) else bounds, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError("region must give a lower and an upper bound for each parameter.") from error
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.shape[0] == 0:
            raise InputError(f"region has shape {pairs.shape}; expected a lower and an upper bound for each parameter.")
        labels = names or tuple(f"parameter {i}" for i in range(pairs.shape[0]))
        logs = _log_scales(log_scale, labels)
        for label, (low, high), log in zip(labels, pairs, logs, strict=True):
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise InputError(f"region: {label} runs from {low:g} to {high:g}; expected finite bounds, low < high.")
            if log and low <= 0.0:
                raise InputError(f"region: {label} starts at {low:g}; set log_scale=False for it, or start above 0.")
        return cls(pairs[:, 0].copy(), pairs[:, 1].copy(), names, logs)

    @property
    def size(self) -> int:
        """p, the number of parameters."""
        return len(self.log)

    def theta(self, unit: Float[Array | np.ndarray, " p"]) -> Float[Array | np.ndarray, " p"]:
        """θ at the coordinates u; exactly the bounds at 0 and 1 for NumPy arrays."""
        if not isinstance(unit, np.ndarray):
            return _between(jnp, self.low, self.high, np.array(self.log), unit)
        value = _between(np, self.low, self.high, np.array(self.log), unit)
        return np.where(unit == 0.0, self.low, np.where(unit == 1.0, self.high, value))

    def named(self, unit: Float[np.ndarray, " p"]) -> dict[str, float]:
        """θ as a mapping; parameters without a name are called by their number."""
        names = self.names or tuple(str(i) for i in range(self.size))
        return dict(zip(names, (float(x) for x in self.theta(np.asarray(unit, dtype=np.float64))), strict=True))

    def prior(self, family: Family, unit: Float[Array | np.ndarray, " p"]) -> Prior:
        """The family's prior at the coordinates u. Raises InputError if it is none."""
        theta = self.theta(unit)
        if isinstance(theta, np.ndarray):
            parts: Any = [float(x) for x in theta]
        else:
            parts = [theta[i] for i in range(self.size)]
        made = family(theta) if self.names is None else family(**dict(zip(self.names, parts, strict=True)))
        if not hasattr(made, "covariance") or not hasattr(made, "size"):
            raise InputError(f"the family returned a {type(made).__name__}; expected a GaussianPrior or ProcessPrior.")
        return made

    def grid(self, count: int) -> Float[np.ndarray, "m p"]:
        """`count` points an axis, corners included, in unit coordinates; for many axes corners and a Sobol sequence."""
        if count**self.size <= _FACTORIAL or self.size <= 2:
            axes = np.meshgrid(*[np.linspace(0.0, 1.0, count)] * self.size, indexing="ij")
            return np.stack([axis.ravel() for axis in axes], axis=-1)
        corners = np.array([[0.0] * self.size, [0.5] * self.size, [1.0] * self.size])
        return np.concatenate([corners, qmc.Sobol(self.size, scramble=False).random_base2(5)])

    def scan(self) -> Float[np.ndarray, "m p"]:
        """The finer points at which a design is checked: 129 for one parameter, 17² for two, 512 for more."""
        if self.size <= 2:
            return self.grid((129, 17)[self.size - 1])
        return np.concatenate([self.grid(3), qmc.Sobol(self.size, scramble=False).random_base2(9)])


def _between(xp: Any, low: Any, high: Any, log: np.ndarray, unit: Any) -> Any:
    first, last = xp.log(xp.where(log, low, 1.0)), xp.log(xp.where(log, high, 1.0))
    return xp.where(log, xp.exp((1.0 - unit) * first + unit * last), (1.0 - unit) * low + unit * high)


def _log_scales(log_scale: Any, labels: tuple[str, ...]) -> tuple[bool, ...]:
    if isinstance(log_scale, bool):
        return (log_scale,) * len(labels)
    if isinstance(log_scale, Mapping):
        unknown = sorted(set(log_scale) - set(labels))
        if unknown:
            raise InputError(f"log_scale names {unknown[0]!r}, which is no parameter of the region.")
        return tuple(bool(log_scale.get(label, True)) for label in labels)
    scales = tuple(bool(one) for one in log_scale)
    if len(scales) != len(labels):
        raise InputError(f"log_scale has {len(scales)} entries for {len(labels)} parameters.")
    return scales
