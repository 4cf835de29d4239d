"""The pattern of products of rows of two dense matrices for each element of the blocks of a sparse one."""

from __future__ import annotations

import msgspec

from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.core.axis_kinds import indices_of, is_dense_root, is_varied
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import Axis, Function, Iteration, Load
from gossamer_schedule.rules.analysis.iterations import axes_of, single_iteration_pattern
from gossamer_schedule.rules.analysis.outputs import may_reassociate, only_store
from gossamer_schedule.rules.analysis.product_factors import product_factors


class SampledBlockProducts(msgspec.Struct, frozen=True):
    """`out[io, jo, ii, ji] = sum over k of left[io, ii, k] * right[jo, ji, k]`, with names of the loop
    stage; `operands` is the dtype of both factors, which may be converted to that of the output, or a
    precision to which they are rounded. They are stored in `stored_dtype`."""

    block: str
    row: str
    position: str
    inner_row: str
    inner_position: str
    feature: str
    height: int | None
    width: int | None
    features: int | None
    """The extents of the last three; None if they are symbolic."""
    output: str
    dtype: str
    left: str
    right: str
    operands: str
    stored_dtype: str

    @property
    def text(self) -> str:
        """The pattern in words."""
        element = ", ".join((self.row, self.position, self.inner_row, self.inner_position))
        return f"each element {self.output}[{element}] is a sum over the features {self.feature}"


@single_iteration_pattern
def sampled_block_products(function: Function, iteration: Iteration) -> SampledBlockProducts | None:
    """Return the pattern of a coordinate module of one iteration with an init; None for other programs."""
    axes, store = axes_of(function, iteration), only_store(iteration)
    if len(axes) != 5 or store is None or not iteration.init or not may_reassociate(iteration):
        return None
    if iteration.kinds != "SSSSR":
        return None
    output = next((buffer for buffer in function.buffers if buffer.name == store.buffer), None)
    reduction, vars = match_reduction(store), iteration.vars
    if output is None or reduction is None or reduction.op != "add" or not _has_blocks(axes):
        return None
    factors = product_factors(reduction.value, dtype=output.dtype)
    if factors is None:
        return None
    if store.indices != tuple(map(index_var, vars[:4])):
        return None
    io, jo, ii, ji, k = vars
    for left, right in factors.orders:
        if _is_at(left, (io, ii, k)) and _is_at(right, (jo, ji, k)):
            return SampledBlockProducts(
                block=iteration.name,
                row=io,
                position=jo,
                inner_row=ii,
                inner_position=ji,
                feature=k,
                height=integer_value(axes[2].length),
                width=integer_value(axes[3].length),
                features=integer_value(axes[4].length),
                output=data_name(output.name),
                dtype=output.dtype,
                left=data_name(left.buffer),
                right=data_name(right.buffer),
                operands=factors.operands,
                stored_dtype=left.dtype,
            )
    return None


def _has_blocks(axes: tuple[Axis, ...]) -> bool:
    """Return whether the second axis has the fibers of the first one, and all others are dense."""
    row, fiber, *others = axes
    is_fiber = is_varied(fiber) and fiber.parent == row.name and indices_of(fiber) is not None
    return is_fiber and all(map(is_dense_root, (row, *others)))


def _is_at(load: Load, vars: tuple[str, ...]) -> bool:
    return load.indices == tuple(map(index_var, vars))
