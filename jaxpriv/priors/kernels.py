"""Covariance functions in the parametrisation of the location-privacy literature, as tinygp kernels.

Lengths are in the unit of the times (seconds for traces), standard deviations in the unit of the values (metres).
Kernels add and multiply with + and *. Any other tinygp kernel serves as well.
"""

from __future__ import annotations

import math

import numpy as np
from tinygp import kernels as tk

from jaxpriv.errors import InputError


def _positive(value: float, name: str) -> float:
    # Arrays and traced values pass: fits and gradients run over them.
    if isinstance(value, (int, float, np.floating)) and not (value > 0 and math.isfinite(value)):
        raise InputError(f"{name} is {value}; expected a positive, finite number.")
    return value


def _scaled(kernel: tk.Kernel, sd: float) -> tk.Kernel:
    return tk.Product(tk.Constant(_positive(sd, "sd") ** 2), kernel)


def rbf(lengthscale: float, sd: float = 1.0) -> tk.Kernel:
    """sd² exp(−d²/(2 l²)): infinitely smooth, rarely an honest model of a recorded trace."""
    return _scaled(tk.ExpSquared(scale=_positive(lengthscale, "lengthscale")), sd)


def periodic(period: float, lengthscale: float, sd: float = 1.0) -> tk.Kernel:
    """sd² exp(−2 sin²(π d/p)/l²); the length scale has no unit."""
    _positive(period, "period")
    return _scaled(tk.ExpSineSquared(scale=period, gamma=2.0 / _positive(lengthscale, "lengthscale") ** 2), sd)


def matern12(lengthscale: float, sd: float = 1.0) -> tk.Kernel:
    """sd² exp(−d/l)."""
    return _scaled(tk.Exp(scale=_positive(lengthscale, "lengthscale")), sd)


def matern32(lengthscale: float, sd: float = 1.0) -> tk.Kernel:
    """sd² (1 + a) exp(−a) with a = √3 d/l: the default for recorded positions."""
    return _scaled(tk.Matern32(scale=_positive(lengthscale, "lengthscale")), sd)


def matern52(lengthscale: float, sd: float = 1.0) -> tk.Kernel:
    """sd² (1 + a + a²/3) exp(−a) with a = √5 d/l."""
    return _scaled(tk.Matern52(scale=_positive(lengthscale, "lengthscale")), sd)
