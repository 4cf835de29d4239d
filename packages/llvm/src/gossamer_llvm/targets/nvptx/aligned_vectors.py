"""Vectors of consecutive elements in the arrays of callers, which one instruction loads or stores if they are
aligned to their size.

Arrays of callers are aligned to their elements only. A kernel with vectors has a copy for arrays and sizes
that align them. It tests these once: each access would otherwise be a branch.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gossamer_ir.core.build import integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import (
    AsyncCopy,
    Broadcast,
    Buffer,
    Compare,
    Expr,
    For,
    Function,
    Let,
    Load,
    Ramp,
    Stmt,
    Store,
)
from gossamer_ir.traversal.node_index import nodes_of_type
from gossamer_ir.traversal.walk import collect
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import BufferAddress
from gossamer_llvm.emitter.types import element_bytes
from gossamer_llvm.emitter.vector_accesses import AccessKey, VectorAccesses
from gossamer_llvm.memory.addresses import are_consecutive_lanes, without_unit_dimensions
from gossamer_llvm.targets.nvptx.kernel_state import KernelState
from gossamer_llvm.targets.nvptx.multiples import Multiples, SizeMultiples, joined_sizes
from gossamer_llvm.targets.nvptx.warp_instructions import warp_instruction_of

MAX_VECTOR_BYTES = 16
"""The bytes of the largest load and store of one thread."""


class AlignedVectors(msgspec.Struct, frozen=True):
    """The vectors of a kernel that are aligned if its arrays are and sizes are multiples."""

    accesses: VectorAccesses
    handles: dict[str, int]
    """The bytes of which the addresses of arrays must be multiples, by their handles."""
    sizes: SizeMultiples


def aligned_vectors(function: Function) -> AlignedVectors | None:
    """Return the vectors of a kernel that can be proved to be aligned; None if there are none.

    Kernels with instructions of warps have none: asynchronous copies bring their operands, and these test
    addresses themselves, so a copy of such a large kernel would gain little.
    """
    if any(map(warp_instruction_of, nodes_of_type(function, For))):
        return None
    arrays = {
        buffer.name: buffer
        for buffer in function.buffers
        if isinstance(buffer, Buffer) and buffer.handle is not None
    }
    multiples = _multiples_in(function)
    alignments, masks = dict[AccessKey, int](), dict[Expr, Expr]()
    handles, sizes = dict[str, int](), dict[str, int]()
    for access in _plain_vectors(function):
        buffer = arrays.get(access.buffer)
        wanted = None if buffer is None else _alignment(access, buffer, multiples)
        if buffer is None or wanted is None:
            continue
        alignment, needed = wanted
        condition = None
        if access.predicate is not None:
            masked = _uniform_condition(access.predicate, multiples)
            if masked is None:
                continue
            condition, others = masked
            needed = joined_sizes(needed, others)
            masks[access.predicate] = condition
        alignments[access_key(access)] = alignment
        handles = joined_sizes(handles, {str(buffer.handle): alignment})
        sizes = joined_sizes(sizes, needed)
    if not alignments:
        return None
    return AlignedVectors(VectorAccesses(alignments, masks), handles, sizes)


def emit_body_with_vectors(
    emitter: FunctionEmitter, body: tuple[Stmt, ...], vectors: AlignedVectors
) -> None:
    """Emit the body of a kernel twice: with aligned vectors, and for arrays or sizes that prevent them."""
    builder, kernel = emitter.builder, emitter.state(KernelState)
    aligned, unaligned, join = builder.new_block(), builder.new_block(), builder.new_block()
    builder.branch(_emit_test(emitter, vectors), aligned, unaligned)
    builder.begin(aligned)
    emitter.vectors = vectors.accesses
    emitter.body(body)
    builder.jump(join)
    builder.begin(unaligned)
    # Both copies have the same buffers in shared memory.
    emitter.vectors, kernel.shared_bytes = VectorAccesses(), 0
    emitter.body(body)
    builder.fall_into(join)


def access_key(access: Load | Store) -> AccessKey:
    """Return the key of an access in `VectorAccesses`."""
    dtype = access.dtype if isinstance(access, Load) else dtype_of(access.value)
    return access.buffer, access.indices, dtype


# Other statements: what they bind is a multiple of nothing.
def _multiples_in(function: Function) -> Multiples:
    lets = {node.var.name: node.value for node in nodes_of_type(function, Let)}
    integers = (param.name for param in function.params if DType.parse(param.dtype).is_integer)
    return Multiples(lets, frozenset(integers))


# Other statements: access no array by plain vectors.
def _plain_vectors(function: Function) -> Iterator[Load | Store]:
    """Yield the accesses to consecutive elements, but for asynchronous copies, which test their addresses."""
    copied = {
        access for node in nodes_of_type(function, AsyncCopy) for access in collect(Load, node)
    }
    for access in (*nodes_of_type(function, Load), *nodes_of_type(function, Store)):
        dtype = DType.parse(access_key(access)[2])
        if dtype.is_vector and not dtype.scalable and access not in copied:
            yield access


def _alignment(
    access: Load | Store, buffer: Buffer, multiples: Multiples
) -> tuple[int, SizeMultiples] | None:
    """Return the bytes to which an access is aligned, and the sizes on which that depends; None if it is not
    to consecutive elements, or not aligned."""
    location = BufferAddress(buffer, "")
    indices = without_unit_dimensions(location, access.indices)
    if not indices or not are_consecutive_lanes(indices):
        return None
    *outer, last = indices
    assert isinstance(last, Ramp)
    size = element_bytes(buffer.dtype)
    alignment = min(DType.parse(access_key(access)[2]).lanes * size, MAX_VECTOR_BYTES)
    unit = alignment // size
    if unit & unit - 1:
        return None
    needed = multiples.sizes(last.base, unit)
    for axis, index in enumerate(outer):
        strides = buffer.shape[axis + 1 : len(indices)]
        part = multiples.product_sizes((index, *strides), unit)
        if needed is None or part is None:
            return None
        needed = joined_sizes(needed, part)
    return None if needed is None else (alignment, needed)


# Other expressions: their lanes may differ.
def _uniform_condition(mask: Expr, multiples: Multiples) -> tuple[Expr, SizeMultiples] | None:
    """Return the condition of a mask whose lanes are all on or all off, and the sizes on which that depends;
    None for any other mask."""
    match mask:
        case Compare(
            op="lt", lhs=Ramp(base=base, stride=stride, lanes=lanes), rhs=Broadcast(value=end)
        ):
            if lanes.scalable or integer_value(stride) != 1:
                return None
            first, last = multiples.sizes(base, lanes.count), multiples.sizes(end, lanes.count)
            if first is None or last is None:
                return None
            return Compare("lt", base, end), joined_sizes(first, last)
    return None


def _emit_test(emitter: FunctionEmitter, vectors: AlignedVectors) -> str:
    """Emit the condition that all addresses and sizes are multiples of what they have to be."""
    value = emitter.builder.value
    bits = []
    for name, unit in (*vectors.handles.items(), *vectors.sizes.items()):
        operand = emitter.vars.values[name]
        number = operand.text
        if operand.dtype == "handle":
            number = value(f"ptrtoint ptr {operand.text} to i64")
        elif operand.type != "i64":
            number = value(f"zext {operand.typed} to i64")
        bits.append(value(f"and i64 {number}, {unit - 1}"))
    rest, *others = bits
    for other in others:
        rest = value(f"or i64 {rest}, {other}")
    return value(f"icmp eq i64 {rest}, 0")
