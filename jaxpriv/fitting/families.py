"""The kernel families that can be fitted: their parameters, units, kernels, bounds and starting points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from tinygp.kernels import Kernel, RationalQuadratic, quasisep
from tinygp.kernels.distance import L2Distance

from jaxpriv.errors import InputError
from jaxpriv.fitting.kernels import DampedIOU, IntegratedOU
from jaxpriv.priors import kernels


NOISE = "noise_sd"
# Powers of (value unit, time unit) in each parameter.
_UNITS: dict[str, tuple[int, int]] = {
    "sd": (1, 0),
    "matern_sd": (1, 0),
    NOISE: (1, 0),
    "sd_velocity": (1, -1),
    "lengthscale": (0, 1),
    "matern_lengthscale": (0, 1),
    "decay": (0, 1),
    "tau": (0, 1),
    "slow": (0, 1),
    "fast": (0, 1),
    "alpha": (0, 0),
    "periodic_lengthscale": (0, 0),
}


@dataclass(frozen=True)
class Family:
    """One kernel family.

    `parameters` names the kernel's parameters in order (the nugget's standard deviation noise_sd comes after them);
    `build` makes the tinygp kernel from them and, for periodic families, from the fixed `period`; `structured` makes
    the same kernel in tinygp's quasiseparable form, where there is one. `scales` are the parameters that a robust set
    multiplies when it makes a prior smoother or rougher.
    """

    name: str
    parameters: tuple[str, ...]
    scales: tuple[str, ...]
    build: Callable[..., Kernel]
    structured: Callable[..., Kernel] | None = None
    periodic: bool = False
    stationary: bool = True

    @property
    def all_parameters(self) -> tuple[str, ...]:
        """The kernel's parameters and the nugget's standard deviation."""
        return (*self.parameters, NOISE)


def unit_power(parameter: str) -> tuple[int, int]:
    """Powers of the value unit and of the time unit in a parameter."""
    return _UNITS[parameter]


def unit_text(parameter: str, units: tuple[str, str]) -> str:
    """The unit of a parameter in words, e.g. "m", "s" or "m/s"; empty for a pure number."""
    value, time = _UNITS[parameter]
    if (value, time) == (1, -1):
        return f"{units[0]}/{units[1]}"
    return units[0] * (value > 0) + units[1] * (time > 0)


def _rational_quadratic(sd, lengthscale, alpha) -> Kernel:
    return sd**2 * RationalQuadratic(scale=lengthscale, alpha=alpha, distance=L2Distance())


def _periodic_rbf(sd, periodic_lengthscale, decay, period) -> Kernel:
    return kernels.periodic(period, periodic_lengthscale, sd) * kernels.rbf(decay)


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            "matern12",
            ("sd", "lengthscale"),
            ("lengthscale",),
            lambda sd, l: kernels.matern12(l, sd),
            lambda sd, l: quasisep.Exp(scale=l, sigma=sd),
        ),
        Family(
            "matern32",
            ("sd", "lengthscale"),
            ("lengthscale",),
            lambda sd, l: kernels.matern32(l, sd),
            lambda sd, l: quasisep.Matern32(scale=l, sigma=sd),
        ),
        Family(
            "matern52",
            ("sd", "lengthscale"),
            ("lengthscale",),
            lambda sd, l: kernels.matern52(l, sd),
            lambda sd, l: quasisep.Matern52(scale=l, sigma=sd),
        ),
        Family(
            "rbf",
            ("sd", "lengthscale"),
            ("lengthscale",),
            lambda sd, l: kernels.rbf(l, sd),
        ),
        Family(
            "rq",
            ("sd", "lengthscale", "alpha"),
            ("lengthscale",),
            _rational_quadratic,
        ),
        Family("iou", ("sd_velocity", "tau"), ("tau",), IntegratedOU, IntegratedOU, stationary=False),
        Family("damped_iou", ("sd", "slow", "fast"), ("slow", "fast"), DampedIOU, DampedIOU),
        Family(
            "periodic",
            ("sd", "periodic_lengthscale"),
            ("periodic_lengthscale",),
            lambda sd, l, period: kernels.periodic(period, l, sd),
            periodic=True,
        ),
        Family(
            "periodic_rbf",
            ("sd", "periodic_lengthscale", "decay"),
            ("periodic_lengthscale", "decay"),
            _periodic_rbf,
            periodic=True,
        ),
        Family(
            "periodic_matern12",
            ("sd", "periodic_lengthscale", "decay"),
            ("periodic_lengthscale", "decay"),
            lambda sd, l, decay, period: kernels.periodic(period, l, sd) * kernels.matern12(decay),
            periodic=True,
        ),
        Family(
            "periodic_rbf_matern32",
            ("sd", "periodic_lengthscale", "decay", "matern_sd", "matern_lengthscale"),
            ("periodic_lengthscale", "decay", "matern_lengthscale"),
            lambda sd, l, decay, msd, ml, period: _periodic_rbf(sd, l, decay, period) + kernels.matern32(ml, msd),
            periodic=True,
        ),
    )
}


def family_named(name: str) -> Family:
    """The family called `name`. Raises InputError listing the names there are."""
    if name not in FAMILIES:
        raise InputError(f"kernel {name!r} is not one of {', '.join(FAMILIES)}.")
    return FAMILIES[name]


def periodic_default(duration: float, period: float) -> str:
    """The kernel for indoor temperatures: a decaying daily cycle, with a Matérn-3/2 part once five periods are seen.

    Six parameters over-fit two days; a periodic kernel that never decays claims far more than it knows.
    """
    return "periodic_rbf_matern32" if duration >= 5.0 * period else "periodic_rbf"


def white_noise_level(name: str, parameters: Mapping[str, float]) -> float | None:
    """q: the square root of the spectral density of the white noise that drives the process, where it is a Markov one.

    For a Matérn kernel whose length scale exceeds the trace only q is identified by the data, not sd and lengthscale
    separately. Matérn-1/2: sd √(2/l); 3/2: 2 sd (√3/l)^{3/2} (acceleration, m s^{−3/2}); 5/2: (4/√3) sd (√5/l)^{5/2};
    integrated OU: sd_velocity √(2/τ); damped: sd √(2ab(a+b)) with rates a, b. None for the other families.
    """
    if name == "matern12":
        return parameters["sd"] * float(np.sqrt(2.0 / parameters["lengthscale"]))
    if name == "matern32":
        return 2.0 * parameters["sd"] * (np.sqrt(3.0) / parameters["lengthscale"]) ** 1.5
    if name == "matern52":
        return 4.0 / np.sqrt(3.0) * parameters["sd"] * (np.sqrt(5.0) / parameters["lengthscale"]) ** 2.5
    if name == "iou":
        return parameters["sd_velocity"] * float(np.sqrt(2.0 / parameters["tau"]))
    if name == "damped_iou":
        a, b = 1.0 / parameters["slow"], 1.0 / parameters["fast"]
        return parameters["sd"] * float(np.sqrt(2.0 * a * b * (a + b)))
    return None


def default_bounds(family: Family, step: float, noise_floor: float) -> dict[str, tuple[float, float]]:
    """Bounds in standard units: the duration is 1, the sample standard deviation 1, `step` the median time step.

    Length scales go from a third of a step to 20 durations: bounding them within the trace would put a bound where
    half of all location traces have their optimum.
    """
    time = (step / 3.0, 20.0)
    table = {
        "sd": (0.01, 30.0),
        "matern_sd": (0.001, 30.0),
        "sd_velocity": (0.01, 1000.0),
        "alpha": (0.05, 100.0),
        "periodic_lengthscale": (0.05, 50.0),
        NOISE: (noise_floor, 1.0),
    }
    return {name: table.get(name, time) for name in family.all_parameters}


def default_starts(family: Family, noise_floor: float, period: float | None) -> list[dict[str, float]]:
    """Starting points in standard units. Matérn and IOU have one basin in practice; RBF and RQ need more points."""
    noise = max(0.02, 2.0 * noise_floor)
    lengths = (1 / 20, 1 / 6, 1 / 2)
    if family.periodic:
        assert period is not None
        starts = []
        for decay in (2.0 * period, 8.0 * period):
            for matern in (1 / 20, 1 / 6):
                starts.append(
                    {
                        "sd": 1.0,
                        "periodic_lengthscale": 1.4,
                        "decay": decay,
                        "matern_sd": 0.6,
                        "matern_lengthscale": matern,
                        NOISE: noise,
                    }
                )
        starts = [{name: start[name] for name in family.all_parameters} for start in starts]
        return [start for i, start in enumerate(starts) if start not in starts[:i]]
    if family.name == "iou":
        return [{"sd_velocity": 1.0 / np.sqrt(2.0 * tau), "tau": tau, NOISE: noise} for tau in lengths]
    if family.name == "damped_iou":
        pairs = ((2.0, 1 / 20), (2.0, 1 / 6), (1 / 2, 1 / 20))
        return [{"sd": 1.0, "slow": slow, "fast": fast, NOISE: noise} for slow, fast in pairs]
    rest = {"alpha": 1.0} if family.name == "rq" else {}
    noises = (noise, max(0.2, noise)) if family.name in ("rbf", "rq") else (noise,)
    return [{"sd": 1.0, "lengthscale": length, **rest, NOISE: value} for value in noises for length in lengths]
