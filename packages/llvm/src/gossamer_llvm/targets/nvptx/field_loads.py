"""Loads of small numbers, such as the indices of an N:M matrix, to fields of a register: words of several
bytes, instead of each byte by itself."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import For, Load, Store
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.memory.addresses import emit_address
from gossamer_llvm.targets.nvptx.warp_instructions import FieldLoad

_WORD_BYTES, _BYTE_BITS, _WORD_BITS = 4, 8, 32
_PAIR_BITS = 2


def emit_field_load(emitter: FunctionEmitter, node: For, instruction: FieldLoad) -> None:
    """Emit the loads, the instructions that combine fields, and the store of the register."""
    value, bits = emitter.builder.value, _WORD_BYTES * instruction.field_bits
    stores = [stmt for stmt in node.body if isinstance(stmt, Store)]
    register = "0"
    words = (word for store in stores for word in _load_words(emitter, store))
    for number, word in enumerate(words):
        fields = _combine_bytes(emitter, word, instruction)
        if number:
            fields = value(f"shl i32 {fields}, {bits * number}")
            register = value(f"or i32 {register}, {fields}")
        else:
            register = fields
    if instruction.scale != 1:
        register = value(f"mul i32 {register}, {instruction.scale}")
    if instruction.addend:
        register = value(f"add i32 {register}, {instruction.addend}")
    target = emit_address(emitter, stores[0].buffer, stores[0].indices, is_certain=True)
    emitter.builder.line(f"store i32 {register}, ptr {target.pointer}, align 4")


def _load_words(emitter: FunctionEmitter, store: Store) -> Iterator[str]:
    """Yield the words that a store loads together."""
    load, value = store.value, emitter.builder.value
    assert isinstance(load, Load)
    size = DType.parse(load.dtype).lanes
    count = size // _WORD_BYTES
    source = emit_address(emitter, load.buffer, load.indices, is_certain=True)
    type_ = "i32" if count == 1 else f"<{count} x i32>"
    loaded = value(f"load {type_}, ptr {source.pointer}, align {size}")
    for number in range(count):
        yield loaded if count == 1 else value(f"extractelement {type_} {loaded}, i32 {number}")


def _combine_bytes(emitter: FunctionEmitter, word: str, instruction: FieldLoad) -> str:
    """Return the fields of the four bytes of a word, in the lowest bits of a register."""
    value, bits = emitter.builder.value, instruction.field_bits
    fields = value(f"and i32 {word}, {_repeat(instruction.mask, _BYTE_BITS)}")
    if bits == _PAIR_BITS:
        # Field n is moved from bit 8n to bit 24 + 2n. All other terms of the product are at bits of their
        # own below and above these, so that there are no carries.
        steps = range(_WORD_BITS - _BYTE_BITS, 0, bits - _BYTE_BITS)
        factor = sum(1 << step for step in steps)
        product = value(f"mul i32 {fields}, {factor}")
        return value(f"lshr i32 {product}, {_WORD_BITS - _BYTE_BITS}")
    for distance in (_BYTE_BITS, 2 * _BYTE_BITS):
        width = bits * distance // _BYTE_BITS
        moved = value(f"lshr i32 {fields}, {distance - width}")
        both = value(f"or i32 {fields}, {moved}")
        fields = value(f"and i32 {both}, {_repeat((1 << 2 * width) - 1, 2 * distance)}")
    return fields


def _repeat(mask: int, step: int) -> int:
    """Return a word with a mask at each multiple of so many bits."""
    return sum(mask << at for at in range(0, _WORD_BITS, step))
