"""The function that each thread of a parallel region runs: it takes chunks until none is left or one failed.

The range is divided into one share of equal weight for each thread. The n-th thread to arrive starts with the
greater part of share n, so that repeated calls find their data in the same caches. The rest of all shares is
divided into small chunks, which balance threads that took longer.

A chunk of much work is run in portions of its iterations. Between them the thread asks the workspace whether
to stop, and checks whether another thread has failed.
"""

from __future__ import annotations

import msgspec

from gossamer_ir.interchange.kernel_abi import INTERRUPTED
from gossamer_llvm.control.portions import (
    Portions,
    allocate_portions,
    begin_portions,
    next_portion,
    poll_interruption,
)
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.ir_builder import COLD
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.parallel.closure import COUNTER, STATUS, ChunkPlan, Closure, read_closure


class ParallelRegion(msgspec.Struct, frozen=True):
    """The function that runs a chunk, the function that searches for its bounds, and its captures."""

    function: str
    search: str
    captures: tuple[Value, ...]


class _ChunkRange(msgspec.Struct, frozen=True):
    """The range with its number of units, and the captures of its weight as further arguments."""

    plan: ChunkPlan
    units: Value
    captures: str


class _Blocks(msgspec.Struct, frozen=True):
    """The blocks of the function, in their order."""

    take: str
    """Takes the number of the next chunk, if none has failed."""
    run: str
    """Computes the range of the chunk."""
    portion: str
    """Runs a portion of it."""
    succeeded: str
    """Goes on to the next portion, or to the next chunk."""
    poll: str
    """Polls whether to stop."""
    fail: str
    """Tells the other threads that one has failed."""
    stop: str


class _Thread(msgspec.Struct, frozen=True):
    """The function that a thread runs, as far as it is emitted."""

    emitter: FunctionEmitter
    closure: Closure
    whole: _ChunkRange
    portions: Portions
    blocks: _Blocks


UNITS_PER_SHARE = 16
"""The number of equal units of a share; chunks consist of units."""

FIRST_UNITS = 14
"""The number of units in the first chunk of a thread, if there is much work."""


def define_trampoline(
    caller: FunctionEmitter, region: ParallelRegion, closure: Closure, dtypes: tuple[str, ...]
) -> str:
    """Emit the function `void trampoline(ptr closure)` and return its name."""
    module = caller.module
    symbol = module.new_symbol()
    emitter = caller.helper(f"internal void @{symbol}(ptr %closure) {COLD}")
    workspace, *values = read_closure(emitter, closure, "%closure", ("handle", *dtypes))
    plan = ChunkPlan(*values[: len(ChunkPlan._fields)])
    others = values[len(plan) :]
    captured, passed = others[: len(region.captures)], others[len(region.captures) :]
    builder = emitter.builder
    portions = allocate_portions(emitter)
    units = Value(builder.value(f"mul i64 {plan.threads.text}, {UNITS_PER_SHARE}"), "int64")
    whole = _ChunkRange(plan, units, "".join(f", {value.typed}" for value in captured))
    blocks = _Blocks(*(builder.new_block() for _ in _Blocks.__struct_fields__))
    thread = _Thread(emitter, closure, whole, portions, blocks)
    builder.fall_into(blocks.take)
    end = _begin_chunk(thread, region)
    status = _run_portion(thread, module.symbols[region.function], end, [*passed, workspace])
    builder.begin(blocks.poll)
    stopped = poll_interruption(emitter, portions, workspace.text, blocks.fail)
    _jump_if_none_failed(emitter, closure, blocks.portion, blocks.stop)
    builder.begin(blocks.fail)
    failure = builder.value(
        f"phi i64 [ {status}, %{blocks.portion} ], [ {INTERRUPTED}, %{stopped} ]"
    )
    field = closure.field(emitter, "%closure", STATUS)
    builder.line(f"store atomic i64 {failure}, ptr {field} monotonic, align 8")
    builder.fall_into(blocks.stop)
    builder.line("ret void")
    module.definitions.append(builder.render())
    return symbol


def _begin_chunk(thread: _Thread, region: ParallelRegion) -> Value:
    """Emit the choice of the next chunk in block `take`, and its state before its first portion in block
    `run`; return the end of the chunk."""
    emitter, plan, blocks = thread.emitter, thread.whole.plan, thread.blocks
    builder = emitter.builder
    left = Value(builder.value(f"sub i64 {UNITS_PER_SHARE}, {plan.first_units.text}"), "int64")
    # One first chunk per share, and one for each unit that is left of it.
    chunks = builder.value(
        f"mul i64 {plan.threads.text}, " + builder.value(f"add i64 {left.text}, 1")
    )
    ticket = _take_ticket(emitter, thread.closure, chunks, blocks.run, blocks.stop)
    builder.begin(blocks.run)
    first, end_unit = _units_of(
        emitter, ticket, plan.threads, first_units=plan.first_units, left=left
    )
    begin = _first_iteration(emitter, region, thread.whole, first)
    end = _first_iteration(emitter, region, thread.whole, end_unit)
    begin_portions(emitter, thread.portions, begin, end, plan.portions)
    # A chunk of several portions is long: poll before its first one, too.
    builder.branch(builder.value(f"icmp sgt {plan.portions.typed}, 1"), blocks.poll, blocks.portion)
    return end


