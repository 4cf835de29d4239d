"""The structure with which values are passed to the threads of a parallel region.

All fields take 8 bytes, so that the same code runs the chunks of every region. The counter and the status,
which threads write, have their own cache line (no false sharing).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value

COUNTER, STATUS = 0, 1
_FIRST = 8
"""The number of the first field after the cache line, which fields 2 to 7 pad."""
_FIELD_BYTES = 8


class ChunkPlan(NamedTuple):
    """Division of a range into chunks: the workspace, the functions of the region, the start and end of the
    range, the weight at the start, the total weight, the number of threads, the units of a first chunk, and
    the portions of a chunk.

    `run` is `i64 run(ptr closure, i64 first, i64 end)`, which returns the status of these iterations, and
    `boundary` is `i64 boundary(ptr closure, i64 unit)`, which returns the iteration at which a unit begins.
    A closure has these fields, and after them values that only the functions of the region read.
    """

    workspace: Value
    run: Value
    boundary: Value
    start: Value
    end: Value
    low: Value
    total: Value
    threads: Value
    first_units: Value
    portions: Value


_POINTERS = frozenset({"workspace", "run", "boundary"})


def write_closure(emitter: FunctionEmitter, plan: ChunkPlan, values: Sequence[Value]) -> str:
    """Emit a closure on the stack, and return its address; the counter and the status start at 0."""
    fields = [*plan, *values]
    address = emitter.builder.alloca(f"[{_FIRST + len(fields)} x i64]", align=64)
    zero = Value("0", "int64")
    for number, value in ((COUNTER, zero), (STATUS, zero), *enumerate(fields, _FIRST)):
        place = field_address(emitter, address, number)
        emitter.builder.line(f"store {value.typed}, ptr {place}")
    return address


def field_address(emitter: FunctionEmitter, closure: str, number: int) -> str:
    """Return the address of a field."""
    offset = _FIELD_BYTES * number
    return emitter.builder.value(f"getelementptr inbounds i8, ptr {closure}, i64 {offset}")


def plan_field(emitter: FunctionEmitter, closure: str, name: str) -> Value:
    """Return a field of the plan."""
    dtype = "handle" if name in _POINTERS else "int64"
    return _read(emitter, closure, _FIRST + ChunkPlan._fields.index(name), dtype)


def closure_values(
    emitter: FunctionEmitter, closure: str, dtypes: Sequence[str], *, begin: int
) -> list[Value]:
    """Return values that follow the plan, from number `begin` on."""
    first = _FIRST + len(ChunkPlan._fields) + begin
    return [_read(emitter, closure, number, dtype) for number, dtype in enumerate(dtypes, first)]


def _read(emitter: FunctionEmitter, closure: str, number: int, dtype: str) -> Value:
    place = field_address(emitter, closure, number)
    type_ = Value("", dtype).type
    return Value(emitter.builder.value(f"load {type_}, ptr {place}"), dtype)
