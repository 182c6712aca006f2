"""One secret or several, as a list."""

from __future__ import annotations

from collections.abc import Sequence

from jaxpriv.errors import InputError
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.external import ExternalSecret
from jaxpriv.secrets.linear import LinearSecret
from jaxpriv.secrets.secret import EveryPoint, Secret
from jaxpriv.secrets.unsampled import UnsampledSecret


AnySecret = Secret | LinearSecret | UnsampledSecret | ExternalSecret


def as_secrets(secret: AnySecret | EveryPoint | Sequence[AnySecret | EveryPoint], prior: Prior) -> list[AnySecret]:
    """One secret or several as a list; `EveryPoint` is expanded for `prior`."""
    if isinstance(secret, EveryPoint):
        return list(secret.secrets(prior))
    if isinstance(secret, AnySecret):
        return [secret]
    secrets = [one for part in secret for one in (part.secrets(prior) if isinstance(part, EveryPoint) else [part])]
    if not secrets:
        raise InputError("no secret was given.")
    for one in secrets:
        if not isinstance(one, AnySecret):
            raise InputError(
                f"a {type(one).__name__} is not a secret; use Secret, LinearSecret, UnsampledSecret or ExternalSecret."
            )
    return secrets
