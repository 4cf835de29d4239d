"""Gathers from a small buffer on the stack, which LLVM keeps in registers: instructions permute their lanes.

A register of 64 bytes is a table of 16 or 8 elements. One instruction selects from two of them; of more, the
results of the halves are blended by a bit of the index.
"""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.build import integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Cast, Expr, Load, Ramp, Var
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.instructions import select_value
from gossamer_llvm.emitter.operands import BufferAddress, Value
from gossamer_llvm.emitter.types import element_bytes, value_type
from gossamer_llvm.memory.loads_and_stores import passthrough
from gossamer_llvm.values.masks import OFF, ON, emit_predicate

MAX_REGISTERS = 4
"""Maximum number of registers for a buffer: more blends cost as much as a gather."""

_REGISTER_BYTES = 64
_SUFFIXES = {"float32": "ps", "int32": "d", "float64": "pd", "int64": "q"}
"""The ending of the name of the intrinsic by dtype."""


def emit_permuted_load(emitter: FunctionEmitter, node: Load) -> Value | None:
    """Emit a gather from registers, or a masked gather whose indices are. Return None for any other load."""
    if not DType.parse(node.dtype).is_vector:
        return None
    if not _is_in_registers(emitter, node):
        return _with_permuted_indices(emitter, node)
    mask = emit_predicate(emitter, node.predicate)
    if mask is OFF:
        return passthrough(emitter, node)
    permuted = _emit_permute(emitter, node)
    return (
        permuted
        if mask is ON
        else select_value(emitter, mask, permuted, passthrough(emitter, node))
    )


def _is_in_registers(emitter: FunctionEmitter, node: Load) -> bool:
    """Return whether a load is a gather from a buffer that fits into a few registers."""
    dtype = DType.parse(node.dtype)
    if dtype.scalar not in _SUFFIXES or dtype.scalable or len(node.indices) != 1:
        return False
    # A scalar condition is a branch. LLVM combines loads with a constant stride itself.
    if _is_scalar(node.predicate) or isinstance(node.indices[0], Ramp):
        return False
    width = _width(node)
    return 1 < dtype.lanes <= width and _registers(emitter.buffers[node.buffer], width) > 0


def _is_scalar(predicate: Expr | None) -> bool:
    return predicate is not None and not DType.parse(dtype_of(predicate)).is_vector


def _width(node: Load) -> int:
    """Return the lanes of a register: the index of a lane is as wide as an element."""
    return _REGISTER_BYTES // element_bytes(node.dtype)


def _emit_permute(emitter: FunctionEmitter, node: Load) -> Value:
    """Emit a gather from registers. Lanes that are not enabled have some value."""
    location, width = emitter.buffers[node.buffer], _width(node)
    registers = _registers(location, width)
    tables = [_table(emitter, location, number, width) for number in range(registers)]
    index = _pad_indices(emitter, _index(emitter, node), width)
    selected_lanes = _select_elements(emitter, tables, index, width)
    return _first_lanes(emitter, selected_lanes, DType.parse(node.dtype).lanes)


def _with_permuted_indices(emitter: FunctionEmitter, node: Load) -> Value | None:
    """Emit a masked gather whose indices are gathers from registers. These have any value in lanes that are
    not enabled: LLVM would widen a blended vector, and gather with indices of 64 bits."""

    # Other expressions: stay.
    def permute_load(inner: Expr) -> Var | None:
        if (
            not isinstance(inner, Load)
            or inner.predicate != node.predicate
            or not _is_in_registers(emitter, inner)
        ):
            return None
        value = _emit_permute(emitter, inner)
        # No variable of a program has the name of a register.
        emitter.vars.values[value.text] = value
        return Var(value.text, value.dtype)

    if node.predicate is None:
        return None
    indices = tuple(rewrite(index, permute_load) for index in node.indices)
    return None if indices == node.indices else emitter.expr(replace(node, indices=indices))


