"""Reductions as elements and terms, for built-in and user-defined reducers alike."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.statements.reductions import identity
from gossamer_ir.nodes import Binary, Block, Combine, Const, Function, Load, ReduceOp, Stmt, Store
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_schedule.reductions.reassociation import is_reduction, reduction_of


class TermReduction(msgspec.Struct, frozen=True):
    """A reduction: elements are combined with the values of `terms`, by the operator `op` or by a `reducer`
    of the function. `identities` has the identity of the reducer for each term."""

    terms: tuple[Store, ...]
    identities: tuple[Const, ...]
    op: ReduceOp | None = None
    reducer: str | None = None

    def stmt(self, terms: Sequence[Store]) -> Stmt:
        """Return the statement that combines the elements of `terms` with their values."""
        if self.op is None:
            assert self.reducer is not None, "a reduction has an operator or a reducer"
            return Combine(self.reducer, tuple(terms))
        (term,) = terms
        old = Load(term.buffer, term.indices, self.identities[0].dtype)
        return replace(term, value=Binary(self.op, old, term.value))


# Other statements: none applies a declared reducer but `Combine`.
def term_reduction_of(block: Block, function: Function) -> TermReduction | None:
    """Return the reduction that a block consists of, else None."""
    if not is_reduction(block):
        return None
    (stmt,) = block.body
    if isinstance(stmt, Combine):
        (reducer,) = (item for item in function.reducers if item.name == stmt.reducer)
        return TermReduction(stmt.stores, reducer.identity, reducer=reducer.name)
    reduction = reduction_of(block)
    assert reduction is not None
    (dtype,) = (item.dtype for item in all_buffers(function) if item.name == reduction.store.buffer)
    term = replace(reduction.store, value=reduction.value)
    return TermReduction((term,), (identity(reduction.op, dtype),), op=reduction.op)
