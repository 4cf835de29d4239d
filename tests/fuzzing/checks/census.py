"""Counts the constructs of a program and the events of its run, for the report on what was tested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import singledispatch
from typing import get_args

import numpy as np

from gossamer_ir.core.dtypes import SCALARS
from gossamer_ir.core.math_functions import FUNCTIONS
from gossamer_ir.nodes import (
    AttachAxis,
    Binary,
    BinaryOp,
    BitmaskVaried,
    Call,
    Compare,
    CompareOp,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    FuseAxes,
    HasValue,
    If,
    IfThenElse,
    InRange,
    Iteration,
    Load,
    Monotone,
    Node,
    ReduceOp,
    Reducer,
    Relation,
    SortedSegments,
    SparseBuffer,
    Store,
    Unary,
    UnaryOp,
)
from gossamer_ir.traversal.walk import walk
from tests.fuzzing.programs.program import Program

EVENTS = ("lookup misses", "fill values read", "padding skipped", "nothing attached", "stops")
DATA = (
    "an axis of length 0", "an axis without elements", "empty fibers at both ends", "a full fiber",
    "a coordinate in all fibers", "unsorted coordinates", "a coordinate twice", "explicit zeros",
    "NaN", "an infinity", "a size that is computed", "int64 coordinates", "uint8 coordinates",
    "uint16 coordinates", "coordinates above 127", "coordinates above 32767",
    "coordinates above 2147483647", "an array that begins beside a cache line",
    "an array that is not aligned", "an array that is not dense",
)  # fmt: skip


def census(program: Program) -> set[str]:
    """Counts all features of one program."""
    (function,) = program.module.functions
    features = {name for node in walk(function) for name in counted(node)}
    used = {
        name
        for node in walk(function)
        if isinstance(node, SparseBuffer | FuseAxes)
        for name in node.axes
    }
    used |= {node.axis for node in walk(function) if hasattr(node, "axis")}
    depth = max(
        (_depth(axis, function.axes) for axis in function.axes if axis.name in used), default=0
    )
    features |= {f"forest of depth {count}" for count in range(2, depth + 1)}
    for stmt in function.body:
        inner = [node for node in getattr(stmt, "body", ()) if isinstance(node, Iteration)]
        features |= {"iterations inside another"} if inner else set()
        features |= {"iterations in sequence inside another"} if len(inner) > 1 else set()
    features |= {name for name, count in program.meaning.events.items() if count}
    features |= {"stops"} if program.expected is None else set()
    return features | set(_data(program))


def required() -> tuple[str, ...]:
    """The features that a long run must contain often."""
    dtypes = [f"buffer of {name}" for name in SCALARS if name != "handle"]
    return (
        "dense_fixed", "dense_fixed under a parent", "dense_varied", "compressed_fixed",
        "compressed_varied", "bitmask_varied", "forest of depth 2", "forest of depth 3", "forest of depth 4",
        "iteration", "iterations inside another", "iterations in sequence inside another",
        "fused axes: 2", "fused axes: 3", "attached axis", "init", "store", "let", "if", "else",
        "combine", "reducer of 2", "reducer of 3", "subset", "covers", "disjoint",
        *(f"reduction by {op}" for op in get_args(ReduceOp)),
        "in_range", "monotone", "has_value", "sorted_segments", "load", "cast", "reinterpret",
        "select", "if_then_else", "prefetch", "allocated buffer", "local buffer", "fill value",
        "extra storage", "siblings with offsets", "scatter", "gather",
        *(f"{op}" for op in (*get_args(UnaryOp), *get_args(BinaryOp), *get_args(CompareOp))),
        *(f"{name}()" for name in FUNCTIONS), *dtypes, *EVENTS, *DATA,
    )  # fmt: skip


def _depth(axis: Node, axes: tuple[Node, ...]) -> int:
    above = next((other for other in axes if other.name == axis.parent), None)
    return 1 + (_depth(above, axes) if above is not None else 0)


# --- nodes


@singledispatch
def counted(node: Node) -> Iterator[str]:
    """The names of the features that a node counts for."""
    yield type(node).__name__.lower()


@counted.register(Unary)
@counted.register(Binary)
@counted.register(Compare)
def _operator(node: Unary | Binary | Compare) -> Iterator[str]:
    yield node.op


@counted.register
def _call(node: Call) -> Iterator[str]:
    yield f"{node.function}()"


@counted.register
def _dense(node: DenseFixed) -> Iterator[str]:
    yield "dense_fixed" if node.parent is None else "dense_fixed under a parent"


@counted.register(DenseVaried)
@counted.register(CompressedFixed)
@counted.register(CompressedVaried)
@counted.register(BitmaskVaried)
def _below(node: Node) -> Iterator[str]:
    named = {DenseVaried: "dense_varied", CompressedFixed: "compressed_fixed"}
    yield (named | {BitmaskVaried: "bitmask_varied"}).get(type(node), "compressed_varied")


@counted.register
def _fused(node: FuseAxes) -> Iterator[str]:
    yield f"fused axes: {len(node.axes)}"


@counted.register
def _attached(node: AttachAxis) -> Iterator[str]:
    yield "attached axis"


@counted.register
def _iteration(node: Iteration) -> Iterator[str]:
    yield "iteration"
    if node.init:
        yield "init"


@counted.register
def _store(node: Store) -> Iterator[str]:
    yield "store"
    if _is_indirect(node):
        yield "scatter"
    match node.value:
        case Binary(op=op, lhs=lhs, rhs=rhs):
            if any(isinstance(side, Load) and side.buffer == node.buffer for side in (lhs, rhs)):
                yield f"reduction by {op}"


@counted.register
def _load(node: Load) -> Iterator[str]:
    yield "load"
    if _is_indirect(node):
        yield "gather"


def _is_indirect(node: Load | Store) -> bool:
    return any(isinstance(inner, Load) for index in node.indices for inner in walk(index))


@counted.register
def _if(node: If) -> Iterator[str]:
    yield "if"
    if node.else_body:
        yield "else"


@counted.register
def _reducer(node: Reducer) -> Iterator[str]:
    yield f"reducer of {len(node.lhs)}"


@counted.register(InRange)
@counted.register(Monotone)
@counted.register(HasValue)
@counted.register(SortedSegments)
def _fact(node: InRange | Monotone | HasValue | SortedSegments) -> Iterator[str]:
    named = {InRange: "in_range", Monotone: "monotone", HasValue: "has_value"}
    yield named.get(type(node), "sorted_segments")


@counted.register
def _relation(node: Relation) -> Iterator[str]:
    yield node.kind


@counted.register
def _choice(node: IfThenElse) -> Iterator[str]:
    yield "if_then_else"


@counted.register
def _buffer(node: SparseBuffer) -> Iterator[str]:
    yield f"buffer of {node.dtype}"
    for name, is_so in (
        ("allocated buffer", node.handle is None),
        ("local buffer", node.scope == "local"),
        ("fill value", node.fill is not None),
        ("extra storage", node.extra_storage > 0),
        ("siblings with offsets", node.offsets is not None),
    ):
        if is_so:
            yield name


# --- data


def _data(program: Program) -> Iterator[str]:
    (function,) = program.module.functions
    scalars: Mapping[str, int | float] = program.sizes
    for axis in function.axes:
        if scalars.get(getattr(axis.length, "name", ""), 1) == 0:
            yield "an axis of length 0"
        yield from ["a size that is computed"] if isinstance(axis.length, Binary) else []
        if isinstance(axis, CompressedFixed | CompressedVaried):
            yield from _coordinates(program.arrays[axis.indices])
        if isinstance(axis, CompressedVaried):
            yield from _fibers(program.arrays[axis.indptr], program.arrays[axis.indices])
    yield from _places(program)
    for buffer in function.buffers:
        values = program.arrays.get(buffer.handle or "", np.zeros(0))
        if values.dtype.kind == "f":
            for name, is_so in (("NaN", np.isnan), ("an infinity", np.isinf)):
                if is_so(values).any():
                    yield name
            if (values == 0).any():
                yield "explicit zeros"


def _places(program: Program) -> Iterator[str]:
    for name, place in program.places.items():
        itemsize = program.arrays[name].itemsize
        if place.step > 1 and program.arrays[name].size > 1:
            yield "an array that is not dense"
        elif place.shift % itemsize:
            yield "an array that is not aligned"
        elif place.shift:
            yield "an array that begins beside a cache line"


def _coordinates(indices: np.ndarray) -> Iterator[str]:
    if indices.dtype != np.int32:
        yield f"{indices.dtype} coordinates"
    for most in (2**7, 2**15, 2**31):
        if indices.max(initial=0) >= most:
            yield f"coordinates above {most - 1}"


def _fibers(indptr: np.ndarray, indices: np.ndarray) -> Iterator[str]:
    parts = (
        np.split(indices.astype(np.int64), indptr[1:-1].astype(np.int64)) if len(indptr) > 1 else []
    )
    if not len(indices):
        yield "an axis without elements"
        return
    lengths = np.diff(indptr.astype(np.int64))
    if len(lengths) > 2 and not lengths[0] and not lengths[-1]:
        yield "empty fibers at both ends"
    if lengths.max() == len(np.unique(indices)) and lengths.max() > 2:
        yield "a full fiber"
    common = set(parts[0].tolist()).intersection(*(part.tolist() for part in parts))
    if common and len(parts) > 1:
        yield "a coordinate in all fibers"
    if any((np.diff(part) < 0).any() for part in parts):
        yield "unsorted coordinates"
    if any(len(np.unique(part)) < len(part) for part in parts):
        yield "a coordinate twice"
