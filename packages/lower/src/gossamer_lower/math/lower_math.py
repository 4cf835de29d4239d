"""Lowers math functions without an instruction on the target to arithmetic, of scalars and vectors."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from gossamer_ir.arith.simplify import FALSE
from gossamer_ir.core import build
from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    EXPRESSIONS,
    Allocate,
    Binary,
    Buffer,
    Call,
    Compare,
    Expr,
    For,
    Function,
    If,
    IfThenElse,
    Let,
    Load,
    Module,
    Node,
    ParallelFor,
    Stmt,
    Store,
    Var,
    While,
)  # fmt: skip
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.node_index import in_body
from gossamer_ir.traversal.rewrite import map_children, rewrite
from gossamer_ir.traversal.walk import contains, walk
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_lower.math.helpers.function_table import DIVISIONS, LOWERED, computed
from gossamer_lower.math.helpers.roundings import fma_by_wider
from gossamer_lower.math.helpers.term_builder import CodeBuilder, Term

_HALVES = ("float16", "bfloat16")
_DEEPEST = 16
"""The maximum depth of expressions into which lets are inlined."""


@lowering_pass(takes=("flat",), on_request=True)
def lower_math(module: Module, *, instructions: Collection[str]) -> Module:
    """Lower calls of math functions, and `//` and `%` of floats, to arithmetic.

    `instructions` are the functions that the target has. The arithmetic is in lets before the statement.
    Half precision is computed in float32. Raises `UnsupportedError` (`lower.math`) for a call in the
    weight of a parallel loop, and for `fma` of float64 on a target without it.

    >>> from gossamer_lower.examples import body_text, program
    >>> from gossamer_lower import lower_to_flat
    >>> flat = lower_to_flat(program('''
    ... for i in T.serial(n):
    ...     Y[i] = T.rsqrt(X[i]) + T.abs(X[i])
    ... '''))
    >>> print(body_text(lower_math(flat, instructions={"sqrt", "abs"})))
    for i in T.serial(n):
        t: T.float32 = X[i]
        t_2: T.float32 = 1.0 / T.sqrt(t)
        Y[i] = t_2 + T.abs(X[i])
    """
    nodes = (node for function in module.functions for node in in_body(function, Binary, Call))
    if not any(_is_lowered(node, instructions) for node in nodes):
        return module
    functions = tuple(_lower_function(function, instructions) for function in module.functions)
    return msgspec.structs.replace(module, functions=functions)


def _is_lowered(node: Node, instructions: Collection[str]) -> bool:
    if isinstance(node, Binary):
        return node.op in DIVISIONS and DType.parse(build.dtype_of(node)).is_float
    if not isinstance(node, Call):
        return False
    scalar = DType.parse(node.dtype).scalar
    return scalar in _HALVES or (
        node.function not in instructions and DType.parse(node.dtype).is_float
    )


def _lower_function(function: Function, instructions: Collection[str]) -> Function:
    lowerer = _MathLowerer(namer_of(function), instructions)
    return msgspec.structs.replace(function, body=lowerer.body(function.body))


class _MathLowerer:
    """Rewrites the statements of one function."""

    def __init__(self, namer: Namer, instructions: Collection[str]) -> None:
        self._namer = namer
        self._instructions = instructions

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(lowered for stmt in body for lowered in self._statement(stmt))

    def _statement(self, stmt: Stmt) -> tuple[Stmt, ...]:
        match stmt:
            case For():
                return self._around(stmt, ("start", "extent"), body=self.body(stmt.body))
            case If():
                then_body, else_body = self.body(stmt.then_body), self.body(stmt.else_body)
                return self._around(stmt, ("condition",), then_body=then_body, else_body=else_body)
            case While():
                return self._while(stmt)
            case ParallelFor():
                self._require_none(stmt.weight)
                return self._around(stmt, ("start", "extent", "args", "grain"))
            case Store():
                return self._store(stmt)
        return self._around(stmt, tuple(stmt.__struct_fields__))

    def _around(self, stmt: Stmt, fields: Iterable[str], **changed: object) -> tuple[Stmt, ...]:
        """Return the statement after those that compute the calls in these fields."""
        calls = _CallLowerer(self._namer, self._instructions)
        for name in fields:
            value: Any = getattr(stmt, name)
            if isinstance(value, tuple):
                changed[name] = tuple(calls.any(item) for item in value)
            elif isinstance(value, Buffer):
                changed[name] = map_children(value, calls.expr)
            else:
                changed[name] = calls.any(value)
        return (*calls.statements, msgspec.structs.replace(stmt, **changed))

    def _store(self, stmt: Store) -> tuple[Stmt, ...]:
        """Return a store. If its predicate is false, its other operands are not evaluated."""
        calls = _CallLowerer(self._namer, self._instructions)
        predicate = None if stmt.predicate is None else calls.expr(stmt.predicate)
        inside = calls if predicate is None else calls.under(predicate)
        indices = tuple(inside.expr(index) for index in stmt.indices)
        value = inside.expr(stmt.value)
        return (*calls.statements, Store(stmt.buffer, indices, value, predicate))

    def _while(self, stmt: While) -> tuple[Stmt, ...]:
        """Return a while loop. A condition with calls is computed before it and after each iteration."""
        calls = _CallLowerer(self._namer, self._instructions)
        condition = calls.expr(stmt.condition)
        body = self.body(stmt.body)
        if not calls.statements:
            return (While(condition, body),)
        flag = Buffer(self._namer.fresh("goes_on"), (build.ONE,), "bool", scope="local")
        again = _CallLowerer(self._namer, self._instructions)
        test = again.expr(stmt.condition)
        first = Store(flag.name, (build.ZERO,), condition)
        next_ = Store(flag.name, (build.ZERO,), test)
        loop = While(Load(flag.name, (build.ZERO,), "bool"), (*body, *again.statements, next_))
        return (Allocate(flag), *calls.statements, first, loop)

    def _require_none(self, weight: Expr | None) -> None:
        nodes = () if weight is None else walk(weight)
        for node in nodes:
            if _is_lowered(node, self._instructions):
                name = node.function if isinstance(node, Call) else "//"
                raise _unsupported_error(name, "is called in the weight of a parallel loop")


class _CallLowerer:
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
        self.statements: list[Stmt] = []

    def under(self, condition: Expr) -> _CallLowerer:
        """Return the calls for expressions that are evaluated only if a scalar condition holds."""
        if DType.parse(build.dtype_of(condition)).is_vector:
            return self
        inner = _CallLowerer(self._namer, self._instructions, (*self._conditions, condition))
        inner.statements, inner._known = self.statements, self._known
        return inner

    def any(self, value: Any) -> Any:
        """Return an expression as `expr` does, and anything else as it is."""
        return self.expr(value) if type(value) in EXPRESSIONS else value

    def expr(self, node: Expr) -> Expr:
        """Return the expression with calls replaced by their values."""
        match node:
            case IfThenElse():
                return self._choice(node)
            case Load(predicate=Node()):
                return self._load(node)
        inner = map_children(node, self.expr)
        return self._call(inner) if _is_lowered(inner, self._instructions) else inner

    def _load(self, node: Load) -> Load:
        """Return a load with a predicate. If it is false, the indices are not evaluated."""
        assert node.predicate is not None
        assert node.passthrough is not None
        predicate = self.expr(node.predicate)
        inside = self.under(predicate)
        indices = tuple(inside.expr(index) for index in node.indices)
        return Load(node.buffer, indices, node.dtype, predicate, self.expr(node.passthrough))

    def _choice(self, node: IfThenElse) -> IfThenElse:
        condition = self.expr(node.condition)
        if_true = self.under(condition).expr(node.if_true)
        if_false = self.under(_negated(condition)).expr(node.if_false)
        return IfThenElse(condition, if_true, if_false)

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
        safe = tuple(self._safe(arg) for arg in args)
        node = Call(function, safe, build.dtype_of(call))
        if node not in self._known:
            self._known[node] = self._computed(node)
        return self._known[node]

    def _safe(self, arg: Expr) -> Expr:
        if not contains(Load, arg):
            return arg
        for condition in reversed(self._conditions):
            one = constant(1, DType.parse(build.dtype_of(arg)).scalar)
            kind = DType.parse(build.dtype_of(arg))
            code = CodeBuilder(self._namer, kind, instructions=self._instructions)
            arg = IfThenElse(condition, arg, code.everywhere(one))
        return arg

    def _computed(self, node: Call) -> Expr:
        kind = DType.parse(node.dtype)
        code = CodeBuilder(self._namer, kind, instructions=self._instructions)
        args = tuple(code.term(arg) for arg in node.args)
        if kind.scalar in _HALVES:
            result = self._of_halves(node.function, args)
        else:
            result = self._value(node.function, args)
        narrow = result.to(kind.scalar)
        self.statements += inlined(code.statements, keep=narrow.expr)
        return narrow.expr

    def _of_halves(self, function: str, args: tuple[Term, ...]) -> Term:
        """Return the value before it is rounded to 16 bits. fma is computed in float64, because sums of
        products are not exact enough in float32."""
        if function == "fma":
            return fma_by_wider(*(arg.to("float64") for arg in args))
        return self._value(function, tuple(arg.to("float32") for arg in args))

    def _value(self, function: str, args: tuple[Term, ...]) -> Term:
        scalar = args[0].scalar
        if function in self._instructions:
            return args[0].code.call(function, *args)
        if function not in LOWERED or (function, scalar) == ("fma", "float64"):
            raise _unsupported_error(function, f"cannot be lowered to arithmetic for {scalar}")
        return computed(function, args)


def _negated(condition: Expr) -> Expr:
    """Return the negation of a scalar condition."""
    return Compare("eq", condition, FALSE)


def inlined(statements: list[Stmt], *, keep: Expr) -> list[Stmt]:
    """Return the statements with lets that are used once inlined."""
    uses: dict[str, int] = {}
    for stmt in statements:
        for node in walk(stmt):
            if isinstance(node, Var):
                uses[node.name] = uses.get(node.name, 0) + 1
    return _LetInliner(uses).body(statements, {keep.name} if isinstance(keep, Var) else set())


class _LetInliner:
    def __init__(self, uses: dict[str, int]) -> None:
        self._uses = uses
        self._values: dict[str, tuple[Expr, int]] = {}

    def body(self, statements: Iterable[Stmt], kept: set[str]) -> list[Stmt]:
        result: list[Stmt] = []
        for stmt in statements:
            if isinstance(stmt, While):
                result.append(While(stmt.condition, tuple(self.body(stmt.body, set()))))
                continue
            if isinstance(stmt, If):
                body = tuple(self.body(stmt.then_body, set()))
                result.append(If(self._expr(stmt.condition)[0], body))
                continue
            if not isinstance(stmt, Let):
                result.append(map_children(stmt, lambda child: self._expr(child)[0]))
                continue
            value, depth = self._expr(stmt.value)
            # A load is not moved: a store in between may change its value.
            is_free = not contains(Load, value)
            name = stmt.var.name
            is_single = self._uses.get(name) == 2 and name not in kept
            if is_single and is_free and depth < _DEEPEST:
                self._values[name] = (value, depth)
            else:
                result.append(Let(stmt.var, value))
        return result

    def _expr(self, node: Expr) -> tuple[Expr, int]:
        deepest = 0

        def visit(inner: Expr) -> Expr | None:
            nonlocal deepest
            if not isinstance(inner, Var) or inner.name not in self._values:
                return None
            value, depth = self._values[inner.name]
            deepest = max(deepest, depth)
            return value

        return rewrite(node, visit), deepest + 1


def _unsupported_error(name: str, why: str) -> UnsupportedError:
    return UnsupportedError("lower.math", f"The function '{name}' {why}.")


__all__ = ["lower_math"]
