"""Parallel loops: run by the calling thread alone, or in chunks of equal weight by several threads.

The chunks depend only on the weights and the number of threads. Results do not depend on which thread runs
which chunk (see `chunk_loop`).
"""

from __future__ import annotations

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import ParallelFor
from gossamer_llvm.abi import workspace_address
from gossamer_llvm.control.launches import emit_arguments, emit_checked_call
from gossamer_llvm.control.portions import is_interruptible, portion_count
from gossamer_llvm.emitter.folding import add
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.parallel.chunk_loop import FIRST_UNITS, define_chunk_loop, define_run
from gossamer_llvm.parallel.closure import STATUS, ChunkPlan, field_address, write_closure
from gossamer_llvm.parallel.load_balancing import (
    UNITS_PER_SHARE,
    captures_of,
    define_boundary,
    emit_weight,
)

LITTLE_WORK = 16
"""If the work is less than this multiple of the grain, the share of a thread is one chunk. With the grain of
the default schedules, that is 30 to 60 microseconds of work. Processors of a shared machine differ in speed
for a while (measured on SpMV with two of them, at 50 to 200 microseconds: 1.05 to 1.2 times faster with
further chunks, which take about half a microsecond)."""

MUCH_WORK = 1 << 16
"""If the work is less than this multiple of the grain, chunks are run as a whole. With the grain of the
default schedules, that is about 0.1 seconds of work. A loop without a grain may always be much work."""


def emit_parallel_for(emitter: FunctionEmitter, node: ParallelFor) -> None:
    """Emit a parallel loop, which does nothing unless its extent is positive. If a chunk fails, its
    status is returned."""
    # The workspace, with the function that runs regions, is that of the entry.
    if not emitter.info.is_entry or emitter.module.target_info.is_device:
        raise UnsupportedError(
            "llvm.parallel_for.nested", "A 'ParallelFor' outside the entry is not supported yet."
        )
    builder = emitter.builder
    start, extent = emitter.expr(node.start), emitter.expr(node.extent)
    end = add(emitter, start, extent)
    arguments = emit_arguments(emitter, node.args)
    some, done = builder.new_block(), builder.new_block()
    builder.branch(builder.value(f"icmp sgt {extent.typed}, 0"), some, done)
    builder.begin(some)
    with emitter.available.scope():
        _emit_some(emitter, node, start, end, arguments)
    builder.jump(done)
    builder.begin(done)


def _emit_some(
    emitter: FunctionEmitter, node: ParallelFor, start: Value, end: Value, arguments: list[Value]
) -> None:
    """Emit a loop with at least one iteration, for the calling thread alone or for several."""
    builder = emitter.builder
    alone, together, done = (builder.new_block() for _ in range(3))
    low, high = (emit_weight(emitter, node, at) for at in (start, end))
    total = Value(builder.value(f"sub {high.typed}, {low.text}"), "int64")
    # The end may have wrapped, but the difference is right.
    extent = Value(builder.value(f"sub {end.typed}, {start.text}"), "int64")
    paid = _paid_threads(emitter, node, total)
    threads = _emit_thread_count(emitter, extent, paid)
    portions = _emit_portion_count(emitter, node, paid)
    # One thread runs portions, too.
    most = emitter.call("i64", "llvm.smax.i64", f"i64 {threads}, {portions.typed}")
    builder.branch(builder.value(f"icmp sgt i64 {most}, 1"), together, alone)
    builder.begin(alone)
    emit_checked_call(emitter, node.function, [start, end, *arguments])
    builder.jump(done)
    builder.begin(together)
    captures = captures_of(emitter, node)
    dtypes = [argument.dtype for argument in arguments]
    run = define_run(emitter, node.function, dtypes, begin=len(captures))
    boundary = define_boundary(emitter, node, captures)
    # There may be no thread with enough work.
    count = emitter.call("i64", "llvm.smax.i64", f"i64 {threads}, i64 1")
    plan = ChunkPlan(
        workspace=Value(emitter.workspace, "handle"),
        run=Value(f"@{run}", "handle"),
        boundary=Value(f"@{boundary}", "handle"),
        start=start,
        end=end,
        low=low,
        total=total,
        threads=Value(count, "int64"),
        first_units=_first_units(emitter, paid),
        portions=portions,
    )
    _emit_run(emitter, plan, [*captures.values(), *arguments])
    builder.jump(done)
    builder.begin(done)


