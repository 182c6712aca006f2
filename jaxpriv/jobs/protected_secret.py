"""From fixes of a trace to the secret whose loss is certified."""

from __future__ import annotations

from collections.abc import Sequence

from jaxpriv.secrets.secret import Secret
from jaxpriv.secrets.unsampled import UnsampledSecret


def protected_secret(positions: Sequence[int], seconds: float, plane_radius_m: float) -> Secret | UnsampledSecret:
    """Secret of one coordinate at fixes (their positions in the trace), or at a time between fixes if there are none.

    `seconds` since the first fix; the radius is in metres of the local plane.
    """
    if positions:
        return Secret.at_times(positions, plane_radius_m)
    return UnsampledSecret(seconds, plane_radius_m)