def _run_portion(thread: _Thread, symbol: str, end: Value, passed: list[Value]) -> str:
    """Emit the call for the next portion of a chunk in block `portion`, and what follows one that did not
    fail in block `succeeded`; return the status of the call."""
    builder, blocks = thread.emitter.builder, thread.blocks
    builder.begin(blocks.portion)
    first, last = next_portion(thread.emitter, thread.portions, end)
    arguments = ", ".join(value.typed for value in [first, last, *passed])
    status = builder.value(f"call i64 @{symbol}({arguments})")
    builder.branch(builder.value(f"icmp eq i64 {status}, 0"), blocks.succeeded, blocks.fail)
    builder.begin(blocks.succeeded)
    builder.branch(builder.value(f"icmp slt {last.typed}, {end.text}"), blocks.poll, blocks.take)
    return status


def _jump_if_none_failed(emitter: FunctionEmitter, closure: Closure, going: str, stop: str) -> None:
    """Emit a branch to `going`, or to `stop` if a thread has failed."""
    builder = emitter.builder
    status = closure.field(emitter, "%closure", STATUS)
    # A late look costs a chunk or a portion at most.
    failed = builder.value(f"load atomic i64, ptr {status} monotonic, align 8")
    builder.branch(builder.value(f"icmp eq i64 {failed}, 0"), going, stop)


def _take_ticket(
    emitter: FunctionEmitter, closure: Closure, chunks: str, run: str, stop: str
) -> str:
    """Emit a branch to `run` with the number of the next chunk, or to `stop`."""
    builder = emitter.builder
    going = builder.new_block()
    # Read before each chunk, so that a failure stops the other threads soon.
    _jump_if_none_failed(emitter, closure, going, stop)
    builder.begin(going)
    counter = closure.field(emitter, "%closure", COUNTER)
    ticket = builder.value(f"atomicrmw add ptr {counter}, i64 1 monotonic")
    builder.branch(builder.value(f"icmp slt i64 {ticket}, {chunks}"), run, stop)
    return ticket


def _units_of(
    emitter: FunctionEmitter, ticket: str, threads: Value, *, first_units: Value, left: Value
) -> tuple[Value, Value]:
    """Return the first unit of a chunk and its end (exclusive); `left` is the number of units of a share
    that are chunks of their own."""
    builder = emitter.builder
    # Without small chunks, `left` is 0: the division below is then not used, but must not trap.
    small = emitter.call("i64", "llvm.smax.i64", f"{left.typed}, i64 1")
    rest = builder.value(f"sub i64 {ticket}, {threads.text}")
    share = builder.value(f"sdiv i64 {rest}, {small}")
    within = builder.value(f"srem i64 {rest}, {small}")
    base = builder.value(f"mul i64 {share}, {UNITS_PER_SHARE}")
    offset = builder.value(f"add i64 {within}, {first_units.text}")
    late = builder.value(f"add i64 {base}, {offset}")
    early = builder.value(f"mul i64 {ticket}, {UNITS_PER_SHARE}")
    is_early = builder.value(f"icmp slt i64 {rest}, 0")
    first = builder.value(f"select i1 {is_early}, i64 {early}, i64 {late}")
    length = builder.value(f"select i1 {is_early}, {first_units.typed}, i64 1")
    return Value(first, "int64"), Value(builder.value(f"add i64 {first}, {length}"), "int64")


def _first_iteration(
    emitter: FunctionEmitter, region: ParallelRegion, whole: _ChunkRange, unit: Value
) -> Value:
    """Return the iteration at which a unit begins, by its share of the total weight. The first unit begins at
    start, and the last ends at end, whatever the weights are."""
    builder = emitter.builder
    share = _weight_share(emitter, whole, unit)
    target = builder.value(f"add {whole.plan.low.typed}, {share}")
    arguments = f"{whole.plan.start.typed}, {whole.plan.end.typed}, i64 {target}{whole.captures}"
    boundary = builder.value(f"call i64 @{region.search}({arguments})")
    is_first = builder.value(f"icmp eq {unit.typed}, 0")
    inner = builder.value(f"select i1 {is_first}, {whole.plan.start.typed}, i64 {boundary}")
    # The search for the total weight would stop before iterations without weight at the end.
    is_last = builder.value(f"icmp eq {unit.typed}, {whole.units.text}")
    return Value(
        builder.value(f"select i1 {is_last}, {whole.plan.end.typed}, i64 {inner}"), "int64"
    )


def _weight_share(emitter: FunctionEmitter, whole: _ChunkRange, unit: Value) -> str:
    """Return total * unit / units without intermediate overflow; units is at least 1."""
    builder = emitter.builder
    # total * unit may overflow, so the quotient and the remainder are scaled separately.
    quotient = builder.value(f"udiv {whole.plan.total.typed}, {whole.units.text}")
    rest = builder.value(f"urem {whole.plan.total.typed}, {whole.units.text}")
    main = builder.value(f"mul i64 {quotient}, {unit.text}")
    scaled = builder.value(f"mul i64 {rest}, {unit.text}")
    return builder.value(
        f"add i64 {main}, " + builder.value(f"udiv i64 {scaled}, {whole.units.text}")
    )
