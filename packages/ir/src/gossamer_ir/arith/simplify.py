"""Folds constants, drops neutral elements and decides constant conditions.

The rules are few and exact for int64, which wraps. None rewrites floating-point arithmetic, where even
`x + 0.0` differs from `x` (for -0.0).
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gossamer_ir.core.build import add, binary, fold_constants, index, integer_value
from gossamer_ir.core.conditions import FALSE, TRUE, is_false, is_true
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    If,
    IfThenElse,
    Load,
    Node,
    Ramp,
    Select,
    Stmt,
    Store,
    Unary,
)
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.rewrite import rewrite, rewrite_body
from gossamer_ir.traversal.statement_queries import always_evaluated
from gossamer_ir.traversal.walk import collect
from gossamer_support.as_tuple import as_tuple
from gossamer_support.typed_calls import typed


@typed
def simplify(node: Node) -> Any:
    """Return the node with every rule applied bottom-up.

    >>> from gossamer_ir.core.build import index, index_var
    >>> simplify(Binary("add", Binary("mul", index_var("i"), index(1)), index(0)))
    Var(name='i', dtype='int64')
    """
    return rewrite(node, simplify_node, leaves=False)


def simplify_body(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Apply `simplify` to statements; loops and branches without a body are removed.

    >>> from gossamer_ir.core.build import ONE, ZERO, index_var
    >>> store = Store("Y", (index_var("i"),), ONE)
    >>> loop = For("i", ZERO, ONE, (If(Compare("lt", ZERO, ONE), (store,)), For("j", ZERO, ONE, ())))
    >>> (simplified,) = simplify_body((loop,))
    >>> simplified.body == (store,)
    True
    """
    return rewrite_body(body, simplify_node, leaves=False)


