"""Lowers the calls in the expressions of one statement."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from gossamer_ir.core.conditions import FALSE
from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of, has_lanes
from gossamer_ir.nodes import EXPRS, Binary, Call, Compare, Expr, IfThenElse, Load, Node, Stmt
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.walk import contains
from gossamer_lower.math.calls.lowered_calls import is_lowered, unsupported_error
from gossamer_lower.math.calls.single_use_lets import with_single_uses_inlined
from gossamer_lower.math.function_table import LOWERED, function_value
from gossamer_lower.math.functions.roundings import fma_by_wider
from gossamer_lower.math.term_builder import CodeBuilder, Term


class CallLowerer:
    """The calls in the expressions of one statement, each computed once.

    Calls are computed unconditionally. If an expression is evaluated only under `conditions`, an argument
    that reads memory is replaced by 1 unless they hold, as the read could fail.
    """

    def __init__(
        self, namer: Namer, instructions: Collection[str], conditions: tuple[Expr, ...] = ()
    ) -> None:
        self._namer = namer
        self._instructions = instructions
        self._conditions = conditions
        self._known: dict[Call, Expr] = {}
        self.stmts: list[Stmt] = []

    def under(self, condition: Expr) -> CallLowerer:
        """Return the calls for expressions that are evaluated only if a scalar condition holds."""
        # Lanes are computed together; masked loads already protect their lanes.
        if has_lanes(condition):
            return self
        inner = CallLowerer(self._namer, self._instructions, (*self._conditions, condition))
        # Shared: what was computed outside is valid inside as well,
        # since calls are computed unconditionally.
        inner.stmts, inner._known = self.stmts, self._known
        return inner

    def any(self, value: Any) -> Any:
        """Return an expression as `expr` does, and anything else as it is."""
        return self.expr(value) if type(value) in EXPRS else value

    # Other expressions: their operands are visited.
    def expr(self, node: Expr) -> Expr:
        """Return the expression with calls replaced by their values."""
        match node:
            case IfThenElse():
                return self._lower_branches(node)
            case Load(predicate=Node()):
                return self._load(node)
        inner = map_children(node, self.expr)
        return self._call(inner) if is_lowered(inner, self._instructions) else inner

    def _load(self, node: Load) -> Load:
        """Return a load with a predicate. If it is false, the indices are not evaluated."""
        assert node.predicate is not None
        assert node.passthrough is not None
        predicate = self.expr(node.predicate)
        inside = self.under(predicate)
        indices = tuple(inside.expr(index) for index in node.indices)
        return Load(node.buffer, indices, node.dtype, predicate, self.expr(node.passthrough))

    def _lower_branches(self, node: IfThenElse) -> IfThenElse:
        condition = self.expr(node.condition)
        if_true = self.under(condition).expr(node.if_true)
        if_false = self.under(_negate(condition)).expr(node.if_false)
        return IfThenElse(condition, if_true, if_false)

    # Other expressions: their operands are visited.
    def _call(self, call: Expr) -> Expr:
        """Return the value of a call, or of a float division, which is treated as one."""
        args: tuple[Expr, ...]
        match call:
            case Binary():
                function, args = str(call.op), (call.lhs, call.rhs)
            case Call():
                function, args = call.function, call.args
            case _:
                return call
        safe = tuple(self._conditional_argument(arg) for arg in args)
        node = Call(function, safe, dtype_of(call))
        if node not in self._known:
            self._known[node] = self._expand_call(node)
        return self._known[node]

    def _conditional_argument(self, arg: Expr) -> Expr:
        # Pure arithmetic is defined for every operand, so it may be computed for nothing.
        if not contains(Load, arg):
            return arg
        # The innermost condition first, so that the outermost is evaluated first.
        for condition in reversed(self._conditions):
            one = constant(1, DType.parse(dtype_of(arg)).scalar)
            dtype = DType.parse(dtype_of(arg))
            code = CodeBuilder(self._namer, dtype, instructions=self._instructions)
            arg = IfThenElse(condition, arg, code.everywhere(one))
        return arg

    def _expand_call(self, node: Call) -> Expr:
        dtype = DType.parse(node.dtype)
        code = CodeBuilder(self._namer, dtype, instructions=self._instructions)
        args = tuple(code.term(arg) for arg in node.args)
        if dtype.computed_in != dtype.scalar:
            result = self._in_wider(node.function, args, dtype.computed_in)
        else:
            result = self._value(node.function, args)
        narrow = result.to(dtype.scalar)
        self.stmts += with_single_uses_inlined(code.stmts, keep=narrow.expr)
        return narrow.expr

    def _in_wider(self, function: str, args: tuple[Term, ...], computed_in: str) -> Term:
        """Return the value before it is rounded. fma is computed in float64, because sums of products are
        not exact enough in float32."""
        if function == "fma":
            return fma_by_wider(*(arg.to("float64") for arg in args))
        return self._value(function, tuple(arg.to(computed_in) for arg in args))

    def _value(self, function: str, args: tuple[Term, ...]) -> Term:
        scalar = args[0].scalar
        if function in self._instructions:
            return args[0].code.call(function, *args)
        if function not in LOWERED or (function, scalar) == ("fma", "float64"):
            raise unsupported_error(function, f"cannot be lowered to arithmetic for {scalar}")
        return function_value(function, args)


def _negate(condition: Expr) -> Expr:
    """Return the negation of a scalar condition."""
    return Compare("eq", condition, FALSE)
