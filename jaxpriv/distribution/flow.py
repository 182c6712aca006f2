"""Maximum flow between two sides with whole-number capacities of any size: decisions about couplings without rounding.

The algorithm is Dinic's (1970). Probabilities in binary floating point are whole multiples of a power of two, so that
"is there a coupling on these pairs" has an exact answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np


def whole_masses(first: np.ndarray, second: np.ndarray) -> tuple[list[int], list[int]]:
    """Two vectors of non-negative floats as whole numbers in the same unit, each divided by its own exact sum.

    The sums of the results are equal.
    """
    parts = [[Fraction(float(value)) for value in vector] for vector in (first, second)]
    totals = [sum(vector, Fraction(0)) for vector in parts]
    scaled = [[value * other for value in vector] for vector, other in zip(parts, reversed(totals), strict=True)]
    unit = 1
    for vector in scaled:
        for value in vector:
            # Denominators are powers of two: the largest is the common one.
            unit = max(unit, value.denominator)
    left, right = ([int(value * unit) for value in vector] for vector in scaled)
    return left, right


def transportable(supply: Sequence[int], demand: Sequence[int], allowed: np.ndarray) -> bool:
    """Whether all of `supply` (n) can be shipped to `demand` (m) over the allowed (n, m) pairs."""
    return shipped(supply, demand, allowed)[0] == sum(supply)


def shipped(
    supply: Sequence[int], demand: Sequence[int], allowed: np.ndarray
) -> tuple[int, dict[tuple[int, int], int]]:
    """The largest amount that can be shipped over the allowed pairs, and a plan that ships it."""
    n, m = len(supply), len(demand)
    edges = [np.flatnonzero(row).tolist() for row in allowed]
    left, right = list(supply), list(demand)
    plan: list[dict[int, int]] = [{} for _ in range(n)]
    holders: list[dict[int, None]] = [{} for _ in range(m)]
    for i in range(n):
        # What fits straight away; the search below then only mends.
        for j in edges[i]:
            amount = min(left[i], right[j])
            if amount:
                plan[i][j] = plan[i].get(j, 0) + amount
                holders[j][i] = None
                left[i] -= amount
                right[j] -= amount
    while True:
        level = _levels(left, right, edges, plan, holders, n, m)
        if level is None:
            break
        if not _augment(left, right, edges, plan, holders, level, n):
            break
    done = {(i, j): amount for i, row in enumerate(plan) for j, amount in row.items() if amount}
    return sum(done.values()), done


def _levels(left, right, edges, plan, holders, n, m) -> list[int] | None:
    """Distances from the rows with something left, over free pairs forwards and used pairs backwards."""
    level = [-1] * (n + m)
    waiting = deque(i for i in range(n) if left[i])
    for i in waiting:
        level[i] = 0
    found = False
    while waiting:
        node = waiting.popleft()
        neighbours = [n + j for j in edges[node]] if node < n else list(holders[node - n])
        for other in neighbours:
            if level[other] < 0:
                level[other] = level[node] + 1
                waiting.append(other)
                found = found or (other >= n and right[other - n] > 0)
    return level if found else None


def _augment(left, right, edges, plan, holders, level, n) -> bool:
    """Push along shortest paths until none is left."""
    pushed = False
    tried = [0] * len(level)
    options = [[n + j for j in edges[i]] for i in range(n)] + [list(holder) for holder in holders]
    for start in range(n):
        while left[start] and level[start] == 0:
            path = [start]
            while path:
                node = path[-1]
                if node >= n and right[node - n] > 0:
                    break
                while tried[node] < len(options[node]):
                    other = options[node][tried[node]]
                    open_pair = node < n or plan[other].get(node - n, 0) > 0
                    if level[other] == level[node] + 1 and open_pair:
                        path.append(other)
                        break
                    tried[node] += 1
                else:
                    path.pop()
                    if path:
                        tried[path[-1]] += 1
            if not path:
                break
            amount = min(left[start], right[path[-1] - n])
            for a, b in pairwise(path):
                if a >= n:
                    amount = min(amount, plan[b][a - n])
            for a, b in pairwise(path):
                if a < n:
                    plan[a][b - n] = plan[a].get(b - n, 0) + amount
                    holders[b - n][a] = None
                else:
                    plan[b][a - n] -= amount
                    if not plan[b][a - n]:
                        del holders[a - n][b]
            left[start] -= amount
            right[path[-1] - n] -= amount
            pushed = True
    return pushed
