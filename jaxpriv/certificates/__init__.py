"""Verified statements about mechanisms, on the host in float64; nothing here imports JAX."""

from jaxpriv.certificates.arithmetic import require_arithmetic as require_arithmetic
from jaxpriv.certificates.cost import cost_upper as cost_upper
from jaxpriv.certificates.definiteness import (
    dominates as dominates,
    eigenvalue_bounds as eigenvalue_bounds,
    is_semidefinite as is_semidefinite,
    largest_eigenvalue_upper as largest_eigenvalue_upper,
    smallest_eigenvalue_lower as smallest_eigenvalue_lower,
)
from jaxpriv.certificates.logdet import log_determinant_bounds as log_determinant_bounds
from jaxpriv.certificates.loss import LossBound as LossBound, loss_bounds as loss_bounds
from jaxpriv.certificates.lower_bounds import (
    cost_lower_bound as cost_lower_bound,
    loss_lower_bound as loss_lower_bound,
    majorant_lower_bound as majorant_lower_bound,
)
from jaxpriv.certificates.scalars import (
    chi_square_quantile as chi_square_quantile,
    chi_square_tail as chi_square_tail,
    exp_upper as exp_upper,
    gaussian_delta as gaussian_delta,
    gaussian_epsilon as gaussian_epsilon,
    log_bounds as log_bounds,
    odds_bound as odds_bound,
    renyi_epsilon as renyi_epsilon,
)
from jaxpriv.certificates.trial_design import trial_from_design as trial_from_design
from jaxpriv.certificates.verb import Certificate as Certificate, certify as certify
