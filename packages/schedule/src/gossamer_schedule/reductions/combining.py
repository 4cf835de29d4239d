"""Reductions by reducers of the language and of the user alike: what is combined with which elements."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.reductions import identity
from gossamer_ir.nodes import (
    Binary,
    Block,
    Combine,
    Const,
    Function,
    Load,
    ReduceOp,
    Stmt,
    Store,
)
from gossamer_ir.traversal.effects import all_buffers
from gossamer_schedule.reductions.reassociation import is_reduction, reduction_of


class Combining(msgspec.Struct, frozen=True):
    """Elements are combined with the values of `terms`, by `op` or by a `reducer` of the function;
    `nothing` changes them."""

    terms: tuple[Store, ...]
    nothing: tuple[Const, ...]
    op: ReduceOp | None = None
    reducer: str = ""

    def statement(self, terms: Sequence[Store]) -> Stmt:
        """Combines the elements of other terms with their values."""
        if self.op is None:
            return Combine(self.reducer, tuple(terms))
        (term,) = terms
        old = Load(term.buffer, term.indices, self.nothing[0].dtype)
        return replace(term, value=Binary(self.op, old, term.value))


def combining_of(block: Block, function: Function) -> Combining | None:
    """Return what a block combines if it is only a reduction, else None."""
    if not is_reduction(block):
        return None
    (statement,) = block.body
    if isinstance(statement, Combine):
        (reducer,) = (found for found in function.reducers if found.name == statement.reducer)
        return Combining(statement.stores, reducer.identity, reducer=reducer.name)
    found = reduction_of(block)
    assert found is not None
    (dtype,) = (item.dtype for item in all_buffers(function) if item.name == found.store.buffer)
    term = replace(found.store, value=found.value)
    return Combining((term,), (identity(found.op, dtype),), op=found.op)
