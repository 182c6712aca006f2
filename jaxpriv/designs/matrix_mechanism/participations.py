"""Which steps one person may contribute to, and the changes of the data that this allows."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from jaxpriv.errors import InputError


MOST_SETS = 20_000
MOST_CHANGES = 4096


@dataclass(frozen=True)
class Participations:
    """One person contributes, each time by at most 1, to at most `count` steps that are `separation` or more apart.

    Args:
        count: k ≥ 1.
        separation: b ≥ 1; 1 allows neighbouring steps.
        spacing: "at least" b apart, or "exact": every b-th step from some first one, as when epochs run in a fixed
            order.

    Raises:
        InputError: a count or separation below 1, or another spacing.
    """

    count: int
    separation: int = 1
    spacing: Literal["at least", "exact"] = "at least"

    def __post_init__(self) -> None:
        for name in ("count", "separation"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise InputError(f"{name} is {value!r}; expected a whole number of at least 1.")
        if self.spacing not in ("at least", "exact"):
            raise InputError(f"spacing is {self.spacing!r}; expected 'at least' or 'exact'.")

    def most(self, size: int) -> int:
        """The largest number of participations among `size` steps."""
        return min(self.count, -(-size // self.separation))

    def number_of_sets(self, size: int) -> int:
        """How many sets of steps there are, those inside others included where the spacing is not exact."""
        if self.spacing == "exact":
            return size
        spare = self.separation - 1
        return sum(math.comb(size - (j - 1) * spare, j) for j in range(1, self.most(size) + 1))

    def sets(self, size: int) -> list[tuple[int, ...]]:
        """The sets of steps that no larger one contains.

        Raises InputError when there are more than `MOST_SETS` to look at.
        """
        if self.number_of_sets(size) > MOST_SETS:
            raise InputError(
                f"{self.number_of_sets(size):.3g} sets of steps are possible: too many to look at each. Use "
                f"structure='banded' with a bandwidth of at most {self.separation}, for which the sensitivity has a "
                "closed form, or spacing='exact'."
            )
        gap, most = self.separation, self.count
        if self.spacing == "exact":
            windows = [tuple(range(i, min(size, i + gap * most), gap)) for i in range(size)]
            return [one for i, one in enumerate(windows) if i < gap or len(one) == most]
        found: list[tuple[int, ...]] = []
        growing: list[tuple[int, ...]] = [(i,) for i in range(size)]
        while growing:
            found.extend(one for one in growing if self._is_largest(one, size))
            growing = [(*one, i) for one in growing if len(one) < most for i in range(one[-1] + gap, size)]
        return found

    def _is_largest(self, steps: tuple[int, ...], size: int) -> bool:
        if len(steps) == self.count:
            return True
        gap = self.separation
        inside = any(right - left >= 2 * gap for left, right in itertools.pairwise(steps))
        return not (inside or steps[0] >= gap or steps[-1] + gap < size)

    def changes(self, size: int) -> Float[np.ndarray, "n K"]:
        """Every extreme change of the data up to sign, as columns of −1, 0 and 1.

        The loss of noise is convex in the change, so no other change within the participations has a larger one.
        Raises InputError when there are more than `MOST_CHANGES`.
        """
        sets = self.sets(size)
        total = sum(2 ** (len(one) - 1) for one in sets)
        if total > MOST_CHANGES:
            raise InputError(
                f"{len(sets)} sets of up to {self.most(size)} steps allow {total:.3g} extreme changes; at most "
                f"{MOST_CHANGES} can be designed for one by one. Use structure='banded' with a bandwidth of at most "
                f"{self.separation}, for which the sensitivity has a closed form."
            )
        columns = np.zeros((size, total))
        at = 0
        for steps in sets:
            for signs in itertools.product((1.0, -1.0), repeat=len(steps) - 1):
                columns[list(steps), at] = (1.0, *signs)
                at += 1
        return columns
