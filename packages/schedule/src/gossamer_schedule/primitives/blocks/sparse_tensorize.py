"""`sparse_tensorize`: replace a loop nest that reads through index arrays by an intrinsic."""

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
def sparse_tensorize(
    root: Cursor[Function],
    loop: str,
    *,
    intrinsic: str,
    function: str | None = None,
    intrinsics: Sequence[Intrinsic] = (),
) -> Change:
    """Replace a loop nest around one store by an intrinsic, even if it reads through index arrays.

    As `tensorize`, except that index arrays may select the elements: the rows that the coordinates of a
    sparse row gather may be the rows of a dense operand of the intrinsic.

    Raises `ScheduleError`: as for `tensorize`, except `.indirect`.

    >>> from gossamer_testkit.examples import DOT_4, SPMV
    >>> from gossamer_schedule.primitives.loops.split import split
    >>> from gossamer_testkit.show import body_text
    >>> fours = split(SPMV, "j", factors=(None, 4)).module
    >>> print(body_text(sparse_tensorize(fours, "j_1", intrinsic="dot_4", intrinsics=(DOT_4,)).module))
    for i in T.serial(m):
        for j_0 in T.serial((T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i]) + 3) // 4):
            with T.block("csrmv_o"):
                vi_1, vj_0 = T.axis.remap("SR", [i, j_0])
                T.block_attr({"reassociates": True, "intrinsic": "dot_4@664a69dc5873073e"})
                with T.init():
                    with T.block("csrmv_init"):
                        vi_init = T.axis.spatial(m, vi_1)
                        Y[vi_init] = 0.0
                if vj_0 * 4 + 3 < T.int64(J_indptr[vi_1 + 1]) - T.int64(J_indptr[vi_1]):
                    Y[vi_1] = Y[vi_1] + (A[T.int64(J_indptr[vi_1]) + (vj_0 * 4 + 0)] * X[T.int64(J_indices[T.int64(J_indptr[vi_1]) + (vj_0 * 4 + 0)])] + A[T.int64(J_indptr[vi_1]) + (vj_0 * 4 + 1)] * X[T.int64(J_indices[T.int64(J_indptr[vi_1]) + (vj_0 * 4 + 1)])] + (A[T.int64(J_indptr[vi_1]) + (vj_0 * 4 + 2)] * X[T.int64(J_indices[T.int64(J_indptr[vi_1]) + (vj_0 * 4 + 2)])] + A[T.int64(J_indptr[vi_1]) + (vj_0 * 4 + 3)] * X[T.int64(J_indices[T.int64(J_indptr[vi_1]) + (vj_0 * 4 + 3)])]))
                else:
                    for j_1 in T.serial(4):
                        with T.block("csrmv"):
                            vi = T.axis.spatial(m, vi_1)
                            vj = T.axis.reduce(T.int64(J_indptr[vi + 1]) - T.int64(J_indptr[vi]), vj_0 * 4 + j_1)
                            T.where(vj < T.int64(J_indptr[vi + 1]) - T.int64(J_indptr[vi]))
                            Y[vi] = Y[vi] + A[T.int64(J_indptr[vi]) + vj] * X[T.int64(J_indices[T.int64(J_indptr[vi]) + vj])]
    """  # noqa: E501  (the script has no line breaks inside an expression)
    return with_intrinsic(root, loop, intrinsic=intrinsic, intrinsics=intrinsics, is_sparse=True)
