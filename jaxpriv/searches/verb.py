"""`search`: the best mechanism of a parametrised family for a user's own differentiable loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PyTree

from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.searches.driver import Certificate, minimise
from jaxpriv.searches.lagrangian import minimise_constrained
from jaxpriv.searches.methods import AbstractMethod, Accelerated, Subgradient, Transformed
from jaxpriv.searches.partition import partition
from jaxpriv.searches.problem import Problem
from jaxpriv.searches.projections import AbstractProjection
from jaxpriv.searches.quasi_newton import QuasiNewton
from jaxpriv.searches.result import Progress, Search, SearchResult
from jaxpriv.searches.smoothing import Cooling


Mechanism = TypeVar("Mechanism")
Constraint = AbstractProjection | Callable[[Any], Any] | Sequence[Callable[..., Any]] | None
OptimizerName = Literal["lbfgs", "adam", "momentum", "subgradient"]
Optimizer = OptimizerName | optax.GradientTransformation | AbstractMethod

# Built once: a new transformation would be a new program for the compiler.
_ADAM = optax.scale_by_adam()


def search(
    loss: Callable[..., Any],
    mechanism: Mechanism,
    constraint: Constraint = None,
    *,
    args: tuple[Any, ...] = (),
    free: Callable[[Mechanism], Any] | None = None,
    optimizer: Optimizer = "lbfgs",
    learning_rate: float | None = None,
    max_steps: int = 2000,
    tolerance: float = 1e-6,
    check_every: int = 50,
    smoothing: Cooling | Literal["auto"] | None = "auto",
    certificate: Certificate | None = None,
    progress: Callable[[Progress], Any] | None = None,
    throw: bool = True,
) -> Search[Mechanism]:
    """Minimise a differentiable loss over the arrays of a mechanism.

    Args:
        loss: `loss(mechanism, *args)` → one real number. `worst_of` combines several by their largest.
        mechanism: where to start: any pytree (an Equinox module, a factor of `jaxpriv.searches.factors`, an array).
        constraint: a projection (mechanism → nearest mechanism of the set), or a list of smooth functions
            `g(mechanism, *args)` (numbers or arrays) that must not be positive, with at most one projection among
            them. Scale g so that 1 is a large violation.
        args: further arguments of the loss and of the constraints. With the same functions, new values of the same
            shapes are not compiled again.
        free: which part of the mechanism moves, as in `equinox.tree_at` (`lambda m: (m.scale, m.shape)`); by default
            every array of real numbers in it, except the noise floors of factors and mechanisms.
        optimizer: "lbfgs" (on the set, with curvature), "momentum" (accelerated projected gradient), "adam",
            "subgradient", an optax transformation with its own step size, or an `AbstractMethod`.
        learning_rate: of "adam" (default 0.03) and "subgradient" (default 0.1), relative to the size of the start.
        max_steps: largest number of steps.
        tolerance: relative gap at which a certified search ends; relative projected gradient where there is no
            certificate; and the largest violation of a smooth constraint.
        check_every: steps between two calls of `certificate` and `progress`.
        smoothing: how the temperature of a `worst_of` falls; "auto" takes the default, None follows subgradients,
            on which "lbfgs" usually comes near the optimum and "momentum" gets stuck at the first kink.
        certificate: mechanism → (achieved value, lower bound of the least value), for convex problems.
        progress: called with a `Progress` at every check; a true answer ends the search.
        throw: raise where the smooth constraints could not be met; otherwise `result` says so.

    Returns:
        A `Search`: the best mechanism met and how the search ended. A loss that is not convex may have other, better
        stationary points; a feasible mechanism is feasible to within `residual` only; nothing is a privacy claim.

    Raises:
        InputError: a loss that is not one real number, or not finite at the start; nothing to move; wrong arguments.
        InfeasibleError: a set that no value of the moving part reaches, or constraints that were not met (`throw`).
    """
    _check(max_steps, tolerance, check_every)
    projection, constraints = _split(constraint)
    params, frozen = partition(mechanism, free)
    method = _method(optimizer, learning_rate, max_steps)
    if isinstance(projection, AbstractProjection):
        projection.check(eqx.combine(params, frozen))
    problem = Problem(loss, args, frozen, projection)
    _check_loss(problem, params)
    if smoothing == "auto":
        smoothing = Cooling() if hasattr(loss, "smoothed") else None
    if smoothing is not None and not hasattr(loss, "smoothed"):
        raise InputError("smoothing needs a loss with a method `smoothed`; combine losses with worst_of.")
    options: dict[str, Any] = {
        "max_steps": max_steps,
        "tolerance": tolerance,
        "check_every": check_every,
        "cooling": smoothing,
        "certificate": certificate,
        "progress": progress,
    }
    if not constraints:
        return minimise(problem, method, params, **options)
    found = minimise_constrained(problem, constraints, method, params, **options)
    if throw and found.result is SearchResult.constraints_violated:
        raise InfeasibleError(
            f"the best mechanism met violates a constraint by {found.residual:.3g}, more than the tolerance "
            f"{tolerance:g}. Raise max_steps, scale the constraints so that 1 is a large violation, or ask for less."
        )
    return found


def _check(max_steps: int, tolerance: float, check_every: int) -> None:
    if not (isinstance(max_steps, int) and max_steps >= 1):
        raise InputError(f"max_steps is {max_steps!r}; expected a whole number of at least 1.")
    if not (isinstance(check_every, int) and check_every >= 1):
        raise InputError(f"check_every is {check_every!r}; expected a whole number of at least 1.")
    if not (np.isfinite(tolerance) and tolerance > 0.0):
        raise InputError(f"tolerance is {tolerance}; expected a positive, finite number.")


def _split(constraint: Constraint) -> tuple[Callable[[Any], Any] | None, tuple[Callable[..., Any], ...]]:
    if constraint is None:
        return None, ()
    if callable(constraint):
        return constraint, ()
    listed = list(constraint)
    for position, one in enumerate(listed):
        if not callable(one):
            raise InputError(f"constraint {position} is a {type(one).__name__}; expected a function of the mechanism.")
    sets = [one for one in listed if isinstance(one, AbstractProjection)]
    if len(sets) > 1:
        raise InputError("more than one projection: combine those of different parts with Parts.")
    return (sets[0] if sets else None), tuple(one for one in listed if not isinstance(one, AbstractProjection))


def _check_loss(problem: Problem, params: PyTree) -> None:
    shape = eqx.filter_eval_shape(lambda one: problem.loss(problem.mechanism(one), *problem.args), params)
    if not (hasattr(shape, "shape") and shape.shape == () and jnp.issubdtype(shape.dtype, jnp.floating)):
        raise InputError(f"the loss returns {shape}; expected one real number (use worst_of for several).")


def _method(optimizer: Optimizer, learning_rate: float | None, max_steps: int) -> AbstractMethod:
    if learning_rate is not None and optimizer not in ("adam", "subgradient"):
        raise InputError("learning_rate belongs to optimizer='adam' and 'subgradient'; the others choose their own.")
    if isinstance(optimizer, AbstractMethod):
        return optimizer
    if optimizer == "lbfgs":
        return QuasiNewton()
    if optimizer == "momentum":
        return Accelerated()
    if optimizer == "adam":
        rate = 0.03 if learning_rate is None else learning_rate
        return Transformed(_ADAM, jnp.asarray(rate, float), jnp.asarray(max_steps, float))
    if optimizer == "subgradient":
        return Subgradient(jnp.asarray(0.1 if learning_rate is None else learning_rate, float))
    if isinstance(optimizer, optax.GradientTransformation):
        return Transformed(optimizer)
    raise InputError(
        f"optimizer is {optimizer!r}; expected 'lbfgs', 'momentum', 'adam', 'subgradient', an optax transformation or "
        "a method."
    )
