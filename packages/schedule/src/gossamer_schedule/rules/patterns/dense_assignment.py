"""The pattern of an assignment to each element over dense axes, such as the init of a result."""

from __future__ import annotations

import msgspec

from gossamer_ir.core.axis_kinds import is_dense_root
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Function, Iteration
from gossamer_schedule.rules.analysis.iterations import (
    axes_of,
    buffers_by_name,
    single_iteration_pattern,
)
from gossamer_schedule.rules.analysis.outputs import assigned_store
from gossamer_schedule.rules.analysis.regular_reads import reads_regularly


class DenseAssignment(msgspec.Struct, frozen=True):
    """`out[i, k] = ...` or `out[k] = ...`: the loop over rows (None: there is none), the loop over contiguous
    elements with its extent (None: symbolic), and the dtype of the output."""

    row: str | None
    feature: str
    features: int | None
    dtype: str


@single_iteration_pattern
def dense_assignment(function: Function, iteration: Iteration) -> DenseAssignment | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program."""
    axes, store = axes_of(function, iteration), assigned_store(iteration)
    if len(axes) not in (1, 2) or not all(map(is_dense_root, axes)) or store is None:
        return None
    *rows, feature = iteration.vars
    if not reads_regularly(function, iteration, lane=feature):
        return None
    return DenseAssignment(
        row=rows[0] if rows else None,
        feature=feature,
        features=integer_value(axes[-1].length),
        dtype=buffers_by_name(function)[store.buffer].dtype,
    )
