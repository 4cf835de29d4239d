"""The rule for N:M matrices on CPUs: its tiles, what it leaves to others, and unchanged results."""

from __future__ import annotations

import numpy as np
import pytest
from n_m_programs import INT4, LOOP, PROGRAM, TF32, VARIANTS

from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.verify import verify
from gossamer_machine import Machine
from gossamer_schedule import replay
from gossamer_schedule.rules import schedule_report

SCALABLE = Machine(min_vector_bits=128, is_scalable=True, fixed_vscale=None)


CPU = Machine()


def report_of(text, machine=CPU, **sizes):
    return schedule_report(specialize(parse_module(text), sizes), machine)


def splits(report):
    return [step.args["factors"] for step in report.schedule.loop if step.op == "split"]


@pytest.mark.parametrize(
    ("features", "factors"),
    [
        (None, [(None, 4, 16), (4, 16)]),
        (8, []),
        (100, [(7, 16), (7, 16)]),
        (300, [(3, 8, 16), (8, 16)]),
    ],
)
def test_a_tile_of_features_is_in_registers(features, factors):
    report = report_of(PROGRAM, **({} if features is None else {"n": features}))
    assert report.rule == "n_m_spmm"
    assert splits(report) == factors


def test_vectors_may_be_scalable():
    assert splits(report_of(PROGRAM, SCALABLE))[0] == (None, 4, "4 * T.vscale()")


@pytest.mark.parametrize("name", VARIANTS)
def test_operands_that_are_not_transposed_are_matched(name):
    rule = report_of(VARIANTS[name]).rule
    # Without an init, it is a program that updates features.
    assert (rule == "n_m_spmm") == (name in ("as written", "int8"))


@pytest.mark.parametrize(("text", "unrolled"), [(TF32, ["s"]), (INT4, ["s", "p"])])
def test_all_elements_of_a_group_are_unrolled(text, unrolled):
    report = report_of(text, n=100)
    assert report.rule == "n_m_spmm"
    loops = [step.args["loop"] for step in report.schedule.loop if step.op == "unroll"]
    assert loops[-len(unrolled) :] == unrolled


def test_no_features_are_not_matched():
    assert report_of(PROGRAM, n=0).rule is None


@pytest.mark.parametrize("features", [1, 3, 40])
@pytest.mark.parametrize("machine", [CPU, SCALABLE], ids=["fixed", "scalable"])
def test_results_are_those_of_the_program(features, machine):
    module = specialize(parse_module(LOOP), {"n": features})
    report = report_of(PROGRAM, machine, n=features)
    scheduled = verify(replay(module, report.schedule.loop))
    rng = np.random.default_rng(0)
    arguments = {
        "a": rng.integers(-4, 5, (3, 2, 2)).astype(np.float16),
        "e": np.sort(np.argsort(rng.random((3, 2, 4)))[..., :2]).astype(np.uint8),
        "b": rng.integers(-4, 5, (8, features)).astype(np.float16),
        "m": 3,
        "g": 2,
    }
    results = []
    for each in (module, scheduled):
        c = np.full((3, features), np.nan, np.float32)
        run(each, {**arguments, "c": c})
        results.append(c)
    np.testing.assert_array_equal(*results)
