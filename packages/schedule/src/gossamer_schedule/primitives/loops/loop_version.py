"""`loop_version`: duplicate a loop or block for the two outcomes of a condition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import loops_outside_init, reduction_loops
from gossamer_ir.analysis.invariants import is_constant, mutable_buffers
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import ZERO, floordiv, integer_value, mul
from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import (
    Binary,
    Block,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Node,
    Range,
    Stmt,
    Var,
)
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.substitute import resolve, substitute, substitute_body
from gossamer_ir.traversal.walk import contains
from gossamer_schedule.cursor.clones import clones_of, forwards_of
from gossamer_schedule.cursor.cursor_at import Cursor, name_of
from gossamer_schedule.cursor.enclosed_block import enclosed_block
from gossamer_schedule.cursor.find import find_named
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.nests.init_checks import blocks_with_init, require_init_in_copies
from gossamer_schedule.safe_accesses.expression_arguments import expr_at


@primitive(stages=LOOP_STAGES)
def loop_version(
    root: Cursor[Function], name: str, *, condition: str, function: str | None = None
) -> Change:
    """Duplicate a loop or block: one version runs if a condition holds, the other if it does not.

    Each version can then be scheduled separately. `condition` is the text of a condition in parameters
    and enclosing loop variables. Its equations simplify the first version:

    * `n == 32` replaces `n` by the integer, and `i == 2` a loop variable in ranges;
    * `P[i + 1] - P[i] == 4` gives loops over the row that constant extent;
    * `n % 8 == 0` turns ranges up to `n` into `n // 8 * 8`, so that a split by 8 has no remainder.

    A loop, iterator, block or buffer `x` inside is named `x_0` in the first version and `x_1` in the
    second. The result's names are those of the two versions.

    Raises `ScheduleError` with a code `schedule.loop_version.*`:

    * `.condition`: not a condition
    * `.text`: not an expression
    * `.init`: an init runs before a loop in which the condition may change
    * `.not_proved`: the condition may read out of bounds, or an init may not run as before

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(SCALE))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    >>> print(body_text(loop_version(SCALE, "i", condition="n == 32").module))
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
    cursor = find_named(root, name=name)

    test = _required_condition(condition, cursor)
    _require_inits(cursor, test)

    # Names are unique in a function: both versions get new ones, to which handles of the old are forwarded.
    versions = clones_of((cursor.node,), 2, namer_of(root.function))
    first, second = versions
    mutable = mutable_buffers(root.function)
    loops = {loop.var for loop in cursor.loops_in_block}
    # Only the first version: that a condition does not hold gives no equation.
    simplified = _simplify_under(test, first.body, loops=loops, mutable=mutable)
    branch = If(test, simplified, second.body)

    first_stmts = (version.body[0] for version in versions)
    names = tuple(filter(None, map(name_of, first_stmts)))
    return Change(cursor.replace_with((branch,)), names, forwards_of(versions))


def _required_condition(condition: str, cursor: Cursor[object]) -> Expr:
    """Return the condition; refuse one that is not a bool, since it selects the version that runs."""
    test = expr_at(condition, cursor, argument="condition")
    if dtype_of(test) != "bool":
        raise schedule_error(
            "loop_version.condition",
            f"'{condition}' is {dtype_of(test)}, not a condition.",
            hint="Expected a comparison such as n == 32, or several joined by 'and' and 'or'.",
            place=cursor.place,
        )
    return test


def _require_inits(cursor: Cursor[Block], test: Expr) -> None:
    """Refuse inits that would run in the wrong version, or overwrite what the other version has computed.

    An init runs before its reduction loops, so the condition must have the same value before them as inside.
    Both versions have the init, so neither may initialize elements that the other has begun to accumulate.
    """
    varying = _varying_loops(cursor, test)
    for block in _blocks_with_init(cursor):
        idle = reduction_loops(block.node, values_at(block)) | loops_outside_init(
            enclosed_block(block)
        )
        if idle & varying:
            raise schedule_error(
                "loop_version.init",
                f"The init of block '{block.node.name}' runs before loop '{min(idle & varying)}', in which "
                "the condition may change.",
                hint="Apply decompose_reduction before.",
                place=block.place,
            )
        require_init_in_copies(block, varying)


