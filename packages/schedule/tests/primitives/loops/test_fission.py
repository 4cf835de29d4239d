"""`fission`: loops are distributed over their statements only in an order that dependences allow."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from nest_programs import COPY
from program_results import same
from refused import reason_of
from refused_programs import SHRINKING

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply, get_loops
from gossamer_testkit import examples


def pair(first: str, second: str, extent: str = "4") -> str:
    return f"for i in T.serial({extent}):\n    {first}\n    {second}\n"


LEGAL = {
    "the same element": ("V[i] = W[i]", "Z[i, 0] = V[i]"),
    "an earlier element": ("V[i + 1] = W[i]", "Z[i, 0] = V[i]"),
    "two elements of one": ("V[i + 2] = W[i]", "Z[i, 0] = V[i] + V[i + 1]"),
    "backwards": ("V[9 - i] = W[i]", "Z[i, 0] = V[10 - i]"),
    "other residues": ("V[2 * i] = W[i]", "Z[i, 0] = V[2 * i + 1]"),
    "another row": ("X[i, 0] = W[i]", "Z[i, 0] = X[i, 1]"),
    "beyond the last iteration": ("V[i] = W[i]", "Z[i, 0] = V[i + 4]"),
    "only reads": ("V[i] = W[0]", "Z[i, 0] = W[0]"),
    "a sum of its own": ("V[0] = V[0] + W[i]", "Z[i, 0] = W[i]"),
    "an index that the other one writes": ("V[T.int64(P[i])] = W[i]", "P[i] = 2"),
    "symbolic offsets": ("V[i + n] = W[i]", "Z[i, 0] = V[i + n]"),
}


@pytest.mark.parametrize("name", LEGAL)
@pytest.mark.parametrize("extent", ["4", "n", "T.int64(P[0])", "n - 9"])
def test_statements_that_do_not_look_ahead_run_apart(program, name, extent):
    if name == "beyond the last iteration" and extent != "4":
        extent = "2"
    if "P[i] = 2" in LEGAL[name]:
        extent = extent.replace("T.int64(P[0])", "6")
    module = program(pair(*LEGAL[name], extent))
    builder = ScheduleBuilder(module).fission("i")
    assert get_loops(builder.module) == builder.names == ("i_0", "i_1")
    assert same(builder, module)


FALSE = {
    "a later element": ("V[i] = W[i]", "W[i + 32] = V[i + 1]"),
    "an element that is overwritten": ("W[i] = V[i + 1]", "V[i + 2] = W[i + 32]"),
    "what is read later": ("W[i] = V[i]", "V[i + 3] = 0.0"),
    "one element": ("V[0] = W[i]", "W[i + 32] = V[0]"),
    "backwards": ("V[9 - i] = W[i]", "W[i + 32] = V[8 - i]"),
}
UNKNOWN = {
    "through an index array": ("V[T.int64(P[i])] = W[i]", "W[i + 32] = V[T.int64(P[i + 1])]"),
    "symbolic offsets": ("V[i + n] = W[i]", "W[i + 32] = V[i]"),
    "one that is gathered": ("V[i] = W[i]", "Z[i, 0] = V[T.int64(P[i])]"),
}


@pytest.mark.parametrize("name", FALSE)
def test_statements_that_later_iterations_disturb_stay_together(program, name):
    assert (
        reason_of(ScheduleBuilder(program(pair(*FALSE[name]))).fission, "i") == "fission.dependence"
    )


@pytest.mark.parametrize("name", UNKNOWN)
def test_fission_is_refused_if_independence_is_not_proved(program, name):
    assert (
        reason_of(ScheduleBuilder(program(pair(*UNKNOWN[name]))).fission, "i")
        == "fission.not_proved"
    )


def test_a_dependence_that_a_condition_may_prevent_is_not_proved(program):
    module = program(pair("V[i] = W[i]", "if n > 9: W[i + 32] = V[i + 1]"))
    assert reason_of(ScheduleBuilder(module).fission, "i") == "fission.not_proved"


THREE = """
for i in T.serial(n):
    for j in T.serial(i):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                V[vi] = 0.0
            V[vi] = V[vi] + X[vi, vj]
    if n > 2:
        W[i] = V[i]
    for k in T.serial(4):
        with T.block("scale"):
            wi, wk = T.axis.remap("SS", [i, k])
            Y[wi, wk] = W[wi] * 2.0
