"""Matrix loads of a GPU (`ldmatrix`): the threads of a warp load matrices of 8 rows of 16 bytes together."""

from __future__ import annotations

from gossamer_ir.core.build import integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import For, Load, Store
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.memory.addresses import emit_address
from gossamer_llvm.targets.nvptx.warp_instructions import WarpLoad

_REGISTER_BITS = 32


def emit_warp_load(emitter: FunctionEmitter, node: For, instruction: WarpLoad) -> None:
    """Emit the call of an intrinsic, and stores of its elements, which LLVM keeps in registers."""
    store, count = node.body[0], instruction.count
    assert isinstance(store, Store)
    assert isinstance(store.value, Load)
    kind = f"x{count}{'.trans' if instruction.is_transposed else ''}"
    source = emit_address(emitter, store.value.buffer, store.value.indices, is_certain=True)
    builder = emitter.builder
    shared = builder.value(f"addrspacecast ptr {source.pointer} to ptr addrspace(3)")
    result = "i32" if count == 1 else f"{{ {', '.join(['i32'] * count)} }}"
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.{kind}.b16.p3"
    loaded = emitter.call_in_place(result, name, f"ptr addrspace(3) {shared}")
    for number in range(count):
        word = loaded if count == 1 else builder.value(f"extractvalue {result} {loaded}, {number}")
        _store_word(emitter, store, number, word)


def _store_word(emitter: FunctionEmitter, store: Store, number: int, word: str) -> None:
    """Store the elements of a register one by one, as the rest of the program accesses them."""
    value = emitter.builder.value
    first = integer_value(store.indices[0])
    assert first is not None
    location = emitter.buffers[store.buffer]
    bits = DType.parse(location.buffer.dtype).bits
    elements, size = _REGISTER_BITS // bits, bits // 8
    for element in range(elements):
        offset = size * (first + elements * number + element)
        address = value(f"getelementptr inbounds i8, ptr {location.address}, i64 {offset}")
        part = word
        if elements > 1:
            shifted = value(f"lshr i32 {word}, {bits * element}")
            part = value(f"trunc i32 {shifted} to i{bits}")
        emitter.builder.line(f"store i{bits} {part}, ptr {address}, align {size}")
