"""ParallelFor: the calling thread alone, or chunks of equal weight taken by several threads.

The chunks follow from the weights and the number of threads only; which thread runs which does not
matter to the results (see `trampoline`).
"""

from __future__ import annotations

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import ParallelFor
from gossamer_llvm.abi import PARALLEL_FIELD, THREADS_FIELD, WORKSPACE
from gossamer_llvm.control.calls import emit_arguments, emit_checked_call
from gossamer_llvm.emitter.emitters import FunctionEmitter, Value
from gossamer_llvm.emitter.folding import add
from gossamer_llvm.parallel.closure import STATUS, write_closure
from gossamer_llvm.parallel.load_balancing import (
    Captures,
    captures_of,
    define_search,
    define_weight,
)
from gossamer_llvm.parallel.trampoline import FIRST_UNITS, UNITS, Region, define_trampoline

LITTLE_WORK = 128
"""Grains below which shares are not divided: with the rules' grain, 0.1 to 0.2 milliseconds."""


def emit_parallel_for(emitter: FunctionEmitter, node: ParallelFor) -> None:
    """Nothing where the extent is not positive; the status of a failed chunk is returned."""
    if not emitter.is_entry:
        raise UnsupportedError(
            "llvm.parallel_for.nested", "A ParallelFor outside the entry is not lowered yet."
        )
    text = emitter.text
    start, extent = emitter.expr(node.start), emitter.expr(node.extent)
    end = add(emitter, start, extent)
    arguments = emit_arguments(emitter, node.args)
    some, done = text.new_block(), text.new_block()
    text.branch(text.value(f"icmp sgt {extent.typed}, 0"), some, done)
    text.begin(some)
    with emitter.scope():
        _emit_some(emitter, node, start, end, arguments)
    text.jump(done)
    text.begin(done)


def _emit_some(
    emitter: FunctionEmitter, node: ParallelFor, start: Value, end: Value, arguments: list[Value]
) -> None:
    """At least one iteration: the calling thread alone, or several."""
    text = emitter.text
    alone, together, done = (text.new_block() for _ in range(3))
    captures = captures_of(emitter, node)
    weight = define_weight(emitter, node, captures)
    low, total = _weights(emitter, weight, captures, start, end)
    extent = Value(text.value(f"sub {end.typed}, {start.text}"), "int64")
    paid = _paid_threads(emitter, node, total)
    threads = _threads(emitter, extent, paid)
    text.branch(text.value(f"icmp sgt i64 {threads}, 1"), together, alone)
    text.begin(alone)
    emit_checked_call(emitter, node.function, [start, end, *arguments])
    text.jump(done)
    text.begin(together)
    region = Region(
        node.function, define_search(emitter, weight, captures), tuple(captures.values())
    )
    plan = [start, end, low, total, Value(threads, "int64"), _first_units(emitter, paid)]
    _run(emitter, region, [*plan, *captures.values(), *arguments], threads)
    text.jump(done)
    text.begin(done)


def _weights(
    emitter: FunctionEmitter, weight: str, captures: Captures, start: Value, end: Value
) -> tuple[Value, Value]:
    """The weight at start and that of the whole range."""
    extra = "".join(f", {value.typed}" for value in captures.values())
    low, high = (
        emitter.text.value(f"call i64 @{weight}({at.typed}{extra})") for at in (start, end)
    )
    total = emitter.text.value(f"sub i64 {high}, {low}")
    return Value(low, "int64"), Value(total, "int64")


def _paid_threads(emitter: FunctionEmitter, node: ParallelFor, total: Value) -> str:
    """How many threads the work pays for."""
    grain = emitter.expr(node.grain) if node.grain is not None else Value("1", "int64")
    positive = emitter.call("i64", "llvm.smax.i64", f"{grain.typed}, i64 1")
    return emitter.text.value(f"sdiv {total.typed}, {positive}")


def _threads(emitter: FunctionEmitter, extent: Value, paid: str) -> str:
    """As many as the workspace has, the work pays for, and there are iterations; 1 where the
    workspace has no function to run them."""
    text = emitter.text
    offered = text.value(f"load i64, ptr {_field(emitter, THREADS_FIELD)}, align 8")
    runner = text.value(f"load ptr, ptr {_field(emitter, PARALLEL_FIELD)}, align 8")
    fewer = emitter.call("i64", "llvm.smin.i64", f"i64 {offered}, i64 {paid}")
    least = emitter.call("i64", "llvm.smin.i64", f"i64 {fewer}, {extent.typed}")
    capped = emitter.call("i64", "llvm.smin.i64", f"i64 {least}, i64 65536")
    missing = text.value(f"icmp eq ptr {runner}, null")
    return text.value(f"select i1 {missing}, i64 1, i64 {capped}")


def _first_units(emitter: FunctionEmitter, paid: str) -> Value:
    """How much of its share a thread takes at once: all of it, where taking turns costs too much."""
    is_little = emitter.text.value(f"icmp slt i64 {paid}, {LITTLE_WORK}")
    chosen = emitter.text.value(f"select i1 {is_little}, i64 {UNITS}, i64 {FIRST_UNITS}")
    return Value(chosen, "int64")


def _run(emitter: FunctionEmitter, region: Region, values: list[Value], threads: str) -> None:
    workspace = Value(emitter.workspace, "handle")
    text = emitter.text
    closure, address = write_closure(emitter, [workspace, *values])
    dtypes = tuple(value.dtype for value in values)
    symbol = define_trampoline(emitter.unit, region, closure, dtypes)
    runner = text.value(f"load ptr, ptr {_field(emitter, PARALLEL_FIELD)}, align 8")
    count = text.value(f"trunc i64 {threads} to i32")
    text.line(f"call void {runner}(ptr @{symbol}, ptr {address}, i32 {count}, i32 0)")
    field = closure.field(emitter, address, STATUS)
    status = text.value(f"load atomic i64, ptr {field} monotonic, align 8")
    emitter.stop_if(text.value(f"icmp ne i64 {status}, 0"), status)


def _field(emitter: FunctionEmitter, number: int) -> str:
    return emitter.text.value(
        f"getelementptr inbounds {WORKSPACE}, ptr {emitter.workspace}, i32 0, i32 {number}"
    )
