"""Inits that skip elements that are already initialized, with marks in arrays of their own.

This is the last resort if several points of a block may write the same element and the init cannot be
hoisted: the points would initialize it to different values, or the time of the initialization matters.
The arrays are as large as the buffers, and cleared before the outermost loop that feeds the block. Loops
inside of that one that do not feed the block repeat its init: they are further dimensions of the arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.invariants import is_constant
from gossamer_ir.core.build import ONE, ZERO, add, index_var, sub, zero_of
from gossamer_ir.core.conditions import conjunction, in_range
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Block,
    Buffer,
    Compare,
    Const,
    Expr,
    For,
    Function,
    Guard,
    If,
    Load,
    Node,
    Stmt,
    Store,
)
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer, bound_vars
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import stmts

_FLAG, _NUMBER = "int8", "int64"


class InitMarks:
    """The arrays that mark the initialized elements of some buffers, for the init of one block.

    A mark is the number of the run of the init that initialized the element: the same run may write the
    element again. If a run writes each element at most once, a flag is enough. `repeating` are the loops
    whose iterations have marks of their own, for each buffer.
    """

    def __init__(
        self,
        block: Block,
        shapes: Mapping[str, tuple[Expr, ...]],
        repeating: Mapping[str, tuple[For, ...]],
        namer: Namer,
    ) -> None:
        self._shapes, self._repeating, self._namer = shapes, repeating, namer
        self._names = {name: namer.fresh(f"{name}_initialized") for name in sorted(shapes)}
        self._runs = None if _writes_once(block) else namer.fresh(f"{block.name}_runs")
        self._dtype = _FLAG if self._runs is None else _NUMBER

    def clear_marks(self, buffers: Iterable[str]) -> tuple[Stmt, ...]:
        """Return the statements that allocate and clear the arrays of marks for these buffers."""
        return tuple(
            stmt
            for name in sorted(buffers)
            for stmt in self._zeros(self._names[name], self._shape_of_marks(name))
        )

    def _shape_of_marks(self, buffer_name: str) -> tuple[Expr, ...]:
        # A loop with a negative extent has no iteration.
        counts = (Binary("max", loop.extent, ZERO) for loop in self._repeating[buffer_name])
        return (*counts, *self._shapes[buffer_name])

    def clear_run_number(self) -> tuple[Stmt, ...]:
        """Return the statements that allocate and clear the number of the last run."""
        return () if self._runs is None else self._zeros(self._runs, (ONE,))

    def _zeros(self, name: str, shape: tuple[Expr, ...]) -> tuple[Stmt, ...]:
        loops = [self._namer.fresh("e") for _ in shape]
        body: Stmt = Store(name, tuple(map(index_var, loops)), zero_of(self._dtype))
        for var, extent in zip(reversed(loops), reversed(shape), strict=True):
            body = For(var, ZERO, extent, (body,))
        return Allocate(Buffer(name, shape, self._dtype)), body

    def marking(self, block: Block) -> Block:
        """Return the block with an init that skips marked elements and marks those that it writes."""

        def rule(node: Node) -> Any | None:
            if isinstance(node, Store) and node.buffer in self._names:
                return self._once(node)
            return None

        init = rewrite_body(block.init, rule)
        if self._runs is not None:
            init = (Store(self._runs, (ZERO,), add(self._run_number(), ONE)), *init)
        return replace(block, init=init)

    def _run_number(self) -> Expr:
        return Const(_FLAG, "1") if self._runs is None else Load(self._runs, (ZERO,), _NUMBER)

    def _once(self, store: Store) -> tuple[Stmt, ...]:
        name, run = self._names[store.buffer], self._run_number()
        repeating = self._repeating[store.buffer]
        repetition = (sub(index_var(loop.var), loop.start) for loop in repeating)
        indices = (*repetition, *store.indices)
        mark = Load(name, indices, self._dtype)
        is_open: Expr = Compare("eq", mark, zero_of(self._dtype))
        if self._runs is not None:
            is_open = Binary("or", is_open, Compare("eq", mark, run))
        inside = If(is_open, (Store(name, indices, run), store))
        pairs = zip(store.indices, self._shapes[store.buffer], strict=True)
        # The mark is read before the store is checked, with the same indices.
        exists = conjunction(*(part for pair in pairs for part in in_range(*pair)))
        return (inside,) if exists is None else (Guard(exists, store.buffer), inside)


def _writes_once(block: Block) -> bool:
    """Return whether a run of the init writes each element at most once."""
    inits = list(stmts(block.init))
    stores = [stmt.buffer for stmt in inits if isinstance(stmt, Store)]
    # A loop in the init may come back to an element, and only the first run counts, not the first store.
    is_straight = not any(part.repeats for stmt in inits for part in effects_of(stmt).bodies)
    return is_straight and len(set(stores)) == len(stores)


def require_markable(
    block: Block,
    shapes: Mapping[str, tuple[Expr, ...]],
    repeating: Mapping[str, tuple[For, ...]],
    around: Sequence[For],
    *,
    function: Function,
) -> None:
    """Raise `UnsupportedError` (`lower.lower_blocks.conflicting_inits`) unless elements can be marked.

    The size of a buffer must not be read from a buffer that the function writes, and the ranges of repeating
    loops must be known before those `around` the block. Runs of an init that may write an element several
    times must not be concurrent, since they are numbered.
    """
    inside = set(bound_vars(around[:1]))
    for name in sorted(shapes):
        if not is_constant(*shapes[name], function=function):
            raise repeated_init_error(
                block, f"the size of '{name}' is read from what the function writes"
            )
        for loop in repeating[name]:
            bounds = (loop.start, loop.extent)
            if free_vars(*bounds) & inside or not is_constant(*bounds, function=function):
                raise repeated_init_error(
                    block, f"the range of loop '{loop.var}', which repeats it, is not known before"
                )
    at_once = [loop.var for loop in around if loop.kind not in ("serial", "unrolled")]
    if at_once and not _writes_once(block):
        raise repeated_init_error(block, f"iterations of loop '{at_once[0]}' run at once")


def repeated_init_error(block: Block, why: str) -> UnsupportedError:
    """Return the error for an init that cannot be made to run once for each element."""
    return UnsupportedError(
        "lower.lower_blocks.conflicting_inits",
        f"The init of block '{block.name}' may run several times for one element of "
        f"'{min(buffers_written(block.init))}', and cannot be guarded: {why}.",
        hint="Initialize it in a block of its own before.",
    )
