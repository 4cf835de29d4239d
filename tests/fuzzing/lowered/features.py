"""The features of a program of the position, loop or flat stage."""

from __future__ import annotations

from typing import Any

from gossamer_ir.analysis.statements.atomic_accumulation import is_atomic
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Block,
    Combine,
    Compare,
    CompressedVaried,
    Const,
    DenseVaried,
    Expr,
    For,
    Function,
    Guard,
    If,
    IfThenElse,
    Let,
    Load,
    Prefetch,
    Ramp,
    Search,
    Select,
    SparseBuffer,
    Store,
    Var,
    While,
)
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import collect, walk
from tests.fuzzing.lowered.programs.lowered_program import Lowered

LARGE = 2**31 - 1
"""The least integer that is extreme."""

REQUIRED = {
    "stage position": 4000, "stage loop": 8000, "stage flat": 1000,
    "while": 2000, "allocation": 3000, "allocation of a computed size": 2000,
    "an index that may have been written": 6000, "a bound that may have been written": 2000,
    "a condition on what may have been written": 6000, "a size that may have been written": 200,
    "a search of what may have been written": 150, "let": 3000, "let with a search": 500,
    "a let before a write of what it reads": 300, "search": 1500, "guard": 300, "prefetch": 300,
    "block": 5000, "block with a condition": 2000, "block with an init": 1500,
    "a condition on an outer loop": 1000, "an init whose points may conflict": 500,
    "varied axis": 3000, "a position beyond a fiber": 300, "fill value": 200,
    "extreme number": 1500, "extreme scalar": 1500, "extreme data": 1500,
    "fact": 4000, "parallel": 1000, "nested parallel loops": 10, "vectorized": 500,
    "unrolled": 400, "atomic": 200, "reducer": 250, "lanes": 250, "threads": 60, "weight": 100,
    "a weight that may have been written": 20, "a start that may have been written": 250,
    "far lanes": 400, "a far start or extent": 1200, "stops": 2000, "goes on": 10_000,
}  # fmt: skip
"""The number of programs, of 20,000, in which each feature must occur."""
NATIVELY = {"far lanes": 30, "extreme scalar": 150, "vectorized": 50, "parallel": 100, "lanes": 25}
"""The number of programs, of 2,000 that run as machine code."""


def features(program: Lowered) -> set[str]:
    """The names of the features of a program."""
    (function,) = program.module.functions
    nodes = [node for stmt in function.body for node in walk(stmt)]
    written = {node.buffer for node in nodes if isinstance(node, Store)}
    features = {f"stage {program.module.stage}", "stops" if program.expected is None else "goes on"}
    for node in nodes:
        features |= set(_of(node, written))
    if any(isinstance(axis, DenseVaried | CompressedVaried) for axis in function.axes):
        features.add("varied axis")
    if any(isinstance(item, SparseBuffer) and item.fill is not None for item in function.buffers):
        features.add("fill value")
    if function.facts:
        features.add("fact")
    if abs(int(program.sizes.get("s", 0))) >= LARGE:
        features.add("extreme scalar")
    if any(name == "e_" for name in program.arrays):
        features.add("extreme data")
    features |= _orders(function, written) | _distances(nodes, program)
    return features | ({"a position beyond a fiber"} if _is_beyond(function) else set())


def _reads(node: Any, written: set[str]) -> bool:
    """True if an expression reads a buffer that may have been written."""
    loads = () if node is None else collect(Load, node)
    return any(load.buffer in written for load in loads)


def _of(node: Any, written: set[str]) -> list[str]:
    match node:
        case While():
            return ["while", "a condition on what may have been written"]
        case Allocate():
            return _of_allocation(node, written)
        case Load() | Store():
            is_read = any(_reads(index, written) for index in node.indices)
            return ["an index that may have been written"] if is_read else []
        case For():
            return _of_loop(node, written)
        case If() | IfThenElse() | Select():
            is_read = _reads(node.condition, written)
            return ["a condition on what may have been written"] if is_read else []
        case Let():
            has_search = bool(occurrences_of(Search, node.value))
            return ["let", "let with a search"] if has_search else ["let"]
        case Search():
            is_written = node.buffer in written
            return ["search", *(["a search of what may have been written"] if is_written else [])]
        case Guard():
            return ["guard"]
        case Combine():
            return ["reducer"]
        case Ramp():
            return ["lanes"]
        case Prefetch():
            return ["prefetch"]
        case Block():
            return _of_block(node)
        case Const(dtype="int64") if abs(int(node.text)) >= LARGE:
            return ["extreme number"]
    return []


def _of_allocation(node: Allocate, written: set[str]) -> list[str]:
    sizes = node.buffer.shape
    is_computed = any(not isinstance(size, Const) for size in sizes)
    is_read = any(_reads(size, written) for size in sizes)
    return [
        "allocation",
        *(["allocation of a computed size"] if is_computed else []),
        *(["a size that may have been written"] if is_read else []),
    ]


