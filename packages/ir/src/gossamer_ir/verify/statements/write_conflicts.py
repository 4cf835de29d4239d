"""Checks that points of an iteration which write the same element only accumulate into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from gossamer_ir.analysis.axes.determined_variables import DeterminedVars
from gossamer_ir.analysis.statements.reductions import REDUCE_OPS
from gossamer_ir.core.axis_kinds import is_varied, width_of
from gossamer_ir.core.build import ONE, index_var
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.nodes import Atomic, Binary, Combine, Expr, Iteration, Load, Stmt, Store
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.statement_queries import values_after
from gossamer_ir.traversal.walk import collect
from gossamer_ir.verify.context import NodePlace, VerifyContext

Lets: TypeAlias = dict[str, Expr]


def check_write_conflicts(
    context: VerifyContext, node: Iteration, axis_names: list[str], place: NodePlace
) -> None:
    """Check the stores of an iteration over axes, which are given by name.

    The indices of a plain assignment must use every variable of the iteration. The value that an init
    stores may depend only on the element: several points may initialize it, in any order.
    """
    vars = {
        name
        for axis, name in zip(axis_names, node.vars, strict=False)
        if not _has_one_element(context, axis)
    }
    for write, write_place, lets in _writes(node.body, place, "body", {}):
        missing = sorted(vars - _vars(write.indices, lets))
        # Points that differ in a variable outside of the indices write one element: without an order among
        # them, only a commutative update has a defined result.
        if missing and not _accumulates(write):
            context.report(
                "verify.iteration.conflict",
                f"Points with different '{', '.join(missing)}' assign the same element of "
                f"'{write.buffer}'.",
                write_place,
                hint=f"Accumulate: {write.buffer}[...] = {write.buffer}[...] + ... (or *, min, max).",
            )
    # An init may leave variables out of its indices, since all points then store the same value.
    for write, write_place, lets in _writes(node.init, place, "init", {}):
        determined = DeterminedVars(write.indices, vars, lets)
        undetermined = map(index_var, determined.missing(write.value))
        further = sorted(vars & _vars(undetermined, lets))
        if further:
            context.report(
                "verify.iteration.init",
                f"The init of '{write.buffer}' depends on '{', '.join(further)}', not only on the "
                "element.",
                write_place,
            )


# Other statements: none applies a declared reducer but `Combine`.
def _accumulates(write: Store | Atomic) -> bool:
    # Its operation is commutative by definition, so that only a store has to be recognized.
    return isinstance(write, Atomic) or is_order_independent_update(write)


# Other expressions: nothing is concluded from them.
# Other operations: each stands for itself, but sums and differences for each other.
def is_order_independent_update(store: Store) -> bool:
    """Return whether a store combines its element, by one reducer, with values that do not read the buffer.

    Examples: `X[i] = X[i] + a - b`, `X[i] = max(a, X[i])`. Differences count as sums.
    """
    value = store.value
    if not isinstance(value, Binary) or value.op not in (*REDUCE_OPS, "sub"):
        return False
    family = ("add", "sub") if value.op in ("add", "sub") else (value.op,)
    others = [
        (is_added, term, node)
        for is_added, term in _terms(value, family, is_added=True)
        for node in collect(Load, term)
        if node.buffer == store.buffer
    ]
    # X[i] = X[i] + X[j] reads another element, or the same one twice.
    if len(others) != 1:
        return False
    is_added, term, node = others[0]
    # In X[i] = a - X[i] the old value is subtracted, so the order matters.
    return is_added and term is node and node.indices == store.indices


def _terms(value: Expr, family: tuple[str, ...], *, is_added: bool) -> Iterator[tuple[bool, Expr]]:
    """Yield the operands of a chain of one reducer, each with whether it is added rather than subtracted."""
    if isinstance(value, Binary) and value.op in family:
        yield from _terms(value.lhs, family, is_added=is_added)
        yield from _terms(value.rhs, family, is_added=is_added == (value.op != "sub"))
    else:
        yield is_added, value


def _has_one_element(context: VerifyContext, name: str) -> bool:
    axis = context.axes.get(name)
    return axis is not None and not is_varied(axis) and width_of(axis) == ONE


# Other statements: none applies a declared reducer but `Combine`.
def _writes(
    body: Iterable[Stmt], place: NodePlace, field: str, lets: Lets
) -> Iterator[tuple[Store | Atomic, NodePlace, Lets]]:
    """Yield the writes in a body, each with its place and the values of the lets seen so far."""
    for number, stmt in enumerate(body):
        inner = place.down(field, number)
        lets |= {var.name: value for var, value in values_after(stmt)}
        effects = effects_of(stmt)
        yield from ((write, inner, lets) for write in effects.writes)
        # A reducer accumulates. In an init, its values are checked like those of stores.
        if isinstance(stmt, Combine) and field != "init":
            continue
        for part in effects.bodies:
            if not part.is_init:  # checked with its own iteration
                yield from _writes(part.stmts, inner, part.field, lets)


def _vars(values: Iterable[Expr], lets: Lets) -> frozenset[str]:
    """Return the variables that values depend on, directly or through lets."""
    pending = [name for value in values for name in free_vars(value)]
    names = set(pending)
    while pending:
        name = pending.pop()
        if name in lets:
            more = free_vars(lets[name]) - names
            names |= more
            pending += more
    return frozenset(names)
