"""`design_batch` and `design_batches`: the designs of many traces, in bounded memory, one result for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from jaxpriv.designs.batch.assembly import designed_one_by_one, designed_together, refused
from jaxpriv.designs.batch.buckets import bucket_of, chunk_of, padded_count, prior_bucket
from jaxpriv.designs.batch.devices import Devices
from jaxpriv.designs.batch.problems import Problem, Refusal, as_problem
from jaxpriv.designs.batch.request import BatchRequest
from jaxpriv.designs.batch.result import BatchDesign, joined
from jaxpriv.designs.request import GAP_TOLERANCE, check_request
from jaxpriv.errors import InputError
from jaxpriv.priors.gaussian import GaussianPrior


MEMORY_LIMIT = 2.0**30
_REFUSED_TOGETHER = 256


def design_batch(
    priors: Sequence[Any] | np.ndarray,
    secrets: Any,
    *,
    epsilon: float | Sequence[float] | None = None,
    budget: float | Sequence[float] | None = None,
    order: float = 2.0,
    floor_sd: float | None = None,
    resolution: float = 0.0,
    tolerance: float = GAP_TOLERANCE,
    memory_limit: float = MEMORY_LIMIT,
    devices: Sequence[Any] | None = None,
) -> BatchDesign:
    """The least-noise design of every trace of a batch, certified, in the order of the input.

    What `design` gives for each trace, many at a time: traces are padded to a few lengths with points that have no
    correlation and get no noise (exact by block-diagonality), compiled for once each, and solved in chunks that fit
    into `memory_limit`. Traces that cannot be designed are listed with the reason, and the others go on.

    Args:
        priors: one entry for each trace: a prior, a list of priors (the promise then holds for each of them), or None
            or an exception where there is none (`fit_batch` gives those). An array (B, n, n) is B covariances, an array
            (B, p, n, n) B sets of p.
        secrets: one for each trace, or one for all. A `Secret` of one coordinate is solved and certified with the
            others; any other secret, and several for one trace, are solved one by one by `design`.
        epsilon: the level to meet (nats), one or one for each trace; or
        budget: the noise power to spend, total tr G in squared units of the trace, one or one for each trace.
        order, floor_sd, resolution, tolerance: as for `design`.
        memory_limit: bytes that the arrays of the problems being solved may take, about.
        devices: JAX devices that share each chunk; all local devices of the default backend if left out.

    Raises:
        InputError: an argument that is wrong for the whole batch (lengths that differ, no target, a limit too small).
    """
    listed = _listed_priors(priors)
    count = len(listed)
    if not isinstance(secrets, (list, tuple)):
        secrets = [secrets] * count
    if len(secrets) != count:
        raise InputError(f"there are {count} priors and {len(secrets)} secrets; expected one each, or one for all.")
    name, goals, alike = _goals(epsilon, budget, count)
    parts = list(
        design_batches(
            zip(listed, secrets, goals, strict=True),
            epsilon=alike if name == "epsilon" else None,
            budget=alike if name == "budget" else None,
            order=order,
            floor_sd=floor_sd,
            resolution=resolution,
            tolerance=tolerance,
            memory_limit=memory_limit,
            devices=devices,
        )
    )
    return joined(parts)


def design_batches(
    problems: Iterable[Sequence[Any]],
    *,
    epsilon: float | None = None,
    budget: float | None = None,
    order: float = 2.0,
    floor_sd: float | None = None,
    resolution: float = 0.0,
    tolerance: float = GAP_TOLERANCE,
    memory_limit: float = MEMORY_LIMIT,
    devices: Sequence[Any] | None = None,
) -> Iterator[BatchDesign]:
    """`design_batch` for a stream: takes problems as they come and yields parts as they are ready.

    Args:
        problems: pairs (prior or priors, secret), or triples with a target of their own (ε or budget). A generator is
            read as far as the chunks in the making need, so memory does not grow with its length.
        epsilon, budget: the target of the pairs; which of the two is given says what the targets mean.
        order, floor_sd, resolution, tolerance, memory_limit, devices: as for `design_batch`.

    Yields:
        A `BatchDesign` for each chunk of traces of one length, in the order in which they are complete; `positions`
        says which they are. Every trace of the stream is in exactly one of them, refused ones included.

    Raises:
        InputError: an argument is wrong.
    """
    machine = Devices(devices)
    checked = check_request(
        [GaussianPrior(np.eye(2))],
        epsilon=epsilon,
        budget=budget,
        uncertainty=None,
        order=order,
        structure="joint",
        weights=None,
        floor_sd=floor_sd,
        resolution=resolution,
        tolerance=tolerance,
        effort="normal",
        requirements=(),
    )
    if not memory_limit > 0.0:
        raise InputError(f"memory_limit is {memory_limit}; expected a positive number of bytes.")
    goal = epsilon if budget is None else budget
    request = BatchRequest(
        "epsilon" if budget is None else "budget",
        checked.order,
        checked.floor_sd,
        checked.resolution,
        checked.tolerance,
    )
    return _stream(problems, goal, request, machine, float(memory_limit))


def _stream(
    problems: Iterable[Sequence[Any]], goal: Any, request: BatchRequest, machine: Devices, memory_limit: float
) -> Iterator[BatchDesign]:
    waiting: dict[tuple[int, int], list[Problem]] = {}
    full: dict[tuple[int, int], int] = {}
    compiled: set[tuple[int, int]] = set()
    refusals: list[Refusal] = []
    for position, parts in enumerate(problems):
        priors, secret, own = (*parts, goal) if len(parts) == 2 else parts
        problem = as_problem(position, priors, secret, own)
        if isinstance(problem, Refusal):
            refusals.append(problem)
            if len(refusals) == _REFUSED_TOGETHER:
                yield refused(refusals, request)
                refusals = []
            continue
        if not problem.basic:
            yield designed_one_by_one([problem], request)
            continue
        key = (bucket_of(problem.size), prior_bucket(len(problem.priors)))
        chunk = full.setdefault(key, 0) or chunk_of(*key, memory_limit, machine.count)
        full[key] = chunk
        waiting.setdefault(key, []).append(problem)
        if len(waiting[key]) == chunk:
            compiled.add(key)
            yield designed_together(waiting.pop(key), key[0], chunk, request, machine)
    for key, rest in sorted(waiting.items()):
        # What was compiled for the full chunks serves for the last one too.
        rows = full[key] if key in compiled else padded_count(len(rest), full[key], machine.count)
        yield designed_together(rest, key[0], rows, request, machine)
    if refusals:
        yield refused(refusals, request)


def _listed_priors(priors: Any) -> list[Any]:
    if hasattr(priors, "ndim"):
        array = np.asarray(priors, dtype=np.float64)
        if array.ndim not in (3, 4):
            raise InputError(f"priors has shape {array.shape}; expected (B, n, n) or (B, p, n, n).")
        return list(array)
    if not isinstance(priors, Sequence) or isinstance(priors, str):
        raise InputError(f"priors is a {type(priors).__name__}; expected one prior, or list of priors, for each trace.")
    if not len(priors):
        raise InputError("the batch is empty.")
    return list(priors)


def _goals(epsilon: Any, budget: Any, count: int) -> tuple[str, list[Any], float]:
    """Which kind of target, one for each trace, and one to check the options with."""
    if (epsilon is None) == (budget is None):
        raise InputError("give exactly one of epsilon (nats) and budget (squared units of the trace).")
    name, value = ("epsilon", epsilon) if budget is None else ("budget", budget)
    if np.ndim(value) == 0:
        return name, list(itertools.repeat(value, count)), value
    values = list(value)
    if len(values) != count:
        raise InputError(f"{name} has {len(values)} values for {count} traces; expected one, or one for each.")
    return name, values, 1.0