"""


@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize("after", [None, "j"])
def test_parts_of_three(program, n, after):
    module = program(THREE)
    builder = ScheduleBuilder(module).fission("i", after=after)
    assert len(builder.names) == (3 if after is None else 2)
    assert same(builder, module, n=n)


INITS = """
for j in T.serial({terms}):
    for i in T.serial(4):
        with T.block("first"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                V[vi] = 1.0
            V[vi] = V[vi] + X[vi, vj]
    for k in T.serial(4):
        with T.block("second"):
            uk, uj = T.axis.remap("SR", [k, j])
            with T.init():
                {buffer}[uk] = 2.0
            {buffer}[uk] = {buffer}[uk] + Y[uk, uj]
"""


@pytest.mark.parametrize("terms", ["0", "3", "n"])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_each_reduction_is_initialized_before_its_loop(program, terms, n):
    module = program(INITS.format(terms=terms, buffer="W"))
    assert same(ScheduleBuilder(module).fission("j"), module, n=n)
    one = program(INITS.format(terms=terms, buffer="V"))
    assert reason_of(ScheduleBuilder(one).fission, "j") == "fission.not_proved"


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_rows_of_a_decomposed_reduction_are_separated(rows):
    builder = (
        ScheduleBuilder(examples.ROW_SUM).decompose_reduction("row_sum", loop="j").fission("i")
    )
    indptr = np.array([0, 0, 3, 3, 5])[: rows + 1]
    a, y = np.arange(5, dtype=np.float32), np.full(rows, 77, np.float32)
    run(verify(builder.module), {"indptr": indptr, "a": a, "y": y, "m": rows, "nnz": 5})
    wanted = [a[start:end].sum() for start, end in itertools.pairwise(indptr)]
    np.testing.assert_array_equal(y, np.array(wanted, np.float32))


TWO_COPIES = (
    COPY
    + """
    for k in T.serial(8):
        with T.block("second"):
            wi, wk = T.axis.remap("SS", [i, k])
            Z[wi, wk] = Y[wi, wk]
"""
)
CHAINED = """
for i in T.serial(7):
    with T.block("first"):
        vi = T.axis.spatial(7, i)
        V[vi] = W[vi]
    with T.block("second"):
        wi = T.axis.spatial(7, i)
        W[wi + 1] = V[wi + 1] * 2.0
"""
NAMED = """
for i in T.serial(8):
    t: T.float32 = V[i]
    V[i] = 0.0
    W[i] = t
"""
SUMMED_AFTER = """
for j in T.serial(8):
    with T.block("first"):
        vj = T.axis.spatial(8, j)
        W[vj] = V[vj + 8]
    with T.block("sum"):
        uj = T.axis.reduce(8, j)
        with T.init():
            V[8] = 0.0
        V[8] = V[8] + X[0, uj]
"""
REFUSED = [
    ("fission.parts", COPY, {"loop": "i"}),
    ("fission.parts", TWO_COPIES, {"loop": "i", "after": "k"}),
    ("fission.scope", NAMED, {"loop": "i"}),
    ("fission.dependence", CHAINED, {"loop": "i"}),
    ("fission.not_proved", CHAINED.replace("wi + 1", "T.int64(P[wi])"), {"loop": "i"}),
    ("fission.not_proved", SUMMED_AFTER, {"loop": "j"}),
    ("fission.not_proved", SHRINKING, {"loop": "i"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("fission", arguments)) == code
