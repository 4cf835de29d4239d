"""Random stores of vectors: ramps and broadcasts that are written in the script."""

from __future__ import annotations

from tests.fuzzing.lowered.programs.expression_text import Terms
from tests.fuzzing.lowered.programs.lines import Lines
from tests.fuzzing.lowered.programs.scope import Drawn, Scope


def draw_vector(scope: Scope, terms: Terms) -> Lines:
    """A store of contiguous or strided lanes; nothing if there is no buffer."""
    candidates = [
        item
        for item in scope.writable("value", "cell")
        if not item.is_sparse and item.name not in scope.shared
    ]
    if not candidates:
        return []
    buffer, lanes = scope.choose(candidates), scope.choose((2, 4, 4))
    stored = _ramp(scope, terms, buffer, lanes)
    return [f"{buffer.name}[{stored}] = {_value(scope, terms, buffer, stored, lanes)}"]


def _ramp(scope: Scope, terms: Terms, buffer: Drawn, lanes: int) -> str:
    """Indices of lanes along the last dimension, mostly within it."""
    *outer, last = buffer.sizes
    above = [terms.index(size, 0) for size in outer]
    base = scope.choose((
        "T.int64(0)", terms.number(0, 2), f"T.max({last} - {lanes}, 0)",
        f"T.min(T.max({terms.leaf()}, T.int64(0)), {last} - {lanes})", terms.index(last, 0),
    ))  # fmt: skip
    return ", ".join([*above, f"T.ramp({base}, {scope.choose((1, 1, 1, 2))}, {lanes})"])


def _value(scope: Scope, terms: Terms, buffer: Drawn, stored: str, lanes: int) -> str:
    dtype = buffer.dtype
    one = terms.value_leaf(dtype) if dtype != "int64" else terms.leaf()
    wide = f"T.broadcast({one}, {lanes})"
    loads = [f"{buffer.name}[{stored}]"]
    for item in scope.having("value", "input", "index", "cell", dtype=dtype):
        if not item.is_sparse:
            loads.append(f"{item.name}[{_ramp(scope, terms, item, lanes)}]")
    gathering = [
        item for item in scope.having("index", "known", dtype="int64") if not item.is_sparse
    ]
    flat = [
        item
        for item in scope.having("value", "input", dtype=dtype)
        if not item.is_sparse and len(item.sizes) == 1
    ]
    if gathering and flat:
        at = scope.choose(gathering)
        loads.append(f"{scope.choose(flat).name}[{at.name}[{_ramp(scope, terms, at, lanes)}]]")
    load, other = scope.choose(loads), scope.choose([*loads, wide, wide])
    return scope.choose((wide, load, f"{load} + {other}", f"T.max({load}, {other})",
                         f"T.Select({load} > {other}, {load}, {wide})"))  # fmt: skip
