"""Runs the outermost loops of a program that is loops already in parallel, wherever this is proved valid.

Rules match patterns of the coordinate stage. The programs of conversions begin at the loop stage, and each
of them differs from the others, so their loops are tried one by one.
"""

from __future__ import annotations

import msgspec

from gossamer_ir.analysis.bounds.loops_by_name import LoopsByName, loops_of
from gossamer_ir.arith.offsets import offset_of_length
from gossamer_ir.core.build import add, index, index_var, integer_value, mul, widen
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Expr, For, Module
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_schedule.conversion_loops.outermost_loops import outermost_loops
from gossamer_schedule.errors import text_of
from gossamer_schedule.primitives.loops.parallel import parallel
from gossamer_schedule.rules.decisions.parallel_rows import WORK_PER_ROW, grain
from gossamer_support.typed_calls import typed


@typed
def parallel_outer_loops(module: Module) -> Module:
    """Return a module of the loop stage in which each outermost serial loop whose iterations are proved to
    access different elements is parallel; others stay serial.

    An iteration weighs as much as the inner loops that it runs, so that fibers of different lengths are
    divided evenly, and a thread is used for as much work as pays for waking it.

    >>> from gossamer_ir import parse_module
    >>> from gossamer_testkit.show import body_text
    >>> program = parse_module('''
    ... @T.prim_func
    ... def rows(p: T.handle, r: T.handle, s: T.handle, m: T.int64, nnz: T.int64) -> None:
    ...     T.func_attr({"sparse_tir_level": 0})
    ...     P = T.match_buffer(p, (m + 1,), "int32")
    ...     R = T.match_buffer(r, (nnz,), "int32")
    ...     S = T.match_buffer(s, (nnz,), "int32")
    ...     T.assume(monotone(P))
    ...     T.assume(in_range(P, 0, nnz + 1))
    ...     for i in T.serial(m):
    ...         for e in T.serial(T.int64(P[i]), T.int64(P[i + 1])):
    ...             R[e] = T.int32(i)
    ...     for x in T.serial(nnz):
    ...         S[0] = R[x]
    ... ''')
    >>> print(body_text(parallel_outer_loops(program)))
    for i in T.parallel(m, weight=T.int64(P[i]) + i * 4, grain=8192):
        for e in T.serial(T.int64(P[i]), T.int64(P[i + 1])):
            R[e] = T.int32(i)
    for x in T.serial(nnz):
        S[0] = R[x]
    """
    (function,) = module.functions
    loops = loops_of(function)
    for loop in outermost_loops(function.body):
        module = _parallel_if_proved(module, loop, _work_of(loop, loops))
    return module


def _parallel_if_proved(module: Module, loop: For, work: _Work) -> Module:
    """Return the module in which a loop is parallel, or the module itself."""
    try:
        unweighted = parallel(module, loop.var, grain=grain(max(1, work.constant))).module
    except ScheduleError:
        return module
    if work.before is None:
        return unweighted
    weight = add(work.before, mul(index_var(loop.var), index(work.constant + WORK_PER_ROW)))
    try:
        return parallel(module, loop.var, weight=text_of(weight), grain=grain(1)).module
    except ScheduleError:
        return unweighted


class _Work(msgspec.Struct, frozen=True):
    """The iterations of the loops inside of one: the number in each of its iterations as far as it is
    constant, and an expression of the other ones in all earlier iterations, None if there are none."""

    constant: int
    before: Expr | None


def _work_of(loop: For, loops: LoopsByName) -> _Work:
    constant, before = 0, None
    for inner in outermost_loops(loop.body):
        # Inner loops count as far as their extent is constant, as that of the columns of a block.
        work = max(1, _work_of(inner, loops).constant)
        extent = loops[inner.var].extent
        count = integer_value(extent)
        if count is not None:
            constant += work * count
            continue
        earlier = _before(extent, loop.var)
        if earlier is not None:
            term = mul(earlier, index(work))
            before = term if before is None else add(before, term)
    return _Work(constant, before)


def _before(extent: Expr, var_name: str) -> Expr | None:
    """Return the number of iterations of an inner loop before one of the loop over `var_name`; None if it is
    unknown."""
    offset = offset_of_length(extent)
    if offset is not None:
        return widen(offset) if offset.indices == (index_var(var_name),) else None
    is_constant = var_name not in free_vars(extent) and not buffers_read(extent)
    return mul(extent, index_var(var_name)) if is_constant else None
