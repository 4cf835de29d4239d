"""The structure with which values are passed to the threads of a parallel region.

The counter and the status, which threads write, have their own cache line (no false sharing).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value

COUNTER, STATUS, FIRST = 0, 1, 8
"""Numbers of fields; fields 2 to 7 pad the cache line."""


class Closure(msgspec.Struct, frozen=True):
    """The name of the structure, and the types of the fields after the first cache line."""

    type: str
    types: tuple[str, ...]

    def field(self, emitter: FunctionEmitter, address: str, number: int) -> str:
        """Return the address of a field."""
        return emitter.builder.value(
            f"getelementptr inbounds {self.type}, ptr {address}, i32 0, i32 {number}"
        )


class ChunkPlan(NamedTuple):
    """Division of a range into chunks: its start and end, the weight at the start, the total weight, the
    number of threads, the units of a first chunk, and the portions of a chunk.

    A closure has the workspace, these fields, the captures of the weight, and the arguments.
    """

    start: Value
    end: Value
    low: Value
    total: Value
    threads: Value
    first_units: Value
    portions: Value


def write_closure(emitter: FunctionEmitter, values: Sequence[Value]) -> tuple[Closure, str]:
    """Emit a closure on the stack with these values; the counter and the status start at 0."""
    types = tuple(value.type for value in values)
    body = ", ".join([*["i64"] * FIRST, *types])
    closure = Closure(emitter.module.new_type(f"{{ {body} }}"), types)
    address = emitter.builder.alloca(closure.type, align=64)
    zero = Value("0", "int64")
    stored = [(COUNTER, zero), (STATUS, zero), *enumerate(values, FIRST)]
    for number, value in stored:
        emitter.builder.line(f"store {value.typed}, ptr {closure.field(emitter, address, number)}")
    return closure, address


def read_closure(
    emitter: FunctionEmitter, closure: Closure, address: str, dtypes: Sequence[str]
) -> list[Value]:
    """Return the values, in the order of `write_closure`."""
    values = []
    for number, dtype in enumerate(dtypes, FIRST):
        field = closure.field(emitter, address, number)
        loaded = emitter.builder.value(f"load {closure.types[number - FIRST]}, ptr {field}")
        values.append(Value(loaded, dtype))
    return values
