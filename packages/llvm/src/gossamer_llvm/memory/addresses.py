"""Computes the address of an access, or a vector of addresses, from a buffer and indices."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_ir.arith.affine import ZERO_FORM, Affine, affine_of, expr_of
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of, has_lanes
from gossamer_ir.nodes import Binary, Broadcast, Cast, Expr, Load, Ramp, VScale
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import collect
from gossamer_llvm.emitter.folding import add, index_constant, mul
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.instructions import broadcast
from gossamer_llvm.emitter.operands import BufferAddress, Value
from gossamer_llvm.emitter.types import memory_type


class Address(msgspec.Struct, frozen=True, gc=False):
    """The address of an access. `offset` is in elements, of the first lane if lanes are consecutive.
    `is_scattered`: the pointer is a vector of addresses."""

    buffer: BufferAddress
    pointer: str
    offset: Value
    is_scattered: bool


def emit_address(
    emitter: FunctionEmitter, buffer_name: str, indices: tuple[Expr, ...], *, is_certain: bool
) -> Address:
    """Emit the address of an access. `is_certain`: the access is executed unconditionally, so the address is
    in bounds, which LLVM may rely on (`inbounds`, `nsw`)."""
    location = emitter.buffers[buffer_name]
    is_replaced = _is_replaced(emitter, buffer_name, indices)
    indices = without_unit_dimensions(location, indices)
    indices, uniform = _split_uniform_offset(indices)
    if uniform is not None:
        return _offset_address(emitter, location, indices[0], uniform)
    if _is_gathered_row(emitter, indices):
        return _gathered_row_address(emitter, location, indices)
    indices, distance = _split_constant_offset(emitter, indices)
    # The address without its constant offset may lie before the buffer, so it is not in bounds itself.
    is_certain &= distance == 0
    last = indices[-1] if indices else None
    if isinstance(last, Ramp) and are_consecutive_lanes(indices):
        values = [*map(emitter.expr, indices[:-1]), emitter.expr(last.base)]
        _require_vector_dtype(emitter, last)
    else:
        # A single index needs no arithmetic, so gathers may use narrow offsets.
        values = [
            emitter.expr(_widened_index(index) if len(indices) > 1 else index) for index in indices
        ]
    is_scattered = any(DType.parse(value.dtype).is_vector for value in values)
    offset = _row_major_offset(emitter, location, values, flags=" nsw" if is_certain else "")
    kind = " inbounds" if is_certain else ""
    pointer = _element_pointer(emitter, location, offset, kind)
    if distance:
        pointer, offset = _add_constant_offset(
            emitter, location, pointer, offset=offset, distance=distance
        )
    if is_replaced:
        pointer = _in_register(emitter, pointer)
    return Address(location, pointer, offset, is_scattered)


def _is_replaced(emitter: FunctionEmitter, buffer_name: str, indices: tuple[Expr, ...]) -> bool:
    """Return whether an access is to a scalar that is read and then stored anew, where an index found in
    memory selects it, as the next slot of a column.

    Its address is computed once, for the load and the store. AMD's processors predict from the operands of
    instructions which store a load reads from, often wrongly if one of them is an index register (measured
    on Zen 3 between CSR and CSC: such a loop takes 0.6 to 1.0 times as long with a pointer). Increments in
    memory do not gain, and would take one more instruction.
    """
    if (buffer_name, indices) not in emitter.info.replaced or any(map(has_lanes, indices)):
        return False
    return emitter.vars.depends_on_memory(*indices)


def without_unit_dimensions(location: BufferAddress, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the indices without those of the last dimensions if these have one element: the lanes of
    `X[T.ramp(0, 1, 8), 0]` are consecutive elements."""
    kept = len(indices)
    while kept > 1 and integer_value(location.buffer.shape[kept - 1]) == 1:
        kept -= 1
    return indices[:kept]


