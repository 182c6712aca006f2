"""What is still guaranteed after two mechanisms, or after processing: each rule with its theorem, and refusals.

Compositions: "same input" feeds one x to A₀ and then to A₁, which may see A₀'s output; "independent inputs" feeds x₀
and x₁ drawn independently. Distribution privacy of the first kind holds only where it comes from a relation on points,
so budgets there are asked for at the level of points. Rules of Kawamoto and Murakami (arXiv:1907.05991, ESORICS 2019),
and derived here; proofs and counterexamples in docs/distribution.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from jaxpriv.errors import InputError


Inputs = Literal["same input", "independent inputs"]
DIVERGENCES = ("max", "kl", "total_variation", "hellinger", "chi_squared", "renyi")
# Those that obey the triangle inequality, or whose square root does.
_METRIC = ("max", "total_variation")


@dataclass(frozen=True)
class Guarantee:
    """(ε, D)-privacy, with δ for the max divergence.

    Attributes:
        epsilon: nats, or the value of the divergence; per unit of distance for the extended notions.
        divergence: one of `DIVERGENCES`.
        domain: "points", for a relation Φ on inputs, with which the lifted pairs of distributions are covered at the
            same ε (they are equivalent); "distributions", for an arbitrary set Ψ of pairs.
        extended: None; or the distance it is relative to: "point distance" for points, "W1" or "W_infinity".
        delta: for divergence "max".
        order: of divergence "renyi".
        because: the rules used so far.
    """

    epsilon: float
    divergence: str
    domain: Literal["points", "distributions"] = "points"
    extended: Literal["point distance", "W1", "W_infinity"] | None = None
    delta: float = 0.0
    order: float | None = None
    because: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.divergence not in DIVERGENCES:
            raise InputError(f"divergence is {self.divergence!r}; expected one of {', '.join(DIVERGENCES)}.")
        if not self.epsilon >= 0.0:
            raise InputError(f"epsilon is {self.epsilon}; expected a number of at least 0.")
        if not 0.0 <= self.delta < 1.0 or (self.delta and self.divergence != "max"):
            raise InputError(f"delta is {self.delta}; expected a probability below 1, for the divergence 'max' only.")
        if (self.divergence == "renyi") != (self.order is not None):
            raise InputError("order goes with the divergence 'renyi', and is needed there.")
        if self.domain not in ("points", "distributions"):
            raise InputError(f"domain is {self.domain!r}; expected 'points' or 'distributions'.")
        if self.extended not in (None, "point distance", "W1", "W_infinity"):
            raise InputError(f"extended is {self.extended!r}; expected None, 'point distance', 'W1' or 'W_infinity'.")
        if self.extended is not None and (self.extended == "point distance") != (self.domain == "points"):
            raise InputError("a guarantee for points is relative to a distance of points, one for distributions to W.")


def lifted(guarantee: Guarantee) -> Guarantee:
    """From points to distributions: what a guarantee for a relation Φ says about pairs in its lifting.

    * plain: (ε, D) for Φ is the same as (ε, D) for Φ^#, for every f-divergence, Rényi and the max divergence (joint
      convexity), with the same δ (linearity of the hockey stick);
    * extended: relative to W_1 for f-divergences, on pairs that an optimal coupling joins inside Φ; relative to W_∞ for
      the max and Rényi divergences, which are not linear in the coupling: with W_1 the statement is false.

    Raises InputError for a guarantee that is about distributions already, or extended with δ > 0.
    """
    if guarantee.domain != "points":
        raise InputError("the guarantee is about distributions already.")
    if guarantee.extended is None:
        return _then(guarantee, "lifting of a relation: joint convexity", domain="distributions")
    if guarantee.delta:
        raise InputError("no rule lifts an extended guarantee with δ > 0; use δ = 0, or the plain notion.")
    if guarantee.divergence in ("max", "renyi"):
        rule = "lifting along a coupling of least largest distance (quasi-convexity)"
        return _then(guarantee, rule, domain="distributions", extended="W_infinity")
    rule = "lifting along an optimal coupling inside the relation (joint convexity)"
    return _then(guarantee, rule, domain="distributions", extended="W1")


def composed(first: Guarantee, second: Guarantee, inputs: Inputs) -> Guarantee:
    """The guarantee of both outputs together; `second` must hold for every output of the first mechanism.

    KL, the max divergence (with its δ), Rényi and total variation add; H becomes 1 − (1 − H₀)(1 − H₁); χ² becomes
    (1 + χ²₀)(1 + χ²₁) − 1.

    Raises:
        InputError: the two speak of different divergences, domains or distances; or "same input" with guarantees for
            an arbitrary set of pairs of distributions, for which composition is false: two mechanisms that each hide
            which of two distributions it was can reveal it together. Give the guarantees for points.
    """
    same = ("divergence", "domain", "extended", "order")
    different = [name for name in same if getattr(first, name) != getattr(second, name)]
    if different:
        raise InputError(f"the two guarantees differ in {', '.join(different)}; convert one of them first.")
    if inputs not in ("same input", "independent inputs"):
        raise InputError(f"inputs is {inputs!r}; expected 'same input' or 'independent inputs'.")
    if inputs == "same input" and first.domain == "distributions":
        raise InputError(
            "with the same input, guarantees for pairs of distributions do not compose: joint outputs can reveal what "
            "neither reveals alone. Compose guarantees for points (domain='points') and lift the result."
        )
    if first.extended is not None and inputs == "independent inputs":
        raise InputError(
            "with independent inputs each guarantee is relative to its own distance: the bound is ε₀ d(λ₀, λ₀′) + "
            "ε₁ d(λ₁, λ₁′), and no single ε says it."
        )
    if first.extended is not None and first.divergence not in ("max", "kl", "renyi", "total_variation"):
        raise InputError(f"{first.divergence} does not add, so there is no rule relative to a distance.")
    value = _together(first.divergence, first.epsilon, second.epsilon)
    rule = f"sequential composition, {inputs}: {_RULES[first.divergence]}"
    delta = min(first.delta + second.delta, math.nextafter(1.0, 0.0))
    if first.delta + second.delta >= 1.0:
        raise InputError("the δ's add up to 1 or more: nothing is guaranteed.")
    return Guarantee(
        value,
        first.divergence,
        first.domain,
        first.extended,
        delta,
        first.order,
        (*first.because, *second.because, rule),
    )


def post_processed(guarantee: Guarantee) -> Guarantee:
    """After any randomised map of the output: unchanged (data processing)."""
    return _then(guarantee, "post-processing: data processing inequality")


def pre_processed(guarantee: Guarantee, stability: float, *, kind: Literal["steps", "distance"]) -> Guarantee:
    """After a map T of the input.

    Args:
        stability: c. With kind "steps", T takes each pair of the set to distributions at most c steps apart in it, in
            the direction of the pairs; with "distance", W(λ₀T, λ₁T) ≤ c W(λ₀, λ₁), and the images are again among the
            pairs that the guarantee covers.

    c steps multiply ε by c for the divergences that obey the triangle inequality: the max divergence (δ = 0) and total
    variation. KL is not one of them: 0.0204 and 0.0226 nats for two steps, 0.0872 for both.

    Raises:
        InputError: steps with another divergence or δ > 0; a distance without an extended guarantee; c not a
            positive number (a whole one for steps).
    """
    if not (math.isfinite(stability) and stability > 0.0):
        raise InputError(f"stability is {stability}; expected a positive, finite number.")
    if kind == "distance":
        if guarantee.extended is None:
            raise InputError("stability in a distance needs a guarantee relative to a distance.")
        return _then(guarantee, f"pre-processing, {stability:g}-Lipschitz", epsilon=stability * guarantee.epsilon)
    if kind != "steps":
        raise InputError(f"kind is {kind!r}; expected 'steps' or 'distance'.")
    if guarantee.extended is not None:
        raise InputError("steps are for plain guarantees; use kind='distance'.")
    if stability != int(stability):
        raise InputError(f"stability is {stability}; a number of steps is whole.")
    if stability == 1.0:
        return _then(guarantee, "pre-processing within the pairs")
    if guarantee.divergence == "hellinger":
        # √H is a metric, so that c steps of H make at most c² H.
        value = min(stability**2 * guarantee.epsilon, 1.0)
        return _then(guarantee, f"pre-processing, {stability:g} steps: √H is a metric", epsilon=value)
    if guarantee.divergence not in _METRIC or guarantee.delta:
        name = guarantee.divergence + (" with δ > 0" if guarantee.delta else "")
        raise InputError(
            f"{name} does not obey the triangle inequality: several steps can cost more than their sum. Use the max "
            "divergence with δ = 0, or total variation."
        )
    value = stability * guarantee.epsilon
    if guarantee.divergence == "total_variation":
        value = min(value, 1.0)
    return _then(guarantee, f"pre-processing, {stability:g} steps: triangle inequality", epsilon=value)


_RULES = {
    "max": "ε and δ add",
    "kl": "KL adds (chain rule)",
    "renyi": "Rényi divergences of one order add",
    "total_variation": "total variations add",
    "hellinger": "1 − H multiplies",
    "chi_squared": "1 + χ² multiplies",
}


def _together(divergence: str, first: float, second: float) -> float:
    if divergence == "hellinger":
        value = first + second - first * second
    elif divergence == "chi_squared":
        value = first + second + first * second
    elif divergence == "total_variation":
        value = min(first + second, 1.0)
    else:
        value = first + second
    return value * (1.0 + 2.0**-50)


def _then(guarantee: Guarantee, rule: str, **changes) -> Guarantee:
    fields = {name: getattr(guarantee, name) for name in guarantee.__dataclass_fields__}
    return Guarantee(**{**fields, **changes, "because": (*guarantee.because, rule)})
