"""What can be asked for a trace of more points than fit into a dense matrix; said before any long work."""

from __future__ import annotations

from jaxpriv.designs.request import LARGEST_SIZE
from jaxpriv.errors import InputError
from jaxpriv.jobs.requests import PriorRequest
from jaxpriv.jobs.secret_sources import ChosenSecrets
from jaxpriv.jobs.target import Target


_CUT = "or cut the file at times that were fixed in advance"


def check_long(points: int, secrets: ChosenSecrets, target: Target, prior: PriorRequest) -> None:
    """Raise `InputError` for what no structured design does, when there are more than 5,000 points."""
    if points <= LARGEST_SIZE:
        return
    where = f"the file has {points} points, and above {LARGEST_SIZE}"
    kernels = (prior.given.kernel,) if prior.given is not None else prior.kernels
    other = [one for one in kernels if not one.startswith("matern")]
    if other:
        raise InputError(f"{where} only Matern kernels can be used, not {other[0]}; choose matern32, {_CUT}")
    if secrets.every:
        raise InputError(f"{where} not every fix can be protected by itself; name times with --secret, {_CUT}")
    if target.uncertainty_m is not None:
        raise InputError(f"{where} --uncertainty is not supported; pass --epsilon or --budget, {_CUT}")
    if any(not one.positions for one in secrets.secrets):
        raise InputError(
            f"{where} a place between fixes cannot be protected: there is no fix within one median step of a secret "
            f"time; name the time of a fix, {_CUT}"
        )


def check_short(points: int, what: str) -> None:
    """Raise `InputError` for more than 5,000 points, which `what` does not do."""
    if points > LARGEST_SIZE:
        raise InputError(f"{what} takes at most {LARGEST_SIZE} points, and the file has {points}; leave it out, {_CUT}")
