"""The function that each thread of a parallel region runs: it takes chunks until none is left or one failed.

The range is divided into one share of equal weight for each thread. The n-th thread to arrive starts with the
greater part of share n, so that repeated calls find their data in the same caches. The rest of all shares is
divided into small chunks, which balance threads that took longer.

A chunk of much work is run in portions of its iterations. Between them the thread asks the workspace whether
to stop, and checks whether another thread has failed.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.interchange.kernel_abi import INTERRUPTED, LONG, SHORT
from gossamer_llvm.abi import workspace_address
from gossamer_llvm.emitter.emitters import FunctionEmitter, ModuleEmitter, Value
from gossamer_llvm.emitter.ir_builder import COLD, FunctionText
from gossamer_llvm.parallel.closure import COUNTER, STATUS, ChunkPlan, Closure, read_closure


class ParallelRegion(NamedTuple):
    """The function that runs a chunk, the function that searches for its bounds, and its captures."""

    function: str
    search: str
    captures: tuple[Value, ...]


class _ChunkRange(NamedTuple):
    """The range with its number of units, and the captures of its weight as further arguments."""

    plan: ChunkPlan
    units: Value
    captures: str


class _Chunk(NamedTuple):
    """The stack slots of a chunk: the iteration at which the next portion begins, the number of iterations of
    a portion, and what the function that is asked whether to stop keeps."""

    next: str
    step: str
    since: str


class _Blocks(NamedTuple):
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


class _Thread(NamedTuple):
    """The function that a thread runs, as far as it is emitted."""

    emitter: FunctionEmitter
    closure: Closure
    whole: _ChunkRange
    chunk: _Chunk
    blocks: _Blocks


UNITS_PER_SHARE = 16
"""The number of equal units of a share; chunks consist of units."""

FIRST_UNITS = 14
"""The number of units in the first chunk of a thread, if there is much work."""


def define_trampoline(
    unit: ModuleEmitter, region: ParallelRegion, closure: Closure, dtypes: tuple[str, ...]
) -> str:
    """Emit the function `void trampoline(ptr closure)` and return its name."""
    symbol = unit.new_symbol()
    emitter = FunctionEmitter(unit, FunctionText(f"internal void @{symbol}(ptr %closure) {COLD}"))
    workspace, *values = read_closure(emitter, closure, "%closure", ("handle", *dtypes))
    plan = ChunkPlan(*values[: len(ChunkPlan._fields)])
    others = values[len(plan) :]
    captured, passed = others[: len(region.captures)], others[len(region.captures) :]
    text = emitter.text
    chunk = _Chunk(*(text.alloca("i64", align=8) for _ in _Chunk._fields))
    units = Value(text.value(f"mul i64 {plan.threads.text}, {UNITS_PER_SHARE}"), "int64")
    whole = _ChunkRange(plan, units, "".join(f", {value.typed}" for value in captured))
    blocks = _Blocks(*(text.new_block() for _ in _Blocks._fields))
    thread = _Thread(emitter, closure, whole, chunk, blocks)
    text.fall_into(blocks.take)
    end = _begin_chunk(thread, region)
    status = _run_portion(thread, unit.symbols[region.function], end, [*passed, workspace])
    text.begin(blocks.poll)
    stopped = _poll_interruption(emitter, chunk, workspace, blocks.fail)
    _jump_if_none_failed(emitter, closure, blocks.portion, blocks.stop)
    text.begin(blocks.fail)
    failure = text.value(f"phi i64 [ {status}, %{blocks.portion} ], [ {INTERRUPTED}, %{stopped} ]")
    field = closure.field(emitter, "%closure", STATUS)
    text.line(f"store atomic i64 {failure}, ptr {field} monotonic, align 8")
    text.fall_into(blocks.stop)
    text.line("ret void")
    unit.definitions.append(text.render())
    return symbol


def _begin_chunk(thread: _Thread, region: ParallelRegion) -> Value:
    """Emit the choice of the next chunk in block `take`, and its state before its first portion in block
    `run`; return the end of the chunk."""
    emitter, plan, blocks = thread.emitter, thread.whole.plan, thread.blocks
    text = emitter.text
    left = Value(text.value(f"sub i64 {UNITS_PER_SHARE}, {plan.first_units.text}"), "int64")
    # One first chunk per share, and one for each unit that is left of it.
    chunks = text.value(f"mul i64 {plan.threads.text}, " + text.value(f"add i64 {left.text}, 1"))
    ticket = _take_ticket(emitter, thread.closure, chunks, blocks.run, blocks.stop)
    text.begin(blocks.run)
    first, end_unit = _units_of(
        emitter, ticket, plan.threads, first_units=plan.first_units, left=left
    )
    begin = _first_iteration(emitter, region, thread.whole, first)
    end = _first_iteration(emitter, region, thread.whole, end_unit)
    _store_chunk(thread, begin, end)
    # A chunk of several portions is long: poll before its first one, too.
    text.branch(text.value(f"icmp sgt {plan.portions.typed}, 1"), blocks.poll, blocks.portion)
    return end


def _run_portion(thread: _Thread, symbol: str, end: Value, passed: list[Value]) -> str:
    """Emit the call for the next portion of a chunk in block `portion`, and what follows one that did not
    fail in block `succeeded`; return the status of the call."""
    text, blocks = thread.emitter.text, thread.blocks
    text.begin(blocks.portion)
    first, last = _next_portion(thread.emitter, thread.chunk, end)
    arguments = ", ".join(value.typed for value in [first, last, *passed])
    status = text.value(f"call i64 @{symbol}({arguments})")
    text.branch(text.value(f"icmp eq i64 {status}, 0"), blocks.succeeded, blocks.fail)
    text.begin(blocks.succeeded)
    text.branch(text.value(f"icmp slt {last.typed}, {end.text}"), blocks.poll, blocks.take)
    return status


def _store_chunk(thread: _Thread, begin: Value, end: Value) -> None:
    """Emit the stores of the state of a chunk before its first portion."""
    emitter, chunk, portions = thread.emitter, thread.chunk, thread.whole.plan.portions
    text = emitter.text
    length = text.value(f"sub {end.typed}, {begin.text}")
    each = text.value(f"sdiv i64 {length}, {portions.text}")
    step = emitter.call("i64", "llvm.smax.i64", f"i64 {each}, i64 1")
    for value, slot in ((begin.text, chunk.next), (step, chunk.step), ("0", chunk.since)):
        text.line(f"store i64 {value}, ptr {slot}, align 8")


def _next_portion(emitter: FunctionEmitter, chunk: _Chunk, end: Value) -> tuple[Value, Value]:
    """Return the first iteration of the next portion and its end."""
    text = emitter.text
    first = text.value(f"load i64, ptr {chunk.next}, align 8")
    step = text.value(f"load i64, ptr {chunk.step}, align 8")
    # By the iterations that are left: the sum of the first one and the step might wrap.
    rest = text.value(f"sub {end.typed}, {first}")
    length = emitter.call("i64", "llvm.smin.i64", f"i64 {step}, i64 {rest}")
    last = text.value(f"add i64 {first}, {length}")
    text.line(f"store i64 {last}, ptr {chunk.next}, align 8")
    return Value(first, "int64"), Value(last, "int64")


def _poll_interruption(emitter: FunctionEmitter, chunk: _Chunk, workspace: Value, fail: str) -> str:
    """Emit a branch to `fail` if the function of the workspace says so, and return the block of the branch.
    Else, the next portion is the rest of the chunk if it says that this one was short, or half as long."""
    text = emitter.text
    going = text.new_block()
    place = text.value(workspace_address(workspace.text, "is_interrupted"))
    function = text.value(f"load ptr, ptr {place}, align 8")
    answer = text.value(f"call i64 {function}(ptr {chunk.since})")
    asking = text.block
    text.branch(text.value(f"icmp sgt i64 {answer}, 0"), fail, going)
    text.begin(going)
    step = text.value(f"load i64, ptr {chunk.step}, align 8")
    is_short = text.value(f"icmp eq i64 {answer}, {SHORT}")
    is_long = text.value(f"icmp eq i64 {answer}, {LONG}")
    # At least 1.
    half = text.value("lshr i64 " + text.value(f"add i64 {step}, 1") + ", 1")
    less = text.value(f"select i1 {is_long}, i64 {half}, i64 {step}")
    next_step = text.value(f"select i1 {is_short}, i64 {2**63 - 1}, i64 {less}")
    text.line(f"store i64 {next_step}, ptr {chunk.step}, align 8")
    return asking


def _jump_if_none_failed(emitter: FunctionEmitter, closure: Closure, going: str, stop: str) -> None:
    """Emit a branch to `going`, or to `stop` if a thread has failed."""
    text = emitter.text
    status = closure.field(emitter, "%closure", STATUS)
    # A late look costs a chunk or a portion at most.
    failed = text.value(f"load atomic i64, ptr {status} monotonic, align 8")
    text.branch(text.value(f"icmp eq i64 {failed}, 0"), going, stop)


def _take_ticket(
    emitter: FunctionEmitter, closure: Closure, chunks: str, run: str, stop: str
) -> str:
    """Emit a branch to `run` with the number of the next chunk, or to `stop`."""
    text = emitter.text
    going = text.new_block()
    # Read before each chunk, so that a failure stops the other threads soon.
    _jump_if_none_failed(emitter, closure, going, stop)
    text.begin(going)
    counter = closure.field(emitter, "%closure", COUNTER)
    ticket = text.value(f"atomicrmw add ptr {counter}, i64 1 monotonic")
    text.branch(text.value(f"icmp slt i64 {ticket}, {chunks}"), run, stop)
    return ticket


def _units_of(
    emitter: FunctionEmitter, ticket: str, threads: Value, *, first_units: Value, left: Value
) -> tuple[Value, Value]:
    """Return the first unit of a chunk and its end (exclusive); `left` is the number of units of a share
    that are chunks of their own."""
    text = emitter.text
    # Without small chunks, `left` is 0: the division below is then not used, but must not trap.
    small = emitter.call("i64", "llvm.smax.i64", f"{left.typed}, i64 1")
    rest = text.value(f"sub i64 {ticket}, {threads.text}")
    share = text.value(f"sdiv i64 {rest}, {small}")
    within = text.value(f"srem i64 {rest}, {small}")
    base = text.value(f"mul i64 {share}, {UNITS_PER_SHARE}")
    offset = text.value(f"add i64 {within}, {first_units.text}")
    late = text.value(f"add i64 {base}, {offset}")
    early = text.value(f"mul i64 {ticket}, {UNITS_PER_SHARE}")
    is_early = text.value(f"icmp slt i64 {rest}, 0")
    first = text.value(f"select i1 {is_early}, i64 {early}, i64 {late}")
    length = text.value(f"select i1 {is_early}, {first_units.typed}, i64 1")
    return Value(first, "int64"), Value(text.value(f"add i64 {first}, {length}"), "int64")


def _first_iteration(
    emitter: FunctionEmitter, region: ParallelRegion, whole: _ChunkRange, unit: Value
) -> Value:
    """Return the iteration at which a unit begins, by its share of the total weight. The first unit begins at
    start, and the last ends at end, whatever the weights are."""
    text = emitter.text
    share = _weight_share(emitter, whole, unit)
    target = text.value(f"add {whole.plan.low.typed}, {share}")
    arguments = f"{whole.plan.start.typed}, {whole.plan.end.typed}, i64 {target}{whole.captures}"
    boundary = text.value(f"call i64 @{region.search}({arguments})")
    is_first = text.value(f"icmp eq {unit.typed}, 0")
    inner = text.value(f"select i1 {is_first}, {whole.plan.start.typed}, i64 {boundary}")
    # The search for the total weight would stop before iterations without weight at the end.
    is_last = text.value(f"icmp eq {unit.typed}, {whole.units.text}")
    return Value(text.value(f"select i1 {is_last}, {whole.plan.end.typed}, i64 {inner}"), "int64")


def _weight_share(emitter: FunctionEmitter, whole: _ChunkRange, unit: Value) -> str:
    """Return total * unit / units without intermediate overflow; units is at least 1."""
    text = emitter.text
    # total * unit may overflow, so the quotient and the remainder are scaled separately.
    each = text.value(f"udiv {whole.plan.total.typed}, {whole.units.text}")
    rest = text.value(f"urem {whole.plan.total.typed}, {whole.units.text}")
    main = text.value(f"mul i64 {each}, {unit.text}")
    scaled = text.value(f"mul i64 {rest}, {unit.text}")
    return text.value(f"add i64 {main}, " + text.value(f"udiv i64 {scaled}, {whole.units.text}"))
