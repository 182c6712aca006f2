"""Which kernels are sums of products of Matérn kernels, and their parts."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from tinygp import kernels as tk
from tinygp.kernels import quasisep
from tinygp.kernels.distance import L1Distance
from tinygp.kernels.stationary import Stationary

from jaxpriv.certificates.structured_markov import Factor, Term
from jaxpriv.errors import InputError


_PLAIN: dict[type, int] = {tk.Exp: 0, tk.Matern32: 1, tk.Matern52: 2}
_STRUCTURED: dict[type, int] = {quasisep.Exp: 0, quasisep.Matern32: 1, quasisep.Matern52: 2}
_LIMITS = (1e-100, 1e100)
_STATES = 40


def is_markov(kernel: Any) -> bool:
    """Whether `QuasiseparablePrior` takes the kernel."""
    try:
        markov_terms(kernel)
    except InputError:
        return False
    return True


def markov_terms(kernel: Any) -> tuple[Term, ...]:
    """The kernel as a sum of products of Matérn kernels, its parameters exact. Raises InputError for any other."""
    terms = tuple(term for term in _terms(kernel) if term.variance > 0)
    if not terms:
        raise InputError("the kernel is zero: a prior without variance has nothing to protect.")
    states = sum(term.states for term in terms)
    if states > _STATES:
        raise InputError(
            f"the kernel needs {states} numbers of state at each time, and at most {_STATES} are carried: sums add "
            "them, products multiply them. Multiply out fewer Matérn kernels, or use ProcessPrior on a shorter trace."
        )
    return terms


def _terms(kernel: Any) -> list[Term]:
    kind = type(kernel)
    if kind in (tk.Sum, quasisep.Sum):
        return _terms(kernel.kernel1) + _terms(kernel.kernel2)
    if kind in (tk.Product, quasisep.Product):
        right = _terms(kernel.kernel2)
        return [
            Term(one.variance * other.variance, one.factors + other.factors)
            for one in _terms(kernel.kernel1)
            for other in right
        ]
    if kind is quasisep.Scale:
        scale = _number(kernel.scale, "scale")
        return [Term(scale * term.variance, term.factors) for term in _terms(kernel.kernel)]
    if kind is tk.Constant:
        return [Term(_number(kernel.value, "variance"), ())]
    if kind in _PLAIN and isinstance(kernel, Stationary):
        if type(kernel.distance) is not L1Distance:
            raise InputError("a kernel on times uses the plain distance |t - s|; another distance was set.")
        return [Term(Fraction(1), (Factor(_PLAIN[kind], _length(kernel.scale)),))]
    if kind in _STRUCTURED:
        return [Term(_number(kernel.sigma, "sigma") ** 2, (Factor(_STRUCTURED[kind], _length(kernel.scale)),))]
    raise InputError(
        f"{kind.__name__} has no exact finite state: QuasiseparablePrior takes sums and products of matern12, matern32 "
        "and matern52. For a smooth or periodic kernel use a prior on a regular grid of times or one with inducing "
        "points, or matern52; ProcessPrior takes any kernel up to 5,000 fixes."
    )


def _length(value: Any) -> float:
    scale = float(_number(value, "lengthscale"))
    if not _LIMITS[0] < scale < _LIMITS[1]:
        raise InputError(f"lengthscale is {scale:g}; expected a positive number between {_LIMITS[0]:g} and 1e100.")
    return scale


def _number(value: Any, name: str) -> Fraction:
    array = np.asarray(value, dtype=np.float64)
    if array.size != 1:
        raise InputError(f"{name} of a kernel must be one number; it has shape {array.shape}.")
    number = float(array.reshape(()))
    if not (math.isfinite(number) and 0.0 <= number < _LIMITS[1]):
        raise InputError(f"{name} of a kernel is {number:g}; expected a finite number of at least 0.")
    return Fraction(number)
