"""`loop_version`: all versions compute what the original does, and programs that it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from nest_programs import COPY, NESTED_PARTS, SUM
from program_results import same
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit import examples
from gossamer_testkit.show import body_text

MEETING = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SS", [i, j])
            with T.init():
                V[vi + vj] = 0.0
            V[vi + vj] = V[vi + vj] + X[vi, vj]
"""
REFUSED = [
    ("loop_version.condition", COPY, {"name": "i", "condition": "n + 1"}),
    ("loop_version.text", COPY, {"name": "i", "condition": "j == 1"}),
    ("loop_version.not_proved", COPY, {"name": "i", "condition": "P[n] == 1"}),
    ("loop_version.not_proved", MEETING, {"name": "j", "condition": "i == 1"}),
    ("loop_version.init", SUM, {"name": "sum", "condition": "j == 0"}),
    ("loop_version.no_name", COPY, {"name": "nowhere", "condition": "n == 1"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("loop_version", arguments)) == code


@pytest.mark.parametrize("target", ["i", "j", "k", "fill", "use"])
@pytest.mark.parametrize(
    "condition", ["n == 7", "n != 7", "T.int64(P[3]) == 3 and n < 0", "7 == n", "n % 7 == 0"]
)
def test_versions_do_what_the_original_did(program, target, condition):
    module = program(NESTED_PARTS)
    builder = ScheduleBuilder(module).loop_version(target, condition=condition)
    for n in (-(2**63), 0, 7, 2**63 - 1):
        assert same(builder, module, n=n)


def test_a_condition_may_read_what_exists_wherever_it_reads_it(program):
    module = program("""
for i in T.serial(8):
    for j in T.serial(4):
        X[i, j] = X[i, j] * 2.0
""")
    condition = "T.if_then_else({}, P[i - 1], P[i + 1]) > 3"
    assert same(
        ScheduleBuilder(module).loop_version("j", condition=condition.format("i > 0")), module
    )
    refused = reason_of(
        ScheduleBuilder(module).loop_version, "j", condition=condition.format("i > -2")
    )
    assert refused == "loop_version.not_proved"


@pytest.mark.parametrize("n", [0, 31, 32, 33])
def test_a_version_of_a_known_size_needs_no_bounds(n):
    builder = ScheduleBuilder(examples.SCALE).loop_version("i", condition="n == 32")
    fast, slow = builder.names
    builder.split(fast, factors=(None, 8))
    assert "T.where" not in body_text(builder.module)
    builder.split(slow, factors=(None, 8))
    x, y = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    run(verify(builder.module), {"x": x, "y": y, "n": n})
    np.testing.assert_array_equal(y, x * 2)


@pytest.mark.parametrize("n", [0, 8, 12, 16])
@pytest.mark.parametrize("condition", ["n % 8 == 0", "0 == n % 8 and n > 0"])
def test_a_version_of_whole_vectors_needs_no_bounds(n, condition):
    builder = ScheduleBuilder(examples.SCALE).loop_version("i", condition=condition)
    builder.split("i_0", factors=(None, 8))
    assert "T.where" not in body_text(builder.module)
    x, y = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    run(verify(builder.module), {"x": x, "y": y, "n": n})
    np.testing.assert_array_equal(y, x * 2)


def test_equal_floats_are_not_the_same(program):
    text = """
@T.prim_func
def f(y: T.handle, a: T.float32):
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (1,), "float32")
    with T.block("inverse"):
        Y[0] = 1.0 / a
"""
    module = (
        ScheduleBuilder(parse_module(text)).loop_version("inverse", condition="a == 0.0").module
    )
    y = np.zeros(1, np.float32)
    with np.errstate(divide="ignore"):
        run(verify(module), {"y": y, "a": np.float32(-0.0)})
    assert y[0] == -np.inf


@pytest.mark.parametrize(("rows", "condition"), [(5, "m == 5"), (4, "m == 5"), (5, "i % 2 == 0")])
def test_versions_of_a_reduction(spmm, require_spmm, rows, condition):
    for target in ("j", "k", "csrmm"):
        builder = ScheduleBuilder(spmm()).loop_version(target, condition=condition)
        require_spmm(builder.module, 3, rows=rows)


def test_a_loop_feeds_the_version_of_a_block_for_one_of_its_iterations(program):
    """Otherwise the loop would repeat the block, and each repetition would initialize the element anew."""
    module = program("""
for j in T.serial(4):
    for i in T.serial(4):
        with T.block("sum"):
            vj, vi = T.axis.remap("SS", [j, i])
            with T.init():
                V[vi] = 0.0
            V[vi] = V[vi] + X[vi, vj]
""")
    builder = ScheduleBuilder(module).loop_version("sum", condition="i == 2")
    assert 'vj_0, vi_0 = T.axis.remap("SS", [j, i])' in body_text(builder.module)
    assert same(builder, module)


SOMETIMES = """
for t in T.serial(4):
    for i in T.serial(4):
        for j in T.serial(4):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    V[vi] = 0.0
                V[vi] = V[vi] + X[vi, vj]
        W[9] = W[9] + V[i]
        P[8] = 3
"""


@pytest.mark.parametrize("condition", ["t == 1", "P[8] == 3", "i == 1 and n > 3"])
def test_a_sum_that_each_iteration_begins_anew_has_versions(program, condition):
    module = program(SOMETIMES)
    assert same(ScheduleBuilder(module).loop_version("j", condition=condition), module)
