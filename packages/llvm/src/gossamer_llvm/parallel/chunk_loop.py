"""The function that each thread of a parallel region runs: it takes chunks until none is left or one failed.

The range is divided into one share of equal weight for each thread. The n-th thread to arrive starts with the
greater part of share n, so that repeated calls find their data in the same caches. The rest of all shares is
divided into small chunks, which balance threads that took longer.

A chunk of much work is run in portions of its iterations. Between them the thread asks the workspace whether
to stop, and checks whether another thread has failed.

All regions share the function, which calls those of a region by the pointers in its closure. Its text is made
once for a process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from gossamer_ir.interchange.kernel_abi import INTERRUPTED
from gossamer_llvm.control.portions import (
    Portions,
    allocate_portions,
    begin_portions,
    next_portion,
    poll_interruption,
)
from gossamer_llvm.emitter.function_emitter import EmitterTables, FunctionEmitter
from gossamer_llvm.emitter.ir_builder import COLD, IRBuilder
from gossamer_llvm.emitter.module_emitter import ModuleEmitter
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.parallel.closure import (
    COUNTER,
    STATUS,
    closure_values,
    field_address,
    plan_field,
)
from gossamer_llvm.parallel.load_balancing import UNITS_PER_SHARE
from gossamer_llvm.target_info import TargetInfo

CHUNK_LOOP = "run_chunks"
"""The name of the function."""

FIRST_UNITS = 14
"""The number of units in the first chunk of a thread, if there is much work."""

_CLOSURE = "%closure"


class _Blocks(msgspec.Struct, frozen=True):
    """The blocks of the function, in their order."""

    take: str
    """Takes the number of the next chunk, if none has failed."""
    begin: str
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


class _Definition(msgspec.Struct, frozen=True):
    """The text of the function, and the declarations of the functions that it calls."""

    text: str
    declarations: Mapping[str, str]


def define_chunk_loop(module: ModuleEmitter) -> str:
    """Define the function `void run_chunks(ptr closure)`, once in a module, and return its name."""
    definition = _chunk_loop()
    if definition.text not in module.definitions:
        module.definitions.append(definition.text)
        module.declarations.update(definition.declarations)
    return CHUNK_LOOP


def define_run(caller: FunctionEmitter, function: str, dtypes: Sequence[str], *, begin: int) -> str:
    """Emit the function `i64 run(ptr closure, i64 first, i64 end)`, and return its name.

    It calls a function of the module for a part of its iterations. The arguments have these dtypes; they are
    the values after the plan of the closure from number `begin` on.
    """
    module = caller.module
    symbol = module.new_symbol()
    emitter = caller.helper(f"internal i64 @{symbol}(ptr {_CLOSURE}, i64 %first, i64 %end) {COLD}")
    passed = closure_values(emitter, _CLOSURE, dtypes, begin=begin)
    workspace = plan_field(emitter, _CLOSURE, "workspace")
    operands = ", ".join(
        ["i64 %first", "i64 %end", *(value.typed for value in [*passed, workspace])]
    )
    status = emitter.builder.value(f"call i64 @{module.symbols[function]}({operands})")
    emitter.builder.line(f"ret i64 {status}")
    module.definitions.append(emitter.builder.render())
    return symbol


@cache
def _chunk_loop() -> _Definition:
    """Return the definition of the function, which does not depend on the module."""
    builder = IRBuilder(f"internal void @{CHUNK_LOOP}(ptr {_CLOSURE}) {COLD}")
    module = ModuleEmitter(TargetInfo(triple=""), symbols={}, bounds_checked_buffers=())
    emitter = FunctionEmitter(module, EmitterTables({}, {}), builder)
    portions = allocate_portions(emitter)
    blocks = _Blocks(*(builder.new_block() for _ in _Blocks.__struct_fields__))
    workspace, run = (plan_field(emitter, _CLOSURE, name) for name in ("workspace", "run"))
    builder.fall_into(blocks.take)
    end = _begin_chunk(emitter, portions, blocks)
    status = _run_portion(emitter, portions, blocks, run, end)
    builder.begin(blocks.poll)
    stopped = poll_interruption(emitter, portions, workspace.text, blocks.fail)
    _jump_if_none_failed(emitter, blocks.portion, blocks.stop)
    builder.begin(blocks.fail)
    failure = builder.value(
        f"phi i64 [ {status}, %{blocks.portion} ], [ {INTERRUPTED}, %{stopped} ]"
    )
    field = field_address(emitter, _CLOSURE, STATUS)
    builder.line(f"store atomic i64 {failure}, ptr {field} monotonic, align 8")
    builder.fall_into(blocks.stop)
    builder.line("ret void")
    return _Definition(builder.render(), module.declarations)


def _begin_chunk(emitter: FunctionEmitter, portions: Portions, blocks: _Blocks) -> Value:
    """Emit the choice of the next chunk in block `take`, and its state before its first portion in block
    `begin`; return the end of the chunk."""
    builder = emitter.builder
    threads, first_units = (
        plan_field(emitter, _CLOSURE, name) for name in ("threads", "first_units")
    )
    left = Value(builder.value(f"sub i64 {UNITS_PER_SHARE}, {first_units.text}"), "int64")
    # One first chunk per share, and one for each unit that is left of it.
    chunks = builder.value(f"mul {threads.typed}, " + builder.value(f"add {left.typed}, 1"))
    ticket = _take_ticket(emitter, chunks, blocks)
    builder.begin(blocks.begin)
    units = _units_of(emitter, ticket, threads, first_units=first_units, left=left)
    boundary = plan_field(emitter, _CLOSURE, "boundary")
    begin, end = (
        Value(builder.value(f"call i64 {boundary.text}(ptr {_CLOSURE}, {unit.typed})"), "int64")
        for unit in units
    )
    count = plan_field(emitter, _CLOSURE, "portions")
    begin_portions(emitter, portions, begin, end, count)
    # A chunk of several portions is long: poll before its first one, too.
    builder.branch(builder.value(f"icmp sgt {count.typed}, 1"), blocks.poll, blocks.portion)
    return end


def _run_portion(
    emitter: FunctionEmitter, portions: Portions, blocks: _Blocks, run: Value, end: Value
) -> str:
    """Emit the call for the next portion of a chunk in block `portion`, and what follows one that did not
    fail in block `succeeded`; return the status of the call."""
    builder = emitter.builder
    builder.begin(blocks.portion)
    first, last = next_portion(emitter, portions, end)
    operands = f"ptr {_CLOSURE}, {first.typed}, {last.typed}"
    status = builder.value(f"call i64 {run.text}({operands})")
    builder.branch(builder.value(f"icmp eq i64 {status}, 0"), blocks.succeeded, blocks.fail)
    builder.begin(blocks.succeeded)
    builder.branch(builder.value(f"icmp slt {last.typed}, {end.text}"), blocks.poll, blocks.take)
    return status


def _jump_if_none_failed(emitter: FunctionEmitter, going: str, stop: str) -> None:
    """Emit a branch to `going`, or to `stop` if a thread has failed."""
    builder = emitter.builder
    status = field_address(emitter, _CLOSURE, STATUS)
    # A late look costs a chunk or a portion at most.
    failed = builder.value(f"load atomic i64, ptr {status} monotonic, align 8")
    builder.branch(builder.value(f"icmp eq i64 {failed}, 0"), going, stop)


def _take_ticket(emitter: FunctionEmitter, chunks: str, blocks: _Blocks) -> str:
    """Emit a branch to `begin` with the number of the next chunk, or to `stop`."""
    builder = emitter.builder
    going = builder.new_block()
    # Read before each chunk, so that a failure stops the other threads soon.
    _jump_if_none_failed(emitter, going, blocks.stop)
    builder.begin(going)
    counter = field_address(emitter, _CLOSURE, COUNTER)
    ticket = builder.value(f"atomicrmw add ptr {counter}, i64 1 monotonic")
    builder.branch(builder.value(f"icmp slt i64 {ticket}, {chunks}"), blocks.begin, blocks.stop)
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
