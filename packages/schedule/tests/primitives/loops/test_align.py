"""`align`: a loop that starts early for aligned vectors computes the same, for every alignment of the
array.
"""

from __future__ import annotations

import numpy as np
import pytest
from nest_programs import COPY
from refused import reason_of
from refused_programs import FETCH, LATE, PARALLEL

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import diagnostics
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit.show import body_text

ROWS = parse_module("""
@T.prim_func
def rows(x: T.handle, y: T.handle, m: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m, 8), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    for i in T.serial(m):
        for k in T.serial(8):
            with T.block("rows"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + X[vi, vk]
""")


def early():
    return ScheduleBuilder(ROWS).align("k", buffer="X", lanes=4)


def in_vectors():
    split = early().split("k", factors=(3, 4)).decompose_reduction("rows", loop="k_0")
    return split.vectorize("k_1", remainder="masked")


def in_other_parts():
    return early().split("k", factors=(None, 5)).unroll("k_1")


def placed(array, elements):
    """A copy whose address is that many elements after a multiple of 16 bytes, surrounded by NaNs."""
    memory = np.full(array.size + 16, np.nan, np.float32)
    first = (-memory.ctypes.data % 16) // 4 + elements
    copy = memory[first : first + array.size].reshape(array.shape)
    copy[:] = array
    return copy


@pytest.mark.parametrize("elements", range(4))
@pytest.mark.parametrize("scheduled", [early, in_vectors, in_other_parts])
def test_sums_stay_wherever_the_array_begins(scheduled, elements):
    module = scheduled().module
    assert diagnostics(module) == ()
    for rows in (0, 1, 3):
        x = np.arange(8 * rows, dtype=np.float32).reshape(rows, 8)
        y = np.full(rows, -1, np.float32)
        run(module, {"x": placed(x, elements), "y": y, "m": rows})
        np.testing.assert_array_equal(y, x.sum(axis=1))


def test_what_a_condition_reads_by_the_loop_is_read_in_its_old_range_only():
    text = """
@T.prim_func
def kept(x: T.handle, y: T.handle):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (8,), "float32")
    Y = T.match_buffer(y, (8,), "float32")
    for k in T.serial(8):
        with T.block("kept"):
            vk = T.axis.spatial(8, k)
            T.where(X[vk] > 0.0)
            Y[vk] = X[vk]
"""
    early = ScheduleBuilder(parse_module(text)).align("k", buffer="X", lanes=4).module
    shown = body_text(early).replace(' - T.reinterpret(x, "int64") // 4 % 4', "'")
    assert "T.if_then_else(vk' >= 0 and vk' < 8, X[vk'] > 0.0, False)" in shown


COLUMN_SUMS = parse_module("""
@T.prim_func
def column_sums(x: T.handle, y: T.handle, m: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m, 8), "float32")
    Y = T.match_buffer(y, (1, 8), "float32")
    for j in T.serial(1):
        for i in T.serial(m):
            for k in T.serial(8):
                with T.block("sums"):
                    vj, vi, vk = T.axis.remap("SRS", [j, i, k])
                    with T.init():
                        Y[vj, vk] = 0.0
                    Y[vj, vk] = Y[vj, vk] + X[vi, vk]
""")


@pytest.mark.parametrize("elements", range(4))
def test_a_cache_over_the_iterators_is_aligned_too(elements):
    schedule = (
        ScheduleBuilder(COLUMN_SUMS).align("k", buffer="X", lanes=4).split("k", factors=(3, 4))
    )
    schedule = schedule.reindex_cache_write("sums", buffer="Y", scope="local")
    schedule = schedule.decompose_reduction("sums", loop="i").split("k_c", factors=(3, 4))
    for lanes in ("k_1", "k_1_init", "k_c_1"):
        schedule = schedule.vectorize(lanes)
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    y = np.full((1, 8), -1, np.float32)
    run(schedule.module, {"x": placed(x, elements), "y": y, "m": 3})
    np.testing.assert_array_equal(y[0], x.sum(axis=0))
    assert "Y_local[vj, vk]" in body_text(schedule.module)


READING = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("copy"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(8, T.int64(P[j]))
            Y[vi, vj] = X[vi, vj]
"""
ALONG = {"loop": "j", "buffer": "X", "lanes": 8}
REFUSED = [
    ("align.not_proved", READING, ALONG),
    ("align.lanes", COPY, {**ALONG, "lanes": 1}),
    ("align.rows", COPY, {**ALONG, "lanes": 16}),
    ("align.rows", FETCH, {**ALONG, "buffer": "S"}),
    ("align.buffer", FETCH, {**ALONG, "buffer": "L"}),
    ("align.innermost", COPY, {**ALONG, "loop": "i"}),
    ("align.start", LATE, {**ALONG, "loop": "i"}),
    ("align.kind", PARALLEL, {**ALONG, "loop": "i"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("align", arguments)) == code
