"""Loads, stores and prefetches. Memory is assumed to be aligned to its elements only, except for the
vectors that a target proves to be aligned."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Load, Prefetch, Ramp, Store
from gossamer_llvm.emitter.folding import literal_value
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.instructions import icmp, insert_elements, select_value
from gossamer_llvm.emitter.lazy_choice import emit_lazy_choice
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.emitter.types import (
    constant_text,
    element_bytes,
    integer_text,
    intrinsic_suffix,
    mask_dtype,
    memory_type,
    pointer_type,
    splat,
    value_type,
)
from gossamer_llvm.memory.addresses import Address, emit_address, without_unit_dimensions
from gossamer_llvm.memory.index_pairs import load_indices_in_pairs
from gossamer_llvm.memory.lane_loads import loads_of_lanes
from gossamer_llvm.memory.masked_gathers import WholeGather, whole_gather
from gossamer_llvm.memory.unread_lanes import new_value
from gossamer_llvm.target_info import INSERTED_LANES
from gossamer_llvm.values.masks import OFF, ON, emit_predicate, is_nonnegative
from gossamer_machine.cache_line import LINE_BYTES

MIN_NONTEMPORAL = 16
"""Minimum bytes of a vector that is stored around the caches: those of the narrowest vector register."""


def emit_load(emitter: FunctionEmitter, node: Load) -> Value:
    """Emit a load: plain, masked, a gather, or a scalar load under a branch."""
    available = emitter.available.load(node)
    if available is not None:
        return available
    emitter.module.require_dtype(node.dtype)
    mask = _emit_mask(emitter, node, node.dtype)
    if mask is OFF:
        return passthrough(emitter, node)
    if _is_branch(mask):
        return _emit_branch_around_load(emitter, node, mask)
    inserted = _gather_as_scalar_loads(emitter, node) if mask is ON else None
    if inserted is not None:
        return inserted
    whole = None if mask is ON else _whole_gather(emitter, node)
    if whole is not None:
        return _gather_of_all_lanes(emitter, node, whole, mask)
    return _emit_load_by_mask(emitter, node, mask)


def _emit_load_by_mask(emitter: FunctionEmitter, node: Load, mask: Value) -> Value:
    address = emit_address(emitter, node.buffer, node.indices, is_certain=mask is ON)
    if address.is_scattered:
        _require_gather(emitter, node.buffer, node.dtype)
        return _emit_gather(emitter, node, address, mask)
    if mask is ON:
        loaded = _from_memory(emitter, _emit_load_of(emitter, node, address), node.dtype)
        emitter.add_available(node, loaded)
        return loaded
    # Cheaper than a masked load, and LLVM can promote the memory to a register.
    if _is_reserved(address, node.dtype):
        whole = _from_memory(emitter, _emit_plain_load(emitter, address, node.dtype), node.dtype)
        return select_value(emitter, mask, whole, passthrough(emitter, node))
    return _emit_masked_load(emitter, node, address, mask)


def emit_store(emitter: FunctionEmitter, node: Store) -> None:
    """Emit a store: plain, masked, a scatter, or a scalar store under a branch."""
    dtype = dtype_of(node.value)
    emitter.module.require_dtype(dtype)
    mask = _emit_mask(emitter, node, dtype)
    if mask is OFF:
        return
    if _is_branch(mask):
        _emit_branch_around_store(emitter, node, mask)
        return
    value = emitter.expr(new_value(node) if node in emitter.info.unmasked else node.value)
    if mask is ON and _scatter_as_scalar_stores(emitter, node, value):
        return
    address = emit_address(emitter, node.buffer, node.indices, is_certain=mask is ON)
    # Load, blend, store: as one plain store, it does not keep the buffer in memory.
    if mask is not ON and not address.is_scattered and _is_reserved(address, dtype):
        old = _from_memory(emitter, _emit_plain_load(emitter, address, dtype), dtype)
        value, mask = select_value(emitter, mask, value, old), ON
    data = _to_memory(emitter, value)
    if address.is_scattered:
        _require_gather(emitter, node.buffer, dtype)
    if mask is ON and not address.is_scattered:
        _emit_plain_store(emitter, node, address, data, dtype)
        return
    _emit_masked_store(emitter, address, data, dtype, mask)


def emit_prefetch(emitter: FunctionEmitter, node: Prefetch) -> None:
    """Emit a prefetch into the nearest cache; it never faults. A device hides latencies by its threads."""
    if emitter.module.target_info.is_device:
        return
    address = emit_address(emitter, node.buffer, node.indices, is_certain=False)
    emitter.call_void("llvm.prefetch.p0", f"ptr {address.pointer}, i32 0, i32 3, i32 1")


def _emit_mask(emitter: FunctionEmitter, node: Load | Store, dtype: str) -> Value:
    """Emit the mask of an access: a scalar for a vector in memory whose lanes are all on or all off."""
    predicate, vectors = node.predicate, emitter.vectors
    if predicate is not None and vectors.alignment(node.buffer, node.indices, dtype) is not None:
        # A gather keeps its mask: one branch is around one plain load or store.
        predicate = vectors.conditions.get(predicate, predicate)
    return emit_predicate(emitter, predicate)


def _emit_load_of(emitter: FunctionEmitter, node: Load, address: Address) -> str:
    proved = emitter.vectors.alignment(node.buffer, node.indices, node.dtype)
    return _emit_plain_load(emitter, address, node.dtype, align=proved)


def _emit_plain_load(
    emitter: FunctionEmitter, address: Address, dtype: str, *, align: int | None = None
) -> str:
    align = align or element_bytes(dtype)
    return emitter.builder.value(f"load {memory_type(dtype)}, ptr {address.pointer}, align {align}")


def _emit_masked_load(emitter: FunctionEmitter, node: Load, address: Address, mask: Value) -> Value:
    type_ = memory_type(node.dtype)
    rest = _to_memory(emitter, passthrough(emitter, node))
    arguments = f"ptr {address.pointer}, i32 {element_bytes(node.dtype)}, {mask.typed}, {rest}"
    loaded = emitter.call(type_, f"llvm.masked.load.{intrinsic_suffix(type_)}.p0", arguments)
    return _from_memory(emitter, loaded, node.dtype)


def _emit_gather(emitter: FunctionEmitter, node: Load, address: Address, mask: Value) -> Value:
    type_ = memory_type(node.dtype)
    # With all lanes on, no lane has the passthrough value, and LLVM need not build it.
    rest = f"{type_} poison" if mask is ON else _to_memory(emitter, passthrough(emitter, node))
    arguments = (
        f"{pointer_type(node.dtype)} {address.pointer}, i32 {element_bytes(node.dtype)}, "
        f"{_mask_text(node.dtype, mask)}, {rest}"
    )
    name = (
        f"llvm.masked.gather.{intrinsic_suffix(type_)}.{intrinsic_suffix(pointer_type(node.dtype))}"
    )
    return _from_memory(emitter, emitter.call(type_, name, arguments), node.dtype)


def _gather_as_scalar_loads(emitter: FunctionEmitter, node: Load) -> Value | None:
    """Return a gather of few lanes as scalar loads, which is faster on most CPUs; None for other loads."""
    dtype = DType.parse(node.dtype)
    last = without_unit_dimensions(emitter.buffers[node.buffer], node.indices)[-1:]
    # A ramp with a stride is left to LLVM, which may combine its loads with shuffles.
    if not _is_short(dtype, emitter.module.target_info.inserted_lanes) or (
        last and isinstance(last[0], Ramp)
    ):
        return None
    loads = loads_of_lanes(node, dtype.lanes)
    if loads is None:
        return None
    load_indices_in_pairs(emitter, node.indices)
    return insert_elements(emitter, map(emitter.expr, loads), node.dtype)


def _whole_gather(emitter: FunctionEmitter, node: Load) -> WholeGather | None:
    """Return the gather of all lanes of a masked gather that is faster as scalar loads."""
    whole = whole_gather(emitter, node)
    dtype = DType.parse(node.dtype)
    if whole is None or not _is_short(dtype, emitter.module.target_info.inserted_lanes):
        return None
    return whole if loads_of_lanes(whole.load, dtype.lanes) is not None else None


def _gather_of_all_lanes(
    emitter: FunctionEmitter, node: Load, whole: WholeGather, mask: Value
) -> Value:
    """Emit a masked gather: scalar loads of all lanes if these have indices, otherwise the instruction."""
    builder = emitter.builder
    begin, end, size = map(emitter.expr, (whole.begin, whole.end, whole.size))
    has_all = builder.value(f"icmp sle {end.typed}, {size.text}")
    if not is_nonnegative(emitter, whole.begin):
        # Masks may switch off lanes before the first element, too.
        is_after = builder.value(f"icmp sge {begin.typed}, 0")
        has_all = builder.value(f"and i1 {is_after}, {has_all}")
    rest = passthrough(emitter, node)

    def all_lanes() -> Value:
        loaded = _gather_as_scalar_loads(emitter, whole.load)
        assert loaded is not None
        return select_value(emitter, mask, loaded, rest)

    return emit_lazy_choice(
        emitter, has_all, all_lanes, lambda: _emit_load_by_mask(emitter, node, mask)
    )


def _is_short(dtype: DType, most: int) -> bool:
    """Return whether a gather or scatter has at most `most` lanes, which are then accessed one by one."""
    return not dtype.scalable and 1 < dtype.lanes <= most


def _scatter_as_scalar_stores(emitter: FunctionEmitter, node: Store, value: Value) -> bool:
    """Emit a scatter of few lanes as scalar stores in the order of the lanes. Return False, without emitting
    anything, for other stores."""
    dtype = DType.parse(value.dtype)
    last = without_unit_dimensions(emitter.buffers[node.buffer], node.indices)[-1:]
    if not _is_short(dtype, INSERTED_LANES) or (last and isinstance(last[0], Ramp)):
        return False
    # As a load, whose lanes are known how to address.
    loads = loads_of_lanes(Load(node.buffer, node.indices, value.dtype), dtype.lanes)
    if loads is None:
        return False
    load_indices_in_pairs(emitter, node.indices)
    data = _to_memory(emitter, value)
    for lane, load in enumerate(loads):
        address = emit_address(emitter, load.buffer, load.indices, is_certain=True)
        element = emitter.builder.value(f"extractelement {data}, i64 {lane}")
        stored = f"{memory_type(dtype.scalar)} {element}"
        emitter.builder.line(
            f"store {stored}, ptr {address.pointer}, align {element_bytes(value.dtype)}"
        )
    return True


def _emit_plain_store(
    emitter: FunctionEmitter, node: Store, address: Address, data: str, dtype: str
) -> None:
    proved = emitter.vectors.alignment(node.buffer, node.indices, dtype)
    plain = f"store {data}, ptr {address.pointer}, align {proved or element_bytes(dtype)}"
    align = _vector_alignment(dtype)
    # Private buffers are read again soon, so they belong in the cache.
    if not node.nontemporal or align < MIN_NONTEMPORAL or address.buffer.private_elements:
        emitter.builder.line(plain)
        return
    _emit_nontemporal_store(emitter, address, data, align, otherwise=plain)


def _emit_nontemporal_store(
    emitter: FunctionEmitter, address: Address, data: str, align: int, *, otherwise: str
) -> None:
    """Emit a store around the caches if the address is aligned, else an ordinary one.

    Instructions for such stores need aligned addresses on x86-64. They are not ordered with other stores, so
    the function ends with a fence: a thread that waits for its end also sees its stores.
    """
    builder = emitter.builder
    emitter.has_nontemporal_stores = True
    number = builder.value(f"ptrtoint ptr {address.pointer} to i64")
    rest = builder.value(f"and i64 {number}, {align - 1}")
    is_aligned = builder.value(f"icmp eq i64 {rest}, 0")
    around, through, join = builder.new_block(), builder.new_block(), builder.new_block()
    builder.branch(is_aligned, around, through)
    builder.begin(around)
    hint = emitter.module.new_metadata("!{i32 1}")
    builder.line(f"store {data}, ptr {address.pointer}, align {align}, !nontemporal {hint}")
    builder.jump(join)
    builder.begin(through)
    builder.line(otherwise)
    builder.fall_into(join)


def _vector_alignment(dtype: str) -> int:
    """Return the bytes of a vector, at most those of a cache line; 0 if unknown at compile time."""
    parsed = DType.parse(dtype)
    return 0 if parsed.scalable else min(parsed.lanes * element_bytes(dtype), LINE_BYTES)


def _emit_masked_store(
    emitter: FunctionEmitter, address: Address, data: str, dtype: str, mask: Value
) -> None:
    pointer = f"{pointer_type(dtype) if address.is_scattered else 'ptr'} {address.pointer}"
    arguments = f"{data}, {pointer}, i32 {element_bytes(dtype)}, {_mask_text(dtype, mask)}"
    shape = intrinsic_suffix(memory_type(dtype))
    if address.is_scattered:
        emitter.call_void(
            f"llvm.masked.scatter.{shape}.{intrinsic_suffix(pointer_type(dtype))}",
            arguments,
        )
    else:
        emitter.call_void(f"llvm.masked.store.{shape}.p0", arguments)


def _emit_branch_around_load(emitter: FunctionEmitter, node: Load, condition: Value) -> Value:
    builder = emitter.builder
    rest, before = passthrough(emitter, node), builder.block
    read, join = builder.new_block(), builder.new_block()
    builder.branch(condition.text, read, join)
    builder.begin(read)
    with emitter.available.scope():
        address = emit_address(emitter, node.buffer, node.indices, is_certain=True)
    value = _from_memory(emitter, _emit_load_of(emitter, node, address), node.dtype)
    end = builder.block
    builder.fall_into(join)
    incoming = f"[ {rest.text}, %{before} ], [ {value.text}, %{end} ]"
    return Value(builder.value(f"phi {rest.type} {incoming}"), node.dtype)


def _emit_branch_around_store(emitter: FunctionEmitter, node: Store, condition: Value) -> None:
    write, join = emitter.builder.new_block(), emitter.builder.new_block()
    emitter.builder.branch(condition.text, write, join)
    emitter.builder.begin(write)
    with emitter.available.scope():
        emit_store(emitter, replace(node, predicate=None))
    emitter.builder.fall_into(join)


def _require_gather(emitter: FunctionEmitter, buffer_name: str, dtype: str) -> None:
    """Refuse a gather or scatter that has no instructions in a function of this form."""
    error = emitter.form.gather_error(buffer_name, dtype)
    if error is not None:
        raise error


def passthrough(emitter: FunctionEmitter, node: Load) -> Value:
    """Return the value of a load in lanes that are not enabled: zero, unless the load has another one."""
    if node.passthrough is not None:
        return emitter.expr(node.passthrough)
    zero = constant_text(constant(0, DType.parse(node.dtype).scalar))
    return Value(splat(zero, node.dtype), node.dtype)


def _is_branch(mask: Value) -> bool:
    """Return whether an access is scalar and under a condition."""
    return mask is not ON and not DType.parse(mask.dtype).is_vector


def _is_reserved(address: Address, dtype_name: str) -> bool:
    """Return whether all lanes, even masked-off ones, lie in stack memory that no other function accesses.
    Then the whole vector is loaded or stored, and LLVM keeps it in a register."""
    first, dtype = literal_value(address.offset), DType.parse(dtype_name)
    if first is None or (dtype.scalable and not address.buffer.is_scalable):
        return False
    # For a scalable vector in a scalable buffer, both sides are multiplied by vscale, which is 1 or more.
    return 0 <= first <= address.buffer.private_elements - dtype.lanes


def _from_memory(emitter: FunctionEmitter, loaded: str, dtype: str) -> Value:
    """Return a loaded value; a bool in memory is true if its byte is not 0."""
    if DType.parse(dtype).kind != "bool":
        return Value(loaded, dtype)
    # LLVM's i1 in memory is not portable: NumPy stores one byte, which may have any value but 0 for true.
    byte = DType.parse(dtype).with_scalar("uint8").text
    return icmp(emitter, "ne", Value(loaded, byte), integer_text(0, byte))


def _to_memory(emitter: FunctionEmitter, value: Value) -> str:
    if DType.parse(value.dtype).kind != "bool":
        return value.typed
    type_ = memory_type(value.dtype)
    return f"{type_} " + emitter.builder.value(f"zext {value.typed} to {type_}")


def _mask_text(dtype: str, mask: Value) -> str:
    if mask is not ON:
        return mask.typed
    return f"{value_type(mask_dtype(dtype))} splat (i1 true)"
