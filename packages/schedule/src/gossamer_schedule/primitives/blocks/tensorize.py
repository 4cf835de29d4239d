"""`tensorize`: an intrinsic computes what a loop nest computes."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.interchange.records import Intrinsic
from gossamer_ir.nodes import Module
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.tensorization.apply import in_emission


@primitive
def tensorize(
    module: Module,
    loop: str,
    *,
    intrinsic: str,
    function: str | None = None,
    intrinsics: Sequence[Intrinsic] = (),
) -> Result:
    """Replaces a loop nest around one store by the emission of the intrinsic of a name, which does the
    same up to names, the order of loops, and where the elements of its buffers are.

    The nest becomes a block `<block>_o`, as by `blockize`, which is annotated with the name and the
    digest of the intrinsic, and as reassociating. Where the nest is not whole, because a condition of
    its block does not hold in all iterations, or a loop has none, it runs as before. What the emission
    uses in vectors must be next to each other in memory; all else may have any strides and offset. The
    result's names are those of `blockize`. `intrinsics` are those of the machine, and no part of the
    step: a builder or `replay` is given them.

    Raises `ScheduleError`: `schedule.tensorize.no_intrinsic` (none, or several, of that name),
    `.intrinsic` (its description is no nest around one store), `.body` (the loop holds more than loops
    around one block), `.store` (the block is more than one store), `.match` (they do not do the same; the
    error shows both), `.layout` (a vector is no run of elements), `.indirect` (elements are selected
    through an index array), `.alias` (what is written is read in other ways), `.init` (spatial points
    initialise one element), `.not_proved` (points may meet in an element, or what selects elements may
    change), `.predicate` (where the nest is whole is not known), `.mixed`, `.dependence` (as for
    `blockize`), `.kind`, `.no_loop`, `.no_function`, `.stage`.

    >>> from gossamer_testkit.examples import DOT_4, MATMUL
    >>> from gossamer_schedule.primitives.loops.reorder import reorder
    >>> from gossamer_schedule.primitives.loops.split import split
    >>> from gossamer_testkit.show import body_text
    >>> fours = reorder(split(MATMUL, "j", factors=(None, 4)).module, "j_0", "l", "j_1").module
    >>> print(body_text(tensorize(fours, "j_1", intrinsic="dot_4", intrinsics=(DOT_4,)).module))
    for i in T.serial(m):
        for j_0 in T.serial((n + 3) // 4):
            for l in T.serial(k):
                with T.block("matmul_o"):
                    vi_1, vj_0, vl_1 = T.axis.remap("SRS", [i, j_0, l])
                    T.block_attr({"reassociates": True, "intrinsic": "dot_4@664a69dc5873073e"})
                    with T.init():
                        with T.block("matmul_init"):
                            vi_init = T.axis.spatial(m, vi_1)
                            vl_init = T.axis.spatial(k, vl_1)
                            C[vi_init, vl_init] = 0.0
                    if vj_0 * 4 + 3 < n:
                        C[vi_1, vl_1] = C[vi_1, vl_1] + (A[vi_1, vj_0 * 4 + 0] * B[vj_0 * 4 + 0, vl_1] + A[vi_1, vj_0 * 4 + 1] * B[vj_0 * 4 + 1, vl_1] + (A[vi_1, vj_0 * 4 + 2] * B[vj_0 * 4 + 2, vl_1] + A[vi_1, vj_0 * 4 + 3] * B[vj_0 * 4 + 3, vl_1]))
                    else:
                        for j_1 in T.serial(4):
                            with T.block("matmul"):
                                vi = T.axis.spatial(m, vi_1)
                                vj = T.axis.reduce(n, vj_0 * 4 + j_1)
                                vl = T.axis.spatial(k, vl_1)
                                T.where(vj < n)
                                C[vi, vl] = C[vi, vl] + A[vi, vj] * B[vj, vl]
    """  # noqa: E501  (the script has no line breaks inside an expression)
    return in_emission(
        module,
        loop,
        intrinsic=intrinsic,
        intrinsics=intrinsics,
        function=function,
        op="tensorize",
        is_sparse=False,
    )
