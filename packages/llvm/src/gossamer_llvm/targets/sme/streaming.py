"""The streaming mode of Arm SME, in which functions with matrix registers run.

A function enters the mode once, at its beginning. Vectors may have another length in it, so all functions of
a module whose results depend on that length run in it. Functions outside of the module, such as those that
allocate memory, cannot be called in it.

Source: Procedure Call Standard for the Arm 64-bit Architecture, "SME" (the block of TPIDR2_EL0, lazy saving).
"""

from __future__ import annotations

from collections.abc import Mapping

from gossamer_ir.analysis.scalable_vectors import uses_vscale
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.statement_kinds import CALLING_STMTS
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Function, Module
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.node_index import types_in
from gossamer_ir.traversal.walk import every_stmt
from gossamer_llvm.emitter.function_emitter import FunctionEmitter, FunctionForm
from gossamer_llvm.target_info import CODE_ALIGNMENT
from gossamer_llvm.values.scalars_and_vectors import vscale

_SAVED_ROWS = 8
"""The offset of the number of rows to save in the block of TPIDR2_EL0; the address for them is at 0."""


def streaming_forms(flat: Module, *, attributes: tuple[str, ...]) -> Mapping[str, FunctionForm]:
    """Return the form of the functions that run in streaming mode, by their names; refuse a module in which
    one of them calls others (`llvm.streaming.call`)."""
    if not any(map(_has_fragments, flat.functions)):
        return {}
    streaming = [function for function in flat.functions if uses_vscale(function)]
    for function in streaming:
        if not types_in(function).isdisjoint(CALLING_STMTS):
            raise UnsupportedError(
                "llvm.streaming.call",
                f"Function '{function.name}' has a parallel loop or a launch besides scalable vectors; in a "
                "module with matrix registers, scalable vectors have another length in its other functions.",
                hint="Use T.vscale() inside of the parallel loop only.",
            )
    form = FunctionForm(
        attributes=" ".join(("nounwind", *attributes, f"align {CODE_ALIGNMENT}")),
        begin=_enable_matrix_registers,
        end=_disable_matrix_registers,
        library_error=_allocation_error,
        gather_error=_gather_error,
    )
    return {function.name: form for function in streaming}


def _has_fragments(function: Function) -> bool:
    return any(buffer.scope == "fragment" for buffer in allocations(every_stmt(function)))


def _enable_matrix_registers(emitter: FunctionEmitter) -> None:
    """Emit the beginning of a function in streaming mode; its end disables the matrix registers again.

    A caller of the caller may have left its values in the matrix registers: it has told in TPIDR2_EL0 where
    the function that needs these next is to save them.
    """
    builder = emitter.builder
    save, row, following, done, ready = (builder.new_block() for _ in range(5))
    block = emitter.call_in_place("i64", "llvm.aarch64.sme.get.tpidr2", "")
    builder.branch(builder.value(f"icmp ne i64 {block}, 0"), save, ready)
    builder.begin(save)
    address = builder.value(f"inttoptr i64 {block} to ptr")
    memory = builder.value(f"load ptr, ptr {address}, align 8")
    field = builder.value(f"getelementptr i8, ptr {address}, i64 {_SAVED_ROWS}")
    count = builder.value(
        "zext i16 " + builder.value(f"load i16, ptr {field}, align 8") + " to i64"
    )
    size = builder.value(f"shl {vscale(emitter).typed}, 4")
    builder.fall_into(row)
    next_number = builder.forward()
    number = builder.value(f"phi i64 [ 0, %{save} ], [ {next_number}, %{following} ]")
    builder.branch(builder.value(f"icmp ult i64 {number}, {count}"), following, done)
    builder.begin(following)
    offset = builder.value(f"mul i64 {number}, {size}")
    place = builder.value(f"getelementptr i8, ptr {memory}, i64 {offset}")
    slice_ = builder.value(f"trunc i64 {number} to i32")
    emitter.call_void("llvm.aarch64.sme.str", f"i32 {slice_}, ptr {place}, i32 0")
    builder.define(next_number, f"add i64 {number}, 1")
    builder.jump(row)
    builder.begin(done)
    emitter.call_void("llvm.aarch64.sme.set.tpidr2", "i64 0")
    builder.fall_into(ready)
    emitter.call_void("llvm.aarch64.sme.za.enable", "")


def _disable_matrix_registers(emitter: FunctionEmitter) -> None:
    emitter.call_void("llvm.aarch64.sme.za.disable", "")


def _allocation_error(buffer_name: str) -> UnsupportedError:
    return UnsupportedError(
        "llvm.streaming.allocate",
        f"Buffer '{buffer_name}' would be allocated or cleared by a function that cannot be called while "
        "matrix registers are in use.",
        hint="In a function with matrix registers, buffers other than single scalable vectors are not "
        "supported yet.",
    )


def _gather_error(buffer_name: str, dtype: str) -> UnsupportedError | None:
    """Return the error for a scalable vector: in streaming mode, there are no instructions for it."""
    if not DType.parse(dtype).scalable:
        return None
    return UnsupportedError(
        "llvm.streaming.gather",
        f"Elements of buffer '{buffer_name}' that are not consecutive are accessed as a scalable vector, "
        "in a function with matrix registers.",
        hint="Access them one by one, or in a loop outside of the parallel loop with matrix registers.",
    )
