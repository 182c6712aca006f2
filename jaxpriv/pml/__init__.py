"""Pointwise maximal leakage: how much more likely an output makes anything about the private data.

Differentiable and batched, in nats. docs/leakage.md says what the notion means and what it does not.
"""

from jaxpriv.pml.chi2 import chi2_isf as chi2_isf, chi2_log_sf as chi2_log_sf, chi2_sf as chi2_sf
from jaxpriv.pml.composition import (
    compose_guarantees as compose_guarantees,
    compose_releases as compose_releases,
    compose_same as compose_same,
)
from jaxpriv.pml.finite import (
    finite_delta as finite_delta,
    finite_epsilon as finite_epsilon,
    finite_leakage as finite_leakage,
)
from jaxpriv.pml.gaussian import (
    additive_information as additive_information,
    additive_leakage as additive_leakage,
    canonical_correlations as canonical_correlations,
    factored_leakage as factored_leakage,
    mutual_information as mutual_information,
    pointwise_leakage as pointwise_leakage,
    posterior_covariance as posterior_covariance,
    secret_information as secret_information,
    trace_information as trace_information,
)
from jaxpriv.pml.profile import (
    conditional_failure as conditional_failure,
    expected_leakage as expected_leakage,
    information_budget as information_budget,
    kappa as kappa,
    leakage_delta as leakage_delta,
    leakage_epsilon as leakage_epsilon,
    leakage_log_delta as leakage_log_delta,
    require_feasible as require_feasible,
    smallest_epsilon as smallest_epsilon,
)
from jaxpriv.pml.relations import (
    analytic_gaussian_delta as analytic_gaussian_delta,
    analytic_gaussian_sensitivity as analytic_gaussian_sensitivity,
    gain_to_leakage as gain_to_leakage,
    leakage_to_gain as leakage_to_gain,
    leakage_to_information as leakage_to_information,
    leakage_to_sensitivity as leakage_to_sensitivity,
    mahalanobis_sensitivity as mahalanobis_sensitivity,
    sensitivity_to_leakage as sensitivity_to_leakage,
)
