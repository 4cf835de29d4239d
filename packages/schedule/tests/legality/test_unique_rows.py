"""Loops over rows that are stored once each are parallel, and their results can be cached; without that
fact, both are rejected.
"""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder

SCRIPT = """
@T.prim_func
def rows(op: T.handle, oq: T.handle, p: T.handle, a: T.handle, c: T.handle,
         m: T.int64, f: T.int64, stored: T.int64, nnz: T.int64, k: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    I_indptr = T.match_buffer(op, (f + 1,), "int32")
    I_indices = T.match_buffer(oq, (stored,), "int32")
    J_indptr = T.match_buffer(p, (stored + 1,), "int32")
    A = T.match_buffer(a, (nnz, k), "float32")
    C = T.match_buffer(c, (m, k), "float32")
    T.assume(monotone(I_indptr))
    T.assume(in_range(I_indptr, 0, stored + 1))
    T.assume(in_range(I_indices, 0, m))
    T.assume(monotone(J_indptr))
    T.assume(in_range(J_indptr, 0, nnz + 1))
    T.assume(sorted_segments(I_indices, I_indptr, unique=True))
    for o in T.serial(FIBERS):
        for i in T.serial(T.int64(I_indptr[o + 1]) - T.int64(I_indptr[o])):
            for j in T.serial(T.int64(J_indptr[T.int64(I_indptr[o]) + (i + 1)]) - T.int64(J_indptr[T.int64(I_indptr[o]) + i])):
                for l in T.serial(k):
                    with T.block("sum"):
                        vo, vi, vj, vl = T.axis.remap("SSRS", [o, i, j, l])
                        with T.init():
                            C[T.int64(I_indices[T.int64(I_indptr[vo]) + vi]), vl] = 0.0
                        C[T.int64(I_indices[T.int64(I_indptr[vo]) + vi]), vl] = C[T.int64(I_indices[T.int64(I_indptr[vo]) + vi]), vl] + A[T.int64(J_indptr[T.int64(I_indptr[vo]) + vi]) + vj, vl]
"""  # noqa: E501  (the script has no line breaks inside an expression)
ONE_FIBER = SCRIPT.replace("FIBERS", "1")
FACT = "    T.assume(sorted_segments(I_indices, I_indptr, unique=True))\n"
WEIGHT = "T.int64(J_indptr[T.int64(I_indptr[o]) + i]) + 4 * i"
STEPS = (
    ("split", ("l",), {"factors": (None, 4)}),
    ("reorder", ("l_0", "j", "l_1"), {}),
    ("cache_write", ("sum",), {"buffer": "C", "scope": "local"}),
    ("reverse_compute_at", ("sum_C_local",), {"loop": "l_0"}),
    ("decompose_reduction", ("sum",), {"loop": "j"}),
    ("split", ("l_c",), {"factors": (4,)}),
    ("vectorize", ("l_1",), {}),
    ("vectorize", ("l_1_init",), {}),
    ("parallel", ("i",), {"weight": WEIGHT, "grain": 100}),
)


def require_sums(module):
    """Stored rows hold the sums of their terms; other rows keep the passed values."""
    verify(module)
    lengths, rows = [3, 0, 1, 7], [1, 4, 5, 8]
    a = (np.arange(11 * 6) % 7 - 3).reshape(11, 6).astype(np.float32)
    c = np.full((10, 6), -77, np.float32)
    expected = c.copy()
    expected[rows] = 0
    np.add.at(expected, np.repeat(rows, lengths), a)
    arrays = {
        "op": np.array([0, 4], np.int32), "oq": np.array(rows, np.int32),
        "p": np.cumsum([0, *lengths]).astype(np.int32), "a": a, "c": c,
    }  # fmt: skip
    run(module, {**arrays, "m": 10, "f": 1, "stored": 4, "nnz": 11, "k": 6})
    np.testing.assert_array_equal(c, expected)


def test_each_step_keeps_the_result():
    builder = ScheduleBuilder(parse_module(ONE_FIBER))
    for op, names, options in STEPS:
        getattr(builder, op)(*names, **options)
        require_sums(builder.module)


@pytest.mark.parametrize("loop", ["i", "o"])
def test_the_copy_moves_to_any_loop_over_rows(loop):
    builder = ScheduleBuilder(parse_module(ONE_FIBER))
    builder.cache_write("sum", buffer="C", scope="local")
    builder.reverse_compute_at("sum_C_local", loop=loop)
    require_sums(builder.module)


UNPROVED = {
    "not unique": ONE_FIBER.replace("unique=True", "unique=False"),
    "not sorted": ONE_FIBER.replace(FACT, ""),
    "padded": ONE_FIBER.replace(FACT, f"{FACT}    T.assume(padded_slots(I_indices, m))\n"),
    "rows written": ONE_FIBER + "    I_indices[0] = 1\n",
    "bounds written": ONE_FIBER + "    I_indptr[0] = 1\n",
}


@pytest.mark.parametrize("why", UNPROVED)
def test_without_a_proof_rows_are_not_parallel(why):
    builder = ScheduleBuilder(parse_module(UNPROVED[why]))
    with pytest.raises(ScheduleError) as caught:
        builder.parallel("i")
    assert caught.value.code == "schedule.parallel.not_proved"


@pytest.mark.parametrize("why", UNPROVED)
def test_without_a_proof_the_copy_does_not_move(why):
    builder = ScheduleBuilder(parse_module(UNPROVED[why]))
    builder.cache_write("sum", buffer="C", scope="local")
    with pytest.raises(ScheduleError) as caught:
        builder.reverse_compute_at("sum_C_local", loop="i")
    assert caught.value.code == "schedule.reverse_compute_at.not_proved"


def test_several_fibers_may_hold_the_same_rows():
    builder = ScheduleBuilder(parse_module(SCRIPT.replace("FIBERS", "f")))
    with pytest.raises(ScheduleError) as caught:
        builder.parallel("o")
    assert caught.value.code == "schedule.parallel.not_proved"
    builder.parallel("i")
    builder = ScheduleBuilder(parse_module(SCRIPT.replace("FIBERS", "f")))
    builder.cache_write("sum", buffer="C", scope="local")
    with pytest.raises(ScheduleError) as caught:
        builder.reverse_compute_at("sum_C_local", loop="i")
    assert caught.value.code == "schedule.reverse_compute_at.not_proved"
