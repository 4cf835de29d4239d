"""Extracts the searches of a function that depend on index arrays only.

A search (plus a constant offset) is outlined with the enclosing conditions that depend on index arrays only,
if it is in bounds even where the other conditions fail. There is one result for each iteration of the loops
on which it depends: a loop with a fixed extent is a dimension of the array; a loop over a fiber
`P[e], ..., P[e + 1] - 1` is indexed by the number of the element over all fibers, if each `e` occurs once.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import LoopOrCondition
from gossamer_ir.analysis.invariants import is_constant
from gossamer_ir.analysis.proofs.bounded_reads import BoundedReads
from gossamer_ir.core.build import ONE, ZERO, index_var, widen
from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.statement_kinds import LOOPS, effects_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Binary,
    Block,
    Buffer,
    Const,
    Expr,
    For,
    Function,
    If,
    IfThenElse,
    InRange,
    Load,
    Module,
    Node,
    Param,
    Search,
    Stmt,
    Unary,
    Var,
)
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.statement_queries import values_after
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import collect
from gossamer_lower.inspector.results.result_arrays import ResultArrays, point_inside

STORAGE = ("int32", "int64")


class ExtractedSearch(msgspec.Struct, frozen=True):
    """An outlined search: its enclosing loops and conditions, its value, and where the result is stored."""

    around: tuple[LoopOrCondition, ...]
    value: Expr
    handle: str
    """The parameter for the array of results, and the label of the block that computes them."""
    buffer: Buffer
    indices: tuple[Expr, ...]
    facts: tuple[InRange, ...]


class ExtractedSearches(msgspec.Struct, frozen=True):
    """A function whose searches are replaced by loads from parameters, and the searches."""

    function: Function
    searches: tuple[ExtractedSearch, ...]

    def params(self) -> tuple[Param, ...]:
        """Return the parameters for the arrays of results."""
        return tuple(Param(search.handle, "handle") for search in self.searches)

    def buffers(self) -> tuple[Buffer, ...]:
        """Return the arrays of results."""
        return tuple(search.buffer for search in self.searches)


def extract_searches(module: Module, dtype: str) -> ExtractedSearches:
    """Return the entry of a module without the searches that depend on index arrays only.

    Raises `UnsupportedError`: `lower.inspector.stage`, `lower.inspector.dtype`, and
    `lower.inspector.no_search` if there is no such search.
    """
    if module.stage not in ("position", "loop"):
        raise UnsupportedError(
            "lower.inspector.stage",
            f"Searches are extracted from a module of the position or loop stage; this one is of the "
            f"{module.stage} stage.",
        )
    if dtype not in STORAGE:
        raise UnsupportedError(
            "lower.inspector.dtype",
            f"dtype is '{dtype}'; expected one of {', '.join(STORAGE)}.",
        )
    (entry,) = (function for function in module.functions if function.name == module.entry)
    extractor = _SearchExtractor(entry, dtype)
    body = extractor.body(entry.body, (), {})
    if not extractor.searches:
        raise UnsupportedError(
            "lower.inspector.no_search",
            f"'{entry.name}' has no search that depends on index arrays only, in loops each of which has "
            "a fixed extent or is over the fibers of a numbered axis.",
        )
    return ExtractedSearches(replace(entry, body=body), tuple(extractor.searches))


def _always_runs(stmt: Stmt) -> bool:
    """Return whether all bodies of a statement run whenever it does."""
    return all(body.runs_always for body in effects_of(stmt).bodies)


class _SearchExtractor:
    """Extracts the searches of one function."""

    def __init__(self, function: Function, dtype: str) -> None:
        self._function = function
        self._dtype = dtype
        self._namer = namer_of(function)
        self._arrays = ResultArrays(function)
        self.searches: list[ExtractedSearch] = []

    # --- statements

    def body(
        self,
        body: tuple[Stmt, ...],
        around: tuple[LoopOrCondition, ...],
        values: Mapping[str, Expr],
    ) -> tuple[Stmt, ...]:
        """Return the statements, inside `around`; `values` are those of lets and block iterators."""
        values = dict(values)
        result = []
        for stmt in body:
            result.append(self._stmt(stmt, around, values))
            values.update(
                (var.name, self._resolve(value, values)) for var, value in values_after(stmt)
            )
        return tuple(result)

    # Other statements: searches in their bodies stay.
    def _stmt(
        self, stmt: Stmt, around: tuple[LoopOrCondition, ...], values: Mapping[str, Expr]
    ) -> Any:
        match stmt:
            case For():
                header = self._resolve(replace(stmt, body=()), values)
                inner = self.body(stmt.body, (*around, header), values)
                return replace(stmt, body=inner)
            case If():
                return self._if(stmt, around, values)
            case Block():
                return self._block(stmt, around, values)
            # Bodies under other conditions stay. Those that always run are like operands:
            # the stores of a `Combine`.
            case _ if isinstance(stmt, LOOPS) or not _always_runs(stmt):
                return stmt
        return map_children(stmt, lambda child: self._expr(child, around, values))

    def _if(self, stmt: If, around: tuple[LoopOrCondition, ...], values: Mapping[str, Expr]) -> If:
        sides = {
            side.field: self.body(
                side.stmts, (*around, self._resolve(side.condition, values)), values
            )
            for side in effects_of(stmt).bodies
        }
        condition = self._expr(stmt.condition, around, values)
        return replace(stmt, condition=condition, **sides)

    def _block(
        self, block: Block, around: tuple[LoopOrCondition, ...], values: Mapping[str, Expr]
    ) -> Block:
        bound = {iterator.var: self._resolve(iterator.value, values) for iterator in block.iters}
        values = {**values, **bound}
        inside = around
        if block.predicate is not None:
            parts = conjuncts(block.predicate)
            inside = (*around, *(self._resolve(part, values) for part in parts))
        init = self.body(block.init, inside, values)
        body = self.body(block.body, inside, values)
        return replace(block, init=init, body=body, reads=None, writes=None)

    def _resolve(self, node: Any, values: Mapping[str, Expr]) -> Any:
        return substitute(node, values)

    # --- expressions

    def _expr(
        self, node: Node, around: tuple[LoopOrCondition, ...], values: Mapping[str, Expr]
    ) -> Any:
        if _is_search(node):
            search = self._extract(self._resolve(node, values), around)
            if search is not None:
                return _load_of(search, _iters_by_loop(values))
        if isinstance(node, IfThenElse):
            condition = self._resolve(node.condition, values)
            return IfThenElse(
                self._expr(node.condition, around, values),
                self._expr(node.if_true, (*around, condition), values),
                self._expr(node.if_false, (*around, Unary("not", condition)), values),
            )
        return map_children(node, lambda child: self._expr(child, around, values))

    def _extract(self, value: Expr, around: tuple[LoopOrCondition, ...]) -> ExtractedSearch | None:
        """Return the outlined search; None if it cannot be outlined.

        Its operands must depend on index arrays only. A condition that depends on more is dropped, if the
        search is in bounds without it. An equal search under a subset of the conditions is reused.
        """
        needed = _required_context(value, around)
        loops = {item.var for item in needed if isinstance(item, For)}
        bound = {param.name for param in self._function.params} | loops
        kept = tuple(
            item for item in needed if isinstance(item, For) or self._is_known(item, bound)
        )
        for earlier in self.searches:
            if earlier.value == value and set(earlier.around) <= set(kept):
                return earlier
        if not all(self._is_known(part, bound) for part in (value, *kept)):
            return None
        if kept != needed:
            reads = BoundedReads(self._function, point_inside(self._function, kept))
            if not reads.are_in_bounds(value):
                return None
        dimensions = self._arrays.dimensions([item for item in kept if isinstance(item, For)])
        if dimensions is None:
            return None
        name = next(node.buffer for node in collect(Search, value))
        handle = self._namer.fresh(f"{name}_found")
        shape = tuple(size for _, size in dimensions) or (ONE,)
        buffer = Buffer(self._namer.fresh(f"{handle}_data"), shape, self._dtype, handle)
        indices = tuple(at for at, _ in dimensions) or (ZERO,)
        search = ExtractedSearch(
            kept, value, handle, buffer, indices, self._arrays.facts(value, kept, buffer)
        )
        self.searches.append(search)
        return search

    def _is_known(self, part: LoopOrCondition, bound: Set[str]) -> bool:
        """Return whether an expression or loop reads only constant integer arrays and these variables."""
        reads = collect(READS, part)
        return (
            free_vars(part) <= bound
            and is_constant(part, function=self._function)
            and all(DType.parse(node.dtype).is_integer for node in reads if isinstance(node, Load))
        )


# Other expressions: not optimized.
# Other operations: refused.
def _is_search(node: Any) -> bool:
    """Return whether a node is a search, possibly with a constant added or subtracted."""
    is_moved = isinstance(node, Binary) and node.op in ("add", "sub")
    if is_moved and isinstance(node.rhs, Const):
        return _is_search(node.lhs)
    return isinstance(node, Search)


def _required_context(
    value: Expr, around: tuple[LoopOrCondition, ...]
) -> tuple[LoopOrCondition, ...]:
    """Return the enclosing conditions, and the loops on whose variables the value or the range of another
    such loop depends."""
    needed = set(free_vars(value))
    kept: list[LoopOrCondition] = []
    for item in reversed(around):
        if not isinstance(item, For):
            kept.insert(0, item)
        elif item.var in needed:
            kept.insert(0, item)
            needed |= free_vars(item)
    return tuple(kept)


def _iters_by_loop(values: Mapping[str, Expr]) -> dict[str, Expr]:
    """Return the block iterators by the loop variable to which they are bound."""
    return {
        value.name: index_var(name)
        for name, value in values.items()
        if isinstance(value, Var) and value.dtype == "int64"
    }


def _load_of(search: ExtractedSearch, names: Mapping[str, Expr]) -> Expr:
    indices = tuple(substitute(index, names) for index in search.indices)
    return widen(Load(search.buffer.name, indices, search.buffer.dtype))
