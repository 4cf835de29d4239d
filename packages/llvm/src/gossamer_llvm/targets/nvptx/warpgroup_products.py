"""Products of warpgroups: four warps multiply what their registers and shared memory hold."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.nodes import For, Load, Store
from gossamer_ir.traversal.walk import collect
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.memory.addresses import emit_address
from gossamer_llvm.targets.nvptx.matrix_instructions import (
    ACCUMULATOR_TYPES,
    OperandRegisters,
    emit_register_loads,
    operand_registers,
    store_register,
)
from gossamer_llvm.targets.nvptx.warp_instructions import WarpgroupProduct, WarpgroupWait
from gossamer_llvm.targets.nvptx.warpgroup_assembly import (
    WarpgroupOperands,
    warpgroup_assembly,
    warpgroup_wait_assembly,
)

_A_REGISTERS = 4
_ADDRESS_UNIT_BITS = 4
_ADDRESS_MASK = (1 << 14) - 1
_OPERANDS = 3
"""The stores of a step of an accumulator: A, its metadata, and B."""


def emit_warpgroup_product(
    emitter: FunctionEmitter, node: For, instruction: WarpgroupProduct
) -> None:
    """Emit the assembly of all products: it adds them to the accumulators, which stay where they are."""
    stores = [stmt for stmt in node.body if isinstance(stmt, Store)]
    count = instruction.accumulators
    # The last stores say which elements the threads read, for the passes that insert barriers.
    operands = stores[count:][: _OPERANDS * count * instruction.steps]
    sums = [_sums(emitter, store, instruction.sums) for store in stores[:count]]
    steps = [
        _operands(emitter, operands[first:][:_OPERANDS], instruction)
        for first in range(0, len(operands), _OPERANDS)
    ]
    result, call = warpgroup_assembly(
        instruction.instruction,
        [_as_words(emitter, emit_register_loads(emitter, registers)) for registers in sums],
        steps,
        selector=instruction.selector,
        immediates=instruction.immediates,
        pending=instruction.pending_groups,
    )
    _store_sums(emitter, sums, result, emitter.builder.value_in_place(call))


def emit_warpgroup_wait(emitter: FunctionEmitter, node: For, instruction: WarpgroupWait) -> None:
    """Emit the wait for all products, after which the accumulators have their values."""
    sums = [
        _sums(emitter, store, instruction.sums) for store in node.body if isinstance(store, Store)
    ]
    words = [_as_words(emitter, emit_register_loads(emitter, registers)) for registers in sums]
    result, call = warpgroup_wait_assembly([word for values in words for word in values])
    _store_sums(emitter, sums, result, emitter.builder.value_in_place(call))


def _sums(emitter: FunctionEmitter, store: Store, count: int) -> OperandRegisters:
    type_ = ACCUMULATOR_TYPES[emitter.buffers[store.buffer].buffer.dtype]
    return operand_registers(emitter, store, type_, count)


def _operands(
    emitter: FunctionEmitter, stores: Sequence[Store], instruction: WarpgroupProduct
) -> WarpgroupOperands:
    """Return the operands of a step of an accumulator."""
    a, metadata, b = stores
    (word,) = emit_register_loads(emitter, operand_registers(emitter, metadata, "i32", 1))
    if instruction.a_descriptor is None:
        left = operand_registers(emitter, a, "i32", _A_REGISTERS, bits=instruction.operand_bits)
        lefts = tuple(emit_register_loads(emitter, left))
    else:
        lefts = (_descriptor(emitter, a, instruction.a_descriptor),)
    return WarpgroupOperands(lefts, _descriptor(emitter, b, instruction.descriptor), word)


def _as_words(emitter: FunctionEmitter, values: Sequence[str]) -> list[str]:
    """Return typed values, those of two elements as words, which assembly takes."""
    return [
        value
        if not value.startswith("<")
        else f"i32 {emitter.builder.value(f'bitcast {value} to i32')}"
        for value in values
    ]


def _store_sums(
    emitter: FunctionEmitter, sums: Sequence[OperandRegisters], result: str, products: str
) -> None:
    value = emitter.builder.value
    places = [(registers, addresses) for registers in sums for addresses in registers.addresses]
    for number, (registers, addresses) in enumerate(places):
        part = value(f"extractvalue {result} {products}, {number}")
        if registers.type.startswith("<"):
            part = value(f"bitcast i32 {part} to {registers.type}")
        store_register(emitter, registers, part, addresses)


def _descriptor(emitter: FunctionEmitter, store: Store, bits: int) -> str:
    """Return the descriptor of the tile whose first element a store loads; `bits` are those besides its
    address."""
    (load,) = collect(Load, store.value)
    value = emitter.builder.value
    source = emit_address(emitter, load.buffer, load.indices, is_certain=True).pointer
    shared = value(f"addrspacecast ptr {source} to ptr addrspace(3)")
    address = value(f"ptrtoint ptr addrspace(3) {shared} to i32")
    units = value(f"lshr i32 {address}, {_ADDRESS_UNIT_BITS}")
    field = value(f"zext i32 {value(f'and i32 {units}, {_ADDRESS_MASK}')} to i64")
    # A constant of LLVM is signed.
    bits -= bits >> 63 << 64
    return f"i64 {value(f'or i64 {field}, {bits}')}"
