"""Terms: expressions with Python operators, each of which appends a let to the generated code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from gossamer_ir.analysis.lane_projection import lane_count
from gossamer_ir.core.build import ONE, ZERO, index
from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    BinaryOp,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    If,
    LaneReduce,
    Lanes,
    Let,
    Load,
    Ramp,
    Reinterpret,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    While,
)
from gossamer_ir.traversal.names import Namer

Number: TypeAlias = int | float

BITS = {"float32": "uint32", "float64": "uint64"}
"""The unsigned integer dtype with the same number of bits."""


class CodeBuilder:
    """Collects generated statements. Values have the lanes of `lanes`; `instructions` are the functions that
    the target has."""

    def __init__(self, namer: Namer, lanes: DType, *, instructions: Collection[str]) -> None:
        self.namer = namer
        self.lanes = lanes
        self.instructions = instructions
        self.stmts: list[Stmt] = []

    def dtype(self, scalar: str) -> str:
        """Return a scalar dtype with the lanes of the values here."""
        return self.lanes.with_scalar(scalar).text

    # Other expressions: not optimized.
    def term(self, value: Expr) -> Term:
        """Return the value as the variable of a new let."""
        # Lets of lets would only make the generated code longer.
        if isinstance(value, (Var, Const)) or _is_constant(value):
            return Term(self, value)
        var = Var(self.namer.fresh("t"), dtype_of(value))
        self.stmts.append(Let(var, value))
        return Term(self, var)

    def number(self, value: Number, scalar: str) -> Term:
        """Return a constant in every lane."""
        return Term(self, self.everywhere(constant(value, scalar)))

    def everywhere(self, scalar: Expr) -> Expr:
        """Return a scalar in every lane."""
        return Broadcast(scalar, self._lanes()) if self.lanes.is_vector else scalar

    def select(self, condition: Term, if_true: Term | Number, if_false: Term | Number) -> Term:
        """Return one of two values, by condition."""
        like = if_true if isinstance(if_true, Term) else if_false
        assert isinstance(like, Term)
        sides = like.constant_like(if_true).expr, like.constant_like(if_false).expr
        return self.term(Select(condition.expr, *sides))

    def fma(self, a: Term, b: Term | Number, c: Term | Number) -> Term:
        """Return a * b + c, rounded once if the target has fma, and only then."""
        # A fused operation in software takes dozens of instructions,
        # and no caller depends on the single rounding.
        if "fma" not in self.instructions:
            return a * b + c
        args = (a.expr, a.constant_like(b).expr, a.constant_like(c).expr)
        return self.term(Call("fma", args, a.dtype))

    def call(self, function: str, *args: Term) -> Term:
        """Return a function that is an instruction."""
        return self.term(Call(function, tuple(arg.expr for arg in args), args[0].dtype))

    def horner(self, x: Term, coefficients: Sequence[float]) -> Term:
        """Return the polynomial of x, its coefficients lowest first."""
        total = x.constant_like(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = self.fma(total, x, coefficient)
        return total

    def rarely(
        self, condition: Term, usual: Sequence[Term], rare: Callable[[CodeBuilder], Sequence[Term]]
    ) -> list[Term]:
        """Return the usual values, except in lanes where the condition holds: there the rare values. Code
        for these runs only if the condition holds in some lane."""
        # Memory instead of a select of both sides: the rare code must not run in the usual case.
        # LLVM promotes the buffers to registers.
        temporaries = [self._new_temporary(value) for value in usual]
        for temporary, value in zip(temporaries, usual, strict=True):
            self.stmts.append(Store(temporary.buffer, temporary.indices, value.expr))
        inner = CodeBuilder(self.namer, self.lanes, instructions=self.instructions)
        for temporary, before, value in zip(temporaries, usual, rare(inner), strict=True):
            chosen = Select(condition.expr, value.expr, before.expr)
            inner.stmts.append(Store(temporary.buffer, temporary.indices, chosen))
        self.stmts.append(If(self._any_lane(condition), tuple(inner.stmts)))
        return [self.term(temporary) for temporary in temporaries]

    def repeat(
        self,
        start: Sequence[Term],
        more: Callable[[Sequence[Term]], Term],
        step: Callable[[Sequence[Term]], Sequence[Term]],
    ) -> list[Term]:
        """Return the values after `step` was repeated while `more` holds in some lane."""
        goes_on = Buffer(self.namer.fresh("goes_on"), (ONE,), "bool", scope="local")
        self.stmts.append(Allocate(goes_on))
        temporaries = [self._new_temporary(value) for value in start]
        self._put([*temporaries, Load(goes_on.name, (ZERO,), "bool")], start, more(start))
        inner = CodeBuilder(self.namer, self.lanes, instructions=self.instructions)
        after = step([inner.term(temporary) for temporary in temporaries])
        inner._put([*temporaries, Load(goes_on.name, (ZERO,), "bool")], after, more(after))
        condition = Load(goes_on.name, (ZERO,), "bool")
        self.stmts.append(While(condition, tuple(inner.stmts)))
        return [self.term(temporary) for temporary in temporaries]

    def _put(self, temporaries: Sequence[Load], values: Sequence[Term], more: Term) -> None:
        """Store the values and the condition of the loop."""
        operands = [*(value.expr for value in values), self._any_lane(more)]
        for temporary, value in zip(temporaries, operands, strict=True):
            self.stmts.append(Store(temporary.buffer, temporary.indices, value))

    def _any_lane(self, condition: Term) -> Expr:
        return LaneReduce("or", condition.expr) if self.lanes.is_vector else condition.expr

    def table(self, values: Sequence[int]) -> Callable[[Term], Term]:
        """Return a function that looks up an int64 position in a table of constants."""
        shape = (index(len(values)),)
        buffer = Buffer(self.namer.fresh("table"), shape, "uint64", scope="local")
        self.stmts.append(Allocate(buffer))
        for number, value in enumerate(values):
            item = constant(value, "uint64")
            self.stmts.append(Store(buffer.name, (index(number),), item))
        dtype = self.dtype("uint64")
        return lambda at: self.term(Load(buffer.name, (at.expr,), dtype))

    def _lanes(self) -> Lanes:
        return Lanes(self.lanes.lanes, self.lanes.scalable)

    def _new_temporary(self, value: Term) -> Load:
        """Allocate a local buffer for values like `value`, and return a load of all its lanes."""
        count = lane_count(self._lanes())
        scalar = DType.parse(value.dtype).scalar
        buffer = Buffer(self.namer.fresh("chosen"), (count,), scalar, scope="local")
        self.stmts.append(Allocate(buffer))
        run = Ramp(ZERO, ONE, self._lanes())
        return Load(buffer.name, (run if self.lanes.is_vector else ZERO,), value.dtype)


class Term:
    """A value with operators. Comparisons return conditions; `&`, `|` and `~` are logical for conditions and
    bitwise for integers."""

    __slots__ = ("code", "expr")

    def __init__(self, code: CodeBuilder, expr: Expr) -> None:
        self.code = code
        self.expr = expr

    @property
    def dtype(self) -> str:
        return dtype_of(self.expr)

    @property
    def scalar(self) -> str:
        return DType.parse(self.dtype).scalar

    def constant_like(self, other: Term | Number) -> Term:
        """Return a number as a constant of this dtype."""
        return other if isinstance(other, Term) else self.code.number(other, self.scalar)

    def bits(self) -> Term:
        """Return the bits as an unsigned integer."""
        return self.read_as(BITS[self.scalar])

    def read_as(self, scalar: str) -> Term:
        """Return the bits as another dtype."""
        return self.code.term(Reinterpret(self.code.dtype(scalar), self.expr))

    def to(self, scalar: str) -> Term:
        """Return the value as another dtype."""
        if scalar == self.scalar:
            return self
        return self.code.term(Cast(self.code.dtype(scalar), self.expr))

    def magnitude(self) -> Term:
        return self.code.call("abs", self)

    def with_sign_of(self, other: Term) -> Term:
        """Return the magnitude of this and the sign of other."""
        sign = 1 << (DType.parse(self.dtype).bits - 1)
        merged = (self.bits() & (sign - 1)) | (other.bits() & sign)
        return merged.read_as(self.scalar)

    def equals(self, other: Term | Number) -> Term:
        return self._compare("eq", other)

    def differs(self, other: Term | Number) -> Term:
        return self._compare("ne", other)

    def _binary(self, op: BinaryOp, other: Term | Number) -> Term:
        return self.code.term(Binary(op, self.expr, self.constant_like(other).expr))

    def _compare(self, op: CompareOp, other: Term | Number) -> Term:
        return self.code.term(Compare(op, self.expr, self.constant_like(other).expr))

    def _logical(self, op: BinaryOp, other: Term | Number) -> Term:
        is_condition = self.scalar == "bool"
        return self._binary(op if is_condition else _OF_BITS[op], other)

    def __add__(self, other: Term | Number) -> Term:
        return self._binary("add", other)

    def __sub__(self, other: Term | Number) -> Term:
        return self._binary("sub", other)

    def __rsub__(self, other: Number) -> Term:
        return self.constant_like(other) - self

    def __mul__(self, other: Term | Number) -> Term:
        return self._binary("mul", other)

    def __truediv__(self, other: Term | Number) -> Term:
        return self._binary("div", other)

    def __rtruediv__(self, other: Number) -> Term:
        return self.constant_like(other) / self

    def __lt__(self, other: Term | Number) -> Term:
        return self._compare("lt", other)

    def __gt__(self, other: Term | Number) -> Term:
        return self._compare("gt", other)

    def __ge__(self, other: Term | Number) -> Term:
        return self._compare("ge", other)

    def __and__(self, other: Term | Number) -> Term:
        return self._logical("and", other)

    def __or__(self, other: Term | Number) -> Term:
        return self._logical("or", other)

    def __xor__(self, other: Term | Number) -> Term:
        return self._binary("bitxor", other)

    def __lshift__(self, count: Term | int) -> Term:
        return self._binary("shl", count)

    def __rshift__(self, count: Term | int) -> Term:
        return self._binary("shr", count)

    def __neg__(self) -> Term:
        return self.code.term(Unary("neg", self.expr))

    def __invert__(self) -> Term:
        is_condition = self.scalar == "bool"
        return self.code.term(Unary("not" if is_condition else "bitnot", self.expr))


# Other operations: none occurs; this makes the operations itself.
_OF_BITS: dict[BinaryOp, BinaryOp] = {"and": "bitand", "or": "bitor"}


# Other expressions: not optimized.
def _is_constant(value: Expr) -> bool:
    return isinstance(value, Broadcast) and isinstance(value.value, Const)
