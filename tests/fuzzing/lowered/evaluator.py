"""The oracle of the position, loop and flat stage: runs statements with Python integers and floats, without
the compiler and its interpreter.

It tracks elements that were never written, so that a program whose result depends on one of them is
`Undecided`; it counts steps, so that a program that runs too long is `Undecided`, too. Float arithmetic must
be exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from msgspec.structs import replace

from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.core.constants import value_of
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Block,
    Buffer,
    Call,
    Cast,
    Combine,
    Compare,
    Const,
    Expr,
    For,
    Function,
    Guard,
    If,
    IfThenElse,
    Let,
    Load,
    Module,
    Prefetch,
    Search,
    Select,
    SparseBuffer,
    Stmt,
    Store,
    Unary,
    Var,
    While,
)
from gossamer_ir.traversal.free_vars import free_vars
from tests.fuzzing.oracle.coordinate_tables import Forest, Storage, Undecided

MAX_STEPS = 2_000
EXACT = 1 << 20
"""Larger floats may have been rounded."""

Values: TypeAlias = dict[str, Any]
Eval: TypeAlias = Callable[[Values], Any]
Exec: TypeAlias = Callable[[Values], None]


class Stop(Exception):
    """The program accesses an element that does not exist, or a guard fails."""


class NoOracle(Exception):
    """The evaluator does not define the result; the interpreter is the oracle instead."""


class Memory:
    """The elements of a buffer; None for elements that were never stored."""

    __slots__ = ("dtype", "elements", "shape")

    def __init__(self, elements: list[Any], shape: tuple[int, ...], dtype: str) -> None:
        self.elements, self.shape, self.dtype = elements, shape, dtype

    def offset(self, indices: list[int]) -> int | None:
        """The offset of an element; None for an absent one. Raises `Stop` if the element does not exist."""
        at = 0
        for index, size in zip(indices, self.shape, strict=True):
            if not 0 <= index < size:
                raise Stop
            at = at * size + index
        return at

    fill: Any = 0


class Sparse(Memory):
    """The elements of a sparse buffer by their positions on each axis."""

    __slots__ = ("fill", "is_fixed", "prefixes", "table")

    def __init__(self, elements: list[Any], buffer: SparseBuffer, forest: Forest) -> None:
        super().__init__(elements, (), buffer.dtype)
        zero = 0.0 if "float" in buffer.dtype else 0
        self.fill = zero if buffer.fill is None else value_of(buffer.fill)
        self.table = _table(buffer, forest)
        self.is_fixed = [_is_fixed(name, forest) for name in buffer.axes]
        if buffer.extra_storage and len(buffer.axes) == 1:
            first = len(self.table)
            self.table |= {(first + at,): first + at for at in range(buffer.extra_storage)}
        self.prefixes = {
            prefix
            for depth in range(1, len(buffer.axes))
            for prefix in _table(replace(buffer, axes=buffer.axes[:depth]), forest)
        }

    def offset(self, indices: list[int]) -> int | None:
        """As in the base class; the first axis without such a position decides."""
        position = self.table.get(tuple(indices))
        if position is not None:
            return position
        depths = range(1, len(indices))
        absent = (depth for depth in depths if tuple(indices[:depth]) not in self.prefixes)
        if self.is_fixed[next(absent, len(indices)) - 1]:
            raise Stop
        return None


def _is_fixed(name: str, forest: Forest) -> bool:
    """True if all fibers of an axis have the same size."""
    axis = forest[name].axis
    return getattr(axis, "width", None) is not None or not hasattr(axis, "indptr")


def _table(buffer: SparseBuffer, forest: Forest) -> dict[tuple[int, ...], int]:
    storage = Storage(buffer, forest)
    columns = []
    for name in buffer.axes:
        slots, rows = forest[name], storage._rows[name]
        columns.append((rows - slots.firsts[slots.parent_of[rows]]).tolist())
    return {key: number for number, key in enumerate(zip(*columns, strict=True))}


def evaluated(
    module: Module, arrays: Mapping[str, np.ndarray], scalars: Mapping[str, int | float]
) -> dict[str, np.ndarray] | None:
    """The arrays after a run; None if the program stops. Raises `Undecided` and `NoOracle`."""
    (function,) = module.functions
    return _Run(function, arrays, scalars).result()


class _Run:
    def __init__(
        self,
        function: Function,
        arrays: Mapping[str, np.ndarray],
        scalars: Mapping[str, int | float],
    ) -> None:
        self._function, self._arrays, self._scalars = function, arrays, scalars
        self._forest = Forest(function.axes, arrays=arrays, scalars=scalars)
        self._memory: dict[str, Memory] = {}
        self._elements = {name: array.ravel().tolist() for name, array in arrays.items()}
        self._steps = 0
        self._around: list[Stmt] = []
        self._hoisted: dict[int, list[Exec]] = {}

    def result(self) -> dict[str, np.ndarray] | None:
        values: Values = dict(self._scalars)
        body = self._body(self._function.body)
        try:
            for buffer in self._function.buffers:
                self._open(buffer, values)
            body(values)
        except Stop:
            return None
        return {
            name: np.array(self._elements[name], array.dtype).reshape(array.shape)
            for name, array in self._arrays.items()
        }

    def _open(self, buffer: Buffer | SparseBuffer, values: Values) -> None:
        if buffer.handle is None and isinstance(buffer, Buffer):
            self._run_allocate(Allocate(buffer))(values)
            return
        if buffer.handle is None:
            size = Storage(buffer, self._forest).size
            self._memory[buffer.name] = Sparse([None] * size, buffer, self._forest)
            return
        elements = self._elements[buffer.handle]
        if isinstance(buffer, SparseBuffer):
            self._memory[buffer.name] = Sparse(elements, buffer, self._forest)
        else:
            shape = tuple(int(self._expr(size)(values)) for size in buffer.shape)
            self._memory[buffer.name] = Memory(elements, shape, buffer.dtype)

    def _count(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise Undecided("a program that runs for long")

    # --- expressions

    def _expr(self, node: Expr) -> Eval:
        evaluate: Eval = getattr(self, f"_{type(node).__name__.lower()}_of", _unknown)(node)
        return evaluate

    def _const_of(self, node: Const) -> Eval:
        value = value_of(node)
        return lambda values: value

    def _var_of(self, node: Var) -> Eval:
        name = node.name
        return lambda values: values[name]

    def _unary_of(self, node: Unary) -> Eval:
        operand = self._expr(node.operand)
        if node.op == "not":
            return lambda values: not operand(values)
        wrap = wrapping(dtype_of(node.operand))
        if node.op == "neg":
            return lambda values: wrap(-operand(values))
        return lambda values: wrap(~operand(values))

    def _binary_of(self, node: Binary) -> Eval:
        lhs, rhs = self._expr(node.lhs), self._expr(node.rhs)
        dtype = dtype_of(node.lhs)
        wrap, combine = wrapping(dtype), operator_of(node.op, dtype)
        return lambda values: wrap(combine(lhs(values), rhs(values)))

    def _compare_of(self, node: Compare) -> Eval:
        lhs, rhs, compare = self._expr(node.lhs), self._expr(node.rhs), COMPARE[node.op]
        return lambda values: compare(lhs(values), rhs(values))

    def _cast_of(self, node: Cast) -> Eval:
        value, wrap = self._expr(node.value), wrapping(node.dtype)
        source, dtype = dtype_of(node.value), node.dtype
        if dtype == "bool":
            return lambda values: bool(value(values) != 0)
        if dtype.startswith("float"):
            return lambda values: wrap(float(value(values)))
        if source.startswith("float"):
            return lambda values: saturated(value(values), dtype)
        return lambda values: wrap(int(value(values)))

    def _select_of(self, node: Select) -> Eval:
        condition, yes, no = map(self._expr, (node.condition, node.if_true, node.if_false))

        def run(values: Values) -> Any:
            first, second = yes(values), no(values)
            return first if condition(values) else second

        return run

    def _ifthenelse_of(self, node: IfThenElse) -> Eval:
        condition, yes, no = map(self._expr, (node.condition, node.if_true, node.if_false))
        return lambda values: yes(values) if condition(values) else no(values)

    def _call_of(self, node: Call) -> Eval:
        if node.function != "abs":
            raise NoOracle(node.function)
        (value,), wrap = map(self._expr, node.args), wrapping(node.dtype)
        return lambda values: wrap(abs(value(values)))

    def _load_of(self, node: Load) -> Eval:
        if node.predicate is not None:
            raise NoOracle("a predicate")
        name, indices, memory = node.buffer, [*map(self._expr, node.indices)], self._memory

        def run(values: Values) -> Any:
            array = memory[name]
            at = array.offset([index(values) for index in indices])
            if at is None:
                return array.fill
            value = array.elements[at]
            if value is None:
                raise Undecided("an element that nothing was stored to")
            return value

        return run

    def _search_of(self, node: Search) -> Eval:
        begin, end, value = map(self._expr, (node.begin, node.end, node.value))
        prefix, name, kind = [*map(self._expr, node.prefix)], node.buffer, node.kind

        def run(values: Values) -> int:
            first, last, wanted = begin(values), end(values), value(values)
            above = [part(values) for part in prefix]
            array = self._memory[name]
            if last - first > MAX_STEPS:
                raise Undecided("a search through much")
            if first < last:
                array.offset([*above, last - 1])
                array.offset([*above, first])
            window = []
            for at in range(first, last):
                offset = array.offset([*above, at])
                window.append(array.elements[offset] if offset is not None else array.fill)
            if None in window:
                raise Undecided("a search among what nothing was stored to")
            if window != sorted(window):
                raise Undecided("a search among what is not sorted")
            for number, element in enumerate(window, first):
                if HITS[kind](element, wanted):
                    return number
            return -1 if kind == "exact" else max(first, last)

        return run

    # --- statements

    def _body(self, stmts: tuple[Stmt, ...], under: Stmt | None = None) -> Exec:
        depth = len(self._around)
        if under is not None:
            self._around.append(under)
        steps = []
        for stmt in stmts:
            steps.append(getattr(self, f"_run_{type(stmt).__name__.lower()}", _unknown)(stmt))
            if isinstance(stmt, Let):
                self._around.append(stmt)
        del self._around[depth:]

        def run(values: Values) -> None:
            for step in steps:
                step(values)

        return run

    def _run_store(self, node: Store) -> Exec:
        if node.predicate is not None:
            raise NoOracle("a predicate")
        name, indices, value = node.buffer, [*map(self._expr, node.indices)], self._expr(node.value)
        memory = self._memory

        def run(values: Values) -> None:
            array = memory[name]
            number = value(values)
            at = array.offset([index(values) for index in indices])
            if at is None:
                raise Stop
            array.elements[at] = number

        return run

    def _run_combine(self, node: Combine) -> Exec:
        """All elements and values are read before any element is stored to."""
        reducer = next(item for item in self._function.reducers if item.name == node.reducer)
        numbers = [self._expr(store.value) for store in node.stores]
        places = [[*map(self._expr, store.indices)] for store in node.stores]
        results = [*map(self._expr, reducer.results)]
        names = [var.name for var in (*reducer.lhs, *reducer.rhs)]

        def run(values: Values) -> None:
            right = [value(values) for value in numbers]
            buffers = [self._memory[store.buffer] for store in node.stores]
            elements = [
                buffer.offset([index(values) for index in indices])
                for buffer, indices in zip(buffers, places, strict=True)
            ]
            if None in elements:
                raise Stop
            left = [buffer.elements[at] for buffer, at in zip(buffers, elements, strict=True)]
            if None in left:
                raise Undecided("an element that nothing was stored to")
            inner = dict(zip(names, [*left, *right], strict=True))
            new = [result(inner) for result in results]
            for buffer, at, value in zip(buffers, elements, new, strict=True):
                buffer.elements[at] = value

        return run

    def _run_let(self, node: Let) -> Exec:
        name, value = node.var.name, self._expr(node.value)

        def run(values: Values) -> None:
            values[name] = value(values)

        return run

    def _run_allocate(self, node: Allocate) -> Exec:
        buffer, sizes = node.buffer, [*map(self._expr, node.buffer.shape)]

        def run(values: Values) -> None:
            shape = tuple(max(0, size(values)) for size in sizes)
            count = math.prod(shape)
            if count > MAX_STEPS:
                raise Undecided("a large buffer")
            self._memory[buffer.name] = Memory([None] * count, shape, buffer.dtype)

        return run

    def _run_if(self, node: If) -> Exec:
        condition = self._expr(node.condition)
        then_body, else_body = self._body(node.then_body, node), self._body(node.else_body, node)
        return lambda values: (then_body if condition(values) else else_body)(values)

    def _run_while(self, node: While) -> Exec:
        condition, body = self._expr(node.condition), self._body(node.body, node)

        def run(values: Values) -> None:
            while condition(values):
                self._count()
                body(values)

        return run

    def _run_for(self, node: For) -> Exec:
        if node.kind not in ("serial", "parallel", "vectorized", "unrolled", "thread_binding"):
            raise NoOracle(node.kind)
        name, start, extent = node.var, self._expr(node.start), self._expr(node.extent)
        body = self._body(node.body, node)
        inits = self._hoisted.pop(id(node), ())

        def run(values: Values) -> None:
            for init in inits:
                init(values)
            first, count = start(values), extent(values)
            if count > 0 and first + count > 1 << 63:
                raise Undecided("a loop beyond the last integer")
            self._count()
            for value in range(first, first + count):
                self._count()
                values[name] = value
                body(values)

        return run

    def _run_prefetch(self, node: Prefetch) -> Exec:
        """The element may be out of bounds; the loads in its indices may not."""
        indices = [*map(self._expr, node.indices)]

        def run(values: Values) -> None:
            for index in indices:
                index(values)

        return run

    def _run_guard(self, node: Guard) -> Exec:
        condition = self._expr(node.condition)

        def run(values: Values) -> None:
            if not condition(values):
                raise Stop

        return run

    def _run_block(self, node: Block) -> Exec:
        iters = [
            (iterator.var, self._expr(iterator.value), self._expr(iterator.domain.start),
             self._expr(iterator.domain.extent))
            for iterator in node.iters
        ]  # fmt: skip
        predicate = None if node.predicate is None else self._expr(node.predicate)
        init = self._init(node) if node.init else None
        around, self._around = self._around, []
        body = self._body(node.body)
        self._around = around

        def run(values: Values) -> None:
            self._count()
            for name, value, _, _ in iters:
                values[name] = value(values)
            if init is not None:
                init(values)
            if predicate is None or predicate(values):
                _require_domains(iters, values)
                body(values)

        return run

    def _init(self, node: Block) -> Exec | None:
        """Runs the init of a block in directly nested loops whose points do not write the same element:
        before the outermost reduction loop."""
        loops = self._nest(node)
        kinds = {
            iterator.value.name: iterator.kind
            for iterator in node.iters
            if isinstance(iterator.value, Var)
        }
        if set(kinds) != {loop.var for loop in loops} or len(kinds) != len(node.iters):
            raise NoOracle("a nest of some other form")
        bounds = frozenset[str]().union(
            *(free_vars(bound) for loop in loops for bound in (loop.start, loop.extent))
        )
        if bounds & set(kinds) or any(free_vars(iterator.domain) for iterator in node.iters):
            raise NoOracle("loops that depend on each other")
        first = next((number for number, loop in enumerate(loops) if kinds[loop.var] == "R"), None)
        inner = (
            () if first is None else tuple(loop for loop in loops[first:] if kinds[loop.var] == "S")
        )
        run = self._nested_init(node, inner)
        seen: set[Any] = set()
        run = self._once(node, run, seen)
        self._hoisted.setdefault(id(loops[0]), []).insert(0, lambda values: seen.clear())
        if first is None:
            return run
        self._hoisted.setdefault(id(loops[first]), []).append(run)
        return None

    def _nest(self, node: Block) -> list[For]:
        loops: list[For] = []
        used = frozenset[str]().union(*(free_vars(iterator.value) for iterator in node.iters))
        for stmt in reversed(self._around):
            if not isinstance(stmt, For) or stmt.var not in used:
                if used - {loop.var for loop in loops}:
                    raise NoOracle("statements between the loops of a block")
                break
            loops.insert(0, stmt)
        if not loops:
            raise NoOracle("a block without loops")
        for outer, inner in pairwise(loops):
            if outer.body != (inner,):
                raise NoOracle("statements between the loops of a block")
        if len(loops[-1].body) != 1:
            raise NoOracle("statements beside a block")
        return loops

    def _nested_init(self, node: Block, inner: tuple[For, ...]) -> Exec:
        reduced = {iterator.var for iterator in node.iters if iterator.kind == "R"}
        if any(free_vars(stmt) & reduced for stmt in node.init):
            raise NoOracle("an init that mentions a reduction")
        bind = [
            (iterator.var, self._expr(iterator.value), self._expr(iterator.domain.start),
             self._expr(iterator.domain.extent))
            for iterator in node.iters if iterator.kind == "S"
        ]  # fmt: skip
        conditions = [
            self._expr(part) for part in conjuncts(node.predicate) if not free_vars(part) & reduced
        ]
        around, self._around = self._around, []
        body = self._body(node.init)
        self._around = around

        def run(values: Values) -> None:
            for name, value, _, _ in bind:
                values[name] = value(values)
            if all(condition(values) for condition in conditions):
                _require_domains(bind, values)
                body(values)

        for loop in reversed(inner):
            run = self._looped(loop, run)
        return run

    def _looped(self, loop: For, body: Exec) -> Exec:
        start, extent = self._expr(loop.start), self._expr(loop.extent)

        def run(values: Values) -> None:
            first = start(values)
            for value in range(first, first + extent(values)):
                self._count()
                values[loop.var] = value
                body(values)

        return run

    def _once(self, node: Block, run: Exec, seen: set[Any]) -> Exec:
        """The same points; each element may be initialized once in one run of the nest."""
        stores = [stmt for stmt in node.init if isinstance(stmt, Store)]
        if len(stores) != len(node.init):
            raise NoOracle("an init with other statements")

        def watched(values: Values) -> None:
            array = self._memory[stores[0].buffer]
            before, array.elements[:] = [*array.elements], [None] * len(array.elements)
            try:
                run(values)
            except Undecided:
                raise NoOracle("an init that reads what it stores to") from None
            finally:
                touched = {
                    number for number, value in enumerate(array.elements) if value is not None
                }
                array.elements[:] = [
                    old if new is None else new
                    for old, new in zip(before, array.elements, strict=True)
                ]
            if touched & seen:
                raise NoOracle("several points that initialize one element")
            seen.update(touched)

        if len(stores) != 1:
            raise NoOracle("an init of several elements")
        return watched


def _require_domains(iters: Iterable[tuple[str, Any, Any, Any]], values: Values) -> None:
    """Raise `Undecided` for a block that runs while an iterator is outside its domain, or has none, as that
    reads out of bounds: kernels do not evaluate domains."""
    for name, _, start, extent in iters:
        try:
            first = start(values)
            end = first + extent(values)
        except Stop:
            raise Undecided("a domain that reads out of bounds") from None
        if not first <= values[name] < end:
            raise Undecided("an iterator outside of its domain")


def _unknown(node: object) -> Any:
    raise NoOracle(type(node).__name__)


# --- numbers


def wrapping(dtype: str) -> Callable[[Any], Any]:
    """The value of a result in a dtype, with wrapping."""
    if dtype == "bool":
        return lambda value: value
    if dtype.startswith("float"):
        return _exact
    bits = int(dtype.lstrip("uint"))
    mask, half = (1 << bits) - 1, 1 << (bits - 1)
    if dtype.startswith("u"):
        return lambda value: value & mask
    return lambda value: ((value + half) & mask) - half


def _exact(value: float) -> float:
    if math.isfinite(value) and (abs(value) > EXACT or not (value * 8).is_integer()):
        raise Undecided("an inexact result")
    return value


def saturated(value: float, dtype: str) -> int:
    """A float converted to an integer, saturated."""
    limits = np.iinfo(dtype)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return int(limits.max if value > 0 else limits.min)
    return min(max(int(value), int(limits.min)), int(limits.max))


def _floordiv(lhs: Any, rhs: Any) -> Any:
    return lhs // rhs if rhs else 0


def _floormod(lhs: Any, rhs: Any) -> Any:
    return lhs % rhs if rhs else 0


def _least(lhs: Any, rhs: Any) -> Any:
    return math.nan if lhs != lhs or rhs != rhs else min(lhs, rhs)


def _most(lhs: Any, rhs: Any) -> Any:
    return math.nan if lhs != lhs or rhs != rhs else max(lhs, rhs)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda lhs, rhs: lhs + rhs, "sub": lambda lhs, rhs: lhs - rhs,
    "mul": lambda lhs, rhs: lhs * rhs, "floordiv": _floordiv, "floormod": _floormod,
    "min": _least, "max": _most,
    "and": lambda lhs, rhs: lhs and rhs, "or": lambda lhs, rhs: lhs or rhs,
    "bitand": lambda lhs, rhs: lhs & rhs, "bitor": lambda lhs, rhs: lhs | rhs,
    "bitxor": lambda lhs, rhs: lhs ^ rhs,
}  # fmt: skip
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda lhs, rhs: lhs == rhs, "ne": lambda lhs, rhs: lhs != rhs,
    "lt": lambda lhs, rhs: lhs < rhs, "le": lambda lhs, rhs: lhs <= rhs,
    "gt": lambda lhs, rhs: lhs > rhs, "ge": lambda lhs, rhs: lhs >= rhs,
}  # fmt: skip
HITS = {"exact": COMPARE["eq"], "lower": COMPARE["ge"], "upper": COMPARE["gt"]}


def operator_of(op: str, dtype: str) -> Callable[[Any, Any], Any]:
    """The function of a binary operator on values of a dtype."""
    if op in ("shl", "shr"):
        return _shift(op, int(dtype.lstrip("uint")))
    if op not in OPERATORS or (dtype.startswith("float") and op.startswith("floor")):
        raise NoOracle(op)
    return OPERATORS[op]


def _shift(op: str, bits: int) -> Callable[[int, int], int]:
    def shift(lhs: int, rhs: int) -> int:
        if not 0 <= rhs < bits:
            return 0 if op == "shl" or lhs >= 0 else -1
        return lhs << rhs if op == "shl" else lhs >> rhs

    return shift
