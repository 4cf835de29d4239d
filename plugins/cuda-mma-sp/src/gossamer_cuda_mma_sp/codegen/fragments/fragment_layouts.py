"""The places of the elements of fragments: the lane, and the element of its registers.

Lane 4 * g + t is lane t of the quad g. The layouts are those of `gossamer_cuda_mma_sp.instructions`,
as expressions in the number of the lane.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from gossamer_cuda_mma_sp.instructions.matrix_instructions import MatrixInstruction
from gossamer_cuda_mma_sp.instructions.sparse_instructions import MMA_COLUMNS, MMA_ROWS
from gossamer_cuda_mma_sp.instructions.warpgroup_instructions import WarpgroupInstruction
from gossamer_cuda_mma_sp.n_m.n_m_patterns import NMPattern
from gossamer_cuda_mma_sp.n_m.operand_dtypes import operand_dtype_named
from gossamer_ir.core.build import ZERO, add, binary, floordiv, index, mul
from gossamer_ir.core.limits import WARP_LANES
from gossamer_ir.nodes import Binary, Const, Expr, Var

TiledInstruction: TypeAlias = MatrixInstruction | WarpgroupInstruction
"""An instruction for tiles: of a warp, or of four warps."""
SlotIndices: TypeAlias = tuple[Expr, ...]
"""The indices of an element of a fragment, in the number of a lane."""


class Slot(msgspec.Struct, frozen=True):
    """The place of an element in a lane: the number in a buffer of the lane, and for metadata the bit at
    which it begins there."""

    number: int
    indices: SlotIndices
    bit: int | None = None
    pattern: NMPattern | None = None
    """The pattern of the groups of metadata."""

    def metadata_bits(self, unit: Expr) -> Expr:
        """Return the bits of the index of a unit: two of them, or a whole nibble if the group has one."""
        assert self.pattern is not None, "the slot is one of metadata"
        bits = binary("bitand", unit, Const("uint32", str(self.pattern.units - 1)))
        if self.pattern.slots > 1:
            return bits
        first, second = self.pattern.legal
        step = binary("mul", bits, Const("uint32", str(second - first)))
        return Binary("add", step, Const("uint32", str(first)))


class FragmentLayout(msgspec.Struct, frozen=True):
    """The slots of a lane, and the dtype and number of the elements of its buffer."""

    dtype: str
    size: int
    slots: tuple[Slot, ...]
    warp_first: Expr = ZERO
    """The first row of A, or column of B, of the warp of a lane."""

    @property
    def is_metadata(self) -> bool:
        """True if elements are bits of words."""
        return any(slot.bit is not None for slot in self.slots)


class TileCounts(msgspec.Struct, frozen=True):
    """The numbers of tiles of a product: of 16 rows for each row of warps, of 8 columns for each column of
    warps, and of the depth of an instruction.

    >>> TileCounts(rows=4, columns=4, depth=1, warps=8, column_warps=4).row_warps
    2
    """

    rows: int
    columns: int
    depth: int
    warps: int
    """The warps that hold the fragments together."""
    column_warps: int = 1
    """The warps that have different columns of the same rows."""

    @property
    def row_warps(self) -> int:
        """The warps that have different rows."""
        return self.warps // self.column_warps


def accumulator_layout(dtype: str, tiles: TileCounts, lane: Var) -> FragmentLayout:
    """Return the layout of the accumulator, rows by columns: 4 elements of each tile."""
    g, t = _first_row(tiles, lane), _lane_of_quad(lane)
    rows, first = MMA_ROWS * tiles.row_warps, _first_column(tiles, lane)
    slots = [
        Slot(
            4 * (tiles.columns * i + j) + e,
            (
                add(g, index(rows * i + 8 * (e // 2))),
                add(add(first, mul(t, index(2))), index(MMA_COLUMNS * j + e % 2)),
            ),
        )
        for i in range(tiles.rows)
        for j in range(tiles.columns)
        for e in range(4)
    ]
    return FragmentLayout(dtype, len(slots), tuple(slots))


def a_layout(
    dtype: str, instruction: TiledInstruction, tiles: TileCounts, lane: Var
) -> FragmentLayout:
    """Return the layout of A: rows by depth, or rows by groups, slots and pairs if it is sparse."""
    p, count = instruction.register_elements, instruction.a_registers
    slots, rows = [], MMA_ROWS * tiles.row_warps
    for i in range(tiles.rows):
        for k in range(tiles.depth):
            first = (i * tiles.depth + k) * count * p
            for r in range(count):
                row = add(_first_row(tiles, lane), index(rows * i + 8 * (r % 2)))
                start = k * instruction.stored_depth + r // 2 * 4 * p
                for j in range(p):
                    column = _columns(instruction, lane, start + j, p)
                    slots.append(Slot(first + r * p + j, (row, *column)))
    return FragmentLayout(dtype, len(slots), tuple(slots), _first_row_of_warp(tiles, lane))


def _columns(instruction: TiledInstruction, lane: Var, at: int, p: int) -> SlotIndices:
    """Return the column t * p + at, as a group, a slot and an element of a pair if A is sparse and there are
    several."""
    if not instruction.is_sparse:
        return (add(mul(_lane_of_quad(lane), index(p)), index(at)),)
    pattern = operand_dtype_named(instruction.a).pattern
    stored = pattern.slots * pattern.unit_columns
    group = add(mul(_lane_of_quad(lane), index(p // stored)), index(at // stored))
    slot = (index(at % stored // pattern.unit_columns),) if pattern.slots > 1 else ()
    pair = (index(at % pattern.unit_columns),) if pattern.unit_columns > 1 else ()
    return (group, *slot, *pair)


def b_layout(
    dtype: str, instruction: MatrixInstruction, tiles: TileCounts, lane: Var
) -> FragmentLayout:
    """Return the layout of B: depth by columns."""
    p, count = instruction.register_elements, instruction.b_registers
    slots, first_column = [], _first_column(tiles, lane)
    for k in range(tiles.depth):
        for j in range(tiles.columns):
            first = (k * tiles.columns + j) * count * p
            for r in range(count):
                for e in range(p):
                    start = k * instruction.depth + 4 * p * r + e
                    row = add(mul(_lane_of_quad(lane), index(p)), index(start))
                    column = add(add(first_column, _quad(tiles, lane)), index(MMA_COLUMNS * j))
                    slots.append(Slot(first + r * p + e, (row, column)))
    return FragmentLayout(dtype, len(slots), tuple(slots), first_column)


def metadata_layout(instruction: TiledInstruction, tiles: TileCounts, lane: Var) -> FragmentLayout:
    """Return the layout of the indices of A, rows by groups by slots: one word of each tile, for the selector
    0. Lanes of other selectors have the same words."""
    slots, pattern = [], operand_dtype_named(instruction.a).pattern
    for i in range(tiles.rows):
        for k in range(tiles.depth):
            for nibble in range(8):
                row, group = _group(instruction, tiles, lane, nibble)
                row = add(row, index(MMA_ROWS * tiles.row_warps * i))
                group = add(group, index(k * instruction.depth // pattern.group))
                for slot in range(pattern.slots):
                    at = (row, group, *((index(slot),) if pattern.slots > 1 else ()))
                    bit = 4 * nibble + 2 * slot
                    slots.append(Slot(i * tiles.depth + k, at, bit, pattern))
    return FragmentLayout("uint32", tiles.rows * tiles.depth, tuple(slots))


def _group(
    instruction: TiledInstruction, tiles: TileCounts, lane: Var, nibble: int
) -> tuple[Expr, Expr]:
    """Return the row and the group of a nibble in a word of a lane (`pack_metadata`)."""
    in_part = 4 if instruction.bits >= 16 else 8
    parts = instruction.depth // operand_dtype_named(instruction.a).pattern.group // in_part
    t = _lane_of_quad(lane)
    if in_part == 4:
        # A word has the groups of two rows.
        row = add(_first_row(tiles, lane), index(8 * (nibble // 4)))
        part = binary("floormod", lane, index(parts)) if parts > 1 else ZERO
    else:
        row = add(_first_row(tiles, lane), mul(binary("floormod", lane, index(2)), index(8)))
        part = floordiv(t, index(2)) if parts > 1 else ZERO
    return row, add(mul(part, index(in_part)), index(nibble % in_part))


def _first_row(tiles: TileCounts, lane: Var) -> Expr:
    """Return the first row of a lane: each row of warps has 16 rows, and a lane that of its quad and the
    eighth after it."""
    return add(_first_row_of_warp(tiles, lane), _quad(tiles, lane))


def _first_row_of_warp(tiles: TileCounts, lane: Var) -> Expr:
    if tiles.row_warps == 1:
        return ZERO
    return mul(floordiv(lane, index(WARP_LANES * tiles.column_warps)), index(MMA_ROWS))


def _first_column(tiles: TileCounts, lane: Var) -> Expr:
    """Return the first column of a lane: those of a warp follow each other."""
    if tiles.column_warps == 1:
        return ZERO
    warp = floordiv(lane, index(WARP_LANES))
    if tiles.row_warps > 1:
        warp = binary("floormod", warp, index(tiles.column_warps))
    return mul(warp, index(MMA_COLUMNS * tiles.columns))


def _quad(tiles: TileCounts, lane: Var) -> Expr:
    quad = floordiv(lane, index(4))
    return quad if tiles.warps == 1 else binary("floormod", quad, index(8))


def _lane_of_quad(lane: Var) -> Expr:
    return binary("floormod", lane, index(4))
