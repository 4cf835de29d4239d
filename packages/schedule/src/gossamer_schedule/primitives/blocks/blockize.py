"""`blockize`: wrap a loop nest in an outer block."""

from __future__ import annotations

from gossamer_ir.nodes import Function
from gossamer_ir.traversal.names import namer_of
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.tensorization.outer_block import outer_block, required_single_block


@primitive(stages=LOOP_STAGES)
def blockize(root: Cursor[Function], loop: str, *, function: str | None = None) -> Change:
    """Wrap a loop, which contains only loops around one block, in an outer block `<block>_o`.

    The outer block gets an iterator `v<loop>` for each enclosing loop on which its contents depend, and the
    contents are rewritten in terms of these iterators. The iterator is a reduction iterator if the loop
    feeds the reduction of the inner block. Its domain may be read from data, such as the number of blocks
    in a row of a block-sparse matrix.

    If the init runs before one of these loops, because the loop feeds the reduction or its iterations may
    initialize one element, the init moves to the outer block: block `<block>_init` in loops `<loop>_init`,
    as in `decompose_reduction`. The result's names are the outer block, its iterators, and the block and
    loops of the init.

    Raises `ScheduleError` with a code `schedule.blockize.*`:

    * `.body`: the loop contains more than loops around one block
    * `.mixed`: a loop feeds both a spatial and a reduction iterator
    * `.dependence`: the init or its loops depend on a reduction loop or on a let

    >>> from gossamer_testkit.examples import MATMUL
    >>> from gossamer_schedule.primitives.loops.split import split
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(blockize(split(MATMUL, "l", factors=(None, 8)).module, "l_0").module))
    for i in T.serial(m):
        for j in T.serial(n):
            with T.block("matmul_o"):
                vi_1, vj_1 = T.axis.remap("SR", [i, j])
                with T.init():
                    for l_0_init in T.serial((k + 7) // 8):
                        for l_1_init in T.serial(8):
                            with T.block("matmul_init"):
                                vi_init = T.axis.spatial(m, vi_1)
                                vl_init = T.axis.spatial(k, l_0_init * 8 + l_1_init)
                                T.where(vl_init < k)
                                C[vi_init, vl_init] = 0.0
                for l_0 in T.serial((k + 7) // 8):
                    for l_1 in T.serial(8):
                        with T.block("matmul"):
                            vi = T.axis.spatial(m, vi_1)
                            vj = T.axis.reduce(n, vj_1)
                            vl = T.axis.spatial(k, l_0 * 8 + l_1)
                            T.where(vl < k)
                            C[vi, vl] = C[vi, vl] + A[vi, vj] * B[vj, vl]
    """
    top = find_loop(root, loop=loop)

    cursor = required_single_block(top)
    wrapped = outer_block(cursor, top, namer=namer_of(root.function))
    iters = (iterator.var for iterator in wrapped.outer.iters)
    return Change(
        top.replace_with((wrapped.outer,)), (wrapped.outer.name, *iters, *wrapped.init_names)
    )
