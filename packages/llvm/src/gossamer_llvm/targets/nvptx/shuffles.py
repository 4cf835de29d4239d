"""Shuffles: the threads of a warp exchange values of their registers."""

from __future__ import annotations

from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.limits import WARP_LANES
from gossamer_ir.nodes import Shuffle
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.emitter.types import value_type
from gossamer_llvm.targets.nvptx.kernel_state import KernelState
from gossamer_llvm.targets.nvptx.threads import thread_number

_REGISTER_BITS = 32
_MODES = {"xor": "bfly", "down": "down"}


def emit_shuffle(emitter: FunctionEmitter, node: Shuffle) -> bool:
    """Emit the instructions for a value of any scalar dtype: one for each 32 bits."""
    dtype = node.var.dtype
    bits = DType.parse(dtype).bits
    word = max(bits, _REGISTER_BITS)
    register = _in_register(emitter, emitter.expr(node.value), bits, word)
    received = _exchange_registers(emitter, node, register, mask=_mask(emitter, node), word=word)
    value = Value(_from_register(emitter, received, dtype, bits), dtype)
    emitter.vars.bind(node.var.name, value, depth=emitter.builder.loop_depth)
    return True


def _mask(emitter: FunctionEmitter, node: Shuffle) -> str:
    """Emit the mask of the lanes that exchange values: those of the group of this thread."""
    x, y, z = emitter.state(KernelState).block
    rest = x * y * z % WARP_LANES
    if node.width == WARP_LANES and not rest:
        return "-1"
    builder, number = emitter.builder, thread_number(emitter)
    group = "-1"
    if node.width < WARP_LANES:
        first = builder.value(f"and i32 {number}, {WARP_LANES - node.width}")
        group = builder.value(f"shl i32 {(1 << node.width) - 1}, {first}")
    if not rest:
        return group
    # The last warp of a block has fewer threads.
    is_last = builder.value(f"icmp uge i32 {number}, {x * y * z - rest}")
    lanes = builder.value(f"select i1 {is_last}, i32 {(1 << rest) - 1}, i32 -1")
    return builder.value(f"and i32 {group}, {lanes}")


def _in_register(emitter: FunctionEmitter, value: Value, bits: int, word: int) -> str:
    """Emit the bits of a value as an integer of whole registers."""
    builder, integer = emitter.builder, value.text
    if not value_type(value.dtype).startswith("i"):
        integer = builder.value(f"bitcast {value.typed} to i{bits}")
    return builder.value(f"zext i{bits} {integer} to i{word}") if bits < word else integer


def _from_register(emitter: FunctionEmitter, word: str, dtype: str, bits: int) -> str:
    """Emit the value that is in the low bits of an integer."""
    builder, size = emitter.builder, max(bits, _REGISTER_BITS)
    value = builder.value(f"trunc i{size} {word} to i{bits}") if bits < size else word
    llvm_type = value_type(dtype)
    if llvm_type.startswith("i"):
        return value
    return builder.value(f"bitcast i{bits} {value} to {llvm_type}")


def _exchange_registers(
    emitter: FunctionEmitter, node: Shuffle, register: str, *, mask: str, word: int
) -> str:
    """Emit the exchange of each register of an integer."""
    if word == _REGISTER_BITS:
        return _exchange(emitter, node, register, mask)
    builder = emitter.builder
    low = builder.value(f"trunc i64 {register} to i32")
    shifted = builder.value(f"lshr i64 {register}, 32")
    high = builder.value(f"trunc i64 {shifted} to i32")
    low, high = (_exchange(emitter, node, part, mask) for part in (low, high))
    wide_low = builder.value(f"zext i32 {low} to i64")
    wide_high = builder.value(f"zext i32 {high} to i64")
    moved = builder.value(f"shl i64 {wide_high}, 32")
    return builder.value(f"or i64 {wide_low}, {moved}")


def _exchange(emitter: FunctionEmitter, node: Shuffle, register: str, mask: str) -> str:
    function = f"llvm.nvvm.shfl.sync.{_MODES[node.op]}.i32"
    # The upper bits keep lanes within groups, the lower ones are the last lane of a group.
    clamp = (WARP_LANES - node.width) << 8 | (WARP_LANES - 1)
    arguments = f"i32 {mask}, i32 {register}, i32 {node.offset}, i32 {clamp}"
    emitter.module.declare("i32", function, arguments)
    return emitter.builder.value(f"call i32 @{function}({arguments})")
