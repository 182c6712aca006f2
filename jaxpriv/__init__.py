"""jaxpriv: least-noise, certified privacy mechanisms for correlated personal data, differentiable in JAX.

Names are imported when they are first used, so that the command line answers without loading JAX.
"""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any


if _TYPE_CHECKING:
    from importlib.metadata import version as version
    from jaxpriv import aggregation as aggregation
    from jaxpriv import baselines as baselines
    from jaxpriv import channels as channels
    from jaxpriv import distribution as distribution
    from jaxpriv import pml as pml
    from jaxpriv import systems as systems
    from jaxpriv.aggregation.design import design_aggregation as design_aggregation
    from jaxpriv.aggregation.node import AggregationNode as AggregationNode
    from jaxpriv.certificates.leakage import LeakageBound as LeakageBound
    from jaxpriv.certificates.verb import Certificate as Certificate
    from jaxpriv.designs.audit.table import Audit as Audit
    from jaxpriv.designs.audit.table import AuditRow as AuditRow
    from jaxpriv.designs.audit.verb import audit as audit
    from jaxpriv.designs.axes import AxesDesign as AxesDesign
    from jaxpriv.designs.axes import design_axes as design_axes
    from jaxpriv.designs.batch.result import BatchDesign as BatchDesign
    from jaxpriv.designs.batch.verb import design_batch as design_batch
    from jaxpriv.designs.batch.verb import design_batches as design_batches
    from jaxpriv.designs.block import least_loss_block as least_loss_block
    from jaxpriv.designs.block import least_trace_block as least_trace_block
    from jaxpriv.designs.certified import certify as certify
    from jaxpriv.designs.certified_leakage import certify_leakage as certify_leakage
    from jaxpriv.designs.certified_leakage import certify_trace_leakage as certify_trace_leakage
    from jaxpriv.designs.design import design as design
    from jaxpriv.designs.every_point import prior_shaped_noise as prior_shaped_noise
    from jaxpriv.designs.leakage.lmi import leakage_floor as leakage_floor
    from jaxpriv.designs.leakage.lmi import leakage_lmi_noise as leakage_lmi_noise
    from jaxpriv.designs.leakage.lmi import leakage_lmi_noise_linear as leakage_lmi_noise_linear
    from jaxpriv.designs.leakage.lmi import secret_leakage_floor as secret_leakage_floor
    from jaxpriv.designs.leakage.min_mse import minimum_error_release as minimum_error_release
    from jaxpriv.designs.leakage.min_mse import MinimumErrorRelease as MinimumErrorRelease
    from jaxpriv.designs.leakage.suppression import suppressed as suppressed
    from jaxpriv.designs.leakage.suppression import SuppressedGaussian as SuppressedGaussian
    from jaxpriv.designs.leakage.verb import design_leakage as design_leakage
    from jaxpriv.designs.leakage.verb import LeakageDesign as LeakageDesign
    from jaxpriv.designs.leakage.water_filling import least_leakage_noise as least_leakage_noise
    from jaxpriv.designs.majorant.budget import clip_budget as clip_budget
    from jaxpriv.designs.majorant.clip import clip_majorant as clip_majorant
    from jaxpriv.designs.majorant.stack import dense_stack as dense_stack
    from jaxpriv.designs.majorant.stack import inference_stack as inference_stack
    from jaxpriv.designs.majorant.stack import low_rank_stack as low_rank_stack
    from jaxpriv.designs.matrix_mechanism.dual import least_total_error as least_total_error
    from jaxpriv.designs.matrix_mechanism.participations import Participations as Participations
    from jaxpriv.designs.matrix_mechanism.result import MatrixMechanism as MatrixMechanism
    from jaxpriv.designs.matrix_mechanism.verb import matrix_mechanism as matrix_mechanism
    from jaxpriv.designs.releases import certify_releases as certify_releases
    from jaxpriv.designs.result import Design as Design
    from jaxpriv.designs.result import DesignResult as DesignResult
    from jaxpriv.designs.robust.families import Enclosure as Enclosure
    from jaxpriv.designs.robust.families import StationaryFamily as StationaryFamily
    from jaxpriv.designs.robust.result import LossUnderPrior as LossUnderPrior
    from jaxpriv.designs.robust.result import RobustDesign as RobustDesign
    from jaxpriv.designs.robust.verb import design_robust as design_robust
    from jaxpriv.designs.sensitivity import optimal_cost as optimal_cost
    from jaxpriv.designs.sensitivity import optimal_loss as optimal_loss
    from jaxpriv.designs.sensitivity import optimal_noise as optimal_noise
    from jaxpriv.designs.spectral import least_loss as least_loss
    from jaxpriv.designs.spectral import least_loss_noise as least_loss_noise
    from jaxpriv.designs.spectral import least_trace as least_trace
    from jaxpriv.designs.spectral import least_trace_noise as least_trace_noise
    from jaxpriv.designs.two_floors import least_above_two as least_above_two
    from jaxpriv.errors import CertificateError as CertificateError
    from jaxpriv.errors import InfeasibleError as InfeasibleError
    from jaxpriv.errors import InputError as InputError
    from jaxpriv.errors import JaxprivError as JaxprivError
    from jaxpriv.fitting.batch import fit_batch as fit_batch
    from jaxpriv.fitting.fit import Fit as Fit
    from jaxpriv.fitting.fit import fit as fit
    from jaxpriv.fitting.population import fit_population as fit_population
    from jaxpriv.fitting.robust import prior_set as prior_set
    from jaxpriv.fitting.robust import PriorSet as PriorSet
    from jaxpriv.floors.cip import cip_floor as cip_floor
    from jaxpriv.floors.cip import target_loss as target_loss
    from jaxpriv.floors.requirements import GeoIndistinguishability as GeoIndistinguishability
    from jaxpriv.floors.requirements import SecretLeakage as SecretLeakage
    from jaxpriv.floors.requirements import SensitivityEllipsoid as SensitivityEllipsoid
    from jaxpriv.floors.requirements import SideInformation as SideInformation
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
    from jaxpriv.losses.renyi import kl_gaussian as kl_gaussian
    from jaxpriv.losses.renyi import renyi_discrete as renyi_discrete
    from jaxpriv.losses.renyi import renyi_equal_covariance as renyi_equal_covariance
    from jaxpriv.losses.renyi import renyi_gaussian as renyi_gaussian
    from jaxpriv.losses.side_information import given as given
    from jaxpriv.losses.side_information import loss_given as loss_given
    from jaxpriv.mechanisms.gaussian import GaussianMechanism as GaussianMechanism
    from jaxpriv.mechanisms.grid_release import Release as Release
    from jaxpriv.mechanisms.grid_release import SimulatedRelease as SimulatedRelease
    from jaxpriv.priors import kernels as kernels
    from jaxpriv.priors.gaussian import GaussianPrior as GaussianPrior
    from jaxpriv.priors.inducing import InducingPrior as InducingPrior
    from jaxpriv.priors.linear_system import LinearSystemPrior as LinearSystemPrior
    from jaxpriv.priors.process import ProcessPrior as ProcessPrior
    from jaxpriv.priors.quasiseparable import QuasiseparablePrior as QuasiseparablePrior
    from jaxpriv.priors.regular_grid import GridPrior as GridPrior
    from jaxpriv.priors.regular_grid import on_regular_times as on_regular_times
    from jaxpriv.priors.state_space import LinearSystem as LinearSystem
    from jaxpriv.priors.structured import StructuredPrior as StructuredPrior
    from jaxpriv.searches.factors import LowRankFactor as LowRankFactor
    from jaxpriv.searches.factors import MaskedFactor as MaskedFactor
    from jaxpriv.searches.projections import Ball as Ball
    from jaxpriv.searches.projections import Box as Box
    from jaxpriv.searches.projections import L1Ball as L1Ball
    from jaxpriv.searches.projections import NonNegative as NonNegative
    from jaxpriv.searches.projections import Part as Part
    from jaxpriv.searches.projections import Parts as Parts
    from jaxpriv.searches.projections import Simplex as Simplex
    from jaxpriv.searches.projections import Spectrahedron as Spectrahedron
    from jaxpriv.searches.projections import TraceBudget as TraceBudget
    from jaxpriv.searches.result import Search as Search
    from jaxpriv.searches.result import SearchResult as SearchResult
    from jaxpriv.searches.smoothing import Cooling as Cooling
    from jaxpriv.searches.smoothing import worst_of as worst_of
    from jaxpriv.searches.verb import search as search
    from jaxpriv.searches.whitened import Eigenbasis as Eigenbasis
    from jaxpriv.secrets.conditional import conditional as conditional
    from jaxpriv.secrets.external import ExternalSecret as ExternalSecret
    from jaxpriv.secrets.external import linear_query as linear_query
    from jaxpriv.secrets.linear import LinearSecret as LinearSecret
    from jaxpriv.secrets.secret import EveryPoint as EveryPoint
    from jaxpriv.secrets.secret import Secret as Secret
    from jaxpriv.secrets.unsampled import UnsampledSecret as UnsampledSecret
    from jaxpriv.systems.certified import certify_system as certify_system