_FEATURES_OF_KINDS = {
    "parallel": "parallel",
    "vectorized": "vectorized",
    "unrolled": "unrolled",
    "thread_binding": "threads",
}


def _of_loop(node: For, written: set[str]) -> list[str]:
    inner = [item for stmt in node.body for item in walk(stmt) if isinstance(item, For)]
    is_nested = node.kind == "parallel" and any(item.kind == "parallel" for item in inner)
    return [
        *(["a start that may have been written"] if _reads(node.start, written) else []),
        *(["weight"] if node.weight is not None else []),
        *(["a weight that may have been written"] if _reads(node.weight, written) else []),
        *(["a bound that may have been written"] if _reads(node.extent, written) else []),
        *([_FEATURES_OF_KINDS[node.kind]] if node.kind in _FEATURES_OF_KINDS else []),
        *(["nested parallel loops"] if is_nested else []),
        *(["atomic"] if is_atomic(node) else []),
    ]


def _of_block(node: Block) -> list[str]:
    own_iters = {iterator.var for iterator in node.iters}
    features = ["block"]
    if node.predicate is not None:
        features.append("block with a condition")
        if free_vars(node.predicate) - own_iters:
            features.append("a condition on an outer loop")
    if node.init:
        features.append("block with an init")
        spatial = {iterator.var for iterator in node.iters if iterator.kind == "S"}
        stores = [stmt for stmt in node.init if isinstance(stmt, Store)]
        indices = [index for store in stores for index in store.indices]
        named = frozenset[str]().union(*map(free_vars, indices))
        if spatial - named or any(map(_may_conflict, indices)):
            features.append("an init whose points may conflict")
    return features


def _distances(nodes: list[Any], program: Lowered) -> set[str]:
    """True for loops with an extreme start or end, and for lanes that are compared with extreme numbers."""
    far = [node for node in nodes if _is_far(node, program)]
    if not far:
        return set()
    features: set[str] = set()
    for node in nodes:
        if isinstance(node, For) and any(
            part in far for part in (*walk(node.start), *walk(node.extent))
        ):
            features.add("a far start or extent")
        compares = occurrences_of(Compare, node) if isinstance(node, For | Store) else []
        is_wide = any(inner in far for compare in compares for inner in walk(compare))
        if is_wide and (isinstance(node, Store) or node.kind == "vectorized"):
            lanes = isinstance(node, For) or any(occurrences_of(Ramp, item) for item in compares)
            features |= {"far lanes"} if lanes else set()
    return features


def _is_far(node: Any, program: Lowered) -> bool:
    """True if an expression is an extreme number, scalar or element."""
    match node:
        case Const(dtype="int64", text=text):
            return abs(int(text)) >= LARGE
        case Var(name="s"):
            return abs(int(program.sizes.get("s", 0))) >= LARGE
        case Load(buffer="E"):
            return True
    return False


def _may_conflict(index: Expr) -> bool:
    """True if an index may have one value at different points although it contains all variables that select
    them."""
    return any(
        isinstance(node, Load) or (isinstance(node, Binary) and node.op in ("floordiv", "min"))
        for node in walk(index)
    )


def occurrences_of(kind: type, node: Any) -> list[Any]:
    return [*collect(kind, node)]


def _orders(function: Function, written: set[str]) -> set[str]:
    """True if a let precedes a write to its operands in the same body."""

    def inside(stmts: tuple[Any, ...]) -> bool:
        for number, stmt in enumerate(stmts):
            if isinstance(stmt, Let):
                read = {load.buffer for load in collect((Load, Search), stmt.value)}
                later = {
                    node.buffer
                    for other in stmts[number + 1 :]
                    for node in walk(other)
                    if isinstance(node, Store)
                }
                if read & later:
                    return True
        return False

    bodies = [function.body, *(
        part for stmt in function.body for node in walk(stmt)
        for part in (getattr(node, "body", ()), getattr(node, "then_body", ()))
    )]  # fmt: skip
    return {"a let before a write of what it reads"} if any(map(inside, bodies)) else set()


def _is_beyond(function: Function) -> bool:
    """True if a position in a varied fiber is not a loop variable, so that it may lie beyond the fiber."""
    varied = {
        axis.name for axis in function.axes if isinstance(axis, DenseVaried | CompressedVaried)
    }
    at = {
        buffer.name: number for buffer in function.buffers if isinstance(buffer, SparseBuffer)
        for number, axis in enumerate(buffer.axes) if axis in varied
    }  # fmt: skip
    return any(
        isinstance(node, Load | Store)
        and node.buffer in at
        and not free_vars(node.indices[at[node.buffer]])
        for stmt in function.body
        for node in walk(stmt)
    )
