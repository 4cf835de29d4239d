"""`specialize`: a loop or block in two versions, of which a condition chooses one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.init_nests import reduction_loops
from gossamer_ir.analysis.invariants import is_constant, mutable_buffers
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import ZERO, conjuncts, dtype_of, floordiv, integer_value, mul
from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import (
    Binary,
    Block,
    Compare,
    Const,
    Expr,
    For,
    If,
    Module,
    Range,
    Stmt,
    Var,
)  # fmt: skip
from gossamer_ir.traversal.effects import READS
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import (
    contains,
    free_vars,
    resolve,
    rewrite_body,
    substitute,
    substitute_body,
)  # fmt: skip
from gossamer_schedule.cursor.clones import clones, forwards_of
from gossamer_schedule.cursor.cursor import Cursor, name_of
from gossamer_schedule.cursor.resolve import LOOP_STAGES, find_function, find_named, require_stage
from gossamer_schedule.dependence.access import mentioned, values_at
from gossamer_schedule.dependence.user_expressions import expression_at
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.nests.init_nest import left_out
from gossamer_schedule.nests.init_places import blocks_with_init, require_init_in_copies
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

_NAME = "specialize"


@primitive
def specialize(module: Module, name: str, *, condition: str, function: str | None = None) -> Result:
    """Makes two versions of a loop or block, one for where a condition holds, and one for where it does not,
    so that each can be scheduled by itself.

    `condition` is the text of a condition in parameters and loops around. Where it says what integer a
    variable is, as `n == 32` does, the first version has that integer in place of the variable, and where it
    says what the length of a row is, as `P[i + 1] - P[i] == 4` does, loops over the row have it. Where it
    says that one is a multiple, as `n % 8 == 0` does, ranges of the first version are `n // 8 * 8`, so that
    they split by 8 without a rest. What the loop or block holds as `x` is `x_0` in the first version and
    `x_1` in the second.

    Raises `ScheduleError`: `schedule.specialize.condition` (not a condition), `.text` (no expression),
    `.not_proved` (it may read out of bounds, or an init may not run as before), `.init` (an init would run
    before the loop that the condition is about), `.no_name`, `.no_function`, `.stage`.

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(SCALE))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    >>> print(body_text(specialize(SCALE, "i", condition="n == 32").module))
    if n == 32:
        for i_0 in T.serial(32):
            with T.block("scale_0"):
                vi_0 = T.axis.spatial(32, i_0)
                Y[vi_0] = X[vi_0] * 2.0
    else:
        for i_1 in T.serial(n):
            with T.block("scale_1"):
                vi_1 = T.axis.spatial(n, i_1)
                Y[vi_1] = X[vi_1] * 2.0
    """
    require_stage(module, _NAME, stages=LOOP_STAGES)
    root = find_function(module, _NAME, function=function)
    cursor = find_named(root, name=name)

    asked = _require_condition(condition, cursor)
    _require_inits(cursor, asked)

    versions = clones((cursor.node,), 2, namer_of(root.function))
    yes, no = versions
    changing = mutable_buffers(root.function)
    chosen = If(asked, _under(asked, yes.body, changing), no.body)

    rewritten = cursor.replaced_by((chosen,)).module

    taken = step(name=name, condition=condition, function=function)
    names = tuple(name_of(found.body[0]) for found in versions)
    return Result(rewritten, names, Step(_NAME, taken), forwards_of(versions))


def _require_condition(condition: str, cursor: Cursor) -> Expr:
    found = expression_at(condition, cursor, argument="condition")
    if dtype_of(found) != "bool":
        raise schedule_error(
            f"{_NAME}.condition",
            f"'{condition}' is {dtype_of(found)}, and not a condition.",
            hint="Expected a comparison, as n == 32, or several with 'and' and 'or'.",
            place=cursor.place,
        )
    return found


def _require_inits(cursor: Cursor, asked: Expr) -> None:
    """An init runs before the loops that feed its reduction, so the condition must choose the same version
    there; and both versions have one, so they must not initialise what the other one has begun."""
    about = _varying(cursor, asked)
    for block in _blocks_with_init(cursor):
        idle = reduction_loops(block.node, values_at(block)) | left_out(block)
        if idle & about:
            raise schedule_error(
                f"{_NAME}.init",
                f"The init of block '{block.node.name}' runs before loop '{min(idle & about)}', and the "
                "condition may change in it.",
                hint="Apply decompose_reduction before.",
                place=block.place,
            )
        require_init_in_copies(block, about)


def _varying(cursor: Cursor, asked: Expr) -> set[str]:
    """The loops around in which the condition may change; all of them, where it reads what is written."""
    whole = resolve(asked, values_at(cursor))
    loops = {loop.var for loop in cursor.scope}
    return loops & free_vars(whole) if is_constant(whole, function=cursor.function) else loops


def _blocks_with_init(cursor: Cursor) -> Iterable[Cursor]:
    is_block = isinstance(cursor.node, Block)
    return [cursor][: bool(cursor.node.init)] if is_block else blocks_with_init(cursor)


def _values_in(condition: Expr) -> dict[str, Expr]:
    """The integers that variables are where a condition holds."""
    found: dict[str, Expr] = {}
    for lhs, rhs in _equalities(condition):
        if isinstance(lhs, Var) and isinstance(rhs, Const) and _is_integer(rhs):
            found[lhs.name] = rhs
    return found


def _extents_in(condition: Expr, changing: Set[str]) -> dict[Expr, Expr]:
    """The integers that lengths are where a condition holds, if they are read from what does not change."""
    return {
        lhs: rhs
        for lhs, rhs in _equalities(condition)
        if isinstance(lhs, Binary) and isinstance(rhs, Const) and not mentioned((lhs,)) & changing
    }


def _multiples_in(condition: Expr) -> dict[str, Expr]:
    """Variables as the multiples, `n // 8 * 8`, that they are where a condition holds."""
    found: dict[str, Expr] = {}
    for lhs, rhs in _equalities(condition):
        match lhs:
            case Binary(op="floormod", lhs=Var(dtype="int64") as var, rhs=by) if rhs == ZERO:
                if (integer_value(by) or 0) > 1:
                    found[var.name] = mul(floordiv(var, by), by)
    return found


def _equalities(condition: Expr) -> Iterator[tuple[Expr, Expr]]:
    """The sides of the equations among the parts of a condition, either way round."""
    for part in conjuncts(condition):
        if isinstance(part, Compare) and part.op == "eq":
            yield from ((part.lhs, part.rhs), (part.rhs, part.lhs))


def _is_integer(value: Const) -> bool:
    """Whether equal values are the same, which those of floats need not be: 0.0 == -0.0."""
    return DType.parse(value.dtype).is_integer


def _under(condition: Expr, body: tuple[Stmt, ...], changing: Set[str]) -> tuple[Stmt, ...]:
    """The body where a condition holds: with values in place of variables, and ranges that show them."""
    values, multiples = _values_in(condition), _multiples_in(condition)
    extents = _extents_in(condition, changing)
    if not values and not multiples and not extents:
        return body

    def folded(node: Any) -> Any | None:
        if not isinstance(node, (For, Range)):
            return None
        if node.extent in extents:
            return replace(node, extent=extents[node.extent])
        if contains(READS, node.start, node.extent):
            return None
        extent = substitute(node.extent, multiples)
        return replace(node, start=simplify(node.start), extent=simplify(extent))

    return rewrite_body(substitute_body(body, values), folded, leaves=False)