def _registers(location: BufferAddress, width: int) -> int:
    """Return the number of registers that hold a private buffer of one dimension: a power of two, at most
    `MAX_REGISTERS`; otherwise 0."""
    extents = location.buffer.shape
    elements = integer_value(extents[0]) if len(extents) == 1 else None
    if elements is None or not 0 < elements <= location.private_elements:
        return 0
    registers = 1
    while registers * width < elements:
        registers *= 2
    return registers if registers <= MAX_REGISTERS else 0


def _table(emitter: FunctionEmitter, location: BufferAddress, number: int, width: int) -> Value:
    """Load one register of a buffer as a whole."""
    dtype = DType(location.buffer.dtype, width).text
    offset = number * width * element_bytes(dtype)
    place = emitter.builder.value(f"getelementptr i8, ptr {location.address}, i64 {offset}")
    loaded = emitter.builder.value(
        f"load {value_type(dtype)}, ptr {place}, align {element_bytes(dtype)}"
    )
    return Value(loaded, dtype)


def _index(emitter: FunctionEmitter, node: Load) -> Value:
    """Return the indices of the lanes with the bits of an element; those of enabled lanes are small."""
    narrow = f"int{8 * element_bytes(node.dtype)}"
    dtype = DType.parse(node.dtype).with_scalar(narrow).text
    (index,) = node.indices
    # Without the cast to int64 and back, which would take several instructions.
    if isinstance(index, Cast) and dtype_of(index.value) == dtype:
        return emitter.expr(index.value)
    value = emitter.expr(index)
    if value.dtype == dtype:
        return value
    is_wider = DType.parse(value.dtype).bits > DType.parse(dtype).bits
    operation = "trunc" if is_wider else "sext"
    return Value(emitter.builder.value(f"{operation} {value.typed} to {value_type(dtype)}"), dtype)


def _pad_indices(emitter: FunctionEmitter, index: Value, width: int) -> Value:
    """Return the indices in a vector of a whole register."""
    lanes = DType.parse(index.dtype).lanes
    if lanes == width:
        return index
    numbers = [f"i32 {lane}" if lane < lanes else "i32 poison" for lane in range(width)]
    dtype = DType(DType.parse(index.dtype).scalar, width).text
    return Value(_shuffle(emitter, index, numbers), dtype)


def _select_elements(
    emitter: FunctionEmitter, tables: list[Value], index: Value, width: int
) -> Value:
    """Return the elements of tables at indices, of which only the low bits count."""
    if len(tables) > 2:
        half = len(tables) // 2
        low = _select_elements(emitter, tables[:half], index, width)
        high = _select_elements(emitter, tables[half:], index, width)
        bit = f"splat ({value_type(DType.parse(index.dtype).scalar)} {half * width})"
        masked = emitter.builder.value(f"and {index.typed}, {bit}")
        is_high = emitter.builder.value(f"icmp ne {index.type} {masked}, zeroinitializer")
        chosen = f"select <{width} x i1> {is_high}, {high.typed}, {low.typed}"
        return Value(emitter.builder.value(chosen), low.dtype)
    first, last = tables[0], tables[-1]
    name = f"llvm.x86.avx512.vpermi2var.{_SUFFIXES[DType.parse(first.dtype).scalar]}.512"
    arguments = f"{first.typed}, {index.typed}, {last.typed}"
    return Value(emitter.call(first.type, name, arguments), first.dtype)


def _first_lanes(emitter: FunctionEmitter, value: Value, lanes: int) -> Value:
    dtype = DType(DType.parse(value.dtype).scalar, lanes).text
    if dtype == value.dtype:
        return value
    return Value(_shuffle(emitter, value, [f"i32 {lane}" for lane in range(lanes)]), dtype)


def _shuffle(emitter: FunctionEmitter, value: Value, numbers: list[str]) -> str:
    mask = f"<{len(numbers)} x i32> <{', '.join(numbers)}>"
    return emitter.builder.value(f"shufflevector {value.typed}, {value.type} poison, {mask}")
