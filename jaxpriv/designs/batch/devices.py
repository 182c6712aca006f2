"""One compiled program on several devices, the problems of a batch shared out among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxpriv.errors import InputError
from jaxpriv.precision import double_precision


class Devices:
    """The devices of a run, and its programs: functions of arrays whose first axis is the problem.

    On accelerators, and on one device, a program is compiled for the whole mesh and every device works on its own part
    without talking to the others. Several CPU devices share one pool of threads, in which the batched LAPACK kernels of
    jaxlib 0.10.2 wait for one another for ever when more than one device runs them; there the parts take turns.
    """

    def __init__(self, devices: Sequence[Any] | None = None):
        listed = list(jax.local_devices() if devices is None else devices)
        if not listed:
            raise InputError("devices is empty; leave it out to use all local devices.")
        self.mesh = Mesh(np.array(listed), ("problem",))
        self.sharding = NamedSharding(self.mesh, PartitionSpec("problem"))
        self.count = len(listed)
        self._taking_turns = self.count > 1 and listed[0].platform == "cpu"

    def __call__(self, program: Callable[..., Any], *arrays: Any) -> tuple[Any, ...]:
        """Run a function that returns a tuple for each problem, on arrays of one first axis.

        That is a multiple of the number of devices. What is returned stays on the devices, except where they take
        turns.
        """
        with double_precision():
            placed = [jax.device_put(array, self.sharding) for array in arrays]
            if not self._taking_turns:
                return _meshed(program, self.mesh)(*placed)
            turns = []
            for part in zip(*(array.addressable_shards for array in placed), strict=True):
                turns.append(jax.block_until_ready(_single(program)(*(shard.data for shard in part))))
            return tuple(np.concatenate([np.asarray(one) for one in outputs]) for outputs in zip(*turns, strict=True))


def compilations() -> int:
    """How many programs have been compiled for batches in this process (kernels not counted)."""
    return sum(one._cache_size() for one in (*_MESHED.values(), *_SINGLE.values()))


def _meshed(program: Callable[..., Any], mesh: Mesh) -> Any:
    key = (program, mesh)
    if key not in _MESHED:
        part = PartitionSpec("problem")
        spread = partial(jax.shard_map, mesh=mesh, in_specs=part, out_specs=part, check_vma=False)
        _MESHED[key] = jax.jit(spread(jax.vmap(program)))
    return _MESHED[key]


def _single(program: Callable[..., Any]) -> Any:
    if program not in _SINGLE:
        _SINGLE[program] = jax.jit(jax.vmap(program))
    return _SINGLE[program]


_MESHED: dict[Any, Any] = {}
_SINGLE: dict[Any, Any] = {}
