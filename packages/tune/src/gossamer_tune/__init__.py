"""The choice of the format of a sparse matrix, from its properties and a model of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_tune.cost_models import COST_MODELS
    from gossamer_tune.format_choice import FormatChoice, choose_format, measure_formats
    from gossamer_tune.model.estimate import Estimate
    from gossamer_tune.model.ordered_rows_times_dense import may_gain_from_order
    from gossamer_tune.model.workload import Workload
    from gossamer_tune.properties.matrix_properties import (
        MatrixProperties,
        properties_of,
        with_row_order,
    )

_HOMES = {
    "COST_MODELS": "gossamer_tune.cost_models",
    "Estimate": "gossamer_tune.model.estimate",
    "FormatChoice": "gossamer_tune.format_choice",
    "MatrixProperties": "gossamer_tune.properties.matrix_properties",
    "Workload": "gossamer_tune.model.workload",
    "choose_format": "gossamer_tune.format_choice",
    "may_gain_from_order": "gossamer_tune.model.ordered_rows_times_dense",
    "measure_formats": "gossamer_tune.format_choice",
    "properties_of": "gossamer_tune.properties.matrix_properties",
    "with_row_order": "gossamer_tune.properties.matrix_properties",
}

__all__ = [
    "COST_MODELS",
    "Estimate",
    "FormatChoice",
    "MatrixProperties",
    "Workload",
    "choose_format",
    "may_gain_from_order",
    "measure_formats",
    "properties_of",
    "with_row_order",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
