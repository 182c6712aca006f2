"""certify: the numbers a user may rely on about a Gaussian mechanism, computed on the host from float64 arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from jaxpriv.certificates.arithmetic import (
    SMALLEST,
    float64_array,
    fraction_down,
    require_arithmetic,
    square_bounds,
    symmetric_array,
)
from jaxpriv.certificates.cost import cost_upper
from jaxpriv.certificates.definiteness import is_semidefinite
from jaxpriv.certificates.loss import loss_bounds
from jaxpriv.certificates.scalars import divergence, gaussian_delta, gaussian_epsilon, odds_bound, renyi_epsilon
from jaxpriv.certificates.structured_secrets import ONE_SIDED, structured_losses
from jaxpriv.errors import InputError


Bound = Literal["ball", "product"]
_WIDE = 1e-6  # relative width of a loss above which the certificate says so
_ASYMMETRY = 2.0**-44


@dataclass(frozen=True, eq=False)
class Certificate:
    """What has been verified about a mechanism; arrays have shape (secrets, priors), levels are in nats.

    `epsilon` is the largest of `epsilons`: no true value is above its entry, none is below its entry of
    `epsilon_lower`. `losses` and `losses_lower` bound the largest precision gain, in 1 / squared unit of the radius;
    `cost` bounds the trace of the noise's covariance from above, in squared units of the trace. Each secret is
    protected by itself: pairs of places at most its radius apart at each of its times. `bound` says how the worst pair
    is bounded: "ball", by the ball around the product of those discs (Theorem 3.4 of Meehan & Chaudhuri, AISTATS 2021);
    "product", by the cheapest D = diag(d_time) above the precision gain, never more and the same for one time (derived
    here; proof in docs/design.md); `losses` is then the mean of d, and `losses_lower` the gain along an allowed pair
    divided by the number of times. The prior covariances, the factor and the floor are taken as exact float64 arrays.
    """

    epsilon: float
    epsilons: np.ndarray
    epsilon_lower: np.ndarray
    losses: np.ndarray
    losses_lower: np.ndarray
    cost: float
    order: float
    bound: Bound = "ball"
    warnings: tuple[str, ...] = ()
    _spreads: tuple[tuple[int, float], ...] = field(default=(), repr=False, compare=False)
    _covariances: tuple[np.ndarray, ...] = field(default=(), repr=False, compare=False)

    @functools.cached_property
    def prior_psd(self) -> str:
        """ "verified" when every prior covariance is proven positive semidefinite as it stands, else "not verified".

        A kernel matrix rounded to float64 often is not; the bounds do not depend on it. Computed when first asked.
        """
        proven = all(is_semidefinite(covariance) for covariance in self._covariances)
        return "verified" if proven else "not verified"

    def odds(self, delta: float) -> float:
        """The log-odds (nats) that move by no more with probability 1 - delta.

        A Markov bound (Theorem 3.1 of Meehan & Chaudhuri, AISTATS 2021), rounded up; `gaussian_epsilon` is the exact
        curve. Raises InputError unless 0 < delta < 1.
        """
        return odds_bound(self.epsilon, delta, self.order)

    def gaussian_epsilon(self, delta: float) -> float:
        """The smallest e (nats) with `P(A) <= exp(e) P'(A) + delta` for every event and pair of places, rounded up.

        Exact for Gaussian noise (the curve of Balle & Wang, ICML 2018). Raises InputError unless 0 < delta < 1.
        """
        return gaussian_epsilon(self._squared_ratio, delta)

    def gaussian_delta(self, epsilon: float) -> float:
        """The smallest delta of the same statement at a given level (nats), rounded up."""
        return gaussian_delta(self._squared_ratio, epsilon)

    @property
    def _squared_ratio(self) -> Any:
        if not np.all(np.isfinite(self.losses)):
            return math.inf
        return max(
            divergence(float(loss), times, radius)
            for (times, radius), row in zip(self._spreads, self.losses, strict=True)
            for loss in row
        )

    def __str__(self) -> str:
        secrets, priors = self.epsilons.shape
        lines = [
            f"Certificate: epsilon <= {self.epsilon:.6g} nats at order {self.order:g} ({self.bound} bound), "
            f"cost <= {self.cost:.6g}",
            f"  {secrets} secret{'s' * (secrets > 1)}, each by itself, under {priors} prior{'s' * (priors > 1)}; "
            f"{'arrays' if self._covariances else 'kernels, times and arrays'} taken as exact float64",
            f"  prior positive semidefinite: {self.prior_psd}",
        ]
        if secrets * priors <= 24:
            for i, (above, below) in enumerate(zip(self.epsilons, self.epsilon_lower, strict=True)):
                values = ", ".join(f"[{low:.6g}, {high:.6g}]" for low, high in zip(below, above, strict=True))
                lines.append(f"  secret {i}: epsilon in {values}")
        return "\n".join([*lines, *(f"  warning: {text}" for text in self.warnings)])


def certify(
    prior: Any,
    secrets: Any,
    mechanism: Any,
    order: float = 2.0,
    *,
    prior_rtol: float = 0.0,
    bound: Bound = "ball",
) -> Certificate:
    """Verify the privacy level and the cost of a Gaussian mechanism, for each secret under each prior.

    `prior` is one prior or a list (`.covariance` (n, n)), `secrets` one secret or a list (`.joint(prior)`, `.radius`,
    `.n_times`), `mechanism` has `.factor` (n, q) and `.floor_sd`; `order` is the Renyi order, above 1. With
    `prior_rtol` the bounds hold for every prior whose joint covariances differ by at most this fraction, entry by entry
    (2**-50 covers the rounding of most kernels). Runs on the host in float64: float32 arrays are converted exactly.
    Raises InputError for bad arguments and for arrays without values (inside jit), CertificateError where the machine's
    arithmetic cannot be trusted. A bound that cannot be verified is `inf`, never an exception.
    """
    require_arithmetic()
    priors = list(prior) if isinstance(prior, (list, tuple)) else [prior]
    listed = list(secrets) if isinstance(secrets, (list, tuple)) else [secrets]
    if not priors or not listed:
        raise InputError("certify needs at least one prior and one secret.")
    # A collection such as every point of a trace stands for its members.
    listed = [one for part in listed for one in (part.secrets(priors[0]) if hasattr(part, "secrets") else [part])]
    order, rtol = _number(order, "order"), _number(prior_rtol, "prior_rtol")
    if bound not in ("ball", "product"):
        raise InputError(f"bound is {bound!r}; expected 'ball' or 'product'.")
    if not (1 < order < math.inf):
        raise InputError(f"order must be above 1 and finite; it is {order}.")
    if not 0 <= rtol < 1:
        raise InputError(f"prior_rtol must lie in [0, 1); it is {rtol}.")
    spreads = tuple(_spread(secret, i) for i, secret in enumerate(listed))
    factor = float64_array(mechanism.factor, "the mechanism's factor")
    floor_sd = _number(mechanism.floor_sd, "the mechanism's floor_sd")
    if floor_sd < 0:
        raise InputError(f"the mechanism's floor_sd must not be negative; it is {floor_sd}.")
    floor_below, floor_above = square_bounds(floor_sd)
    cost = cost_upper(factor, floor_above)
    upper, lower = np.zeros((2, len(listed), len(priors)))
    two_sided = np.array([not getattr(one, "one_sided", False) for one in priors])
    covariances = []
    for column, one in enumerate(priors):
        if hasattr(type(one), "bounded_product"):
            labels = times_of if bound == "product" else None
            bounds = structured_losses(one, listed, factor, floor_below, rtol, labels)
            upper[:, column] = [each.upper for each in bounds]
            lower[:, column] = [each.lower for each in bounds]
            continue
        covariance, joints = host_arrays(one, listed)
        if factor.shape[0] != covariance.shape[0]:
            raise InputError(
                f"the mechanism is for traces of {factor.shape[0]} coordinates, the prior for {covariance.shape[0]}."
            )
        rounded = [secret.rounding(covariance) if hasattr(secret, "rounding") else (0.0, 0.0) for secret in listed]
        radii = {}
        if rtol or any(np.any(cross_error) for cross_error, _ in rounded):
            reach = rtol * (1 + 2.0**-50)
            pairs = list(zip(joints, rounded, strict=True))
            radii = {
                "covariance_radius": np.abs(covariance) * reach,
                "cross_radius": [np.abs(cross) * reach + error * (1 + 2.0**-40) for (cross, _), (error, _) in pairs],
                "variance_radius": [np.abs(own) * reach + error * (1 + 2.0**-40) for (_, own), (_, error) in pairs],
            }
        times = None
        if bound == "product":
            times = [times_of(secret, cross.shape[1]) for secret, (cross, _) in zip(listed, joints, strict=True)]
        bounds = loss_bounds(covariance, joints, factor, floor_below, times=times, **radii)
        upper[:, column] = [one.upper for one in bounds]
        lower[:, column] = [one.lower for one in bounds]
        covariances.append(covariance)
    if floor_above > floor_below:
        # The true floor is a little higher than the one used, by less than 2^-51 of it, and so is the noise: the loss
        # can be smaller by the same fraction.
        lower = lower * (1 - 2.0**-50) if floor_below > SMALLEST else np.zeros_like(lower)
    epsilons = np.array(
        [[renyi_epsilon(x, *spread, order) for x in row] for spread, row in zip(spreads, upper.tolist(), strict=True)]
    )
    below = np.array(
        [[_lower_epsilon(x, *spread, order) for x in row] for spread, row in zip(spreads, lower.tolist(), strict=True)]
    )
    return Certificate(
        float(np.max(epsilons)),
        epsilons,
        below,
        upper,
        lower,
        cost,
        order,
        bound,
        # A compound secret's lower bound is of a pair, its upper one of all: they differ by up to pi / 2.
        warnings=_warnings(upper[:, two_sided], lower[:, two_sided], 1.6 if bound == "product" else 1.0 + _WIDE)
        + _warnings(upper[:, ~two_sided], upper[:, ~two_sided], 1.0)
        + (() if np.all(two_sided) else (ONE_SIDED,)),
        _spreads=spreads,
        _covariances=tuple(covariances),
    )


def host_arrays(prior: Any, secrets: Sequence[Any]) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """The prior covariance and each secret's (cross, variance), as float64 arrays on the host.

    A matrix whose asymmetry is of the size of rounding (a product computed by another library) is replaced by its
    symmetric part; a larger asymmetry raises InputError.
    """
    covariance = _symmetrised(prior.covariance, "the prior covariance")
    on_host = _HostPrior(prior, covariance)
    joints = []
    for i, secret in enumerate(secrets):
        cross, own = secret.joint(on_host)
        joints.append(
            (
                float64_array(cross, f"secret {i}: its covariance with the trace"),
                _symmetrised(own, f"secret {i}: its covariance"),
            )
        )
    return covariance, joints


def times_of(secret: Any, width: int) -> np.ndarray:
    """The time, 0..s-1, of each of the `width` coordinates of a secret: from its positions, else in equal runs."""
    if hasattr(secret, "indices") and hasattr(secret, "dims"):
        _, labels = np.unique(np.asarray(secret.indices) // int(secret.dims), return_inverse=True)
        return np.ravel(labels)
    count = int(secret.n_times)
    if count < 1 or width % count:
        raise InputError(f"a secret of {width} coordinates does not divide into {count} times.")
    return np.repeat(np.arange(count), width // count)


class _HostPrior:
    """A prior whose covariance has been evaluated once, so that secrets compute with NumPy from that very array."""

    def __init__(self, prior: Any, covariance: np.ndarray):
        self.covariance, self.size = covariance, covariance.shape[0]
        if hasattr(prior, "joint_at"):
            self.joint_at = prior.joint_at


def _symmetrised(values: Any, name: str) -> np.ndarray:
    array = float64_array(values, name)
    if array.ndim == 2 and array.shape[0] == array.shape[1] and array.size:
        asymmetry = np.max(np.abs(array - array.T))
        if 0 < asymmetry <= _ASYMMETRY * np.max(np.abs(array)):
            array = (array + array.T) / 2
    return symmetric_array(array, name)


def _spread(secret: Any, position: int) -> tuple[int, float]:
    radius = _number(secret.radius, f"secret {position}: radius")
    if not 0 < radius < math.inf:
        raise InputError(f"secret {position}: radius must be positive and finite; it is {radius}.")
    times = int(secret.n_times)
    if times < 1:
        raise InputError(f"secret {position}: it must have at least one time.")
    return times, radius


def _number(value: Any, name: str) -> float:
    array = float64_array(value, name)
    if array.size != 1:
        raise InputError(f"{name} must be one number; it has shape {array.shape}.")
    return float(array.reshape(()))


def _lower_epsilon(loss: float, times: int, radius: float, order: float) -> float:
    return fraction_down(Fraction(order) / 2 * divergence(loss, times, radius))


def _warnings(upper: np.ndarray, lower: np.ndarray, ratio: float) -> tuple[str, ...]:
    texts = []
    if np.any(np.isinf(upper)):
        count = int(np.sum(np.isinf(upper)))
        texts.append(f"no finite loss could be verified for {count} secret(s); raise the floor or the nugget")
    wide = np.isfinite(upper) & (upper > ratio * np.maximum(lower, 0))
    wide &= upper > 0
    if np.any(wide):
        known = np.where(lower > 0, upper / np.where(lower > 0, lower, 1.0), np.inf)
        factor = float(np.max(known[wide]))
        texts.append(
            f"the loss of {int(np.sum(wide))} secret(s) is only known within a factor of {factor:.7g}; "
            "raise the floor or the nugget"
        )
    return tuple(texts)