def _paid_threads(emitter: FunctionEmitter, node: ParallelFor, total: Value) -> str:
    """Return the number of threads for which there is enough work: at least one grain each."""
    grain = emitter.expr(node.grain) if node.grain is not None else Value("1", "int64")
    positive = emitter.call("i64", "llvm.smax.i64", f"{grain.typed}, i64 1")
    return emitter.builder.value(f"sdiv {total.typed}, {positive}")


def _emit_thread_count(emitter: FunctionEmitter, extent: Value, paid: str) -> str:
    """Return the number of threads: the least of those of the workspace, those with enough work, and the
    number of iterations. It is 1 if the workspace has no function to run them."""
    builder = emitter.builder
    offered = builder.value(f"load i64, ptr {_workspace_field(emitter, 'threads')}, align 8")
    runner = builder.value(f"load ptr, ptr {_workspace_field(emitter, 'parallel')}, align 8")
    fewer = emitter.call("i64", "llvm.smin.i64", f"i64 {offered}, i64 {paid}")
    least = emitter.call("i64", "llvm.smin.i64", f"i64 {fewer}, {extent.typed}")
    # A bound for the int32 as which the count is passed.
    capped = emitter.call("i64", "llvm.smin.i64", f"i64 {least}, i64 65536")
    missing = builder.value(f"icmp eq ptr {runner}, null")
    return builder.value(f"select i1 {missing}, i64 1, i64 {capped}")


def _first_units(emitter: FunctionEmitter, paid: str) -> Value:
    """Return the number of units of the first chunk of a thread: its whole share if there is so little
    work that taking further chunks costs too much."""
    is_little = emitter.builder.value(f"icmp slt i64 {paid}, {LITTLE_WORK}")
    chosen = emitter.builder.value(
        f"select i1 {is_little}, i64 {UNITS_PER_SHARE}, i64 {FIRST_UNITS}"
    )
    return Value(chosen, "int64")


def _emit_portion_count(emitter: FunctionEmitter, node: ParallelFor, paid: str) -> Value:
    """Return the number of portions of a chunk: 1 unless there may be much work, and the caller has given a
    function that tells whether to stop."""
    builder = emitter.builder
    may_stop = is_interruptible(emitter, emitter.workspace)
    if node.grain is not None:
        is_much = builder.value(f"icmp sge i64 {paid}, {MUCH_WORK}")
        may_stop = builder.value(f"and i1 {may_stop}, {is_much}")
    return portion_count(emitter, may_stop)


def _emit_run(emitter: FunctionEmitter, plan: ChunkPlan, values: list[Value]) -> None:
    builder, threads = emitter.builder, plan.threads
    closure = write_closure(emitter, plan, values)
    symbol = define_chunk_loop(emitter.module)
    several, single, done = (builder.new_block() for _ in range(3))
    builder.branch(builder.value(f"icmp sgt {threads.typed}, 1"), several, single)
    builder.begin(single)
    builder.line(f"call void @{symbol}(ptr {closure})")
    builder.jump(done)
    builder.begin(several)
    runner = builder.value(f"load ptr, ptr {_workspace_field(emitter, 'parallel')}, align 8")
    count = builder.value(f"trunc {threads.typed} to i32")
    builder.line(f"call void {runner}(ptr @{symbol}, ptr {closure}, i32 {count}, i32 0)")
    builder.fall_into(done)
    field = field_address(emitter, closure, STATUS)
    status = builder.value(f"load atomic i64, ptr {field} monotonic, align 8")
    emitter.stop_if(builder.value(f"icmp ne i64 {status}, 0"), status)


def _workspace_field(emitter: FunctionEmitter, name: str) -> str:
    return emitter.builder.value(workspace_address(emitter.workspace, name))
