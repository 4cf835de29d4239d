"""The models of costs: those of gossamer, and those that installed distributions register.

A distribution registers a model by an entry point of the group `gossamer.cost_models`, whose object is a
function of the properties of a matrix and of the workload:

    [project.entry-points."gossamer.cost_models"]
    tiles_times_vector = "my_package.tiles:tiles_times_vector"
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import Any, TypeAlias

from gossamer_support.plugins import groups
from gossamer_support.plugins.named_objects import NamedObjects
from gossamer_tune.model.blocks_times_dense import blocks_times_dense
from gossamer_tune.model.csr_times_dense import csr_times_dense
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.groups_times_dense import groups_times_dense
from gossamer_tune.model.ordered_rows_times_dense import ordered_rows_times_dense
from gossamer_tune.model.tiles_times_dense import tiles_times_dense
from gossamer_tune.model.vector_products.blocked_slices_times_vector import (
    blocked_slices_times_vector,
)
from gossamer_tune.model.vector_products.blocks_times_vector import blocks_times_vector
from gossamer_tune.model.vector_products.csr_times_vector import csr_times_vector
from gossamer_tune.model.vector_products.sliced_diagonals_times_vector import (
    sliced_diagonals_times_vector,
)
from gossamer_tune.model.vector_products.slices_times_vector import slices_times_vector
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties

CostModel: TypeAlias = Callable[[MatrixProperties, Workload], tuple[Estimate, ...]]
"""Returns an estimate for each candidate of a format, none for a workload of which it knows nothing."""

MODELS: tuple[CostModel, ...] = (
    csr_times_dense,
    csr_times_vector,
    slices_times_vector,
    blocked_slices_times_vector,
    sliced_diagonals_times_vector,
    ordered_rows_times_dense,
    groups_times_dense,
    tiles_times_dense,
    blocks_times_dense,
    blocks_times_vector,
)
"""The models of gossamer, one file each. There is one of CSR for each operator."""

COST_MODELS: NamedObjects[CostModel] = NamedObjects(
    groups.COST_MODEL_GROUP.name,
    "cost model",
    expected="a function",
    is_valid=lambda value, name: callable(value),
    built_in={model.__name__: partial(lambda model: model, model) for model in MODELS},
)
"""All models by their names."""


def estimates_of(matrix: MatrixProperties, workload: Workload) -> list[Estimate]:
    """Return the estimates of all models for a matrix, first those of gossamer.

    Raises `PluginError` if the model of another distribution cannot be used: `plugin.failed`,
    `plugin.duplicate`, or `plugin.entry_point`.
    """
    all_estimates: list[Estimate] = []
    for name, model in COST_MODELS.items():
        with COST_MODELS.errors_of(name, doing="estimate costs by the"):
            estimates = tuple(model(matrix, workload))
            for estimate in estimates:
                _require_comparable(estimate)
        all_estimates += estimates
    return all_estimates


def _require_comparable(estimate: Any) -> None:
    """Require an estimate with costs that can be compared: that of another distribution may be anything."""
    if not isinstance(estimate, Estimate):
        raise TypeError(f"it returned {estimate!r}; expected a gossamer_tune.Estimate")
    costs = (estimate.cycles, estimate.conversion_cycles)
    if not all(isfinite(cost) and cost >= 0 for cost in costs):
        raise ValueError(f"it estimates {costs} cycles; expected finite numbers from 0 on")