def _split_uniform_offset(
    indices: tuple[Expr, ...],
) -> tuple[tuple[Expr, ...], Expr | None]:
    """Return a single index of a gather or scatter without a scalar that all lanes add to narrower values,
    and the scalar; None if the index is not such a sum.

    The scalar then moves the base address, and the lanes keep their narrow offsets, of which an instruction
    addresses twice as many.
    """
    match indices:
        case (Binary(op="add", lhs=Cast(value=lanes), rhs=Broadcast(value=scalar)),) | (
            Binary(op="add", lhs=Broadcast(value=scalar), rhs=Cast(value=lanes)),
        ) if dtype_of(scalar) == "int64" and DType.parse(dtype_of(lanes)).scalar == "int32":
            return (lanes,), scalar
    return indices, None


def _offset_address(
    emitter: FunctionEmitter, location: BufferAddress, lanes: Expr, uniform: Expr
) -> Address:
    """Emit the addresses of lanes, relative to a scalar offset. Neither part needs to be in bounds."""
    element = memory_type(location.buffer.dtype)
    offset, distances = emitter.expr(uniform), emitter.expr(lanes)
    base = _element_pointer(emitter, location, offset, "")
    pointer = emitter.builder.value(f"getelementptr {element}, ptr {base}, {distances.typed}")
    return Address(location, pointer, distances, is_scattered=True)


def _is_gathered_row(emitter: FunctionEmitter, indices: tuple[Expr, ...]) -> bool:
    """Return whether an access is to consecutive elements of a row whose number is read from memory."""
    *outer, last = indices or (ZERO,)
    if not outer or not isinstance(last, Ramp) or not are_consecutive_lanes(indices):
        return False
    is_read = collect(Load, *outer) or not emitter.vars.loaded.isdisjoint(free_vars(*outer))
    return bool(is_read) and dtype_of(last.base) == "int64"


def _gathered_row_address(
    emitter: FunctionEmitter, location: BufferAddress, indices: tuple[Expr, ...]
) -> Address:
    """Emit the address of consecutive elements of a gathered row: a pointer that all vectors of the row
    share, and a distance from it that is constant, or a multiple of vscale."""
    *outer, last = indices
    assert isinstance(last, Ramp)
    _require_vector_dtype(emitter, last)
    form, distance = _split_distance(affine_of(last.base))
    row = [*map(emitter.expr, outer), index_constant(0)]
    offset = _row_major_offset(emitter, location, row, flags="")
    first = emitter.expr(expr_of(form))
    # The part that is invariant in the inner loop first: the same element of the first row, or the row.
    is_row_inside = emitter.vars.depth_of(last.base) <= emitter.vars.depth_of(*outer)
    outside, inside = (first, offset) if is_row_inside else (offset, first)
    start = replace(location, address=_element_pointer(emitter, location, outside, ""))
    pointer = _element_pointer(emitter, start, inside, "")
    if is_row_inside:
        pointer = _in_register(emitter, pointer)
    if distance != ZERO_FORM:
        away = emitter.expr(expr_of(distance))
        moved = replace(location, address=pointer)
        pointer = _element_pointer(emitter, moved, away, "")
        offset = add(emitter, offset, away)
    return Address(location, pointer, offset, is_scattered=False)


def _split_distance(form: Affine) -> tuple[Affine, Affine]:
    """Return an index without its constant and its multiple of vscale, and these, which instructions for
    scalable vectors add themselves."""
    terms: dict[Expr, int] = {
        atom: by for atom, by in form.terms.items() if isinstance(atom, VScale)
    }
    distance = Affine(terms, form.constant)
    return form - distance, distance


def _in_register(emitter: FunctionEmitter, pointer: str) -> str:
    """Return the same pointer, as the result of an instruction that LLVM cannot analyze.

    Then LLVM computes it once for all vectors of a row. Otherwise it adds the row to the start of the buffer
    in each addressing mode, for which the processor splits a multiply-add in two operations (measured on
    Emerald Rapids in products with 16 to 128 features: 1.05 to 1.15 times as fast in a register).
    """
    if emitter.module.target_info.is_device:
        return pointer
    call = f'call ptr asm "", "=r,0"(ptr {pointer}) nounwind willreturn memory(none)'
    return emitter.builder.value(call)


