"""Which accesses get bounds checks: for valid tensors, no inner loop of a corpus program has one."""

from __future__ import annotations

import pytest
from script_runs import program
from sparse_programs import PROGRAMS

from gossamer.compilation.pipeline import flat_module, lower_by_stage
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators import NAMES, operator_named
from gossamer_ir.interchange.records import Schedule
from gossamer_ir.script import parse_module
from gossamer_lower.bounds_checks.report import bounds_checks_of
from gossamer_testkit import script_names

GATHER = """
@T.prim_func
def gather(x: T.handle, y: T.handle, p: T.handle, m: T.int64, n: T.int64) -> None:
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (m, n), "float32")
    P = T.match_buffer(p, (m,), "int32")
    for i in T.serial(m):
        Y[i, 0] = X[P[i]]
        for j in T.serial(m):
            Y[i, 0] = X[P[j]]
"""


GUARDED_INSIDE = {
    "bsr_spmm_loop": "published without facts about its index arrays",
    "bsr_spmm_loop_flattened": "published without facts about its index arrays",
}
"""Scripts with bounds checks in inner loops, and the accesses that are not proved."""


def ways(module):
    """The module at the flat stage, as written and with the schedule of the rules."""
    yield list(lower_by_stage(module, Schedule()))[-1]
    yield flat_module(module)


def guarded_inside(module):
    return [
        (check.buffer, check.loops)
        for flat in ways(module)
        for check in bounds_checks_of(flat)
        if check.is_inner
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("features", [None, 33])
def test_nothing_is_guarded_in_an_operator(name, features):
    module = module_of(operator_named(name).program, Variant(features=features))
    assert [bounds_checks_of(flat) for flat in ways(module)] == [(), ()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_guarded_in_the_inner_loops_of_a_program(name):
    assert guarded_inside(parse_module(PROGRAMS[name].script)) == []


@pytest.mark.parametrize("name", script_names())
def test_nothing_is_guarded_in_the_inner_loops_of_a_script(name):
    guarded = guarded_inside(program(name))
    assert bool(guarded) == (name in GUARDED_INSIDE), guarded


@pytest.mark.parametrize(
    "name", ["features_between_levels", "irregular_batched_matmul", "ragged_attention"]
)
def test_offsets_that_are_sums_of_products_prove_what_loops_access(name):
    result = [result for flat in ways(program(name)) for result in bounds_checks_of(flat)]
    assert [row for row in result if row.loops] == []


def test_a_guard_says_where_it_is_and_what_is_not_proved(command, tmp_path):
    path = tmp_path / "gather.py"
    path.write_text(GATHER)
    output = command("show", str(path), "--guards")
    assert (output.status, output.err) == (0, "")
    first, empty, second, _ = output.out.splitlines()
    assert first == (
        "gather, loop i: X is guarded, not proved: T.int64(P[i]) >= 0, T.int64(P[i]) < n"
    )
    assert empty == "gather, loop i: Y is guarded, not proved: 0 < n"
    assert second.startswith("gather, inner loop i > j: X is guarded, not proved: ")


def test_where_all_is_proved_that_is_said(command):
    output = command("show", "spmm", "--guards")
    assert (output.status, output.out) == (0, "no access is guarded: all are proved in bounds\n")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("spmm",), "option.stage"),
        (("spmm", "--guards", "--stage", "flat"), "option.stage"),
        (("none.py", "--guards"), "option.script"),
        (("nothing", "--guards"), "operator.unknown"),
    ],
)
def test_what_cannot_be_shown_is_refused(words, code, command):
    output = command("show", *words)
    assert (output.status, output.out) == (2, "")
    assert f"[{code}]" in output.err


def test_a_script_is_shown_at_any_stage(command, tmp_path):
    path = tmp_path / "gather.py"
    path.write_text(GATHER)
    assert "T.guard(" in command("show", str(path), "--stage", "flat").out
    assert "T.guard(" not in command("show", str(path), "--stage", "loop").out
