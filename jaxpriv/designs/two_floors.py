"""Least-trace noise above two floors, in closed form."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.spectral import positive_part


def least_above_two(first: Float[Array, "n n"], second: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The least-trace symmetric G with G ⪰ F₁ and G ⪰ F₂: F₁ + (F₂ − F₁)₊ = F₂ + (F₁ − F₂)₊.

    Derived here; proof in docs/design.md. Noise is positive semidefinite, which is a floor of its own: with F₁ = 0 or
    F₁ = η I this is the design above one requirement; two requirements of which neither is positive semidefinite are
    three floors, and have no closed form. Differentiable, also at repeated eigenvalues.
    """
    first, second = jnp.asarray(first), jnp.asarray(second)
    if first.shape != second.shape or first.ndim != 2:
        raise InputError(f"the floors have shapes {first.shape} and {second.shape}; expected the same square shape.")
    return first + positive_part(second - first)
