"""Epilogues: blocks that combine each result of a reduction with another value, such as a bias."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gossamer_ir.analysis.accesses.init_nests import conditions_of_init
from gossamer_ir.analysis.statements.reductions import Reduction
from gossamer_ir.core.build import index_var, var_name
from gossamer_ir.nodes import Binary, BinaryOp, Block, BlockIter, Expr, Load, Store
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve, substitute
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.enclosed_block import enclosed_block
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.motion.inline import required_assignment
from gossamer_schedule.nests.block_nest import BlockNest


class Epilogue(msgspec.Struct, frozen=True):
    """An epilogue in terms of the reduction's iterators: it stores `result op operand` by `store`.

    `pairs` holds the corresponding iterators of the epilogue and of the reduction.
    """

    store: Store
    op: BinaryOp
    operand: Expr
    pairs: tuple[tuple[BlockIter, BlockIter], ...]


def required_epilogue(
    cursor: Cursor[Block], after: Cursor[Block], reduction: Reduction
) -> Epilogue:
    """Return the epilogue in terms of the iterators of the reduction, or refuse it.

    Raises `.form`, `.operation`, `.element` and `.predicate`.
    """
    store = required_assignment(after)
    load, op, operand = _required_operation(after, store, reduction)
    pairs = _corresponding_iters(cursor, after, load=load, result=reduction.store)
    renamed = {old.var: index_var(new.var) for old, new in pairs or ()}
    operand, moved = substitute(operand, renamed), substitute(store, renamed)
    available = {iterator.var for iterator in cursor.node.iters}
    available |= BlockNest(cursor, cursor.nest).known_above
    if (
        pairs is None
        or not are_vars(store.indices, [iterator.var for iterator in after.node.iters])
        or not free_vars(operand) <= available
    ):
        raise schedule_error(
            f"{cursor.primitive}.element",
            f"The iterators of block '{after.node.name}' do not correspond one to one, with the same "
            f"domains, to those of the elements that block '{cursor.node.name}' computes.",
        )
    if after.node.predicate is not None or conditions_of_init(enclosed_block(cursor)):
        raise schedule_error(
            f"{cursor.primitive}.predicate",
            f"Block '{after.node.name}' or '{cursor.node.name}' visits elements under a condition.",
            hint=f"Apply {cursor.primitive} before the loops are split.",
        )
    return Epilogue(moved, op, operand, pairs)


def _corresponding_iters(
    cursor: Cursor[Block], after: Cursor[Block], *, load: Load, result: Store
) -> tuple[tuple[BlockIter, BlockIter], ...] | None:
    """Return the iterators of an epilogue, each with that of the reduction that selects the same elements;
    None unless they correspond one to one and have the same domains."""
    old_iters = {iterator.var: iterator for iterator in after.node.iters}
    new_iters = {iterator.var: iterator for iterator in cursor.node.iters}
    indices = zip(load.indices, result.indices, strict=True)
    names = [(var_name(old) or "", var_name(new) or "") for old, new in indices]
    are_iters = are_vars(load.indices, old_iters) and all(new in new_iters for _, new in names)
    if not are_iters:
        return None
    renamed: dict[str, Expr] = {old: index_var(new) for old, new in names}
    pairs = tuple((old_iters[old], new_iters[new]) for old, new in names)
    is_same = all(_is_same_domain((after, old), (cursor, new), renamed) for old, new in pairs)
    return pairs if is_same else None


def _is_same_domain(
    first: tuple[Cursor[object], BlockIter],
    second: tuple[Cursor[object], BlockIter],
    renamed: Mapping[str, Expr],
) -> bool:
    """Return whether two iterators have the same domain, after variables of the first one are renamed."""
    domain = substitute(first[1].domain, renamed)
    return bool(
        resolve(domain, values_at(first[0])) == resolve(second[1].domain, values_at(second[0]))
    )


# Other expressions and operations: refused.
def _required_operation(
    after: Cursor[Block], store: Store, reduction: Reduction
) -> tuple[Load, BinaryOp, Expr]:
    """Return the load of the result in an epilogue, the operation, and the other operand."""
    value, result = store.value, reduction.store.buffer
    if isinstance(value, Binary):
        sides = [(value.lhs, value.rhs)]
        # x - b is x + (-b), but b - x changes the sign of the sum.
        is_difference = value.op == "sub" and reduction.op == "add"
        if value.op == reduction.op:
            sides.append((value.rhs, value.lhs))
        for load, other in sides if value.op == reduction.op or is_difference else ():
            if not isinstance(load, Load) or load.buffer != result or load.predicate is not None:
                continue
            # An operand that uses the result would see partial sums after the fusion.
            if result not in buffers_accessed(other):
                return load, value.op, other
    raise schedule_error(
        f"{after.primitive}.operation",
        f"Block '{after.node.name}' does not combine '{result}' with another value by '{reduction.op}', the "
        "operation of the reduction.",
        hint="Apply reverse_compute_at or reverse_compute_inline instead.",
    )


def are_vars(indices: Sequence[Expr], names: Iterable[str]) -> bool:
    """Return whether indices are the variables of these names, each of them once, in any order."""
    return Counter(map(var_name, indices)) == Counter([*names])