_HOME = {
    "aggregation": "jaxpriv",
    "AggregationNode": "jaxpriv.aggregation.node",
    "Audit": "jaxpriv.designs.audit.table",
    "audit": "jaxpriv.designs.audit.verb",
    "AuditRow": "jaxpriv.designs.audit.table",
    "AxesDesign": "jaxpriv.designs.axes",
    "Ball": "jaxpriv.searches.projections",
    "baselines": "jaxpriv",
    "BatchDesign": "jaxpriv.designs.batch.result",
    "Box": "jaxpriv.searches.projections",
    "Certificate": "jaxpriv.certificates.verb",
    "CertificateError": "jaxpriv.errors",
    "certify": "jaxpriv.designs.certified",
    "certify_leakage": "jaxpriv.designs.certified_leakage",
    "certify_releases": "jaxpriv.designs.releases",
    "certify_system": "jaxpriv.systems.certified",
    "certify_trace_leakage": "jaxpriv.designs.certified_leakage",
    "channels": "jaxpriv",
    "cip_floor": "jaxpriv.floors.cip",
    "cip_loss": "jaxpriv.losses.cip",
    "clip_budget": "jaxpriv.designs.majorant.budget",
    "clip_majorant": "jaxpriv.designs.majorant.clip",
    "conditional": "jaxpriv.secrets.conditional",
    "Cooling": "jaxpriv.searches.smoothing",
    "dense_stack": "jaxpriv.designs.majorant.stack",
    "Design": "jaxpriv.designs.result",
    "design": "jaxpriv.designs.design",
    "design_aggregation": "jaxpriv.aggregation.design",
    "design_axes": "jaxpriv.designs.axes",
    "design_batch": "jaxpriv.designs.batch.verb",
    "design_batches": "jaxpriv.designs.batch.verb",
    "design_leakage": "jaxpriv.designs.leakage.verb",
    "design_robust": "jaxpriv.designs.robust.verb",
    "DesignResult": "jaxpriv.designs.result",
    "dimension_sum": "jaxpriv.losses.composition",
    "direct_and_inferential": "jaxpriv.losses.cip",
    "distribution": "jaxpriv",
    "Eigenbasis": "jaxpriv.searches.whitened",
    "Enclosure": "jaxpriv.designs.robust.families",
    "EveryPoint": "jaxpriv.secrets.secret",
    "ExternalSecret": "jaxpriv.secrets.external",
    "Fit": "jaxpriv.fitting.fit",
    "fit": "jaxpriv.fitting.fit",
    "fit_batch": "jaxpriv.fitting.batch",
    "fit_population": "jaxpriv.fitting.population",
    "gaussian_delta": "jaxpriv.losses.odds",
    "gaussian_epsilon": "jaxpriv.losses.odds",
    "GaussianMechanism": "jaxpriv.mechanisms.gaussian",
    "GaussianPrior": "jaxpriv.priors.gaussian",
    "GeoIndistinguishability": "jaxpriv.floors.requirements",
    "given": "jaxpriv.losses.side_information",
    "GridPrior": "jaxpriv.priors.regular_grid",
    "independent_dimensions": "jaxpriv.losses.composition",
    "InducingPrior": "jaxpriv.priors.inducing",
    "InfeasibleError": "jaxpriv.errors",
    "inference_stack": "jaxpriv.designs.majorant.stack",
    "InputError": "jaxpriv.errors",
    "JaxprivError": "jaxpriv.errors",
    "kernels": "jaxpriv.priors",
    "kl_gaussian": "jaxpriv.losses.renyi",
    "L1Ball": "jaxpriv.searches.projections",
    "leakage_floor": "jaxpriv.designs.leakage.lmi",
    "leakage_lmi_noise": "jaxpriv.designs.leakage.lmi",
    "leakage_lmi_noise_linear": "jaxpriv.designs.leakage.lmi",
    "LeakageBound": "jaxpriv.certificates.leakage",
    "LeakageDesign": "jaxpriv.designs.leakage.verb",
    "least_above_two": "jaxpriv.designs.two_floors",
    "least_leakage_noise": "jaxpriv.designs.leakage.water_filling",
    "least_loss": "jaxpriv.designs.spectral",
    "least_loss_block": "jaxpriv.designs.block",
    "least_loss_noise": "jaxpriv.designs.spectral",
    "least_total_error": "jaxpriv.designs.matrix_mechanism.dual",
    "least_trace": "jaxpriv.designs.spectral",
    "least_trace_block": "jaxpriv.designs.block",
    "least_trace_noise": "jaxpriv.designs.spectral",
    "linear_query": "jaxpriv.secrets.external",
    "LinearSecret": "jaxpriv.secrets.linear",
    "LinearSystem": "jaxpriv.priors.state_space",
    "LinearSystemPrior": "jaxpriv.priors.linear_system",
    "loss_given": "jaxpriv.losses.side_information",
    "LossUnderPrior": "jaxpriv.designs.robust.result",
    "low_rank_stack": "jaxpriv.designs.majorant.stack",
    "LowRankFactor": "jaxpriv.searches.factors",
    "MaskedFactor": "jaxpriv.searches.factors",
    "matrix_mechanism": "jaxpriv.designs.matrix_mechanism.verb",
    "MatrixMechanism": "jaxpriv.designs.matrix_mechanism.result",
    "minimum_error_release": "jaxpriv.designs.leakage.min_mse",
    "MinimumErrorRelease": "jaxpriv.designs.leakage.min_mse",
    "misspecified_bound": "jaxpriv.losses.misspecified",
    "misspecified_loss": "jaxpriv.losses.misspecified",
    "mu_squared": "jaxpriv.losses.cip",
    "mu_squared_of_gain": "jaxpriv.losses.compound",
    "NonNegative": "jaxpriv.searches.projections",
    "odds_bound": "jaxpriv.losses.odds",
    "on_regular_times": "jaxpriv.priors.regular_grid",
    "optimal_cost": "jaxpriv.designs.sensitivity",
    "optimal_loss": "jaxpriv.designs.sensitivity",
    "optimal_noise": "jaxpriv.designs.sensitivity",
    "Part": "jaxpriv.searches.projections",
    "Participations": "jaxpriv.designs.matrix_mechanism.participations",
    "Parts": "jaxpriv.searches.projections",
    "pml": "jaxpriv",
    "posterior": "jaxpriv.losses.precision_gain",
    "precision_gain": "jaxpriv.losses.precision_gain",
    "prior_set": "jaxpriv.fitting.robust",
    "prior_shaped_noise": "jaxpriv.designs.every_point",
    "PriorSet": "jaxpriv.fitting.robust",
    "ProcessPrior": "jaxpriv.priors.process",
    "QuasiseparablePrior": "jaxpriv.priors.quasiseparable",
    "Release": "jaxpriv.mechanisms.grid_release",
    "renyi_discrete": "jaxpriv.losses.renyi",
    "renyi_equal_covariance": "jaxpriv.losses.renyi",
    "renyi_gaussian": "jaxpriv.losses.renyi",
    "RobustDesign": "jaxpriv.designs.robust.result",
    "Search": "jaxpriv.searches.result",
    "search": "jaxpriv.searches.verb",
    "SearchResult": "jaxpriv.searches.result",
    "Secret": "jaxpriv.secrets.secret",
    "secret_leakage_floor": "jaxpriv.designs.leakage.lmi",
    "SecretLeakage": "jaxpriv.floors.requirements",
    "SensitivityEllipsoid": "jaxpriv.floors.requirements",
    "several_traces": "jaxpriv.losses.composition",
    "SideInformation": "jaxpriv.floors.requirements",
    "Simplex": "jaxpriv.searches.projections",
    "SimulatedRelease": "jaxpriv.mechanisms.grid_release",
    "Spectrahedron": "jaxpriv.searches.projections",
    "StationaryFamily": "jaxpriv.designs.robust.families",
    "StructuredPrior": "jaxpriv.priors.structured",
    "suppressed": "jaxpriv.designs.leakage.suppression",
    "SuppressedGaussian": "jaxpriv.designs.leakage.suppression",
    "systems": "jaxpriv",
    "target_loss": "jaxpriv.floors.cip",
    "TraceBudget": "jaxpriv.searches.projections",
    "UnsampledSecret": "jaxpriv.secrets.unsampled",
    "version": "importlib.metadata",
    "worst_of": "jaxpriv.searches.smoothing",
}

_MODULES = ("aggregation", "baselines", "channels", "distribution", "kernels", "pml", "systems")

__version__ = _version("jaxpriv")


def __getattr__(name: str) -> _Any:
    if name not in _HOME:
        raise AttributeError(f"module 'jaxpriv' has no attribute {name!r}")
    home = _import_module(f"{_HOME[name]}.{name}" if name in _MODULES else _HOME[name])
    value = home if name in _MODULES else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])
