"""Fragments that are loaded from shared memory by `ldmatrix`: four matrices of 8 rows of 16 bytes at a time.

A lane addresses a row, 8 elements of 16 bits, and receives two elements of each matrix. Lane 4 * g + t has
the elements 2 * t and 2 * t + 1 of row g; of a matrix that is transposed in memory, those of column g. A
row has 16 elements of 8 bits, of which a lane receives four consecutive ones, or 4 elements of 32 bits, of
which a lane receives one. Neither can be transposed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from gossamer_cuda_mma_sp.codegen.fragments.fragment_layouts import FragmentLayout
from gossamer_cuda_mma_sp.n_m.n_m_patterns import TWO_OF_FOUR
from gossamer_ir.arith.affine import Affine, affine_of, expr_of
from gossamer_ir.arith.evaluate_integer import evaluate_integer
from gossamer_ir.core.build import ZERO, add, binary, floordiv, index, integer_value, mul
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.limits import WARP_LANES
from gossamer_ir.nodes import Buffer, Expr, For, Load, Store, Var
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.substitute import substitute
from gossamer_llvm import WarpLoad, warp_loop

_SLOTS = TWO_OF_FOUR.slots
_MATRIX_ROWS = 8
_ROW_BITS, _REGISTER_BITS = 128, 32
"""The bits of a row, which a lane addresses, and those that a lane receives."""
_TRANSPOSED_BITS = 16
"""The bits of the elements that the instruction can transpose."""
_LOADED_BITS = (8, _TRANSPOSED_BITS, _REGISTER_BITS)
"""The bits of the elements of fragments that the instruction fills."""
_COUNTS: tuple[Literal[1, 2, 4], ...] = (4, 2, 1)
"""The numbers of matrices that an instruction may load."""


class MatrixOrigin(msgspec.Struct, frozen=True):
    """The first element of the matrix of a register: its row in the fragment along the dimension of which
    quads of lanes have different rows, and that along the other one."""

    by_quad: int
    by_lane: int


class SharedTile(msgspec.Struct, frozen=True):
    """The source of a fragment: the load of an element, and the variables along the dimension of quads and
    along the other one. `is_transposed`: elements along the former are consecutive in memory."""

    store: Store
    load: Load
    quad_var: str
    lane_var: str
    is_transposed: bool


def shared_tile(
    store: Store, loops: Sequence[For], layout: FragmentLayout, *, fragment: Buffer, source: Buffer
) -> SharedTile | None:
    """Return the tile of shared memory that a store copies to a whole fragment; None if its rows are not
    aligned to 16 bytes, or for any other store."""
    bits = DType.parse(fragment.dtype).bits
    is_whole = all(
        loop.start == ZERO and integer_value(loop.extent) == integer_value(size)
        for loop, size in zip(_in_order(loops, store), fragment.shape, strict=False)
    )
    flat = _with_whole_rows(store)
    if flat is None or not is_whole or not _holds_whole_elements(layout, bits):
        return None
    if source.scope != "shared" or source.dtype != fragment.dtype or bits not in _LOADED_BITS:
        return None
    (first, second), load = flat
    quad_var, lane_var = (first, second) if _is_quad_first(layout) else (second, first)
    for is_transposed in (False, True)[: 1 + (bits == _TRANSPOSED_BITS)]:
        row, column = (lane_var, quad_var) if is_transposed else (quad_var, lane_var)
        if _has_aligned_rows(load, source, row=row, column=column):
            return SharedTile(store, load, quad_var, lane_var, is_transposed)
    return None


# Other expressions: no copies of elements.
def _with_whole_rows(store: Store) -> tuple[tuple[str, str], Load] | None:
    """Return the variables of the rows and the columns of a fragment that a store fills, and what it loads in
    terms of them; None for any other store. The columns `2 * q + s` of a sparse matrix, which has groups and
    slots in the fragment, have a variable of their own."""
    match store.indices, store.value:
        case (Var(name=first), Var(name=second)), Load() as load:
            return (first, second), load
        case (Var(name=row), Var() as group, Var() as slot), Load() as load:
            column = Var(f"{group.name} {slot.name}", "int64")
            form = affine_of(load.indices[-1])
            steps = (form.terms.get(group), form.terms.get(slot))
            outer_vars = free_vars(*load.indices[:-1])
            if steps == (_SLOTS, 1) and outer_vars.isdisjoint((group.name, slot.name)):
                rest = form - Affine({group: _SLOTS, slot: 1}, 0)
                last = expr_of(rest + Affine({column: 1}, 0))
                indices = (*load.indices[:-1], last)
                return (row, column.name), replace(load, indices=indices)
    return None


def _holds_whole_elements(layout: FragmentLayout, bits: int) -> bool:
    """Return whether a register has elements of as many bits: of some, instructions read fewer bits."""
    at_lanes = (_place_in_lane(layout.slots[0].indices, lane) for lane in (0, 1))
    first, second = (place[0 if not _is_quad_first(layout) else 1] for place in at_lanes)
    return second - first == _REGISTER_BITS // bits


def _in_order(loops: Sequence[For], store: Store) -> Iterator[For]:
    """Yield the loops over the dimensions of a fragment."""
    by_var = {loop.var: loop for loop in loops}
    for at in store.indices:
        if isinstance(at, Var):
            yield by_var[at.name]


def _is_quad_first(layout: FragmentLayout) -> bool:
    """Return whether the first dimension is that along which quads of lanes have different rows."""
    return _at_lane(layout.slots[0].indices[0], 4) != _at_lane(layout.slots[0].indices[0], 0)


def _at_lane(expr: Expr, lane: int) -> int:
    """Return the value of an index in a lane, whose number is its only variable."""
    return evaluate_integer(expr, dict.fromkeys(free_vars(expr), lane))


def _has_aligned_rows(load: Load, source: Buffer, *, row: str, column: str) -> bool:
    """Return whether elements along a variable are consecutive, and rows begin at multiples of 16 bytes."""
    *outer, last = load.indices
    pitch, elements = integer_value(source.shape[-1]), _row_elements(source.dtype)
    rest = affine_of(last) - affine_of(Var(column, "int64"))
    is_aligned = all(by % elements == 0 for by in (*rest.terms.values(), rest.constant))
    is_apart = column not in free_vars(*outer, *rest.terms) and row not in free_vars(last)
    steps = [affine_of(position).terms.get(Var(row, "int64"), 0) for position in outer]
    is_row = (
        sum(row in free_vars(position) for position in outer) == 1 and max(steps, default=0) == 1
    )
    return is_apart and is_aligned and is_row and pitch is not None and pitch % elements == 0


def _row_elements(dtype: str) -> int:
    return _ROW_BITS // DType.parse(dtype).bits


def matrix_loads(
    tile: SharedTile, layout: FragmentLayout, lane: Var, namer: Namer, *, lanes: int = WARP_LANES
) -> list[For]:
    """Return the loops that stand for the instructions that fill a fragment, which `lanes` lanes hold."""
    lane_of_warp = lane if lanes == WARP_LANES else binary("floormod", lane, index(WARP_LANES))
    register_elements = _REGISTER_BITS // DType.parse(layout.dtype).bits
    origins = _origins(layout, register_elements)
    loads: list[For] = []
    first = 0
    while first < len(origins):
        count = next(
            count
            for count in _COUNTS
            if first + count <= len(origins) and _is_regular(origins[first : first + count])
        )
        part = origins[first : first + count]
        stores = _operand_stores(
            tile, part, register_elements * first, lane_of_warp, warp_first=layout.warp_first
        )
        loaded = WarpLoad(count=count, is_transposed=tile.is_transposed)
        loads.append(warp_loop(namer.fresh("load"), loaded, stores))
        first += count
    return loads


def _origins(layout: FragmentLayout, register_elements: int) -> list[MatrixOrigin]:
    """Return the matrices of all registers of a lane of the first warp, in their order."""
    slots = sorted(layout.slots, key=lambda slot: slot.number)[::register_elements]
    is_quad_first = _is_quad_first(layout)
    pairs = [_place_in_lane(slot.indices, 0) for slot in slots]
    return [MatrixOrigin(*(pair if is_quad_first else reversed(pair))) for pair in pairs]


def _place_in_lane(indices: Sequence[Expr], lane: int) -> tuple[int, int]:
    """Return the row and the column of an element of a lane, also of one in a slot of a group."""
    row, column, *slot = [_at_lane(at, lane) for at in indices]
    return (row, _SLOTS * column + slot[0]) if slot else (row, column)


def _is_regular(part: Sequence[MatrixOrigin]) -> bool:
    """Return whether the origins of four matrices are sums of a part for each bit of their number."""
    if len(part) < 4:
        return True
    return all(
        getattr(part[3], name) - getattr(part[2], name)
        == getattr(part[1], name) - getattr(part[0], name)
        for name in MatrixOrigin.__struct_fields__
    )


def _operand_stores(
    tile: SharedTile, part: Sequence[MatrixOrigin], first: int, lane: Expr, *, warp_first: Expr
) -> tuple[Store, ...]:
    """Return the stores of a loop that stands for a load of some matrices."""
    number = floordiv(lane, index(_MATRIX_ROWS))
    by_quad = _origin_of(number, [origin.by_quad for origin in part])
    by_lane = _origin_of(number, [origin.by_lane for origin in part])
    by_quad = add(warp_first, by_quad)
    row = binary("floormod", lane, index(_MATRIX_ROWS))
    if tile.is_transposed:
        by_lane = add(by_lane, row)
    else:
        by_quad = add(by_quad, row)
    origin = part[0]
    addressed = _load_at(tile, by_quad, by_lane)
    # Threads read what others address, too: a barrier has to be before that.
    other = _load_at(tile, add(warp_first, index(origin.by_quad)), index(origin.by_lane))
    at = (index(first),)
    return tuple(Store(tile.store.buffer, at, load) for load in (addressed, other))


def _origin_of(number: Expr, origins: Sequence[int]) -> Expr:
    """Return the origin of the matrix of a number."""
    at: Expr = index(origins[0])
    if len(origins) > 1:
        low = binary("floormod", number, index(2))
        at = add(at, mul(low, index(origins[1] - origins[0])))
    if len(origins) > 2:
        high = floordiv(number, index(2))
        at = add(at, mul(high, index(origins[2] - origins[0])))
    return at


def _load_at(tile: SharedTile, by_quad: Expr, by_lane: Expr) -> Load:
    values = {tile.quad_var: by_quad, tile.lane_var: by_lane}
    return replace(tile.load, indices=tuple(substitute(at, values) for at in tile.load.indices))
