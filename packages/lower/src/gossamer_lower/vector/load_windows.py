"""Loads a short window of an array once for a loop whose lanes read elements of it one by one.

Rows in lanes read `A[P[i] + j]`: each lane its own row, whose elements follow each other. All lanes together
read each element of a short part of the array once, where a gather in each iteration loads an element for
each lane. The window is loaded with whole vectors before the loop, and the lanes find their elements in it. A
backend keeps a small local buffer in registers, whose lanes an instruction permutes.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.invariants import invariant_facts
from gossamer_ir.analysis.proofs.program_point import is_invariant
from gossamer_ir.arith.simplify import simplify_body
from gossamer_ir.core.annotations import WINDOW, without_annotation
from gossamer_ir.core.build import ONE, ZERO, add, index, index_var, integer_value, sub, widen
from gossamer_ir.core.conditions import TRUE, short_circuit_conjunction
from gossamer_ir.core.dtypes import DType
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Broadcast,
    Buffer,
    Cast,
    Compare,
    Expr,
    For,
    Function,
    If,
    Lanes,
    Load,
    Module,
    Monotone,
    Ramp,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.transform.clone_with_fresh_names import with_fresh_names
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import collect
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_lower.statements.point_visitor import rewrite_annotated
from gossamer_lower.statements.rebuild import Stmts
from gossamer_lower.statements.serial_loops import SerialLoopVisitor
from gossamer_machine.cache_line import LINE_BYTES


@lowering_pass(
    takes=("loop",),
    acts_on="windows",
    without=("blocks", "vectorized loops"),
    after={"unroll_loops": "lanes with constant indices need no window"},
    before={"hoist_invariant_loads": "it hides the offsets of the lanes in variables"},
)
def load_windows(module: Module) -> Module:
    """Load windows of arrays before loops with the annotation `window`.

    A window is for loads `A[P[i + lane] + j]` in a loop over `j`, where `P` never decreases. If the elements
    of all lanes fit into it, which is tested before the loop, a copy of the loop runs that reads the window;
    otherwise the loop runs as before.

    >>> from gossamer_ir.script import parse_module
    >>> from gossamer_testkit.show import body_text
    >>> before = parse_module('''
    ... @T.prim_func
    ... def sums(a: T.handle, p: T.handle, y: T.handle, n: T.int64, m: T.int64) -> None:
    ...     A = T.match_buffer(a, (n,), "float32")
    ...     P = T.match_buffer(p, (4,), "int64")
    ...     Y = T.match_buffer(y, (4,), "float32")
    ...     T.assume(in_range(P, 0, n + 1))
    ...     T.assume(monotone(P))
    ...     for j in T.serial(m, annotations={"window": 16}):
    ...         Y[T.ramp(0, 1, 4)] = Y[T.ramp(0, 1, 4)] + A[P[T.ramp(0, 1, 4)] + T.broadcast(j, 4)]
    ... ''')
    >>> print(body_text(load_windows(before)))
    if T.if_then_else(m > 0, T.if_then_else(P[3] - P[0] <= 16 - m, P[0] + 16 <= n, False), False):
        A_window = T.alloc_buffer((16,), "float32", scope="local")
        A_window[T.ramp(0, 1, 16)] = A[T.ramp(P[0], 1, 16)]
        for j in T.serial(m):
            Y[T.ramp(0, 1, 4)] = Y[T.ramp(0, 1, 4)] + A_window[P[T.ramp(0, 1, 4)] - T.broadcast(P[0], 4) \
+ T.broadcast(j, 4)]
    else:
        for j_1 in T.serial(m):
            Y[T.ramp(0, 1, 4)] = Y[T.ramp(0, 1, 4)] + A[P[T.ramp(0, 1, 4)] + T.broadcast(j_1, 4)]
    """
    return rewrite_annotated(module, WINDOW, _WindowLoader)


class _Starts(msgspec.Struct, frozen=True):
    """The first elements of lanes: a load of consecutive offsets, and their indices."""

    load: Load
    ramp: Ramp

    def at(self, lane: int) -> Expr:
        """Return the offset of a lane as an int64."""
        at = add(self.ramp.base, index(lane))
        return widen(Load(self.load.buffer, (at,), DType.parse(self.load.dtype).scalar))

    @property
    def first(self) -> Expr:
        return self.at(0)

    @property
    def last(self) -> Expr:
        return self.at(self.ramp.lanes.count - 1)

    @property
    def condition(self) -> Expr | None:
        """The condition that the offsets of all lanes exist; None if they always do."""
        mask = self.load.predicate
        if mask is None:
            return None
        assert isinstance(mask, Compare)
        assert isinstance(mask.lhs, Ramp)
        assert isinstance(mask.rhs, Broadcast)
        last = add(mask.lhs.base, index(mask.lhs.lanes.count - 1))
        return Compare("lt", last, mask.rhs.value)


class _WindowLoader(SerialLoopVisitor):
    """Loads the windows of the loops of one function."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self._facts = fact_index(invariant_facts(function))

    def serial_loop(self, loop: For) -> Stmts:
        elements = dict(loop.annotations).get(WINDOW)
        if elements is None:
            return (self.inside(loop),)
        plain = without_annotation(loop, WINDOW)
        loads = {load: self._starts(load, loop) for load in collect(Load, *loop.body)}
        starts = next(filter(None, loads.values()), None)
        shared = [load for load, other in loads.items() if other is not None and other == starts]
        # The annotation is only a request.
        if starts is None or not all(_holds_whole_lines(elements, load) for load in shared):
            return (plain,)
        return (self._versions(plain, starts, shared, int(elements)),)

    def _starts(self, load: Load, loop: For) -> _Starts | None:
        """Return the offsets of a load `A[offsets + broadcast(j)]` of natural numbers that never decrease;
        None for another load."""
        match load.indices:
            case (Binary(op="add", lhs=offsets, rhs=Broadcast(value=Var(name=loop.var))),) if (
                loop.start == ZERO and load.buffer in self.constant_shapes
            ):
                vector = offsets.value if isinstance(offsets, Cast) else offsets
                return self._ascending_starts(vector, loop, load.predicate)
        return None

    def _ascending_starts(self, vector: Expr, loop: For, mask: Expr | None) -> _Starts | None:
        """Return offsets that never decrease and exist if the loop has an iteration; `mask` is that of the
        elements."""
        match vector:
            case Load(indices=(Ramp() as ramp,)) if (
                ramp.stride == ONE
                and not ramp.lanes.scalable
                and vector.buffer in self.constant_shapes
                and self._facts.holds(vector.buffer, Monotone)
            ):
                # Lanes without an element may have any offset.
                is_needed = vector.predicate != mask or _is_prefix_mask(mask)
                load = vector if is_needed else replace(vector, predicate=None, passthrough=None)
                starts = _Starts(load, ramp) if _is_prefix_mask(load.predicate) else None
                return starts if starts is not None and self._are_proved(starts, loop) else None
        return None

    def _are_proved(self, starts: _Starts, loop: For) -> bool:
        """Return whether the offsets of all lanes are proved to exist and not to be negative, given that the
        loop has an iteration and the condition for them holds."""
        if not is_invariant(starts.load, (loop,), self.function):
            return False
        lanes = For(self.namer.fresh("lane"), ZERO, index(starts.ramp.lanes.count), ())
        at = add(starts.ramp.base, index_var(lanes.var))
        with self.point.inside(loop), self.point.inside(lanes):
            if starts.condition is not None:
                self.point.assume(starts.condition)
            is_natural = self.point.prover.proves_nonnegative(starts.first)
            return is_natural and self.is_in_bounds(starts.load, [at])

    def _versions(self, loop: For, starts: _Starts, loads: list[Load], elements: int) -> Stmt:
        """Return the branch between a copy of the loop that reads windows, and the loop as it is."""
        dtypes = {load.buffer: DType.parse(load.dtype).scalar for load in loads}
        windows = {name: self._window(name, dtype, elements) for name, dtype in dtypes.items()}
        reads = {
            load: _load_from_window(load, windows[load.buffer], starts, loop) for load in loads
        }
        body = _without_mask(rewrite_body(loop.body, reads.get), starts)
        fills = [stmt for name in windows for stmt in _fill_window(windows[name], name, starts)]
        return If(
            self._fits(loop, starts, tuple(windows), elements),
            (*fills, replace(loop, body=body)),
            with_fresh_names((loop,), self.namer),
        )

    def _window(self, name: str, dtype: str, elements: int) -> Buffer:
        fresh = self.namer.fresh(f"{name}_{WINDOW}")
        return Buffer(fresh, (index(elements),), dtype, scope="local")

    def _fits(self, loop: For, starts: _Starts, names: tuple[str, ...], elements: int) -> Expr:
        """Return the condition that windows contain the elements of all lanes, and exist."""
        # No sum wraps, however large the extent is.
        room = sub(index(elements), loop.extent)
        end = add(starts.first, index(elements))
        conditions = [Compare("le", sub(starts.last, starts.first), room)]
        extents = dict.fromkeys(self.constant_shapes[name][0] for name in names)
        conditions += [Compare("le", end, extent) for extent in extents]
        condition = () if starts.condition is None else (starts.condition,)
        is_iterated = Compare("gt", loop.extent, ZERO)
        fits = short_circuit_conjunction(is_iterated, *condition, *conditions)
        assert fits is not None
        return fits


