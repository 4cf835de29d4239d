"""`storage_align`: padded rows hold the same, and programs that it refuses."""

from __future__ import annotations

import time

import numpy as np
import pytest
from nest_programs import COPY
from program_results import scaled
from refused import code_of, reason_of
from refused_programs import FETCH

from gossamer_ir.core.build import integer_value
from gossamer_ir.interchange.records import Step
from gossamer_ir.script import parse_module, print_module
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit import examples

REFUSED = [
    ("storage_align.parameter", COPY, {"buffer": "X", "axis": 0, "factor": 16}),
    ("storage_align.axis", FETCH, {"buffer": "L", "axis": 1, "factor": 16}),
    ("storage_align.factor", FETCH, {"buffer": "L", "axis": 0, "factor": 0}),
    ("storage_align.factor", FETCH, {"buffer": "L", "axis": 0, "factor": 4, "offset": 4}),
    ("storage_align.shape", FETCH, {"buffer": "S", "axis": 0, "factor": 4, "offset": 1}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("storage_align", arguments)) == code


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("offset", [0, 1])
def test_padded_rows_hold_the_same(rows, offset):
    builder = ScheduleBuilder(examples.STAGED).set_scope("X_shared", scope="global")
    builder.storage_align("X_shared", axis=0, factor=16, offset=offset).pipeline("i")
    builder.split("k", factors=(None, 3)).unroll("k_1")
    expected = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8) * 2
    assert scaled(builder.module, (rows, 8)).tolist() == expected.tolist()


def test_rows_of_unknown_length_are_padded_too(program):
    module = program("L = T.decl_buffer((8, n), 'float32')\nX[0, 0] = L[0, 0]")
    shape = ScheduleBuilder(module).storage_align("L", axis=0, factor=16, offset=3).module
    text = print_module(shape)
    assert "L = T.decl_buffer((8, (n - 3 + 15) // 16 * 16 + 3)," in text


@pytest.mark.parametrize(("factor", "offset"), [(10**8, 0), (10**8, 6), (10**8 + 7, 3)])
def test_a_large_factor_is_found_at_once(program, factor, offset):
    module = program("L = T.decl_buffer((8, 5, 6), 'float32')\nX[0, 0] = L[0, 0, 0]")
    start = time.process_time()
    result = ScheduleBuilder(module).storage_align("L", axis=0, factor=factor, offset=offset).module
    (shape,) = (buffer.shape for buffer in result.functions[0].buffers if buffer.name == "L")
    rows = integer_value(shape[1])
    assert 6 * rows % factor == offset
    assert 5 <= rows < 5 + factor
    assert time.process_time() - start < 1


@pytest.mark.parametrize(("factor", "offset"), [(10**8, 3), (9, 1), (4, 1)])
def test_rows_of_6_elements_have_no_such_offset(program, factor, offset):
    module = program("L = T.decl_buffer((8, 5, 6), 'float32')\nX[0, 0] = L[0, 0, 0]")
    align = ScheduleBuilder(module).storage_align
    code = code_of(align, "L", axis=0, factor=factor, offset=offset)
    assert code == "schedule.storage_align.shape"


def test_rows_of_a_sparse_buffer_are_not_padded():
    module = parse_module("""
@T.prim_func
def copied(x: T.handle, m: T.int64):
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(m)
    X = T.sp.match_buffer(x, (I, J), "float32")
    L = T.sp.alloc_buffer((I, J), "float32")
    L[0, 0] = X[0, 0]
""")
    builder = ScheduleBuilder(module)
    code = code_of(builder.storage_align, "L", axis=0, factor=16)
    assert code == "schedule.storage_align.sparse"
