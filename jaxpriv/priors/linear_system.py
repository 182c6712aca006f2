"""The outputs of a linear system over a horizon, as a prior of a trace."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.priors.state_space import LinearSystem, as_array, checked_covariance, require_stable
from jaxpriv.secrets.external import ExternalSecret


class LinearSystemPrior(eqx.Module):
    """The trace z_0, …, z_{T−1} of z_k = C x_k (+ e_k), x_{k+1} = A x_k + w_k, unrolled time-major, m at a time.

    It is a `Prior` like any other: secrets are positions in the unrolled trace (`Secret.at_times(times, radius,
    dims=m)`), and every design and loss takes it. A state that is not measured is protected by `state_secret`.

    Args:
        A: of the system, see `LinearSystem`.
        Q: likewise.
        C: likewise.
        steps: T ≥ 1, the number of times.
        initial: covariance of x_0, (n, n). The default is the stationary one, which needs a stable A; with a given one
            A may be anything.
        noise_sd: standard deviation of what is independent from sample to sample, in units of the outputs. It is part
            of the recorded trace, and the recorded trace is what a `Secret` protects.

    Raises:
        InputError: as `LinearSystem`; no step, a negative noise, an unstable A without `initial`.
    """

    system: LinearSystem
    steps: int = eqx.field(static=True)
    initial: Float[Array | np.ndarray, "n n"] | None
    noise_sd: Float[Array | np.ndarray, ""]

    def __init__(self, A: Any, Q: Any, C: Any = None, *, steps: int, initial: Any = None, noise_sd: Any = 0.0):
        self.system = LinearSystem(A, Q, C)
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
            raise InputError(f"steps is {steps!r}; expected the number of times of the trace, at least 1.")
        if isinstance(noise_sd, (int, float)) and not (noise_sd >= 0.0 and np.isfinite(noise_sd)):
            raise InputError(f"noise_sd is {noise_sd}; expected a finite standard deviation of at least 0.")
        if initial is not None:
            initial = as_array(initial)
            if initial.shape != self.system.A.shape:
                raise InputError(f"initial has shape {initial.shape}; expected {self.system.A.shape}, as A.")
            if isinstance(initial, np.ndarray):
                initial = checked_covariance(initial, "initial")
        elif isinstance(self.system.A, np.ndarray):
            require_stable(self.system.A)
        self.steps = int(steps)
        self.initial = initial
        self.noise_sd = np.asarray(noise_sd, dtype=np.float64) if isinstance(noise_sd, (int, float)) else noise_sd

    @property
    def size(self) -> int:
        """m T, the number of coordinates of the trace."""
        return self.steps * self.system.outputs

    @property
    def dims(self) -> int:
        """m, the coordinates at a time."""
        return self.system.outputs

    @property
    def nugget(self) -> Float[Array | np.ndarray, ""]:
        """Variance of the independent part, noise_sd², in squared units of the outputs."""
        return self.noise_sd**2

    @property
    def stationary(self) -> Float[Array, "n n"]:
        """The stationary covariance of the state, (n, n); ∞ on the diagonal where A is not stable."""
        return self.system.stationary

    @property
    def covariance(self) -> Float[Array, "k k"]:
        """Covariance of the unrolled outputs, (m T, m T), symmetric to the last bit."""
        return _covariance(_arrays(self.system), _arrays(self.initial), _arrays(self.noise_sd), self.steps)

    def state_secret(self, time: int, radius: float, directions: Any = None) -> ExternalSecret:
        """The state at a time, or a linear function of it, as a secret seen through the outputs.

        Args:
            time: from 0 to steps − 1.
            radius: the largest separation of two hypotheses, in the unit of the state (or of the function).
            directions: (k, n) rows of the function of the state; all n states by default.

        Raises:
            InputError: a time outside the trace, directions of the wrong shape.
        """
        if not 0 <= time < self.steps:
            raise InputError(f"time {time} is outside the trace of {self.steps} times.")
        rows = np.eye(self.system.states) if directions is None else as_array(directions)
        if rows.ndim != 2 or rows.shape[1] != self.system.states or rows.shape[0] == 0:
            raise InputError(f"directions has shape {rows.shape}; expected (k, {self.system.states}).")
        cross, variance = _joint_state(_arrays(self.system), _arrays(self.initial), self.steps, int(time))
        rows = jnp.asarray(rows)
        inner = jnp.matmul(jnp.matmul(rows, variance, precision="highest"), rows.T, precision="highest")
        return ExternalSecret(jnp.matmul(cross, rows.T, precision="highest"), 0.5 * (inner + inner.T), radius)


def _arrays(tree: Any) -> Any:
    """NumPy arrays in the precision in force, so that a new value is not a new program."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, tree)


def _state_covariances(system, initial, steps) -> Float[Array, "T n n"]:
    """Covariance of x_0, …, x_{T−1}."""
    if initial is None:
        return jnp.broadcast_to(system.stationary, (steps, *system.A.shape))

    def step(covariance, _):
        moved = system.A @ covariance @ system.A.T + system.Q
        return 0.5 * (moved + moved.T), covariance

    return jax.lax.scan(step, initial, None, length=steps)[1]


def _output_maps(system, steps) -> Float[Array, "T m n"]:
    """C A^d for d = 0, …, T−1."""
    return jax.lax.scan(lambda row, _: (row @ system.A, row), system.C, None, length=steps)[1]


@eqx.filter_jit
def _covariance(system, initial, noise_sd, steps: int):
    with jax.default_matmul_precision("highest"):
        seen = jnp.einsum("jab,cb->jac", _state_covariances(system, initial, steps), system.C)
        # Cov(z_{j+d}, z_j) for every lag d and every j, of which those inside the horizon are used.
        table = jnp.einsum("dma,jac->djmc", _output_maps(system, steps), seen)
    time = jnp.arange(steps)
    blocks = table[jnp.maximum(time[:, None] - time[None, :], 0), time[None, :]]
    size = steps * system.C.shape[0]
    matrix = jnp.swapaxes(blocks, 1, 2).reshape(size, size)
    # One triangle decides, so that the matrix is symmetric to the last bit; the upper one was never meant.
    matrix = jnp.tril(matrix) + jnp.tril(matrix, -1).T
    return matrix + noise_sd**2 * jnp.eye(size, dtype=matrix.dtype)


@eqx.filter_jit
def _joint_state(system, initial, steps: int, time: int):
    with jax.default_matmul_precision("highest"):
        covariances = _state_covariances(system, initial, steps)
        identity = jnp.eye(system.A.shape[0], dtype=system.A.dtype)
        powers = jax.lax.scan(lambda power, _: (power @ system.A, power), identity, None, length=steps)[1]
        later = jnp.einsum("ma,dab,bc->dmc", system.C, powers[: steps - time], covariances[time])
        earlier = jnp.einsum("ma,iab,icb->imc", system.C, covariances[:time], powers[1 : time + 1][::-1])
    cross = jnp.concatenate([earlier, later]).reshape(steps * system.C.shape[0], -1)
    return cross, covariances[time]
