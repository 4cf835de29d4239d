"""The choice of the format of a sparse matrix, from its features and a model of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_ir.support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_tune.features.matrix_features import MatrixFeatures, features_of
    from gossamer_tune.format_choice import FormatChoice, choose_format, measure_formats
    from gossamer_tune.model.estimate import Estimate
    from gossamer_tune.model.workload import Workload
    from gossamer_tune.orders.community_order import community_order

_HOMES = {
    "Estimate": "gossamer_tune.model.estimate",
    "FormatChoice": "gossamer_tune.format_choice",
    "MatrixFeatures": "gossamer_tune.features.matrix_features",
    "Workload": "gossamer_tune.model.workload",
    "choose_format": "gossamer_tune.format_choice",
    "community_order": "gossamer_tune.orders.community_order",
    "features_of": "gossamer_tune.features.matrix_features",
    "measure_formats": "gossamer_tune.format_choice",
}

__all__ = [
    "Estimate",
    "FormatChoice",
    "MatrixFeatures",
    "Workload",
    "choose_format",
    "community_order",
    "features_of",
    "measure_formats",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
