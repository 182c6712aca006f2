"""A prior named by its kernel and a few numbers with units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.report.record import PriorRecord


if TYPE_CHECKING:
    from jaxpriv.priors.process import ProcessPrior

KERNELS = ("rbf", "matern12", "matern32", "matern52", "periodic")


@dataclass(frozen=True)
class PriorChoice:
    """The prior of each coordinate: kernel, length scale and period in seconds, deviations in metres.

    For the periodic kernel the length scale is that of short time differences, as for the others: the kernel's own,
    which has no unit, is 2π `lengthscale_s` / `period_s`. Raises `InputError` for an unknown kernel, a number that
    is not positive (the nugget may be 0), or a period where none belongs.
    """

    kernel: str
    lengthscale_s: float
    sd_m: float
    nugget_m: float
    period_s: float | None = None
    source: str = "given by the user, not fitted to this trace"

    def __post_init__(self) -> None:
        if self.kernel not in KERNELS:
            raise InputError(f"there is no kernel {self.kernel!r}; choose one of {', '.join(KERNELS)}")
        for name, value in (("length scale", self.lengthscale_s), ("standard deviation", self.sd_m)):
            if not (value > 0 and math.isfinite(value)):
                raise InputError(f"the {name} of the prior is {value}; it must be a positive, finite number")
        if not (self.nugget_m >= 0 and math.isfinite(self.nugget_m)):
            raise InputError(f"the nugget of the prior is {self.nugget_m}; it must be 0 or a positive, finite number")
        if (self.kernel == "periodic") != (self.period_s is not None):
            raise InputError("the periodic kernel needs a period (--period), and the other kernels take none")
        if self.period_s is not None and not (self.period_s > 0 and math.isfinite(self.period_s)):
            raise InputError(f"the period of the prior is {self.period_s}; it must be a positive, finite number")

    def process_prior(self, seconds: np.ndarray) -> ProcessPrior:
        """Build the prior of one coordinate at times in seconds, (n,)."""
        from jaxpriv.priors import kernels
        from jaxpriv.priors.process import ProcessPrior

        if self.period_s is not None:
            scale = 2 * math.pi * self.lengthscale_s / self.period_s
            kernel = kernels.periodic(self.period_s, scale, self.sd_m)
        else:
            kernel = getattr(kernels, self.kernel)(self.lengthscale_s, self.sd_m)
        return ProcessPrior(kernel, seconds, noise_sd=self.nugget_m)

    def record(self) -> PriorRecord:
        """Return the prior as the report says it."""
        return PriorRecord(self.source, self.kernel, self.lengthscale_s, self.period_s, self.sd_m, self.nugget_m)