def _split_constant_offset(
    emitter: FunctionEmitter, indices: tuple[Expr, ...]
) -> tuple[tuple[Expr, ...], int]:
    """Return the indices without the constant offset of the last one, and the offset.

    Only if something is subtracted from the constant, or if an address has either an index or a constant. The
    offset then becomes part of an addressing mode, and
    the rest is shared between accesses.
    """
    *outer, last = indices or (ZERO,)
    first = last.base if isinstance(last, Ramp) and are_consecutive_lanes(indices) else last
    # Narrower indices may wrap before they are widened, so a constant cannot be taken out.
    if dtype_of(first) != "int64" or any(map(has_lanes, outer)):
        return indices, 0
    form = affine_of(first)
    # `X[n - 1 - i]`: LLVM does not reassociate the constant out of the subtraction. It does so for sums, but
    # adds the constant first.
    is_sum = not any(factor < 0 for factor in form.terms.values())
    if not form.constant or (is_sum and emitter.module.target_info.has_displaced_indices):
        return indices, 0
    rest = expr_of(Affine(form.terms, 0))
    if isinstance(last, Ramp):
        rest = Ramp(rest, last.stride, last.lanes)
    return (*outer, rest), form.constant


def are_consecutive_lanes(indices: tuple[Expr, ...]) -> bool:
    """Return whether the lanes of an access are consecutive elements."""
    *outer, last = indices
    is_by_one = isinstance(last, Ramp) and integer_value(last.stride) == 1
    return is_by_one and not any(map(has_lanes, outer))


def _widened_index(index: Expr) -> Expr:
    """Return an index with vectors widened to 64 bits, as are the offsets to which it is added."""
    dtype = DType.parse(dtype_of(index))
    is_narrow = dtype.is_vector and dtype.scalar != "int64"
    return Cast(dtype.with_scalar("int64").text, index) if is_narrow else index


def _add_constant_offset(
    emitter: FunctionEmitter, location: BufferAddress, pointer: str, *, offset: Value, distance: int
) -> tuple[str, Value]:
    element = memory_type(location.buffer.dtype)
    moved = emitter.builder.value(f"getelementptr {element}, ptr {pointer}, i64 {distance}")
    return moved, add(emitter, offset, index_constant(distance))


def _row_major_offset(
    emitter: FunctionEmitter, location: BufferAddress, values: list[Value], *, flags: str
) -> Value:
    """Return the row-major offset of indices, without those of `without_unit_dimensions`. That of an element
    that is accessed is less than the size of the buffer, so it does not overflow."""
    if not values:
        return index_constant(0)
    offset = values[0]
    extents = location.buffer.shape[1 : len(values)]
    for extent, value in zip(extents, values[1:], strict=True):
        factor = _broadcast_like(emitter, emitter.expr(extent), offset)
        offset = mul(emitter, offset, factor, flags=flags)
        offset, step = (
            _broadcast_like(emitter, offset, value),
            _broadcast_like(emitter, value, offset),
        )
        offset = add(emitter, offset, step, flags=flags)
    return offset


def _broadcast_like(emitter: FunctionEmitter, value: Value, other: Value) -> Value:
    """Return the value broadcast to the lanes of the other one, if that is a vector."""
    is_scalar = not DType.parse(value.dtype).is_vector
    if is_scalar and DType.parse(other.dtype).is_vector:
        return broadcast(emitter, value, other.dtype)
    return value


def _element_pointer(
    emitter: FunctionEmitter, location: BufferAddress, offset: Value, kind: str
) -> str:
    if offset.text == "0":
        return location.address
    element = memory_type(location.buffer.dtype)
    return emitter.builder.value(
        f"getelementptr{kind} {element}, ptr {location.address}, {offset.typed}"
    )


def _require_vector_dtype(emitter: FunctionEmitter, ramp: Ramp) -> None:
    emitter.module.require_dtype(DType("int64", ramp.lanes.count, ramp.lanes.scalable).text)
