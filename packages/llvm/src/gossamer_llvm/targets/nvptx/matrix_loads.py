"""Matrix loads of a GPU (`ldmatrix`): the threads of a warp load matrices of 8 by 8 elements together.

A loop stands for such an instruction. Its annotation says how many matrices are loaded, and whether they are
transposed. Its first store names the first element of the registers in a buffer of the thread, and the row
that the thread addresses; another one names an element of the matrices that other threads address.
"""

from __future__ import annotations

from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import For, Load, Store
from gossamer_llvm.emitter.emitters import FunctionEmitter
from gossamer_llvm.memory.addresses import emit_address

MATRIX_LOAD = "matrix_load"
"""The annotation with the number of matrices: `x1`, `x2` or `x4`, with `.trans` if they are transposed."""

_ELEMENT_BYTES = 2
_REGISTER_ELEMENTS = 2


def is_matrix_load(node: For) -> bool:
    """Return whether a loop stands for a matrix load.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> is_matrix_load(For("load", ZERO, ONE, (), annotations=((MATRIX_LOAD, "x4"),)))
    True
    """
    return MATRIX_LOAD in dict(node.annotations)


def emit_matrix_load(emitter: FunctionEmitter, node: For) -> bool:
    """Emit the call of an intrinsic, and stores of its elements, which LLVM keeps in registers. Return False,
    without emitting anything, for a loop that does not stand for a matrix load."""
    if not is_matrix_load(node):
        return False
    store = node.body[0]
    assert isinstance(store, Store)
    assert isinstance(store.value, Load)
    kind = str(dict(node.annotations)[MATRIX_LOAD])
    count = int(kind.partition(".")[0].removeprefix("x"))
    source = emit_address(emitter, store.value.buffer, store.value.indices, is_certain=True)
    builder = emitter.builder
    shared = builder.value(f"addrspacecast ptr {source.pointer} to ptr addrspace(3)")
    result = "i32" if count == 1 else f"{{ {', '.join(['i32'] * count)} }}"
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.{kind}.b16.p3"
    loaded = emitter.call_in_place(result, name, f"ptr addrspace(3) {shared}")
    for number in range(count):
        word = loaded if count == 1 else builder.value(f"extractvalue {result} {loaded}, {number}")
        _store_word(emitter, store, number, word)
    return True


def _store_word(emitter: FunctionEmitter, store: Store, number: int, word: str) -> None:
    """Store the elements of a register one by one, as the rest of the program accesses them."""
    value = emitter.builder.value
    first = integer_value(store.indices[0])
    assert first is not None
    target = emitter.buffers[store.buffer].address
    for element in range(_REGISTER_ELEMENTS):
        at = _ELEMENT_BYTES * (first + _REGISTER_ELEMENTS * number + element)
        address = value(f"getelementptr inbounds i8, ptr {target}, i64 {at}")
        shifted = value(f"lshr i32 {word}, {16 * element}")
        half = value(f"trunc i32 {shifted} to i16")
        emitter.builder.line(f"store i16 {half}, ptr {address}, align {_ELEMENT_BYTES}")
