"""The pattern of a sum over column tiles: each tile has a fiber for each row."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.linear_form import coefficient_and_rest
from gossamer_ir.arith.affine import ONE_FORM, affine_of, expr_of
from gossamer_ir.core.axis_kinds import indices_of, is_dense_root, is_full, is_varied
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import Axis, Const, Expr, Function, Iteration, Load, SparseBuffer, Var
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.rules.analysis.iterations import (
    axes_of,
    buffers_by_name,
    single_iteration_pattern,
)
from gossamer_schedule.rules.analysis.outputs import accumulated_buffer, may_reassociate


class TiledReduction(msgspec.Struct, frozen=True):
    """`out[i, k] = out[i, k] + ...`, a reduction over column tiles t and over j in row i of tile t.

    Names of loops, the block and buffers are those of the loop stage.
    """

    block: str
    column_tile: str
    row: str
    position: str
    feature: str
    features: int
    tile_columns: int
    """The length of the fibers' axis."""
    output: str
    dtype: str
    """The dtype of the output."""
    operand: str
    """The dense operand, of which a tile selects `tile_columns` adjacent rows."""
    operand_dtype: str

    def with_names(self, names: Mapping[str, str]) -> TiledReduction:
        """Return the pattern with other names for loops and the block, where they have them."""
        return replace(
            self,
            block=names.get(self.block, self.block),
            column_tile=names.get(self.column_tile, self.column_tile),
            row=names.get(self.row, self.row),
            position=names.get(self.position, self.position),
            feature=names.get(self.feature, self.feature),
        )

    @property
    def text(self) -> str:
        """The pattern in words."""
        return (
            f"each element {self.output}[{self.row}, {self.feature}] reduces over {self.position}, the "
            f"stored columns of row {self.row} in each tile {self.column_tile}"
        )


@single_iteration_pattern
def tiled_reduction(function: Function, iteration: Iteration) -> TiledReduction | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program."""
    # An init would run again in each tile, where the sum of a tile is added to the output.
    if iteration.init or iteration.kinds != "RSRS":
        return None
    axes = axes_of(function, iteration)
    if len(axes) != 4 or not _are_tiles(axes) or not may_reassociate(iteration):
        return None
    return _pattern(function, iteration, axes)


def _are_tiles(axes: tuple[Axis, ...]) -> bool:
    """Return whether each tile has the same dense rows, each row a fiber of coordinates, and each element
    the same features."""
    tile, row, fiber, feature = axes
    is_tiled = is_full(row) and not is_varied(row) and row.parent == tile.name
    # With a computed number of rows, such as a product, offsets are not proved in bounds after the split into
    # panels; their bounds checks would be in lanes, where lowering refuses them.
    is_tiled &= isinstance(row.length, Const | Var)
    is_fiber = is_varied(fiber) and fiber.parent == row.name and indices_of(fiber) is not None
    # Lowering makes the iterator of a single tile spatial, so there is nothing to reduce over tiles.
    is_single = integer_value(tile.length) == 1
    return (
        is_dense_root(tile) and not is_single and is_tiled and is_fiber and is_dense_root(feature)
    )


def _pattern(
    function: Function, iteration: Iteration, axes: tuple[Axis, ...]
) -> TiledReduction | None:
    tile, row, position, feature = iteration.vars
    *_, fiber, last = axes
    output = accumulated_buffer(function, iteration, element=(row, feature))
    operand = _selected_operand(function, iteration)
    features, width = integer_value(last.length), integer_value(fiber.length)
    if output is None or operand is None or not features or not width:
        return None
    return TiledReduction(
        block=iteration.name,
        column_tile=tile,
        row=row,
        position=position,
        feature=feature,
        features=features,
        tile_columns=width,
        output=data_name(output.name),
        dtype=output.dtype,
        operand=data_name(operand.name),
        operand_dtype=operand.dtype,
    )


def _selected_operand(function: Function, iteration: Iteration) -> SparseBuffer | None:
    """Return the only dense operand of which a tile and a position select a row of features.

    None if the body loads anything else than such rows, elements of the matrix, and elements of the row and
    the feature, such as the output.
    """
    tile, row, position, feature = map(index_var, iteration.vars)
    buffers = buffers_by_name(function)
    dense = {axis.name for axis in function.axes if is_dense_root(axis)}
    selected: dict[str, SparseBuffer] = {}
    for load in (load for stmt in iteration.body for load in collect(Load, stmt)):
        if load.indices == (tile, row, position):
            continue
        buffer = buffers.get(load.buffer)
        if buffer is None or not dense.issuperset(buffer.axes) or len(load.indices) != 2:
            return None
        at, last = load.indices
        if last != feature:
            return None
        # With storage after the last row, lowering gives the buffer one dimension.
        if _is_row_of_tile(at, iteration.vars) and not buffer.extra_storage:
            selected[buffer.name] = buffer
        elif at != row:
            return None
    return next(iter(selected.values())) if len(selected) == 1 else None


def _is_row_of_tile(at: Expr, vars: tuple[str, ...]) -> bool:
    """Return whether neighboring positions of a tile select neighboring rows: the index is the position plus
    a value of the tile."""
    tile, row, position, feature = vars
    parts = coefficient_and_rest(affine_of(at), position)
    if parts is None or parts[0] != ONE_FORM:
        return False
    used = free_vars(expr_of(parts[1]))
    return tile in used and used.isdisjoint((row, feature)) and not collect(Load, at)
