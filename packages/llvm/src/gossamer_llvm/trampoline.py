"""The function that each thread of a parallel region runs: takes chunks until none is left or one
has failed."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_llvm.closure import COUNTER, STATUS, Closure, read_closure
from gossamer_llvm.frame import Frame, Unit, Value
from gossamer_llvm.text import COLD, FunctionText


class Region(NamedTuple):
    """The function a chunk is given to, the search for its bounds, what the search captures."""

    function: str
    search: str
    captures: tuple[Value, ...]


class _Range(NamedTuple):
    start: Value
    end: Value
    low: Value
    total: Value
    chunks: Value
    captures: str


def define_trampoline(unit: Unit, region: Region, closure: Closure, dtypes: tuple[str, ...]) -> str:
    """Writes `void trampoline(ptr closure)` and returns its name. The closure holds the workspace,
    start, end, the weight at start, the total weight, the number of chunks, captures, arguments."""
    symbol = unit.new_symbol()
    frame = Frame(unit, FunctionText(f"internal void @{symbol}(ptr %closure) {COLD}"))
    workspace, *values = read_closure(frame, closure, "%closure", ("handle", *dtypes))
    split = 5 + len(region.captures)
    captures = "".join(f", {value.typed}" for value in values[5:split])
    start, end, low, total, chunks = values[:5]
    whole = _Range(start, end, low, total, chunks, captures)
    text = frame.text
    take, run, done, stop = (text.new_block() for _ in range(4))
    text.fall_into(take)
    chunk = _take_chunk(frame, closure, whole, run, stop)
    text.begin(run)
    begin = _bound(frame, region, whole, Value(chunk, "int64"))
    following = Value(text.value(f"add i64 {chunk}, 1"), "int64")
    end = _bound(frame, region, whole, following)
    arguments = ", ".join(value.typed for value in [begin, end, *values[split:], workspace])
    status = text.value(f"call i64 @{unit.symbols[region.function]}({arguments})")
    text.branch(text.value(f"icmp eq i64 {status}, 0"), take, done)
    text.begin(done)
    field = closure.field(frame, "%closure", STATUS)
    text.line(f"store atomic i64 {status}, ptr {field} monotonic, align 8")
    text.fall_into(stop)
    text.line("ret void")
    unit.definitions.append(text.render())
    return symbol


def _take_chunk(frame: Frame, closure: Closure, whole: _Range, run: str, stop: str) -> str:
    """Goes to run with the number of a chunk, or to stop."""
    text = frame.text
    going = text.new_block()
    status = closure.field(frame, "%closure", STATUS)
    failed = text.value(f"load atomic i64, ptr {status} monotonic, align 8")
    text.branch(text.value(f"icmp eq i64 {failed}, 0"), going, stop)
    text.begin(going)
    counter = closure.field(frame, "%closure", COUNTER)
    chunk = text.value(f"atomicrmw add ptr {counter}, i64 1 monotonic")
    text.branch(text.value(f"icmp slt i64 {chunk}, {whole.chunks.text}"), run, stop)
    return chunk


def _bound(frame: Frame, region: Region, whole: _Range, chunk: Value) -> Value:
    """Where a chunk begins: at its share of the total weight; the first at start, the one behind
    the last at end, whatever the weights are."""
    text = frame.text
    share = _share(frame, whole, chunk)
    target = text.value(f"add {whole.low.typed}, {share}")
    arguments = f"{whole.start.typed}, {whole.end.typed}, i64 {target}{whole.captures}"
    found = text.value(f"call i64 @{region.search}({arguments})")
    is_first = text.value(f"icmp eq {chunk.typed}, 0")
    inner = text.value(f"select i1 {is_first}, {whole.start.typed}, i64 {found}")
    is_last = text.value(f"icmp eq {chunk.typed}, {whole.chunks.text}")
    return Value(text.value(f"select i1 {is_last}, {whole.end.typed}, i64 {inner}"), "int64")


def _share(frame: Frame, whole: _Range, chunk: Value) -> str:
    """Total * chunk / chunks without an overflow on the way; chunks is at least 1."""
    text = frame.text
    each = text.value(f"udiv {whole.total.typed}, {whole.chunks.text}")
    rest = text.value(f"urem {whole.total.typed}, {whole.chunks.text}")
    main = text.value(f"mul i64 {each}, {chunk.text}")
    scaled = text.value(f"mul i64 {rest}, {chunk.text}")
    return text.value(f"add i64 {main}, " + text.value(f"udiv i64 {scaled}, {whole.chunks.text}"))
