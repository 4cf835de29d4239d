"""Portions of the iterations of a loop, between which it asks the workspace whether to stop.

The first portion is 1 / 4,096 of the iterations. The answer says how long a portion took, and the next one
has more or fewer iterations accordingly. So the time between two questions stays short even if some
iterations take much longer than others.
"""

from __future__ import annotations

import msgspec

from gossamer_ir.interchange.kernel_abi import LONG, SHORT
from gossamer_llvm.abi import workspace_address
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value

_PORTIONS = 4096
"""The number of portions of a loop with much work, if all take equally long."""

_GROWTH_SHIFT = 3
"""Each short portion is followed by one of 8 times as many iterations. So a short loop asks 5 times, which
takes 0.2 microseconds; with portions that double, it would be 13 times."""


class Portions(msgspec.Struct, frozen=True):
    """The stack slots of a range of iterations: the first one of the next portion, the number of iterations
    of a portion, and what the function that is asked whether to stop keeps."""

    next: str
    step: str
    since: str


def allocate_portions(emitter: FunctionEmitter) -> Portions:
    """Reserve the slots."""
    return Portions(*(emitter.builder.alloca("i64", align=8) for _ in Portions.__struct_fields__))


def is_interruptible(emitter: FunctionEmitter, workspace: str) -> str:
    """Return whether the workspace has a function that tells whether to stop."""
    return emitter.builder.value(f"icmp ne ptr {_interruption_function(emitter, workspace)}, null")


def portion_count(emitter: FunctionEmitter, may_stop: str) -> Value:
    """Return the number of portions of a loop: 1 if it is not to be stopped."""
    count = emitter.builder.value(f"select i1 {may_stop}, i64 {_PORTIONS}, i64 1")
    return Value(count, "int64")


def begin_portions(
    emitter: FunctionEmitter, portions: Portions, begin: Value, end: Value, count: Value
) -> None:
    """Emit the stores of the state before the first one of a number of portions."""
    builder = emitter.builder
    length = builder.value(f"sub {end.typed}, {begin.text}")
    portion_length = builder.value(f"sdiv i64 {length}, {count.text}")
    step = emitter.call("i64", "llvm.smax.i64", f"i64 {portion_length}, i64 1")
    for value, slot in ((begin.text, portions.next), (step, portions.step), ("0", portions.since)):
        builder.line(f"store i64 {value}, ptr {slot}, align 8")


def next_portion(emitter: FunctionEmitter, portions: Portions, end: Value) -> tuple[Value, Value]:
    """Return the first iteration of the next portion and its end."""
    builder = emitter.builder
    first = builder.value(f"load i64, ptr {portions.next}, align 8")
    step = builder.value(f"load i64, ptr {portions.step}, align 8")
    # By the iterations that are left: the sum of the first one and the step might wrap.
    rest = builder.value(f"sub {end.typed}, {first}")
    length = emitter.call("i64", "llvm.smin.i64", f"i64 {step}, i64 {rest}")
    last = builder.value(f"add i64 {first}, {length}")
    builder.line(f"store i64 {last}, ptr {portions.next}, align 8")
    return Value(first, "int64"), Value(last, "int64")


def poll_interruption(
    emitter: FunctionEmitter, portions: Portions, workspace: str, interrupted: str
) -> str:
    """Emit a branch to `interrupted` if the function of the workspace says so, and return the block of the
    branch. Else, the next portion is longer or half as long, if the function says that the last one was
    short or long."""
    builder = emitter.builder
    going = builder.new_block()
    function = _interruption_function(emitter, workspace)
    answer = builder.value(f"call i64 {function}(ptr {portions.since})")
    asking = builder.block
    builder.branch(builder.value(f"icmp sgt i64 {answer}, 0"), interrupted, going)
    builder.begin(going)
    step = builder.value(f"load i64, ptr {portions.step}, align 8")
    is_short = builder.value(f"icmp eq i64 {answer}, {SHORT}")
    is_long = builder.value(f"icmp eq i64 {answer}, {LONG}")
    # At least 1.
    half = builder.value("lshr i64 " + builder.value(f"add i64 {step}, 1") + ", 1")
    # A bound from which the shift does not overflow.
    bounded = emitter.call("i64", "llvm.smin.i64", f"i64 {step}, i64 {2 ** (62 - _GROWTH_SHIFT)}")
    longer = builder.value(f"shl i64 {bounded}, {_GROWTH_SHIFT}")
    less = builder.value(f"select i1 {is_long}, i64 {half}, i64 {step}")
    next_step = builder.value(f"select i1 {is_short}, i64 {longer}, i64 {less}")
    builder.line(f"store i64 {next_step}, ptr {portions.step}, align 8")
    return asking


def _interruption_function(emitter: FunctionEmitter, workspace: str) -> str:
    address = emitter.builder.value(workspace_address(workspace, "is_interrupted"))
    return emitter.builder.value(f"load ptr, ptr {address}, align 8")
