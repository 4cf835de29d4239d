"""The pattern of a sum over the slots of stored rows of one width, such as a bucket of hyb."""

from __future__ import annotations

import msgspec

from gossamer_ir.core.axis_kinds import indices_of, is_dense_root, is_full, is_varied, width_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import Axis, Function, Iteration
from gossamer_schedule.rules.analysis.iterations import axes_of, single_iteration_pattern
from gossamer_schedule.rules.analysis.outputs import accumulated_buffer, dense_buffer


class BucketReduction(msgspec.Struct, frozen=True):
    """`out[i, k] = out[i, k] + ...` over j, the slots of a stored row i, or without k. Rows may be stored
    several times unless `has_distinct_rows`.

    Names of loops, the block and the output are those of the loop stage.
    """

    block: str
    row: str
    row_axis: str
    position: str
    feature: str | None
    """None if there is no such loop."""
    features: int | None
    """The extent of `feature`; None if it is symbolic."""
    width: int
    output: str
    has_init: bool
    has_distinct_rows: bool


@single_iteration_pattern
def bucket_reduction(function: Function, iteration: Iteration) -> BucketReduction | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program."""
    axes = axes_of(function, iteration)
    if not _is_bucket(axes) or iteration.kinds != "SSRS"[: len(axes)]:
        return None
    _, row, position, *features = iteration.vars
    output = accumulated_buffer(function, iteration, element=(row, *features))
    width, indices = integer_value(width_of(axes[2])), indices_of(axes[1])
    if output is None or dense_buffer(function, output.name) is None or not width:
        return None
    return BucketReduction(
        block=iteration.name,
        row=row,
        row_axis=axes[1].name,
        position=position,
        feature=features[0] if features else None,
        features=integer_value(axes[3].length) if features else None,
        width=width,
        output=data_name(output.name),
        has_init=bool(iteration.init),
        has_distinct_rows=indices is not None and indices.is_searchable,
    )


def _is_bucket(axes: tuple[Axis, ...]) -> bool:
    """Return whether axes are one fiber of stored rows, the slots of a row, which are as many for each, and
    at most one axis of features."""
    if len(axes) not in (3, 4) or not is_dense_root(axes[0]) or integer_value(axes[0].length) != 1:
        return False
    root, row, slots = axes[:3]
    indices = indices_of(row)
    is_row = indices is not None and not indices.padded and row.parent == root.name
    has_slots = slots.parent == row.name and not is_full(slots) and not is_varied(slots)
    return is_row and not is_varied(row) and has_slots and all(map(is_dense_root, axes[3:]))
