"""The set of priors that a design must withstand: kernels, length scales and nuggets around a fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.fitting.checks import checked_times
from jaxpriv.fitting.families import NOISE, family_named
from jaxpriv.fitting.fit import Fit, fit
from jaxpriv.priors.process import ProcessPrior


FAMILIES_DEFAULT = ("matern32", "matern52")
_SCALES = {"default": (0.5, 1.0, 2.0), "wide": (0.5, 1.0, 2.0, 4.0), "exact": (1.0,)}


@dataclass(frozen=True)
class PriorSet(Sequence[ProcessPrior]):
    """Priors of one coordinate, a sequence; a design holds for all of them, and its loss is the largest.

    `labels` say what each member is. `lattice` says of each whether its nugget is at least (2·resolution)², which the
    statement about rounding a release to a grid needs; it may be claimed for those members only. `resolution` is in
    the value unit.
    """

    priors: tuple[ProcessPrior, ...]
    labels: tuple[str, ...]
    lattice: tuple[bool, ...]
    resolution: float

    def __len__(self) -> int:
        return len(self.priors)

    def __getitem__(self, index):
        return self.priors[index]

    def __iter__(self) -> Iterator[ProcessPrior]:
        return iter(self.priors)


def prior_set(
    times: np.ndarray,
    values: np.ndarray | None = None,
    *,
    fits: Fit | Sequence[Fit] | None = None,
    which: str = "default",
    kernels: Sequence[str] = FAMILIES_DEFAULT,
    resolution: float = 0.0,
    **options,
) -> PriorSet | list[PriorSet]:
    """The set of priors at `times` (n,) that a design for this trace must withstand.

    "default" is {Matérn-3/2, Matérn-5/2}, each at its own fit, times length scale {0.5, 1, 2}; "wide" adds 4 and
    "exact" keeps the family with the largest likelihood at its fit alone. The standard deviation is held while the
    length scale changes: moving along the ridge that the data cannot resolve would add no robustness. Each member comes
    twice, with the lower confidence limit of its nugget (noise that may not be there must not hide a secret) and with
    max(that, 2·resolution); the second copy is left out where it is the same.

    Give `values` (n,) or (n, d) to fit `kernels` here (`options` go to `fit`; for d coordinates a list of d sets is
    returned), or `fits` of one coordinate made elsewhere. Raises InputError on an unknown name, bad arrays, or both or
    neither of values and fits.
    """
    times = checked_times(times)
    if which not in _SCALES:
        raise InputError(f"which={which!r} is not one of {', '.join(_SCALES)}.")
    if not (np.isfinite(resolution) and resolution >= 0.0):
        raise InputError(f"resolution must be a number >= 0; got {resolution}.")
    if (values is None) == (fits is None):
        raise InputError("give either values, to fit the priors here, or fits of one coordinate, not both.")
    if fits is not None:
        members = [fits] if isinstance(fits, Fit) else list(fits)
        return _set_of(times, members, which, resolution)
    assert values is not None
    fitted = [fit(times, values, kernel=name, **options) for name in kernels]
    single = [one for one in fitted if isinstance(one, Fit)]
    if single:
        return _set_of(times, single, which, resolution)
    axes = zip(*[one for one in fitted if not isinstance(one, Fit)], strict=True)
    return [_set_of(times, axis, which, resolution) for axis in axes]


def _set_of(times: np.ndarray, fits: Sequence[Fit], which: str, resolution: float) -> PriorSet:
    if not fits:
        raise InputError("fits is empty; give at least one.")
    if which == "exact":
        if len({one.settings.mean for one in fits}) > 1:
            raise InputError("likelihoods of fits with different means cannot be compared; use one mean.")
        fits = [max(fits, key=lambda one: one.loglik)]
    priors, labels, lattice = [], [], []
    for one in fits:
        low = one.noise_sd if one.noise_sd_lower is None else one.noise_sd_lower
        rule = max(low, 2.0 * resolution)
        for scale in _SCALES[which]:
            scales = family_named(one.family).scales
            changed = one.with_parameters({name: one.parameters[name] * scale for name in scales})
            for noise in dict.fromkeys((low, rule)):
                priors.append(changed.prior(times, noise_sd=noise))
                labels.append(f"{one.family}, length scale x{scale:g}, {NOISE} {noise:.3g} {one.settings.units[0]}")
                lattice.append(noise >= 2.0 * resolution)
    return PriorSet(tuple(priors), tuple(labels), tuple(lattice), resolution)
