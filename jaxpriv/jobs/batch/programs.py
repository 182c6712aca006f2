"""How many lengths of traces a process of a batch keeps compiled programs for."""

from __future__ import annotations

import jax

from jaxpriv.fitting.checks import MIN_POINTS
from jaxpriv.jobs.requests import PriorRequest


RESIDENT = 640 * 2**20  # of the interpreter, its libraries and the programs of one prior
# Measured: the interpreter with its libraries, and what the programs of one length take.
_LIBRARIES = 350 * 2**20
_ONE_PRIOR, _SET, _FIT = 100 * 2**20, 350 * 2**20, 350 * 2**20

_held: set[int] = set()


def make_room(bucket: int, prior: PriorRequest, memory: float) -> None:
    """Forget compiled programs where those of another length would not fit into the `memory` (bytes) of the process.

    The programs of the length `bucket` are then the only ones, and others are loaded or compiled again when they are
    needed. No result depends on it. One thread at a time may call it.
    """
    fitted = prior.given is None and prior.file is None
    if fitted and bucket < MIN_POINTS:
        return  # all of them are refused
    each = _ONE_PRIOR if prior.given is not None else _SET + (_FIT if fitted else 0)
    if bucket not in _held and len(_held) >= max(1, int((memory - _LIBRARIES) // each)):
        jax.clear_caches()
        _held.clear()
    _held.add(bucket)
