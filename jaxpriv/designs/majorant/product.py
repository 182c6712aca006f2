"""Floors of secrets of several times under the product of balls, whose diagonal D is part of the optimisation."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from jaxpriv.designs.majorant.stack import FloorStack
from jaxpriv.errors import InputError


_LEAST_SHARE = 1e-9  # of the mean of d, so that a time the dual does not see keeps a finite floor


class ProductStack(FloorStack):
    """Floors F_j(D_j) = H_j (A_j + D_j^-1) H_j^T - Sigma_p with D_j = diag(d of each coordinate's time), mean d <= t_j.

    The largest sum tr(Y_j F_j(D_j)) over Y, least over D, is a saddle point; for given columns Z the cheapest d are in
    proportion to the norms of the rows of H^T Z at each time, and with them the dual value stays convex plus a multiple
    of |Z|^2, so that the ascent's step never lowers it. `slope` holds I/t_j, from which D_j^-1 is made; `labels`
    (J, k, l) has a one where a coordinate belongs to a time, and zero rows for padding and for floors of one D.
    Derived here; proof in docs/design.md.
    """

    labels: Float[Array, "J k l"]

    @classmethod
    def of(cls, stack: FloorStack, times: list[np.ndarray | None]) -> ProductStack:
        """`times`: for each floor the time 0..s-1 of each of its coordinates, or None for a floor of one number d."""
        if len(times) != stack.count:
            raise InputError(f"times for {len(times)} of {stack.count} floors.")
        count = max((int(label.max()) + 1 for label in times if label is not None), default=1)
        labels = np.zeros((stack.count, stack.rank, count))
        for j, label in enumerate(times):
            if label is not None:
                labels[j, np.arange(label.size), label] = 1.0
        fields = {field.name: getattr(stack, field.name) for field in dataclasses.fields(stack)}
        return cls(**fields, labels=jnp.asarray(labels, stack.directions.dtype))

    def apply(self, columns: Float[Array, "J n k"]) -> tuple[Float[Array, "J n k"], Float[Array, "J n k"]]:
        """F_j(0) Z_j and H_j D_j^-1 H_j^T Z_j at the cheapest D for these columns."""
        projected = jnp.einsum("jna,jnb->jab", self.directions, columns)
        fixed = self._expand(self.base @ projected) - self._prior_part(columns)
        relative = self._relative(projected, 0.0)
        return fixed, self._expand(relative[:, :, None] * (self.slope @ projected))

    def frozen(self, columns: Float[Array, "J n k"]) -> FloorStack:
        """The floors at the cheapest D for these columns."""
        projected = jnp.einsum("jna,jnb->jab", self.directions, columns)
        slope = self.slope * self._relative(projected, _LEAST_SHARE)[:, :, None]
        names = [field.name for field in dataclasses.fields(FloorStack)]
        return FloorStack(**{**{name: getattr(self, name) for name in names}, "slope": slope})

    def _relative(self, projected: Float[Array, "J k k"], share: ArrayLike) -> Float[Array, "J k"]:
        """D^-1 t for each coordinate: the mean over the times of the rows' norms, over that of its own time."""
        squares = jnp.einsum("jkl,jkb->jl", self.labels, projected**2)
        norms = jnp.sqrt(jnp.where(squares > 0.0, squares, 1.0)) * (squares > 0.0)
        present = jnp.max(self.labels, axis=1)
        mean = jnp.sum(norms, axis=1) / jnp.maximum(jnp.sum(present, axis=1), 1.0)
        norms = norms + share * mean[:, None]
        inverse = jnp.where(norms > 0.0, mean[:, None] / jnp.where(norms > 0.0, norms, 1.0), 0.0)
        shared = jnp.einsum("jkl,jl->jk", self.labels, inverse)
        return jnp.where(jnp.sum(self.labels, axis=2) > 0.0, shared, 1.0)
