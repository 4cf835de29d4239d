"""ParallelFor: the calling thread alone, or chunks of equal weight taken by several threads.

The chunks follow from the weights and the number of threads only; which thread runs which does not
matter to the results (see `trampoline`).
"""

from __future__ import annotations

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import ParallelFor
from gossamer_llvm.abi import PARALLEL_FIELD, THREADS_FIELD, WORKSPACE
from gossamer_llvm.calls import emit_arguments, emit_checked_call
from gossamer_llvm.closure import STATUS, write_closure
from gossamer_llvm.folding import add
from gossamer_llvm.frame import Frame, Value
from gossamer_llvm.trampoline import FIRST_UNITS, UNITS, Region, define_trampoline
from gossamer_llvm.weights import Captures, captures_of, define_search, define_weight

LITTLE_WORK = 128
"""Grains below which shares are not divided: with the rules' grain, 0.1 to 0.2 milliseconds."""


def emit_parallel_for(frame: Frame, node: ParallelFor) -> None:
    """Nothing where the extent is not positive; the status of a failed chunk is returned."""
    if not frame.is_entry:
        raise UnsupportedError(
            "llvm.parallel_for.nested", "A ParallelFor outside the entry is not lowered yet."
        )
    text = frame.text
    start, extent = frame.expr(node.start), frame.expr(node.extent)
    end = add(frame, start, extent)
    arguments = emit_arguments(frame, node.args)
    some, done = text.new_block(), text.new_block()
    text.branch(text.value(f"icmp sgt {extent.typed}, 0"), some, done)
    text.begin(some)
    with frame.scope():
        _emit_some(frame, node, start, end, arguments)
    text.jump(done)
    text.begin(done)


def _emit_some(
    frame: Frame, node: ParallelFor, start: Value, end: Value, arguments: list[Value]
) -> None:
    """At least one iteration: the calling thread alone, or several."""
    text = frame.text
    alone, together, done = (text.new_block() for _ in range(3))
    captures = captures_of(frame, node)
    weight = define_weight(frame, node, captures)
    low, total = _weights(frame, weight, captures, start, end)
    extent = Value(text.value(f"sub {end.typed}, {start.text}"), "int64")
    paid = _paid_threads(frame, node, total)
    threads = _threads(frame, extent, paid)
    text.branch(text.value(f"icmp sgt i64 {threads}, 1"), together, alone)
    text.begin(alone)
    emit_checked_call(frame, node.function, [start, end, *arguments])
    text.jump(done)
    text.begin(together)
    region = Region(node.function, define_search(frame, weight, captures), tuple(captures.values()))
    plan = [start, end, low, total, Value(threads, "int64"), _first_units(frame, paid)]
    _run(frame, region, [*plan, *captures.values(), *arguments], threads)
    text.jump(done)
    text.begin(done)


def _weights(
    frame: Frame, weight: str, captures: Captures, start: Value, end: Value
) -> tuple[Value, Value]:
    """The weight at start and that of the whole range."""
    extra = "".join(f", {value.typed}" for value in captures.values())
    low, high = (frame.text.value(f"call i64 @{weight}({at.typed}{extra})") for at in (start, end))
    total = frame.text.value(f"sub i64 {high}, {low}")
    return Value(low, "int64"), Value(total, "int64")


def _paid_threads(frame: Frame, node: ParallelFor, total: Value) -> str:
    """How many threads the work pays for."""
    grain = frame.expr(node.grain) if node.grain is not None else Value("1", "int64")
    positive = frame.call("i64", "llvm.smax.i64", f"{grain.typed}, i64 1")
    return frame.text.value(f"sdiv {total.typed}, {positive}")


def _threads(frame: Frame, extent: Value, paid: str) -> str:
    """As many as the workspace has, the work pays for, and there are iterations; 1 where the
    workspace has no function to run them."""
    text = frame.text
    offered = text.value(f"load i64, ptr {_field(frame, THREADS_FIELD)}, align 8")
    runner = text.value(f"load ptr, ptr {_field(frame, PARALLEL_FIELD)}, align 8")
    fewer = frame.call("i64", "llvm.smin.i64", f"i64 {offered}, i64 {paid}")
    least = frame.call("i64", "llvm.smin.i64", f"i64 {fewer}, {extent.typed}")
    capped = frame.call("i64", "llvm.smin.i64", f"i64 {least}, i64 65536")
    missing = text.value(f"icmp eq ptr {runner}, null")
    return text.value(f"select i1 {missing}, i64 1, i64 {capped}")


def _first_units(frame: Frame, paid: str) -> Value:
    """How much of its share a thread takes at once: all of it, where taking turns costs too much."""
    is_little = frame.text.value(f"icmp slt i64 {paid}, {LITTLE_WORK}")
    chosen = frame.text.value(f"select i1 {is_little}, i64 {UNITS}, i64 {FIRST_UNITS}")
    return Value(chosen, "int64")


def _run(frame: Frame, region: Region, values: list[Value], threads: str) -> None:
    workspace = Value(frame.workspace, "handle")
    text = frame.text
    closure, address = write_closure(frame, [workspace, *values])
    dtypes = tuple(value.dtype for value in values)
    symbol = define_trampoline(frame.unit, region, closure, dtypes)
    runner = text.value(f"load ptr, ptr {_field(frame, PARALLEL_FIELD)}, align 8")
    count = text.value(f"trunc i64 {threads} to i32")
    text.line(f"call void {runner}(ptr @{symbol}, ptr {address}, i32 {count}, i32 0)")
    field = closure.field(frame, address, STATUS)
    status = text.value(f"load atomic i64, ptr {field} monotonic, align 8")
    frame.stop_if(text.value(f"icmp ne i64 {status}, 0"), status)


def _field(frame: Frame, number: int) -> str:
    return frame.text.value(
        f"getelementptr inbounds {WORKSPACE}, ptr {frame.workspace}, i32 0, i32 {number}"
    )