def simplify_unguarded(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Apply `simplify_body`, for use before bounds checks are inserted.

    It keeps every read, even if its value is not needed: an out-of-bounds read stops the program, and
    the check that does so is derived from the read.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> stores = (Store("Y", (ZERO,), Binary("mul", Load("X", (ONE,), "int64"), ZERO)),)
    >>> simplify_unguarded(stores) == stores, simplify_body(stores) == stores
    (True, False)
    """
    return rewrite_body(body, _keeping_reads, leaves=False)


def simplify_node(node: Node) -> Node | None:
    """Apply one rule to a node whose children are simplified; None if no rule applies."""
    rule = _RULES.get(type(node))
    return rule(node) if rule else None


def _keeping_reads(node: Node) -> Node | None:
    new = simplify_node(node)
    return None if new is None or _loses_read(node, new) else new


def _loses_read(node: Node, new: Node) -> bool:
    """Return whether evaluating a node reads memory that evaluating its replacement does not."""
    # Operands that are evaluated lazily may be dropped:
    # their reads would not have happened for sure.
    reads = _reads(*always_evaluated(node))
    kept = _reads(*as_tuple(new)) if reads else ()
    return any(read not in kept for read in reads)


def _reads(*nodes: Any) -> tuple[Expr, ...]:
    return tuple(collect(READS, *nodes))


def _binary(node: Binary) -> Expr | None:
    if node.op == "and":
        return _conjunction(node)
    if node.op == "or":
        return _disjunction(node)
    # The right operand is the shallower one of a left-leaning sum, so its dtype is found faster.
    if dtype_of(node.rhs) != "int64":
        return None
    new = _reassociate(node.lhs, node.rhs) if node.op == "add" else None
    if new is None:
        new = binary(node.op, node.lhs, node.rhs)
    return None if new == node else new


def _reassociate(lhs: Expr, rhs: Expr) -> Expr | None:
    # Constants go to the right, where the next addition finds them.
    if isinstance(lhs, Const) and not isinstance(rhs, Const):
        return _reassociate(rhs, lhs) or add(rhs, lhs)
    if not isinstance(rhs, Const) or not isinstance(lhs, Binary) or lhs.op != "add":
        return None
    together = fold_constants("add", lhs.rhs, rhs)
    return None if together is None else add(lhs.lhs, together)


def _conjunction(node: Binary) -> Expr | None:
    # Both operands are pure. A read that would be dropped is kept by `simplify_unguarded`.
    if is_true(node.lhs) or is_false(node.rhs):
        return node.rhs
    if is_true(node.rhs) or is_false(node.lhs) or node.lhs == node.rhs:
        return node.lhs
    return None


def _disjunction(node: Binary) -> Expr | None:
    if is_false(node.lhs) or is_true(node.rhs):
        return node.rhs
    return node.lhs if is_false(node.rhs) or is_true(node.lhs) else None


def _compare(node: Compare) -> Expr | None:
    decided = _decide(node)
    if decided is None:
        return None
    truth = TRUE if decided else FALSE
    if isinstance(node.lhs, (Ramp, Broadcast)):
        return Broadcast(truth, node.lhs.lanes)
    return truth


def _decide(node: Compare) -> bool | None:
    left, right = _bounds(node.lhs), _bounds(node.rhs)
    if left is None or right is None:
        return None
    (low, high), (other_low, other_high) = left, right
    match node.op:
        case "lt":
            return _truth_value(yes=high < other_low, no=low >= other_high)
        case "le":
            return _truth_value(yes=high <= other_low, no=low > other_high)
        case "gt":
            return _truth_value(yes=low > other_high, no=high <= other_low)
        case "ge":
            return _truth_value(yes=low >= other_high, no=high < other_low)
        case "eq" | "ne":
            differs = high < other_low or low > other_high
            if differs:
                return node.op == "ne"
            return node.op == "eq" if low == high == other_low == other_high else None
    return None


def _truth_value(*, yes: bool, no: bool) -> bool | None:
    return True if yes else (False if no else None)


def _bounds(expr: Expr) -> tuple[int, int] | None:
    value = integer_value(expr)
    if value is not None:
        return value, value
    if isinstance(expr, Broadcast):
        return _bounds(expr.value)
    if isinstance(expr, Ramp) and not expr.lanes.scalable:
        base, stride = integer_value(expr.base), integer_value(expr.stride)
        if base is not None and stride is not None:
            last = base + stride * (expr.lanes.count - 1)
            low, high = DType.parse(dtype_of(expr)).limits
            # A ramp that wraps has lanes at both ends of the range.
            return (min(base, last), max(base, last)) if low <= last <= high else None
    return None


def _cast(node: Cast) -> Expr | None:
    # Only to int64: constants of other dtypes are rounded or cut off when they are cast.
    if isinstance(node.value, Const) and node.dtype == "int64":
        value = integer_value(node.value)
        return None if value is None else index(value)
    return node.value if dtype_of(node.value) == node.dtype else None


def _select(node: Select | IfThenElse) -> Expr | None:
    # The condition of `IfThenElse` is a scalar; `Select` may have a vector of equal constants.
    if node.condition == TRUE or (isinstance(node, Select) and is_true(node.condition)):
        return node.if_true
    if node.condition == FALSE or (isinstance(node, Select) and is_false(node.condition)):
        return node.if_false
    return None


def _unary(node: Unary) -> Expr | None:
    if node.op == "not" and node.operand in (TRUE, FALSE):
        return FALSE if node.operand == TRUE else TRUE
    return None


def _load(node: Load) -> Expr | None:
    if node.predicate is None:
        return None
    if is_true(node.predicate):
        return Load(node.buffer, node.indices, node.dtype)
    return node.passthrough if is_false(node.predicate) else None


def _store(node: Store) -> Store | tuple[()] | None:
    if node.predicate is None:
        return None
    if is_true(node.predicate):
        return replace(node, predicate=None)
    return () if is_false(node.predicate) else None


def _if(node: If) -> If | tuple[Stmt, ...] | None:
    if node.condition == TRUE:
        return node.then_body
    if node.condition == FALSE:
        return node.else_body
    return None if node.then_body or node.else_body else ()


def _for(node: For) -> tuple[()] | None:
    extent = integer_value(node.extent)
    # Bounds without side effects need not be evaluated.
    # Those that read are kept by `simplify_unguarded`.
    is_empty = not node.body or (extent is not None and extent <= 0)
    return () if is_empty else None


_RULES: dict[type, Any] = {
    Binary: _binary,
    Compare: _compare,
    Cast: _cast,
    Select: _select,
    IfThenElse: _select,
    Unary: _unary,
    Load: _load,
    Store: _store,
    If: _if,
    For: _for,
}