def _without_mask(body: Stmts, starts: _Starts) -> Stmts:
    """Return statements that run where all offsets exist, without the mask of their load."""
    mask = starts.load.predicate
    if mask is None:
        return body
    full = Broadcast(TRUE, starts.ramp.lanes)
    return simplify_body(rewrite_body(body, lambda node: full if node == mask else None))


def _is_prefix_mask(mask: Expr | None) -> bool:
    """Return whether a load is not masked, or only in its last lanes."""
    match mask:
        case None:
            return True
        case Compare(op="lt", lhs=Ramp(stride=stride), rhs=Broadcast()):
            return stride == ONE
    return False


def _holds_whole_lines(elements: object, load: Load) -> bool:
    """Return whether the elements of a window fill whole cache lines."""
    size = DType.parse(load.dtype).bits // 8
    return isinstance(elements, int) and elements > 0 and elements * size % LINE_BYTES == 0


def _fill_window(window: Buffer, name: str, starts: _Starts) -> tuple[Stmt, ...]:
    """Return the statements that allocate and load a window, a cache line at a time."""
    elements = integer_value(window.shape[0]) or 0
    dtype = DType.parse(window.dtype)
    lanes = min(elements, LINE_BYTES * 8 // dtype.bits)
    stores = []
    for offset in range(0, elements, lanes):
        source = Ramp(add(starts.first, index(offset)), ONE, Lanes(lanes))
        loaded = Load(name, (source,), f"{window.dtype}x{lanes}")
        stores.append(Store(window.name, (Ramp(index(offset), ONE, Lanes(lanes)),), loaded))
    return (Allocate(window), *stores)


def _load_from_window(load: Load, window: Buffer, starts: _Starts, loop: For) -> Load:
    """Return the load of the same elements from a window. Lanes that are not enabled may have any index."""
    vector = starts.load
    scalar, lanes = DType.parse(vector.dtype).scalar, starts.ramp.lanes
    first, number = (
        Broadcast(value if scalar == "int64" else Cast(scalar, value), lanes)
        for value in (starts.first, index_var(loop.var))
    )
    place: Expr = Binary("add", Binary("sub", vector, first), number)
    if scalar != "int64":
        place = Cast(DType.parse(vector.dtype).with_scalar("int64").text, place)
    return replace(load, buffer=window.name, indices=(place,))
