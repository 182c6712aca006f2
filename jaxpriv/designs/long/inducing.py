"""What no noise can do better under the true kernel, where designs go through a smaller covariance."""

from __future__ import annotations

import numpy as np

from jaxpriv.designs.long.cluster_bound import DualBlock, cost_lower, floor_value, steepness
from jaxpriv.designs.long.clusters import Cluster
from jaxpriv.priors.inducing import InducingPrior


_WINDOW = 2048  # fixes around the secret on which the true covariance is formed


def true_cost_lower(
    prior: InducingPrior, chosen: np.ndarray, directions: np.ndarray, target: float, floor_variance: float
) -> float:
    """No noise of at least that floor whose loss under the true kernel is at most `target` has a smaller trace.

    `directions` (n, k), a design's, are cut to a window around the secret at the positions `chosen`: any columns give a
    bound, and these lose little, because they fade as the kernel does.
    """
    middle = int(np.median(chosen))
    start = max(0, min(middle - _WINDOW // 2, prior.size - _WINDOW))
    stop = min(prior.size, start + _WINDOW)
    if not (np.min(chosen) >= start and np.max(chosen) < stop):
        return floor_variance * prior.size * (1.0 - 2.0**-50)
    covariance = prior.window(np.arange(start, stop))
    here = chosen - start
    window = [Cluster((0,), start, stop)]
    blocks = [DualBlock(0, 0, 0, np.ascontiguousarray(directions[start:stop]))]
    own = covariance[np.ix_(here, here)]
    value = floor_value(covariance, covariance[:, here], own, target, blocks[0].columns)
    return cost_lower([value], blocks, steepness(blocks, window), floor_variance, prior.size)
