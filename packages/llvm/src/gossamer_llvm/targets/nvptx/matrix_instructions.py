"""Matrix instructions of a GPU: the threads of a warp multiply what their registers hold."""

from __future__ import annotations

import msgspec

from gossamer_ir.core.build import integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import For, Store
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.targets.nvptx.warp_instructions import WarpProduct

ACCUMULATOR_TYPES = {"float32": "float", "int32": "i32", "float16": "<2 x half>"}
_ACCUMULATOR_ELEMENTS = 4


class OperandRegisters(msgspec.Struct, frozen=True):
    """The registers of an operand: their type, and the addresses of the elements in each.

    Elements are accessed one by one, as the rest of the program accesses them: LLVM would make a vector of
    memory that is accessed in several ways, of which parts have no value.
    """

    type: str
    element_bits: int
    stored_bits: int
    """The bits of an element in memory."""
    addresses: tuple[tuple[str, ...], ...]


def emit_warp_product(emitter: FunctionEmitter, node: For, instruction: WarpProduct) -> None:
    """Emit the call of an intrinsic: it adds the product to the accumulator, which stays where it is."""
    stores = [stmt for stmt in node.body if isinstance(stmt, Store)]
    accumulator, a, b, *metadata = stores
    sums = _accumulator(emitter, accumulator)
    operands = [
        *_operand(emitter, a, instruction, instruction.a_registers),
        *_operand(emitter, b, instruction, instruction.b_registers),
        *emit_register_loads(emitter, sums),
    ]
    for store in metadata:
        operands += emit_register_loads(emitter, operand_registers(emitter, store, "i32", 1))
        operands.append(f"i32 {instruction.selector}")
    result = f"{{ {', '.join([sums.type] * len(sums.addresses))} }}"
    products = emitter.call(result, instruction.intrinsic, ", ".join(operands))
    for number, addresses in enumerate(sums.addresses):
        part = emitter.builder.value(f"extractvalue {result} {products}, {number}")
        store_register(emitter, sums, part, addresses)


def _operand(
    emitter: FunctionEmitter, store: Store, instruction: WarpProduct, count: int
) -> list[str]:
    """Return the registers of A or B, of the type that the intrinsic takes."""
    if not instruction.rounds_to_tf32:
        type_, bits = instruction.operand_type, instruction.operand_bits
        return emit_register_loads(
            emitter, operand_registers(emitter, store, type_, count, bits=bits)
        )
    floats = emit_register_loads(emitter, operand_registers(emitter, store, "float", count))
    return [f"i32 {emitter.call('i32', 'llvm.nvvm.f2tf32.rna', number)}" for number in floats]


def _accumulator(emitter: FunctionEmitter, store: Store) -> OperandRegisters:
    dtype = emitter.buffers[store.buffer].buffer.dtype
    count = _ACCUMULATOR_ELEMENTS * DType.parse(dtype).bits // 32
    return operand_registers(emitter, store, ACCUMULATOR_TYPES[dtype], count)


def operand_registers(
    emitter: FunctionEmitter, store: Store, type_: str, count: int, *, bits: int | None = None
) -> OperandRegisters:
    """Return registers whose elements have as many bits, by default those that they have in memory."""
    location = emitter.buffers[store.buffer]
    first = integer_value(store.indices[0])
    assert first is not None
    stored_bits = DType.parse(location.buffer.dtype).bits
    elements = 32 // (bits or stored_bits)

    def address(number: int) -> str:
        offset = (first + number) * stored_bits // 8
        return emitter.builder.value(
            f"getelementptr inbounds i8, ptr {location.address}, i64 {offset}"
        )

    addresses = (
        tuple(address(register * elements + element) for element in range(elements))
        for register in range(count)
    )
    return OperandRegisters(type_, bits or stored_bits, stored_bits, tuple(addresses))


def emit_register_loads(emitter: FunctionEmitter, registers: OperandRegisters) -> list[str]:
    """Return the values of registers, with their type."""
    return [
        f"{registers.type} " + _load(emitter, registers, addresses)
        for addresses in registers.addresses
    ]


def _load(emitter: FunctionEmitter, registers: OperandRegisters, addresses: tuple[str, ...]) -> str:
    """Load a register, the first element in its lowest bits."""
    value, bits, stored_bits = (
        emitter.builder.value,
        registers.element_bits,
        registers.stored_bits,
    )
    if bits == 32:
        return value(f"load {registers.type}, ptr {addresses[0]}, align 4")
    word = "0"
    for number, address in enumerate(addresses):
        element = value(f"load i{stored_bits}, ptr {address}, align {stored_bits // 8}")
        wide = value(f"zext i{stored_bits} {element} to i32")
        if bits < stored_bits:
            wide = value(f"and i32 {wide}, {(1 << bits) - 1}")
        shifted = value(f"shl i32 {wide}, {bits * number}") if number else wide
        word = value(f"or i32 {word}, {shifted}") if number else shifted
    return word if registers.type == "i32" else value(f"bitcast i32 {word} to {registers.type}")


def store_register(
    emitter: FunctionEmitter, registers: OperandRegisters, result: str, addresses: tuple[str, ...]
) -> None:
    """Store a register of an instruction's result."""
    value, bits = emitter.builder.value, registers.element_bits
    if bits == 32:
        emitter.builder.line(f"store {registers.type} {result}, ptr {addresses[0]}, align 4")
        return
    word = value(f"bitcast {registers.type} {result} to i32")
    for number, address in enumerate(addresses):
        shifted = value(f"lshr i32 {word}, {bits * number}")
        element = value(f"trunc i32 {shifted} to i{bits}")
        emitter.builder.line(f"store i{bits} {element}, ptr {address}, align {bits // 8}")
