"""The rule for products with blocks by an intrinsic: the programs that it recognizes, and right results."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from block_programs import COORDINATE, LOOP
from msgspec.structs import replace

from gossamer_ir.interchange.records import Intrinsic
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Machine
from gossamer_schedule import replay
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.decisions.scalable_vectors.block_product import block_product
from gossamer_schedule.rules.library.tensorized_block_spmm import MIN_TENSORIZED_ROWS

INIT = "        with T.init():\n            C[io, ii, k] = 0.0\n"
LOOP_INIT = """                            with T.init():
                                C_data[vio, vii, vk] = 0.0
"""
TEXT = """
@T.prim_func
def product(a: T.handle, b: T.handle, c: T.handle,
            q: T.int64, m: T.int64, n: T.int64, k: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (q, m, n), "float32")
    B = T.match_buffer(b, (q, n, k), "float32")
    C = T.match_buffer(c, (m, k), "float32")
    for h, p, i, j in T.grid(q, n, m, k):
        with T.block("product"):
            vh, vp, vi, vj = T.axis.remap("RRSS", [h, p, i, j])
            C[vi, vj] = C[vi, vj] + A[vh, vi, vp] * B[vh, vp, vj]
"""
PRODUCT = Intrinsic("product", TEXT, TEXT)
MACHINE = Machine(
    min_vector_bits=128,
    is_scalable=True,
    fixed_vscale=None,
    block_products=(("float32", "product"),),
)


def program(text=COORDINATE, **sizes):
    return specialize(parse_module(text), sizes)


def rule_of(module, machine=MACHINE):
    return schedule_report(module, machine).rule


OTHERS = {
    "a product of three": COORDINATE.replace("* B[jo, ji, k]", "* B[jo, ji, k] * 2.0"),
    "a maximum": COORDINATE.replace("C[io, ii, k] + A", "T.max(C[io, ii, k], A").replace(
        "B[jo, ji, k]\n", "B[jo, ji, k])\n"
    ),
    "a difference": COORDINATE.replace("+ A[", "- A["),
    "a sum": COORDINATE.replace("ji] * B", "ji] + B"),
    "a product of blocks": COORDINATE.replace("* B[jo, ji, k]", "* A[io, jo, ii, ji]"),
    "an operand that depends on the row": COORDINATE.replace("B[jo, ji, k]", "B[jo, ii, k]"),
    "blocks that are transposed": COORDINATE.replace("A[io, jo, ii, ji]", "A[io, jo, ji, ii]"),
    "float64": COORDINATE.replace("float32", "float64"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_programs_keep_their_rules(case):
    assert rule_of(program(OTHERS[case])) != "tensorized_block_spmm"


def test_factors_may_be_in_any_order():
    swapped = COORDINATE.replace(
        "A[io, jo, ii, ji] * B[jo, ji, k]", "B[jo, ji, k] * A[io, jo, ii, ji]"
    )
    for text in (COORDINATE, swapped):
        pattern = block_product(program(text))
        assert (pattern.operands, pattern.feature, pattern.has_init) == ("float32", "k", True)
        assert rule_of(program(text)) == "tensorized_block_spmm"


@pytest.mark.parametrize(
    ("sizes", "is_used"),
    [
        ({"bh": MIN_TENSORIZED_ROWS}, True),
        ({"bh": MIN_TENSORIZED_ROWS - 1}, False),
        ({"bw": 1}, False),
        ({"feat": 1}, False),
        ({"feat": 0}, False),
        ({"bh": 16, "bw": 2, "feat": 3}, True),
    ],
    ids=str,
)
def test_blocks_that_are_too_small_are_multiplied_by_vectors(sizes, is_used):
    assert (rule_of(program(**sizes)) == "tensorized_block_spmm") == is_used


def test_machines_without_the_intrinsic_do_not_use_it():
    half = Machine(is_scalable=True, block_products=(("float16", "product"),))
    for machine in (Machine(), half):
        assert rule_of(program(), machine) == "block_spmm"


@pytest.mark.parametrize(
    ("dtype", "bits", "is_used"),
    [("float32", 128, False), ("float32", 256, True), ("float16", 128, True)],
)
def test_short_vectors_multiply_without_matrix_registers(dtype, bits, is_used):
    text = COORDINATE
    for operand in ("(IO, JO, II, JI)", "(JO_detach, JI, K)"):
        text = text.replace(f'{operand}, "float32"', f'{operand}, "{dtype}"')
    if dtype == "float16":
        for element in ("A[io, jo, ii, ji]", "B[jo, ji, k]"):
            text = text.replace(element, f'T.cast({element}, "float32")')
    machine = replace(MACHINE, block_products=((dtype, "product"),), min_product_bits=bits)
    assert (rule_of(program(text), machine) == "tensorized_block_spmm") == is_used


def test_the_report_names_the_intrinsic_and_the_reason():
    report = schedule_report(program(bh=8), MACHINE)
    (product,) = (each for each in report.decisions if each.what.endswith("by product"))
    assert "blocks have 8 rows" in product.why
    assert "with float32 it pays for vectors of 256 bits or more" in product.why
    assert [step.op for step in product.steps] == ["sparse_tensorize"]


@pytest.mark.parametrize("init", [INIT, ""], ids=["with an init", "without"])
@pytest.mark.parametrize("lengths", [(2, 0, 3), (0, 0), ()], ids=str)
def test_results_are_those_of_numpy(lengths, init):
    schedule = schedule_report(program(COORDINATE.replace(INIT, init)), MACHINE).schedule
    loops = program(LOOP if init else LOOP.replace(LOOP_INIT, ""))
    scheduled = replay(loops, schedule.loop, intrinsics=(PRODUCT,))
    random = np.random.default_rng(len(lengths))
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    indices = np.concatenate([np.arange(count) for count in (*lengths, 0)]).astype(np.int32)
    a = random.integers(-3, 4, (len(indices), 3, 2)).astype(np.float32)
    b = random.integers(-3, 4, (4, 2, 5)).astype(np.float32)
    c = random.integers(-3, 4, (len(lengths), 3, 5)).astype(np.float32)
    expected = c * (not init)
    for row, (begin, end) in enumerate(pairwise(indptr)):
        expected[row] += np.einsum("bij,bjk->ik", a[begin:end], b[indices[begin:end]])
    arguments = {
        "a": a, "b": b, "c": c, "indptr": indptr, "indices": indices, "mb": len(lengths), "nb": 4,
        "nnzb": len(indices), "bh": 3, "bw": 2, "feat": 5,
    }  # fmt: skip
    run(scheduled, arguments)
    np.testing.assert_array_equal(arguments["c"], expected)
