"""Which arrays of a mechanism move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from jaxpriv.errors import InputError
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.searches.factors import AbstractFactor


def partition(mechanism: Any, free: Callable[[Any], Any] | None = None) -> tuple[PyTree, PyTree]:
    """The arrays that move, and the rest; `equinox.combine` puts them together again.

    `free` chooses parts as `equinox.tree_at` does. By default every array of real numbers moves, but of a factor or a
    `GaussianMechanism` only the factor: a noise floor is a promise, not a parameter. NumPy arrays become JAX arrays.

    Raises:
        InputError: nothing that could move.
    """
    arrays = jax.tree.map(_as_array, mechanism)
    if free is None:
        chosen = jax.tree.map(_by_default, arrays, is_leaf=_is_noise)
    else:
        nothing = jax.tree.map(lambda _: False, arrays)
        chosen = eqx.tree_at(free, nothing, replace_fn=lambda part: jax.tree.map(lambda _: True, part))
    chosen = jax.tree.map(lambda yes, leaf: yes and eqx.is_inexact_array(leaf), chosen, arrays)
    params, frozen = eqx.partition(arrays, chosen)
    if not jax.tree.leaves(params):
        raise InputError("the mechanism holds no array of real numbers that could move.")
    return params, frozen


def _as_array(leaf: Any) -> Any:
    if isinstance(leaf, (np.ndarray, np.generic)) and np.issubdtype(leaf.dtype, np.floating):
        return jnp.asarray(leaf)
    return leaf


def _is_noise(node: Any) -> bool:
    return isinstance(node, (AbstractFactor, GaussianMechanism))


def _by_default(node: Any) -> Any:
    if not _is_noise(node):
        return True
    still = jax.tree.map(lambda _: False, node)
    if isinstance(node, AbstractFactor):
        return eqx.tree_at(lambda one: one.entries, still, True)
    return eqx.tree_at(lambda one: one.factor, still, True)
