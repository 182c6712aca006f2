"""Randomised maps between finite sets: row-stochastic channels, what an adversary infers from them, their audits."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from jaxpriv.lazy import lazy_names as _lazy_names


if _TYPE_CHECKING:
    from jaxpriv.channels.channel import Channel as Channel
    from jaxpriv.channels.channel_audit import (
        ChannelAudit as ChannelAudit,
        audit as audit,
        audit_channel as audit_channel,
        audit_union as audit_union,
    )
    from jaxpriv.channels.channel_design import ChannelDesign as ChannelDesign
    from jaxpriv.channels.exact_levels import Level as Level
    from jaxpriv.channels.exponential import (
        exponential_channel as exponential_channel,
        exponential_mechanism as exponential_mechanism,
        score_sensitivity as score_sensitivity,
    )
    from jaxpriv.channels.feasible import enveloped_channel as enveloped_channel, lipschitz_channel as lipschitz_channel
    from jaxpriv.channels.geometric import truncated_geometric as truncated_geometric
    from jaxpriv.channels.geometry import pairwise_distances as pairwise_distances
    from jaxpriv.channels.gradient import Progress as Progress, gradient_channel as gradient_channel
    from jaxpriv.channels.hilbert import hilbert_order as hilbert_order, hilbert_values as hilbert_values
    from jaxpriv.channels.inference import (
        conditional_error as conditional_error,
        expected_error as expected_error,
        inference_attack as inference_attack,
        narrowed_error as narrowed_error,
        optimal_remap as optimal_remap,
        posterior as posterior,
        prior_error as prior_error,
        published as published,
        quality_loss as quality_loss,
    )
    from jaxpriv.channels.level_bounds import (
        map_bound as map_bound,
        refined_pair_bounds as refined_pair_bounds,
        union_bound as union_bound,
    )
    from jaxpriv.channels.levels import geo_level as geo_level, pair_levels as pair_levels, set_level as set_level
    from jaxpriv.channels.limits import Limits as Limits, geo_limits as geo_limits, set_limits as set_limits
    from jaxpriv.channels.lower_bound import certified_lower_bound as certified_lower_bound
    from jaxpriv.channels.obfuscation import Obfuscation as Obfuscation, UnattainableError as UnattainableError
    from jaxpriv.channels.optimal import optimal_channel as optimal_channel
    from jaxpriv.channels.partitions import (
        feasible_windows as feasible_windows,
        greedy_partition as greedy_partition,
        largest_promise as largest_promise,
        optimal_partition as optimal_partition,
    )
    from jaxpriv.channels.permutations import permute_and_flip as permute_and_flip
    from jaxpriv.channels.personalized import personalized_mechanism as personalized_mechanism
    from jaxpriv.channels.planar import (
        GridMechanism as GridMechanism,
        planar_geometric as planar_geometric,
        planar_laplace as planar_laplace,
    )
    from jaxpriv.channels.prior import DiscretePrior as DiscretePrior
    from jaxpriv.channels.prior_files import (
        grid_prior as grid_prior,
        read_prior_csv as read_prior_csv,
        read_prior_geojson as read_prior_geojson,
    )
    from jaxpriv.channels.problem import ChannelProblem as ChannelProblem, channel_problem as channel_problem
    from jaxpriv.channels.published_pive import (
        ProtectionSets as ProtectionSets,
        pive as pive,
        protection_sets as protection_sets,
    )
    from jaxpriv.channels.rare_outputs import merge_rare_outputs as merge_rare_outputs
    from jaxpriv.channels.repair import mixing_weight as mixing_weight
    from jaxpriv.channels.sensitivity import uniform_mechanism as uniform_mechanism
    from jaxpriv.channels.set_audit import SetAudit as SetAudit
    from jaxpriv.channels.set_errors import (
        robust_set_error as robust_set_error,
        set_error as set_error,
        worst_set_error as worst_set_error,
    )
    from jaxpriv.channels.softmax import softmax_search as softmax_search
    from jaxpriv.channels.spanner import Spanner as Spanner, dilation as dilation, greedy_spanner as greedy_spanner
    from jaxpriv.channels.table import IntegerTable as IntegerTable


_HOME = {
    "audit": "jaxpriv.channels.channel_audit",
    "audit_channel": "jaxpriv.channels.channel_audit",
    "audit_union": "jaxpriv.channels.channel_audit",
    "certified_lower_bound": "jaxpriv.channels.lower_bound",
    "Channel": "jaxpriv.channels.channel",
    "channel_problem": "jaxpriv.channels.problem",
    "ChannelAudit": "jaxpriv.channels.channel_audit",
    "ChannelDesign": "jaxpriv.channels.channel_design",
    "ChannelProblem": "jaxpriv.channels.problem",
    "conditional_error": "jaxpriv.channels.inference",
    "dilation": "jaxpriv.channels.spanner",
    "DiscretePrior": "jaxpriv.channels.prior",
    "enveloped_channel": "jaxpriv.channels.feasible",
    "expected_error": "jaxpriv.channels.inference",
    "exponential_channel": "jaxpriv.channels.exponential",
    "exponential_mechanism": "jaxpriv.channels.exponential",
    "feasible_windows": "jaxpriv.channels.partitions",
    "geo_level": "jaxpriv.channels.levels",
    "geo_limits": "jaxpriv.channels.limits",
    "gradient_channel": "jaxpriv.channels.gradient",
    "greedy_partition": "jaxpriv.channels.partitions",
    "greedy_spanner": "jaxpriv.channels.spanner",
    "grid_prior": "jaxpriv.channels.prior_files",
    "GridMechanism": "jaxpriv.channels.planar",
    "hilbert_order": "jaxpriv.channels.hilbert",
    "hilbert_values": "jaxpriv.channels.hilbert",
    "inference_attack": "jaxpriv.channels.inference",
    "IntegerTable": "jaxpriv.channels.table",
    "largest_promise": "jaxpriv.channels.partitions",
    "Level": "jaxpriv.channels.exact_levels",
    "Limits": "jaxpriv.channels.limits",
    "lipschitz_channel": "jaxpriv.channels.feasible",
    "map_bound": "jaxpriv.channels.level_bounds",
    "merge_rare_outputs": "jaxpriv.channels.rare_outputs",
    "mixing_weight": "jaxpriv.channels.repair",
    "narrowed_error": "jaxpriv.channels.inference",
    "Obfuscation": "jaxpriv.channels.obfuscation",
    "optimal_channel": "jaxpriv.channels.optimal",
    "optimal_partition": "jaxpriv.channels.partitions",
    "optimal_remap": "jaxpriv.channels.inference",
    "pair_levels": "jaxpriv.channels.levels",
    "pairwise_distances": "jaxpriv.channels.geometry",
    "permute_and_flip": "jaxpriv.channels.permutations",
    "personalized_mechanism": "jaxpriv.channels.personalized",
    "pive": "jaxpriv.channels.published_pive",
    "planar_geometric": "jaxpriv.channels.planar",
    "planar_laplace": "jaxpriv.channels.planar",
    "posterior": "jaxpriv.channels.inference",
    "prior_error": "jaxpriv.channels.inference",
    "Progress": "jaxpriv.channels.gradient",
    "protection_sets": "jaxpriv.channels.published_pive",
    "ProtectionSets": "jaxpriv.channels.published_pive",
    "published": "jaxpriv.channels.inference",
    "quality_loss": "jaxpriv.channels.inference",
    "read_prior_csv": "jaxpriv.channels.prior_files",
    "read_prior_geojson": "jaxpriv.channels.prior_files",
    "refined_pair_bounds": "jaxpriv.channels.level_bounds",
    "robust_set_error": "jaxpriv.channels.set_errors",
    "score_sensitivity": "jaxpriv.channels.exponential",
    "set_error": "jaxpriv.channels.set_errors",
    "set_level": "jaxpriv.channels.levels",
    "set_limits": "jaxpriv.channels.limits",
    "SetAudit": "jaxpriv.channels.set_audit",
    "softmax_search": "jaxpriv.channels.softmax",
    "Spanner": "jaxpriv.channels.spanner",
    "truncated_geometric": "jaxpriv.channels.geometric",
    "UnattainableError": "jaxpriv.channels.obfuscation",
    "uniform_mechanism": "jaxpriv.channels.sensitivity",
    "union_bound": "jaxpriv.channels.level_bounds",
    "worst_set_error": "jaxpriv.channels.set_errors",
}

__getattr__, __dir__ = _lazy_names("jaxpriv.channels", _HOME)
