"""The rule for sums over dense blocks without features: which programs it takes, and why."""

from __future__ import annotations

import pytest

from gossamer_ir.script import parse_module
from gossamer_ir.transform.retype_module import retype_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Machine
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.library.block_spmv import block_spmv
from gossamer_schedule.rules.schedule_rule import RuleContext

TARGET = Machine()
TEXT = """
@T.prim_func
def bsrmv(a: T.handle, x: T.handle, y: T.handle, p: T.handle, q: T.handle, mb: T.int64, nb: T.int64,
          nnzb: T.int64, bh: T.int64, bw: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    IO = T.sp.dense_fixed(mb)
    JO = T.sp.compressed_varied(IO, (nb, nnzb), (p, q), sorted=False, unique=False)
    II = T.sp.dense_fixed(bh)
    JI = T.sp.dense_fixed(bw)
    N = T.sp.dense_fixed(nb)
    A = T.sp.match_buffer(a, (IO, JO, II, JI), "float32")
    X = T.sp.match_buffer(x, (N, JI), "float32")
    Y = T.sp.match_buffer(y, (IO, II), "float32")
    with T.sp.iteration([IO, JO, II, JI], "SRSR", "bsrmv") as [io, jo, ii, ji]:
        with T.init():
            Y[io, ii] = 0.0
        Y[io, ii] = Y[io, ii] + A[io, jo, ii, ji] * X[jo, ji]
"""
INIT = "        with T.init():\n            Y[io, ii] = 0.0\n"
OTHER_ORDER = TEXT.replace('[IO, JO, II, JI], "SRSR"', '[IO, II, JO, JI], "SSRR"').replace(
    "[io, jo, ii, ji]:", "[io, ii, jo, ji]:"
)


def module_of(text=TEXT, *, height=3, width=3, dtype="float32"):
    module = retype_module(parse_module(text), dtype=dtype, index_dtype="int32")
    sizes = {"bh": height, "bw": width}
    return specialize(module, {name: size for name, size in sizes.items() if size is not None})


def decision(module, target=TARGET):
    report = block_spmv(module, RuleContext(machine=target))
    return None if report is None else report.decisions[0].what


@pytest.mark.parametrize(
    ("height", "width", "dtype", "lanes"),
    [
        (3, 3, "float32", 4),
        (1, 4, "float32", 4),
        (2, 5, "float64", 8),
        (16, 16, "float32", 16),
        (6, 40, "float64", 8),
    ],
)
def test_columns_of_a_block_are_lanes(height, width, dtype, lanes):
    text = decision(module_of(height=height, width=width, dtype=dtype))
    assert text == f"{lanes} columns of a block in lanes, and {height} vectors of partial sums"


@pytest.mark.parametrize("sizes", [(3, 2), (3, 1), (17, 4), (0, 4), (None, 3), (3, None)])
def test_other_sizes_run_in_scalar_code(sizes):
    height, width = sizes
    assert decision(module_of(height=height, width=width)) is None


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace(INIT, ""),
        TEXT.replace("Y[io, ii] + A", "Y[io, ii] - A"),
    ],
)
def test_other_programs_are_not_matched(text):
    assert decision(module_of(text)) is None


def test_the_axes_may_be_in_any_order():
    text = decision(module_of(OTHER_ORDER))
    assert text == "4 columns of a block in lanes, and 3 vectors of partial sums"


def test_the_default_schedule_says_why():
    report = schedule_report(module_of(), TARGET)
    assert report.rule == "block_spmv"
    assert all(choice.why for choice in report.decisions)
