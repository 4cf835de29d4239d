"""`parallel`: the iterations of a loop run on several threads."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.build import dtype_of, index, integer_value
from gossamer_ir.contracts import Step
from gossamer_ir.nodes import (
    Binary,
    Buffer,
    Cast,
    Expr,
    For,
    Function,
    Load,
    Module,
    Monotone,
    Var,
)
from gossamer_ir.walk import free_vars
from gossamer_schedule.primitive import primitive
from gossamer_schedule.races import require_no_race
from gossamer_schedule.refusals import refusal
from gossamer_schedule.resolve import (
    LOOP_STAGES,
    all_buffers,
    find_function,
    find_loop,
    require_serial,
    require_stage,
)
from gossamer_schedule.result import Result
from gossamer_schedule.sites import Site, replaced, statements, with_function
from gossamer_schedule.steps import step
from gossamer_schedule.unsafe import Requirement


@primitive
def parallel(
    module: Module,
    loop: str,
    *,
    weight: str | None = None,
    grain: int | None = None,
    function: str | None = None,
) -> Result:
    """Marks a serial loop as parallel, where different iterations write different elements.

    `weight` is the text of an int64 expression in the loop's variable: the work before an
    iteration, which must not decrease. `grain` is the weight (without one: the iterations) below
    which a further thread does not pay.

    Raises `ScheduleError`: `schedule.parallel.race` (two iterations write one element),
    `.not_proved` (they may), `.weight` (not proved to be monotone), `.grain` (less than one),
    `.nested` (in or around another parallel loop), `.kind`, `.no_loop`, `.no_function`, `.stage`.

    >>> from gossamer_schedule.examples import ROW_SUM
    >>> from gossamer_schedule.show import body_text
    >>> print(body_text(ROW_SUM))
    for i in T.serial(m):
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + A[indptr_data[vi] + vj]
    >>> rows = parallel(ROW_SUM, "i", weight="indptr_data[i] + 4 * i", grain=8192)
    >>> print(body_text(rows.module))
    for i in T.parallel(m, weight=indptr_data[i] + 4 * i, grain=8192):
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + A[indptr_data[vi] + vj]
    """
    return in_parallel(
        module, loop, weight, grain=grain, function=function, op="parallel", require=require_no_race
    )


def in_parallel(
    module: Module,
    loop: str,
    weight: str | None,
    *,
    grain: int | None,
    function: str | None,
    op: str,
    require: Requirement,
) -> Result:
    """What `parallel` and `unsafe_parallel` do, which require different things of the loop."""
    require_stage(module, op, stages=LOOP_STAGES)
    owner = find_function(module, op, function=function)
    site = find_loop(owner, op, loop=loop)

    require_serial(site, op)
    _require_not_nested(site, module)
    require(site, module, op)
    work = None if weight is None else _require_weight(weight, site, module=module)
    _require_grain(grain, site)

    least = None if grain is None else index(grain)
    parallel_loop = replace(site.node, kind="parallel", weight=work, grain=least)

    rewritten = with_function(module, owner, replaced(site, (parallel_loop,)))

    taken = step(loop=loop, weight=weight, grain=grain, function=function)
    return Result(rewritten, (loop,), Step(op, taken))


def _require_not_nested(site: Site, module: Module) -> None:
    around = (*site.loops, *statements(site.node.body))
    for found in around:
        if isinstance(found, For) and found.kind == "parallel":
            raise refusal(
                "parallel.nested",
                f"Loop '{site.node.var}' and loop '{found.var}' cannot both be parallel: one is "
                "inside the other.",
                place=site.place(module),
            )


def _require_weight(text: str, site: Site, *, module: Module) -> Expr:
    from gossamer_ir.script import parse_expr

    weight: Expr = parse_expr(text, _dtypes(site))
    if dtype_of(weight) != "int64" or not _is_monotone(weight, site):
        raise refusal(
            "parallel.weight",
            f"It is not proved that the weight {text} does not decrease along loop "
            f"'{site.node.var}'.",
            hint="Expected an int64 sum of multiples of the variable and of loads from monotone buffers.",
            place=site.place(module),
        )
    return weight


def _dtypes(site: Site) -> dict[str, str]:
    owner: Function = site.function
    found = {param.name: param.dtype for param in owner.params if param.dtype != "handle"}
    found.update({buffer.name: buffer.dtype for buffer in all_buffers(owner)})
    found.update({loop.var: "int64" for loop in site.loops})
    return found | {site.node.var: "int64"}


def _is_monotone(expr: Expr, site: Site) -> bool:
    """Whether an expression never decreases as the loop's variable grows."""
    match expr:
        case _ if site.node.var not in free_vars(expr):
            return True
        case Var():
            return True
        case Cast(dtype="int64"):
            return _is_monotone(expr.value, site)
        case Binary(op="add"):
            return _is_monotone(expr.lhs, site) and _is_monotone(expr.rhs, site)
        case Binary(op="sub") if site.node.var not in free_vars(expr.rhs):
            return _is_monotone(expr.lhs, site)
        case Binary(op="mul"):
            return _is_scaled(expr.lhs, expr.rhs, site=site) or _is_scaled(
                expr.rhs, expr.lhs, site=site
            )
        case Load():
            return _is_monotone_load(expr, site)
    return False


def _is_scaled(factor: Expr, expr: Expr, *, site: Site) -> bool:
    value = integer_value(factor)
    is_natural = value >= 0 if value is not None else _is_size(factor, site.function)
    return is_natural and _is_monotone(expr, site)


def _is_size(expr: Expr, function: Function) -> bool:
    """Whether an expression is an extent of an array that is passed, so never negative."""
    buffers = (found for found in function.buffers if isinstance(found, Buffer) and found.handle)
    return any(expr in found.shape for found in buffers)


def _is_monotone_load(load: Load, site: Site) -> bool:
    facts = site.function.facts
    is_fact = any(isinstance(f, Monotone) and f.buffer == load.buffer for f in facts)
    is_fixed = all(site.node.var not in free_vars(at) for at in load.indices[:-1])
    return is_fact and is_fixed and _is_monotone(load.indices[-1], site)


def _require_grain(grain: int | None, site: Site) -> None:
    if grain is not None and grain < 1:
        raise refusal(
            "parallel.grain",
            f"Grain {grain} of loop '{site.node.var}' is less than 1.",
        )
