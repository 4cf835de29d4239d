"""`tensorize`: replace a loop nest by an intrinsic."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.interchange.records import Intrinsic
from gossamer_ir.nodes import Function
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.tensorization.apply_intrinsic import with_intrinsic


@primitive(stages=LOOP_STAGES)
def tensorize(
    root: Cursor[Function],
    loop: str,
    *,
    intrinsic: str,
    function: str | None = None,
    intrinsics: Sequence[Intrinsic] = (),
) -> Change:
    """Replace a loop nest around one store by the implementation of an equivalent intrinsic.

    `intrinsic` is the name of one of `intrinsics`, those of the machine. Its description must match the
    nest up to names, the order of loops, and the locations of elements in buffers. The nest becomes a block
    `<block>_o`, as in `blockize`, which is annotated with the name and digest of the intrinsic, and as
    `reassociates`. Where the nest is incomplete, because the predicate of its block fails in an iteration
    or a loop has no iteration, the original loops run.

    If an index in the description is computed, as in `B[4 * q + M[q], j]`, the implementation has all elements
    of that dimension. Facts of the description are conditions for its use: the function must state them.

    Elements that the implementation accesses as a vector must be contiguous in memory; other accesses may
    have any strides and offset. The result's names are those of `blockize`. The step does not record
    `intrinsics`; pass them to the builder or to `replay`.

    Raises `ScheduleError` with a code `schedule.tensorize.*`:

    * `.no_intrinsic`: none or several have that name
    * `.intrinsic`: its description is not a nest around one store
    * `.body`: the loop contains more than loops around one block
    * `.store`: the block is more than one store
    * `.match`: the nest and the intrinsic are not equivalent; the error shows both
    * `.facts`: the function does not state a fact that the description does
    * `.layout`: the elements of a vector are not contiguous
    * `.indirect`: elements are selected through an index array
    * `.alias`: other elements of the buffer that is written are read
    * `.init`: several spatial points initialize one element
    * `.not_proved`: several points may share an element, or an index may change in the loop
    * `.predicate`: the condition under which the nest is complete is not known
    * `.mixed`, `.dependence`: as for `blockize`

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
    return with_intrinsic(root, loop, intrinsic=intrinsic, intrinsics=intrinsics, is_sparse=False)
