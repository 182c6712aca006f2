"""The resolution of recorded positions: the lattice on which a file's latitudes and longitudes lie."""

from __future__ import annotations

import numpy as np

from jaxpriv.mechanisms.data_resolution import measured_resolution


METRES_PER_DEGREE = 111_320.0
# With fewer distinct values, trailing zeros and common factors happen by chance.
_ENOUGH = 10
_MAX_DECIMALS = 12
# Minutes of arc with two to five decimals, as receivers send them, in degrees.
_MINUTES = tuple(1 / (60 * 10.0**decimals) for decimals in range(2, 6))


def measured_step(latitude: np.ndarray, longitude: np.ndarray, decimals: int) -> float:
    """Spacing in metres of the coarsest lattice that holds all positions (m,) in degrees.

    `decimals` is the number of decimals they are printed with. Decimal and single-precision numbers are recognised, and
    minutes of arc with two to five decimals. A coordinate that never changes says nothing; 0 when neither changes.
    """
    at_latitude = METRES_PER_DEGREE * np.cos(np.radians(np.median(np.abs(latitude))))
    return max(
        _lattice_degrees(latitude, decimals) * METRES_PER_DEGREE,
        _lattice_degrees(longitude, decimals) * float(at_latitude),
    )


def _lattice_degrees(values: np.ndarray, decimals: int) -> float:
    values = np.unique(values)
    if len(values) < 2:
        return 0.0
    printed = 10.0 ** -min(decimals, _MAX_DECIMALS)
    if len(values) < _ENOUGH:
        return printed
    return max([measured_resolution(values), *(step for step in _MINUTES if _lie_on(values, step, printed))])


def _lie_on(values: np.ndarray, step: float, printed: float) -> bool:
    """Tell whether all values are multiples of `step`, rounded to `printed`; steps not much wider are never told."""
    off = np.abs(values / step - np.round(values / step)) * step
    return step > 4 * printed and bool(np.all(off <= 0.51 * printed + 1e-13))
