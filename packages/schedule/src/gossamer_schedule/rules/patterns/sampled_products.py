"""The pattern of a sum over features for each stored element of a sparse matrix (SDDMM)."""

from __future__ import annotations

import msgspec

from gossamer_ir.core.axis_kinds import is_dense_root, is_padded, is_varied
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import Function, Iteration
from gossamer_schedule.rules.analysis.gathers import Gather, gather_of
from gossamer_schedule.rules.analysis.iterations import axes_of, single_iteration_pattern
from gossamer_schedule.rules.analysis.outputs import may_reassociate, reduced_buffer
from gossamer_schedule.rules.analysis.regular_reads import reads_regularly, selects_by_dense_varied
from gossamer_schedule.rules.analysis.slots import slots_before, slots_of


class SampledProducts(msgspec.Struct, frozen=True):
    """`out[i, j] = sum over k of ...` for each j of the fiber of row i, with names of the loop stage."""

    block: str
    row: str
    position: str
    feature: str
    features: int | None
    """The extent of the loop `feature`; None if it is symbolic."""
    output: str
    """The buffer of the products."""
    dtype: str
    before: str | None
    """The text of the number of nonzeros before a row."""
    length: str | None
    """The text of the number of nonzeros of a row."""
    gather: Gather
    """The rows of the dense operand that are read by column."""
    is_regular: bool
    """True if vectors over features can read the operands (`reads_regularly`)."""
    is_padded: bool
    """True if slots of the fiber may be padding."""

    @property
    def text(self) -> str:
        """The pattern in words."""
        return (
            f"each stored element {self.position} of row {self.row} is a sum over the features "
            f"{self.feature}"
        )


@single_iteration_pattern
def sampled_products(function: Function, iteration: Iteration) -> SampledProducts | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program."""
    axes = axes_of(function, iteration)
    if len(axes) != 3 or iteration.kinds != "SSR":
        return None
    row, fiber, feature = axes
    if not is_varied(fiber) or fiber.parent != row.name:
        return None
    if not is_dense_root(row) or not is_dense_root(feature):
        return None
    output = reduced_buffer(function, iteration, element=iteration.vars[:2])
    # Only stored elements: with an output of another structure, rows might share an element.
    if output is None or output.axes != (row.name, fiber.name):
        return None
    row_var, position, feature_var = iteration.vars
    features = integer_value(feature.length)
    return SampledProducts(
        block=iteration.name,
        row=row_var,
        position=position,
        feature=feature_var,
        features=features,
        output=data_name(output.name),
        dtype=output.dtype,
        before=slots_before(fiber, row_var, element=row_var),
        length=slots_of(fiber, row_var),
        gather=gather_of(function, iteration, output, column=position, feature=feature_var),
        is_regular=reads_regularly(function, iteration, lane=feature_var)
        and not selects_by_dense_varied(function, iteration)
        and may_reassociate(iteration),
        is_padded=is_padded(fiber),
    )
