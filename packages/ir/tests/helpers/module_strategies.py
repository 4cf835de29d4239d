"""Hypothesis strategies for well-formed modules of every stage, covering every node kind.

`modules(stage)` and `formats()` are the strategies. Names are unique in a function, dtypes agree,
indices and sizes are int64; the programs make no promise to stay in bounds when run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from gossamer_ir.analysis.statements.atomic_accumulation import ATOMIC_OPS
from gossamer_ir.core.build import handle, index, index_var
from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import SCALARS, DType, with_lanes
from gossamer_ir.core.iteration_axes import all_axis_names
from gossamer_ir.core.math_functions import FUNCTIONS
from gossamer_ir.facts.fact_kinds import buffers_of_fact
from gossamer_ir.nodes import (
    Allocate,
    AsyncCopy,
    Atomic,
    AttachAxis,
    Barrier,
    Binary,
    BitCounts,
    BitmaskVaried,
    Block,
    BlockIter,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Combine,
    CommitGroup,
    Compare,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Distinct,
    For,
    FormatDescription,
    Function,
    FuseAxes,
    Guard,
    HasValue,
    If,
    IfThenElse,
    IndexMap,
    InRange,
    Iteration,
    LaneReduce,
    Lanes,
    Launch,
    Let,
    Load,
    Module,
    Monotone,
    OverAxis,
    PaddedSlots,
    ParallelFor,
    Param,
    Prefetch,
    ProductSteps,
    Ramp,
    Range,
    Reducer,
    Region,
    Reinterpret,
    Relation,
    Search,
    Select,
    Shuffle,
    SortedSegments,
    SparseBuffer,
    Store,
    ThreadExtent,
    TransposeReduce,
    Unary,
    Var,
    VScale,
    WaitGroup,
    While,
)
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.verify.statements.region_coverage import uncovered_regions

STAGES = ("coordinate", "position", "loop", "flat")

FLOATS = tuple(name for name in SCALARS if DType(name).is_float)
INTEGERS = tuple(name for name in SCALARS if DType(name).is_integer)
_SCALARS = (*FLOATS, *INTEGERS, "bool")
_VALUES = ("float32", "float64", "int64", "int32")
_INDEX_STORAGE = ("uint8", "uint16", "int32", "int64")
_SPECIAL_FLOATS = (0.0, -0.0, 1.0, 0.5, 0.1, float("inf"), float("-inf"), float("nan"), 1e30, -1e-7)
_NAMES = ("T", "i", "j", "i_1", "min", "range", "inf", "subset", "acc", "X", "_", "float32", "sp")
_LANES = (Lanes(2), Lanes(16), Lanes(1, scalable=True), Lanes(4, scalable=True))
_TAGS = ("blockIdx.x", "threadIdx.y")
_SCOPES = ("global", "local", "shared")
_TEXTS = ("", "on", 'quo"te', "back\\slash", "two\nlines", "ü")


class Generator:
    """Draws the parts of one function; tracks the variables and buffers in scope."""

    def __init__(
        self, draw: Callable[..., Any], stage: str, callee: tuple[Param, ...] | None = None
    ) -> None:
        self.draw = draw
        self.callee = callee
        self.stage = stage
        self.names: set[str] = set()
        self.vars: list[Var] = []
        self.buffers: list[Buffer | SparseBuffer] = []
        self.handles: list[str] = []
        self.params: list[Param] = []
        self.loops: list[For] = []
        self.axes: list[Any] = []
        self.reducers: list[Reducer] = []

    # --- choices and names

    def below(self, count: int) -> int:
        return self.draw(st.integers(0, count - 1))

    def one(self, items: Any) -> Any:
        return items[self.below(len(items))]

    def flip(self) -> bool:
        return self.draw(st.booleans())

    def name(self, base: str = "") -> str:
        base = base or self.one(_NAMES)
        name, count = base, 0
        while name in self.names:
            count += 1
            name = f"{base}_{count}"
        self.names.add(name)
        return name

    def scoped(self, build: Callable[[], Any]) -> Any:
        sizes = len(self.vars), len(self.buffers)
        result = build()
        del self.vars[sizes[0] :], self.buffers[sizes[1] :]
        return result

    def handle(self) -> str:
        name = self.name()
        self.params.append(Param(name, "handle"))
        self.handles.append(name)
        return name

    @property
    def has_vectors(self) -> bool:
        return self.stage in ("loop", "flat")

    # --- expressions

    def const(self, dtype: str) -> Any:
        if dtype == "bool":
            return constant(self.flip(), dtype)
        if dtype in FLOATS:
            wide = st.floats(width=32 if dtype != "float64" else 64)
            value = self.one(_SPECIAL_FLOATS) if self.flip() else self.draw(wide)
            return constant(value, dtype)
        bits = DType.parse(dtype).bits
        low = 0 if dtype.startswith("u") else -(2 ** (bits - 1))
        high = low + 2**bits - 1
        return constant(self.one((low, high, max(low, -1), 0, 1, 5)), dtype)

    def leaf(self, dtype_name: str) -> Any:
        dtype = DType.parse(dtype_name)
        if dtype.is_vector:
            return Broadcast(self.leaf(dtype.scalar), Lanes(dtype.lanes, dtype.scalable))
        candidates = [var for var in self.vars if var.dtype == dtype_name]
        if candidates and self.below(3):
            return self.one(candidates)
        if dtype_name == "int64" and self.has_vectors and not self.below(4):
            return VScale()
        return self.const(dtype_name)

    def expr(self, dtype_name: str, fuel: int = 3) -> Any:
        if fuel <= 0 or not self.below(4):
            return self.leaf(dtype_name)
        dtype = DType.parse(dtype_name)
        rules = [self.arithmetic, self.cast, self.select, self.load, self.load]
        if dtype.scalar == "bool":
            rules = [self.logic, self.compare, self.cast, self.select]
        elif dtype.is_float:
            rules += [self.call, self.reinterpret]
        elif dtype.is_integer and self.flip():
            rules += [self.call]
        elif dtype.scalar == "int64" and not dtype.is_vector:
            rules += [self.search] if self.stage in ("position", "loop") else []
        if dtype.is_vector:
            rules += [self.vector, self.transpose_reduce]
        elif self.has_vectors:
            rules.append(self.lane_reduce)
        value = self.one(rules)(dtype_name, fuel - 1)
        return self.leaf(dtype_name) if value is None else value

    def index(self, fuel: int = 2) -> Any:
        return self.expr("int64", fuel)

    def arithmetic(self, dtype_name: str, fuel: int) -> Any:
        dtype = DType.parse(dtype_name)
        ops = ["add", "sub", "mul", "min", "max"]
        ops += ["div"] if dtype.is_float else ["floordiv", "floormod"]
        if dtype.is_integer:
            ops += ["bitand", "bitor", "bitxor", "shl", "shr", "bitnot"]
        if dtype.kind != "uint":
            ops.append("neg")
        op = self.one(ops)
        if op in ("neg", "bitnot"):
            return Unary(op, self.expr(dtype_name, fuel))
        return Binary(op, self.expr(dtype_name, fuel), self.expr(dtype_name, fuel))

    def logic(self, dtype: str, fuel: int) -> Any:
        op = self.one(("and", "or", "not"))
        if op == "not":
            return Unary("not", self.expr(dtype, fuel))
        return Binary(op, self.expr(dtype, fuel), self.expr(dtype, fuel))

    def compare(self, dtype: str, fuel: int) -> Any:
        op = self.one(("eq", "ne", "lt", "le", "gt", "ge"))
        inner = DType.parse(dtype).with_scalar(self.one(_VALUES)).text
        return Compare(op, self.expr(inner, fuel), self.expr(inner, fuel))

    def cast(self, dtype: str, fuel: int) -> Any:
        scalars = [scalar for scalar in _SCALARS if scalar != DType.parse(dtype).scalar]
        return Cast(dtype, self.expr(DType.parse(dtype).with_scalar(self.one(scalars)).text, fuel))

    def reinterpret(self, dtype: str, fuel: int) -> Any:
        bits = DType.parse(dtype).bits
        scalar = self.one([name for name in (*FLOATS, *INTEGERS) if SCALARS[name].bits == bits])
        return Reinterpret(dtype, self.expr(DType.parse(dtype).with_scalar(scalar).text, fuel))

    def select(self, dtype: str, fuel: int) -> Any:
        condition = self.expr(DType.parse(dtype).with_scalar("bool").text, fuel)
        kind = Select
        if not DType.parse(dtype).is_vector and self.flip():
            kind = IfThenElse
        return kind(condition, self.expr(dtype, fuel), self.expr(dtype, fuel))

    def call(self, dtype: str, fuel: int) -> Any:
        kinds = ("floats" if DType.parse(dtype).is_float else "integers", "numbers")
        functions = [function for function in FUNCTIONS.values() if function.operands in kinds]
        function = self.one(functions)
        args = tuple(self.expr(dtype, fuel) for _ in range(function.arity))
        return Call(function.name, args, dtype)

    def rank(self, buffer: Any) -> int:
        return len(buffer.axes if isinstance(buffer, SparseBuffer) else buffer.shape)

    def load(self, dtype_name: str, fuel: int) -> Any:
        dtype = DType.parse(dtype_name)
        candidates = [each for each in self.buffers if each.dtype == dtype.scalar]
        if dtype.is_vector:
            candidates = [each for each in candidates if self.rank(each)]
        if not candidates:
            return None
        buffer = self.one(candidates)
        indices = self.indices(buffer, dtype, fuel)
        if not self.has_vectors or self.flip():
            return Load(buffer.name, indices, dtype_name)
        predicate = self.expr(dtype.with_scalar("bool").text, fuel)
        return Load(buffer.name, indices, dtype_name, predicate, self.expr(dtype_name, fuel))

    def indices(self, buffer: Any, dtype: DType, fuel: int) -> Any:
        drawn = [self.index(fuel) for _ in range(self.rank(buffer))]
        if dtype.is_vector:
            lanes = Lanes(dtype.lanes, dtype.scalable)
            drawn[-1] = Ramp(self.index(fuel), self.one((index(1), self.index(fuel))), lanes)
        return tuple(drawn)

    def search(self, dtype: str, fuel: int) -> Any:
        candidates = [each for each in self.buffers if self.rank(each) and each.dtype == "int32"]
        if not candidates:
            return None
        buffer = self.one(candidates)
        prefix = tuple(self.index(fuel) for _ in range(self.rank(buffer) - 1))
        kind = self.one(("exact", "lower", "upper"))
        parts = [self.index(fuel) for _ in range(3)]
        return Search(kind, buffer.name, prefix, *parts)

    def vector(self, dtype_name: str, fuel: int) -> Any:
        dtype = DType.parse(dtype_name)
        lanes = Lanes(dtype.lanes, dtype.scalable)
        if dtype.is_integer and self.flip():
            return Ramp(self.expr(dtype.scalar, fuel), self.expr(dtype.scalar, fuel), lanes)
        return Broadcast(self.expr(dtype.scalar, fuel), lanes)

    def lane_reduce(self, dtype: str, fuel: int) -> Any:
        lanes = self.one(_LANES)
        op = self.one(("and", "or") if dtype == "bool" else ("add", "mul", "min", "max"))
        vector = with_lanes(dtype, lanes.count, scalable=lanes.scalable)
        return LaneReduce(op, self.expr(vector, fuel))

    def transpose_reduce(self, dtype_name: str, fuel: int) -> Any:
        dtype = DType.parse(dtype_name)
        if dtype.scalable or not 2 <= dtype.lanes <= 64:
            return None
        op = self.one(("and", "or") if dtype.scalar == "bool" else ("add", "mul", "min", "max"))
        lanes = self.one(_LANES)
        vector = with_lanes(dtype.scalar, lanes.count, scalable=lanes.scalable)
        rest = [self.leaf(vector) for _ in range(dtype.lanes - 1)]
        return TransposeReduce(op, (self.expr(vector, fuel), *rest))

    def deep(self, dtype: str) -> Any:
        """An expression nested up to about 150 deep."""
        value = self.leaf(dtype)
        ways = self.draw(st.lists(st.integers(0, 4), min_size=1, max_size=6))
        for number in range(self.one((1, 10, 50, 150))):
            match ways[number % len(ways)]:
                case 0:
                    value = Binary("sub", value, self.leaf(dtype))
                case 1:
                    value = Binary("sub", self.const(dtype), value)
                case 2:
                    value = Binary("max", value, self.const(dtype))
                case 3:
                    value = Unary("neg", value)
                case _:
                    value = Select(constant(True, "bool"), self.const(dtype), value)
        return value

    # --- statements

    def annotations(self) -> Any:
        if self.below(3):
            return ()
        values: tuple[Any, ...] = (True, False, 0, -3, *_TEXTS)
        return tuple((f"key.{number}", self.one(values)) for number in range(self.below(3) + 1))

    def body(self, fuel: int) -> Any:
        return self.scoped(lambda: tuple(self.stmt(fuel) for _ in range(self.below(3))))

    def nest(self, fuel: int) -> Any:
        """Conditions nested up to 60 deep, on either side."""
        stmt = self.scoped(lambda: self.let(0))
        for _ in range(self.one((1, 10, 60))):
            condition = constant(True, "bool")
            stmt = If(condition, (stmt,)) if self.flip() else If(condition, (), (stmt,))
        return stmt

    def stmt(self, fuel: int) -> Any:
        rules = [self.store, self.store, self.let]
        nested = {
            "coordinate": [self.iteration, self.iteration, self.combine],
            "position": [self.loop, self.block, self.while_, self.loop, self.combine],
            "loop": [
                self.loop, self.block, self.while_, self.allocate, self.prefetch, self.block,
                self.combine,
            ],
            "flat": [
                self.loop, self.while_, self.allocate, self.prefetch, self.guard, self.atomic,
                self.barrier, self.shuffle, self.async_copy, self.group,
                *([] if self.callee is None else [self.parallel_for, self.launch]),
            ],
        }  # fmt: skip
        if fuel > 0:
            rules += [self.if_, *nested[self.stage]]
        if not self.below(20):
            rules = [self.nest]
        return self.one(rules)(fuel - 1)

    def store(self, fuel: int) -> Any:
        buffer = self.one(self.buffers)
        dtype = DType.parse(buffer.dtype)
        if self.has_vectors and self.rank(buffer) and self.flip():
            lanes = self.one(_LANES)
            dtype = DType(dtype.scalar, lanes.count, lanes.scalable)
        indices = self.indices(buffer, dtype, 2)
        scalar = not dtype.is_vector
        value = self.deep(dtype.text) if scalar and not self.below(6) else self.expr(dtype.text)
        if not self.has_vectors or self.flip():
            return Store(buffer.name, indices, value)
        return Store(buffer.name, indices, value, self.expr(dtype.with_scalar("bool").text))

    def let(self, fuel: int) -> Any:
        dtype = self.one(_SCALARS)
        if self.has_vectors and self.flip():
            lanes = self.one(_LANES)
            dtype = with_lanes(dtype, lanes.count, scalable=lanes.scalable)
        value = self.expr(dtype)
        var = Var(self.name(), dtype)
        self.vars.append(var)
        return Let(var, value)

    def if_(self, fuel: int) -> Any:
        return If(self.expr("bool"), self.body(fuel), self.body(fuel))

    def while_(self, fuel: int) -> Any:
        return While(self.expr("bool"), self.body(fuel))

    def loop(self, fuel: int) -> Any:
        kinds = ("serial", "thread_binding") if self.stage == "flat" else (
            "serial", "parallel", "vectorized", "unrolled", "thread_binding",
        )  # fmt: skip
        kind = self.one(kinds)
        start, extent = self.range_()
        grain = self.index()
        var = index_var(self.name())

        def build() -> Any:
            self.vars.append(var)
            options: dict[str, Any] = {"annotations": self.annotations()}
            if kind == "thread_binding":
                options["thread"] = self.one(_TAGS)
            if kind == "parallel" and self.flip():
                options |= {"weight": self.index(), "grain": grain}
            loop = For(var.name, start, extent, (), kind, **options)
            self.loops.append(loop)
            body = self.body(fuel)
            self.loops.pop()
            return For(var.name, start, extent, body, kind, **options)

        return self.scoped(build)

    def range_(self) -> tuple[Any, Any]:
        start, extent = self.one((index(0), self.index())), self.index()
        shapes = (
            (start, extent),
            (start, Binary("sub", extent, start)),
            (start, Binary("add", start, extent)),
            (index(0), extent),
            (self.const("int64"), self.const("int64")),
        )
        return self.one(shapes)

    def region(self) -> Any:
        buffer = self.one(self.buffers)
        ranges = tuple(Range(*self.range_()) for _ in range(self.rank(buffer)))
        if self.flip():
            ranges = tuple(Range(each.start, index(1)) for each in ranges)
        return Region(buffer.name, ranges)

    def block(self, fuel: int) -> Any:
        def build() -> Any:
            iters = self.iters()
            options: dict[str, Any] = {"annotations": self.annotations()}
            if self.flip():
                options["predicate"] = self.expr("bool")
            for name in ("reads", "writes"):
                if self.flip():
                    options[name] = tuple(self.region() for _ in range(self.below(3)))
            init = tuple(self.store(0) for _ in range(self.below(2)))
            block = Block(self.name("block"), iters, self.body(fuel), init, **options)
            wrong = {field: None for field, _ in uncovered_regions(block)}
            return replace(block, **wrong) if wrong else block

        return self.scoped(build)

    def iters(self) -> Any:
        iters: list[BlockIter] = []
        renamed: dict[str, Any] = {}
        for loop in self.loops if self.flip() else ():
            from gossamer_ir.traversal.substitute import substitute

            domain = substitute(Range(loop.start, loop.extent), renamed)
            iters.append(self.iter_(domain, index_var(loop.var)))
            renamed[loop.var] = index_var(iters[-1].var)
        for _ in range(self.below(3)):
            iters.append(self.iter_(Range(*self.range_()), self.index()))
        self.vars += [index_var(iterator.var) for iterator in iters]
        return tuple(iters)

    def iter_(self, domain: Any, value: Any) -> Any:
        return BlockIter(self.name("v"), self.one(("S", "R")), domain, value)

    def iteration(self, fuel: int) -> Any:
        def build() -> Any:
            axes = [self.iteration_axis() for _ in range(self.below(3))]
            names = tuple(self.name() for _ in all_axis_names(tuple(axes)))
            kinds = "".join(self.one("SR") for _ in names)
            self.vars += [index_var(name) for name in names]
            init = tuple(self.store(0) for _ in range(self.below(2)))
            body = self.body(fuel)
            name = self.name("iteration")
            return Iteration(name, tuple(axes), kinds, names, body, init, self.annotations())

        return self.scoped(build)

    def iteration_axis(self) -> Any:
        axis = self.one(self.axes)
        if axis.parent is None or self.below(4) == 3:
            return OverAxis(axis.name)
        kind = self.one((FuseAxes, AttachAxis))
        return (
            FuseAxes((axis.parent, axis.name))
            if kind is FuseAxes
            else AttachAxis(axis.name, axis.parent)
        )

    def allocate(self, fuel: int) -> Any:
        buffer = self.buffer(None)
        self.buffers.append(buffer)
        return Allocate(buffer)

    def barrier(self, fuel: int) -> Any:
        return Barrier()

    def shuffle(self, fuel: int) -> Any:
        dtype = self.one(_SCALARS)
        value, var = self.expr(dtype), Var(self.name(), dtype)
        self.vars.append(var)
        return Shuffle(
            self.one(("xor", "down")), var, value, self.one((1, 2, 3)), self.one((4, 32))
        )

    def async_copy(self, fuel: int) -> Any:
        return AsyncCopy((self.store(0),))

    def group(self, fuel: int) -> Any:
        return self.one((CommitGroup(), WaitGroup(0), WaitGroup(2)))

    def prefetch(self, fuel: int) -> Any:
        buffer = self.one(self.buffers)
        return Prefetch(buffer.name, self.indices(buffer, DType(buffer.dtype), 2))

    def atomic(self, fuel: int) -> Any:
        numbers = [each for each in self.buffers if each.dtype != "bool"]
        if not numbers:
            return self.let(fuel)
        buffer = self.one(numbers)
        indices = self.indices(buffer, DType(buffer.dtype), 2)
        return Atomic(self.one(ATOMIC_OPS), buffer.name, indices, self.expr(buffer.dtype))

    def combine(self, fuel: int) -> Any:
        """A combination of one component, or of two if there are two buffers of scalars."""
        chosen = self.buffers[: 1 + self.below(2)]
        lhs, rhs = (
            tuple(Var(self.name(), component.dtype) for component in chosen) for _ in range(2)
        )
        results = tuple(self.one(pair) for pair in zip(lhs, rhs, strict=True))
        identity = tuple(self.const(component.dtype) for component in chosen)
        reducer = Reducer(self.name("f"), lhs, rhs, results, identity)
        self.reducers.append(reducer)
        stores = tuple(
            Store(
                component.name,
                (index(self.below(3)),) * self.rank(component),
                self.const(component.dtype),
            )
            for component in chosen
        )
        return Combine(reducer.name, stores)

    def guard(self, fuel: int) -> Any:
        return Guard(self.expr("bool"), self.one(self.buffers).name)

    def args(self, first: int) -> Any:
        pointers = [handle(name) for name in self.handles]
        return tuple(
            self.one(pointers) if param.dtype == "handle" else self.expr(param.dtype)
            for param in (self.callee or ())[first:]
        )

    def parallel_for(self, fuel: int) -> Any:
        start, extent = self.range_()
        args = self.args(2)
        var = self.name()

        def build() -> Any:
            self.vars.append(index_var(var))
            weight = self.index() if self.flip() else None
            return ParallelFor(
                "callee", var, start, extent, args, weight, self.one((None, index(9)))
            )

        return self.scoped(build)

    def launch(self, fuel: int) -> Any:
        tags = _TAGS[: self.below(3)]
        return Launch(
            "callee", self.args(0), tuple(ThreadExtent(tag, self.index()) for tag in tags)
        )

    # --- declarations

    def size(self) -> Any:
        sizes = [var for var in self.vars if var.dtype == "int64"]
        return self.one((*sizes, index(7), Binary("add", self.one((*sizes, index(2))), index(1))))

    def scalars(self) -> None:
        for dtype in ("int64", "int64", self.one(_SCALARS)):
            var = Var(self.name(), dtype)
            self.params.append(Param(var.name, dtype))
            self.vars.append(var)

    def buffer(self, bound: str | None) -> Buffer:
        shape = tuple(self.size() for _ in range(self.below(3)))
        return Buffer(self.name("B"), shape, self.one(_VALUES), bound, self.one(_SCOPES))

    def sparse_buffer(self, dtype: str) -> SparseBuffer:
        axes = tuple(axis.name for axis in self.axes[: self.below(len(self.axes)) + 1])
        bound = self.handle() if self.below(3) else None
        fill = self.const(dtype) if self.flip() else None
        offsets = self.handle() if not self.below(4) else None
        scope, extra = self.one(_SCOPES), self.below(2)
        return SparseBuffer(self.name("A"), axes, dtype, bound, scope, fill, extra, offsets)

    def axis(self) -> Any:
        name = self.name("J")
        parents = [axis.name for axis in self.axes]
        if not parents or not self.below(3):
            return DenseFixed(name, self.size(), self.one((None, *parents)))
        parent, length = self.one(parents), self.size()
        first, second = self.one(_INDEX_STORAGE), self.one(_INDEX_STORAGE)
        flags = [self.flip() for _ in range(3)]
        nnz = self.size() if self.flip() else None
        kind = self.below(4)
        if kind == 3:
            words = self.one(("uint8", "uint64"))
            ends = self.handle(), self.handle()
            return BitmaskVaried(name, parent, length, nnz, *ends, first, words)
        if kind == 0:
            return DenseVaried(name, parent, length, nnz, self.handle(), first)
        if kind == 1:
            width = self.size()
            return CompressedFixed(name, parent, length, width, self.handle(), first, *flags)
        ends = self.handle(), self.handle()
        return CompressedVaried(name, parent, length, nnz, *ends, first, second, *flags)

    def fact(self) -> Any:
        name = self.one(self.buffers).name
        match self.below(9):
            case 7:
                return BitCounts(name, self.one(self.buffers).name, self.size())
            case 6:
                return Distinct(name)
            case 5:
                return ProductSteps(name, *(self.one(self.buffers).name for _ in range(2)))
            case 0:
                return InRange(name, self.size(), self.size())
            case 4:
                return HasValue(name, self.size(), self.size())
            case 1:
                return Monotone(name)
            case 2:
                indptr = self.one((None, self.one(self.buffers).name))
                return SortedSegments(name, indptr, self.flip())
            case 3:
                return PaddedSlots(name, self.size())
        return Relation(
            self.one(("subset", "disjoint", "covers")), name, self.one(self.buffers).name
        )

    def function(self, name: str) -> Function:
        self.scalars()
        relations: tuple[Relation, ...] = ()
        if self.stage in ("coordinate", "position"):
            for _ in range(self.below(4) + 1):
                self.axes.append(self.axis())
            self.buffers += [self.sparse_buffer("int32"), self.sparse_buffer(self.one(_VALUES))]
            if self.flip():
                kind = self.one(("subset", "disjoint", "covers"))
                relations = (Relation(kind, self.axes[0].name, self.axes[-1].name),)
        if self.stage != "coordinate":
            self.buffers.append(self.buffer(self.handle()))
            self.buffers.append(self.buffer(None))
        drawn = (self.fact() for _ in range(self.below(3)))
        passed = {buffer.name for buffer in self.buffers if buffer.handle is not None}
        facts = tuple(fact for fact in drawn if named_by(fact) <= passed)
        declared = tuple(self.buffers)
        axes, annotations = tuple(self.axes), self.annotations()
        body = tuple(self.stmt(2) for _ in range(self.below(3) + 1))
        return Function(
            name, tuple(self.params), body, axes, declared, relations, facts, annotations,
            tuple(self.reducers),
        )  # fmt: skip


def named_by(fact: Any) -> frozenset[str]:
    """The buffers that a fact names, which callers must pass."""
    return buffers_read(fact).union(buffers_of_fact(fact))


@st.composite
def modules(draw: Callable[..., Any], stage: str | None = None) -> Module:
    """Well-formed modules of one stage, or of any stage."""
    stage = stage or draw(st.sampled_from(STAGES))
    if stage != "flat":
        name = draw(st.sampled_from(("entry", "T")))
        return Module(stage, (Generator(draw, stage).function(name),), name)
    callee = Generator(draw, stage).function("callee")
    entry = Generator(draw, stage, callee.params).function("entry")
    return Module(stage, (callee, entry), "entry")


@st.composite
def formats(draw: Callable[..., Any]) -> FormatDescription:
    """Descriptions of formats."""
    generator = Generator(draw, "loop")
    generator.scalars()
    for _ in range(generator.below(3) + 1):
        generator.axes.append(generator.axis())
    buffer = generator.sparse_buffer(generator.one(_VALUES))
    arrays = tuple(generator.buffer(generator.handle()) for _ in range(generator.below(2)))
    generator.buffers += arrays
    names = tuple(generator.name() for _ in generator.axes)
    generator.vars += [index_var(name) for name in names]
    results = tuple(generator.index() for _ in range(generator.below(3)))
    index_map = IndexMap(names, results) if generator.flip() else None
    del generator.vars[-len(names) :]
    shape = tuple(generator.index() for _ in results) if index_map and generator.flip() else None
    params, axes = tuple(generator.params), tuple(generator.axes)
    facts = tuple(Distinct(array.name) for array in arrays if generator.flip())
    return FormatDescription(
        "described", params, axes, buffer, arrays, index_map, shape=shape, facts=facts
    )
