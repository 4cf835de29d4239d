"""Bodies of iterations under one condition, such as that of the slots of a format that are elements."""

from __future__ import annotations

from gossamer_ir.nodes import Expr, If, Load, Search, Stmt
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.walk import collect, contains


# Other expressions: those that read memory fail the test of `READS`.
def split_condition(body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], Expr | None]:
    """Return a body without the condition under which all of it runs, and the condition, if it may become
    part of the predicate of a block; else the body and None.

    As a predicate it does not hide a reduction from schedules. Conditions with indices that are loaded, or
    with searches, stay in the body: all parts of a predicate may be evaluated, also for padded slots, whose
    coordinates do not exist.

    >>> from gossamer_ir.core.build import ONE, index_var
    >>> from gossamer_ir.nodes import Compare, Store
    >>> store = Store("Y", (index_var("i"),), ONE)
    >>> is_inside = Compare("lt", index_var("i"), index_var("m"))
    >>> split_condition((If(is_inside, (store,)),)) == ((store,), is_inside)
    True
    """
    match body:
        case (If(condition=condition, then_body=then_body, else_body=()),):
            indices = [index for load in collect(Load, condition) for index in load.indices]
            if not contains(READS, *indices) and not contains(Search, condition):
                return then_body, condition
    return body, None
