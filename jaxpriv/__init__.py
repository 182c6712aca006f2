"""jaxpriv: least-noise, certified privacy mechanisms for correlated personal data, differentiable in JAX."""

from importlib.metadata import version as _version

from jaxpriv import baselines as baselines
from jaxpriv.certificates.verb import Certificate as Certificate
from jaxpriv.designs.certified import certify as certify
from jaxpriv.designs.design import design as design
from jaxpriv.designs.result import Design as Design
from jaxpriv.designs.result import DesignResult as DesignResult
from jaxpriv.designs.block import least_loss_block as least_loss_block
from jaxpriv.designs.block import least_trace_block as least_trace_block
from jaxpriv.designs.every_point import prior_shaped_noise as prior_shaped_noise
from jaxpriv.designs.spectral import least_loss as least_loss
from jaxpriv.designs.spectral import least_loss_noise as least_loss_noise
from jaxpriv.designs.spectral import least_trace as least_trace
from jaxpriv.designs.spectral import least_trace_noise as least_trace_noise
from jaxpriv.designs.two_floors import least_above_two as least_above_two
from jaxpriv.errors import CertificateError as CertificateError
from jaxpriv.errors import InfeasibleError as InfeasibleError
from jaxpriv.errors import InputError as InputError
from jaxpriv.errors import JaxprivError as JaxprivError
from jaxpriv.floors.cip import cip_floor as cip_floor
from jaxpriv.floors.cip import target_loss as target_loss
from jaxpriv.losses.cip import cip_loss as cip_loss
from jaxpriv.losses.cip import direct_and_inferential as direct_and_inferential
from jaxpriv.losses.cip import mu_squared as mu_squared
from jaxpriv.losses.composition import dimension_sum as dimension_sum
from jaxpriv.losses.composition import independent_dimensions as independent_dimensions
from jaxpriv.losses.composition import several_traces as several_traces
from jaxpriv.losses.compound import mu_squared_of_gain as mu_squared_of_gain
from jaxpriv.losses.misspecified import misspecified_bound as misspecified_bound
from jaxpriv.losses.misspecified import misspecified_loss as misspecified_loss
from jaxpriv.losses.odds import gaussian_delta as gaussian_delta
from jaxpriv.losses.odds import gaussian_epsilon as gaussian_epsilon
from jaxpriv.losses.odds import odds_bound as odds_bound
from jaxpriv.losses.precision_gain import posterior as posterior
from jaxpriv.losses.precision_gain import precision_gain as precision_gain
from jaxpriv.losses.side_information import given as given
from jaxpriv.losses.side_information import loss_given as loss_given
from jaxpriv.losses.renyi import kl_gaussian as kl_gaussian
from jaxpriv.losses.renyi import renyi_discrete as renyi_discrete
from jaxpriv.losses.renyi import renyi_equal_covariance as renyi_equal_covariance
from jaxpriv.losses.renyi import renyi_gaussian as renyi_gaussian
from jaxpriv.mechanisms.grid_release import Release as Release
from jaxpriv.mechanisms.grid_release import SimulatedRelease as SimulatedRelease
from jaxpriv.mechanisms.gaussian import GaussianMechanism as GaussianMechanism
from jaxpriv.priors import kernels as kernels
from jaxpriv.priors.gaussian import GaussianPrior as GaussianPrior
from jaxpriv.priors.process import ProcessPrior as ProcessPrior
from jaxpriv.secrets.conditional import conditional as conditional
from jaxpriv.secrets.external import ExternalSecret as ExternalSecret
from jaxpriv.secrets.external import linear_query as linear_query
from jaxpriv.secrets.linear import LinearSecret as LinearSecret
from jaxpriv.secrets.secret import EveryPoint as EveryPoint
from jaxpriv.secrets.secret import Secret as Secret
from jaxpriv.secrets.unsampled import UnsampledSecret as UnsampledSecret


__version__ = _version("jaxpriv")
