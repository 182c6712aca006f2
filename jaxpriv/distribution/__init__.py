"""Privacy of distributions: divergences, notions, compositions and coupling mechanisms for finite alphabets."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from jaxpriv.lazy import lazy_names as _lazy_names


if _TYPE_CHECKING:
    from jaxpriv.distribution.approximate import (
        CouplingAudit as CouplingAudit,
        PairBound as PairBound,
        audit_coupling as audit_coupling,
        pair_bounds as pair_bounds,
    )
    from jaxpriv.distribution.composition import (
        Guarantee as Guarantee,
        composed as composed,
        lifted as lifted,
        post_processed as post_processed,
        pre_processed as pre_processed,
    )
    from jaxpriv.distribution.coupling import (
        CouplingMechanism as CouplingMechanism,
        coupling_mechanism as coupling_mechanism,
    )
    from jaxpriv.distribution.divergences import (
        approximate_max_divergence as approximate_max_divergence,
        check_distribution as check_distribution,
        chi_squared as chi_squared,
        f_divergence as f_divergence,
        hellinger as hellinger,
        hockey_stick as hockey_stick,
        kl as kl,
        max_divergence as max_divergence,
        renyi as renyi,
        reverse_kl as reverse_kl,
        total_variation as total_variation,
    )
    from jaxpriv.distribution.estimated import (
        EstimatedLevel as EstimatedLevel,
        confidence_intervals as confidence_intervals,
        estimated_level as estimated_level,
    )
    from jaxpriv.distribution.ladder import Implication as Implication, implied as implied
    from jaxpriv.distribution.notions import (
        Level as Level,
        distribution_level as distribution_level,
        point_level as point_level,
    )
    from jaxpriv.distribution.redirected import entropic_mechanism as entropic_mechanism
    from jaxpriv.distribution.relations import (
        check_relation as check_relation,
        diameter as diameter,
        from_pairs as from_pairs,
        is_lifted as is_lifted,
        is_lifted_optimally as is_lifted_optimally,
        missing_mass as missing_mass,
        within as within,
    )
    from jaxpriv.distribution.relaxed_search import dual_bound as dual_bound, searched_outputs as searched_outputs
    from jaxpriv.distribution.sinkhorn import (
        EntropicCoupling as EntropicCoupling,
        entropic_coupling as entropic_coupling,
    )
    from jaxpriv.distribution.targets import (
        Barycentre as Barycentre,
        RelaxedOutputs as RelaxedOutputs,
        barycentre as barycentre,
        line_barycentre as line_barycentre,
        pairwise_distances as pairwise_distances,
        relaxed_outputs as relaxed_outputs,
    )
    from jaxpriv.distribution.transport import (
        Coupling as Coupling,
        check_metric as check_metric,
        is_monge as is_monge,
        minimax_coupling as minimax_coupling,
        north_west as north_west,
        optimal_coupling as optimal_coupling,
        wasserstein as wasserstein,
    )


_HOME = {
    "approximate_max_divergence": "jaxpriv.distribution.divergences",
    "audit_coupling": "jaxpriv.distribution.approximate",
    "Barycentre": "jaxpriv.distribution.targets",
    "barycentre": "jaxpriv.distribution.targets",
    "check_distribution": "jaxpriv.distribution.divergences",
    "check_metric": "jaxpriv.distribution.transport",
    "check_relation": "jaxpriv.distribution.relations",
    "chi_squared": "jaxpriv.distribution.divergences",
    "composed": "jaxpriv.distribution.composition",
    "confidence_intervals": "jaxpriv.distribution.estimated",
    "Coupling": "jaxpriv.distribution.transport",
    "coupling_mechanism": "jaxpriv.distribution.coupling",
    "CouplingAudit": "jaxpriv.distribution.approximate",
    "CouplingMechanism": "jaxpriv.distribution.coupling",
    "diameter": "jaxpriv.distribution.relations",
    "distribution_level": "jaxpriv.distribution.notions",
    "dual_bound": "jaxpriv.distribution.relaxed_search",
    "entropic_coupling": "jaxpriv.distribution.sinkhorn",
    "entropic_mechanism": "jaxpriv.distribution.redirected",
    "EntropicCoupling": "jaxpriv.distribution.sinkhorn",
    "estimated_level": "jaxpriv.distribution.estimated",
    "EstimatedLevel": "jaxpriv.distribution.estimated",
    "f_divergence": "jaxpriv.distribution.divergences",
    "from_pairs": "jaxpriv.distribution.relations",
    "Guarantee": "jaxpriv.distribution.composition",
    "hellinger": "jaxpriv.distribution.divergences",
    "hockey_stick": "jaxpriv.distribution.divergences",
    "Implication": "jaxpriv.distribution.ladder",
    "implied": "jaxpriv.distribution.ladder",
    "is_lifted": "jaxpriv.distribution.relations",
    "is_lifted_optimally": "jaxpriv.distribution.relations",
    "is_monge": "jaxpriv.distribution.transport",
    "kl": "jaxpriv.distribution.divergences",
    "Level": "jaxpriv.distribution.notions",
    "lifted": "jaxpriv.distribution.composition",
    "line_barycentre": "jaxpriv.distribution.targets",
    "max_divergence": "jaxpriv.distribution.divergences",
    "minimax_coupling": "jaxpriv.distribution.transport",
    "missing_mass": "jaxpriv.distribution.relations",
    "north_west": "jaxpriv.distribution.transport",
    "optimal_coupling": "jaxpriv.distribution.transport",
    "pair_bounds": "jaxpriv.distribution.approximate",
    "PairBound": "jaxpriv.distribution.approximate",
    "pairwise_distances": "jaxpriv.distribution.targets",
    "point_level": "jaxpriv.distribution.notions",
    "post_processed": "jaxpriv.distribution.composition",
    "pre_processed": "jaxpriv.distribution.composition",
    "relaxed_outputs": "jaxpriv.distribution.targets",
    "RelaxedOutputs": "jaxpriv.distribution.targets",
    "renyi": "jaxpriv.distribution.divergences",
    "reverse_kl": "jaxpriv.distribution.divergences",
    "searched_outputs": "jaxpriv.distribution.relaxed_search",
    "total_variation": "jaxpriv.distribution.divergences",
    "wasserstein": "jaxpriv.distribution.transport",
    "within": "jaxpriv.distribution.relations",
}

__getattr__, __dir__ = _lazy_names("jaxpriv.distribution", _HOME)