def _varying_loops(cursor: Cursor[object], test: Expr) -> set[str]:
    """Return the enclosing loops in which a condition may change: all, if it reads a mutable buffer."""
    whole = resolve(test, values_at(cursor))
    loops = {loop.var for loop in cursor.loops_in_block}
    return loops & free_vars(whole) if is_constant(whole, function=cursor.function) else loops


def _blocks_with_init(cursor: Cursor[Block]) -> Iterable[Cursor[Block]]:
    is_block = isinstance(cursor.node, Block)
    return [cursor][: bool(cursor.node.init)] if is_block else blocks_with_init(cursor)


def _constant_vars(condition: Expr) -> dict[str, Expr]:
    """Return the variables that are integer constants where a condition holds, with these constants."""
    values: dict[str, Expr] = {}
    for lhs, rhs in _equalities(condition):
        if isinstance(lhs, Var) and isinstance(rhs, Const) and _is_integer(rhs):
            values[lhs.name] = rhs
    return values


def _constant_exprs(condition: Expr, mutable: Set[str]) -> dict[Expr, Expr]:
    """Return the expressions that are constants where a condition holds, such as lengths of rows.

    Those that read a mutable buffer are left out, since their value may change after the test.
    """
    return {
        lhs: rhs
        for lhs, rhs in _equalities(condition)
        if isinstance(lhs, Binary)
        and isinstance(rhs, Const)
        and not buffers_accessed(lhs) & mutable
    }


def _multiple_vars(condition: Expr) -> dict[str, Expr]:
    """Return `n // 8 * 8` for each variable `n` that is a multiple of 8 where a condition holds."""
    multiples: dict[str, Expr] = {}
    for lhs, rhs in _equalities(condition):
        match lhs:
            case Binary(op="floormod", lhs=Var(dtype="int64") as var, rhs=by) if rhs == ZERO:
                if (integer_value(by) or 0) > 1:
                    multiples[var.name] = mul(floordiv(var, by), by)
    return multiples


def _equalities(condition: Expr) -> Iterator[tuple[Expr, Expr]]:
    """Yield the sides of the equations among the conjuncts of a condition, in both orders."""
    for part in conjuncts(condition):
        if isinstance(part, Compare) and part.op == "eq":
            yield from ((part.lhs, part.rhs), (part.rhs, part.lhs))


def _is_integer(value: Const) -> bool:
    """Return whether a constant is an integer. Equal floats may differ: 0.0 == -0.0."""
    return DType.parse(value.dtype).is_integer


def _simplify_under(
    condition: Expr, body: tuple[Stmt, ...], *, loops: Set[str], mutable: Set[str]
) -> tuple[Stmt, ...]:
    """Return a body simplified under a condition: its equations are substituted in expressions and ranges.

    Variables of the `loops` around are substituted in ranges only. In the value of an iterator, this would
    change which loops feed the block, and so how often its init runs.
    """
    constants, multiples = _constant_vars(condition), _multiple_vars(condition)
    values = {name: value for name, value in constants.items() if name not in loops}
    in_ranges = {name: value for name, value in constants.items() if name in loops}
    extents = _constant_exprs(condition, mutable)
    if not constants and not multiples and not extents:
        return body

    def fold_extent(node: Node) -> Node | None:
        if not isinstance(node, (For, Range)):
            return None
        if node.extent in extents:
            return replace(node, extent=extents[node.extent])
        start, extent = substitute(node.start, in_ranges), substitute(node.extent, in_ranges)
        if contains(READS, start, extent):
            return replace(node, start=start, extent=extent)
        extent = substitute(extent, multiples)
        return replace(node, start=simplify(start), extent=simplify(extent))

    return rewrite_body(substitute_body(body, values), fold_extent, leaves=False)
