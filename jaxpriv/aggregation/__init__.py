"""Nodes that publish noisy outputs for a weighted sum, each protecting its own state."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from jaxpriv.lazy import lazy_names as _lazy_names


if _TYPE_CHECKING:
    from jaxpriv.aggregation.closed_form import NodeSolution as NodeSolution, aggregation_node as aggregation_node
    from jaxpriv.aggregation.design import (
        AggregationDesign as AggregationDesign,
        NodeDesign as NodeDesign,
        NodeResult as NodeResult,
        design_aggregation as design_aggregation,
    )
    from jaxpriv.aggregation.node import AggregationNode as AggregationNode


_HOME = {
    "aggregation_node": "jaxpriv.aggregation.closed_form",
    "AggregationDesign": "jaxpriv.aggregation.design",
    "AggregationNode": "jaxpriv.aggregation.node",
    "design_aggregation": "jaxpriv.aggregation.design",
    "NodeDesign": "jaxpriv.aggregation.design",
    "NodeResult": "jaxpriv.aggregation.design",
    "NodeSolution": "jaxpriv.aggregation.closed_form",
}

__getattr__, __dir__ = _lazy_names("jaxpriv.aggregation", _HOME)
