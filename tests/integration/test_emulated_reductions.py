"""Reductions in scalable vectors by every reducer, in every dtype, emulated at every vector length.

A lane that is masked has the identity of the reducer. The values are such that any other value in one lane
changes the result: no product is 0, no maximum at least 0, and no minimum at most 0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from gossamer_ir.analysis.statements.reductions import identity
from gossamer_ir.core.dtypes import NUMBERS, DType, vscale_factor
from gossamer_ir.core.operations import REDUCERS
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module, print_expr
from gossamer_schedule import ScheduleBuilder
from tests.fuzzing.execution.compilers import COMPILERS
from tests.integration.scalable_programs import stored

pytestmark = pytest.mark.unserialized

TEXTS = {
    "add": "{0} + {1}", "mul": "{0} * {1}", "min": "T.min({0}, {1})", "max": "T.max({0}, {1})",
    "and": "{0} and {1}", "or": "{0} or {1}",
}  # fmt: skip
UFUNCS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum, "and": np.logical_and,
    "or": np.logical_or,
}  # fmt: skip
OPS = dict.fromkeys(NUMBERS, ("add", "mul", "min", "max")) | {"bool": ("and", "or")}
FORMS, REGISTERS = 3, 4
"""The number of forms of vectors, and the registers of a wide one."""
BLOCK = """
    for i{row} in T.serial(n):
        with T.block("block{row}"):
            vi = T.axis.reduce(n, i{row})
            with T.init():
                Y[{row}] = {start}
            Y[{row}] = {value}
"""


def reductions(dtype: str) -> tuple[Module, int]:
    """A program that reduces each row of X by each reducer in each form of vectors, and its native lanes."""
    lanes = vscale_factor(dtype)
    forms = (
        ("native", "masked"),
        ("native", "scalar"),
        (f"{REGISTERS * lanes} * T.vscale()", "masked"),
    )
    rows = [(op, *form) for op in OPS[dtype] for form in forms]
    blocks = [
        BLOCK.format(
            row=row,
            start=print_expr(identity(op, dtype)),
            value=TEXTS[op].format(f"Y[{row}]", f"X[{OPS[dtype].index(op)}, vi]"),
        )
        for row, (op, _, _) in enumerate(rows)
    ]
    module = parse_module(f"""
@T.prim_func
def reduce(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, ({len(OPS[dtype])}, n), "{dtype}")
    Y = T.match_buffer(y, ({len(rows)},), "{dtype}")
{"".join(blocks)}""")
    builder = ScheduleBuilder(module)
    for row, (_, count, remainder) in enumerate(rows):
        builder.vectorize(f"i{row}", lanes=count, remainder=remainder)
    return builder.module, lanes


@cache
def values_of(op: str, count: int) -> np.ndarray:
    """Small integers, whose sums and products are exact in every dtype of floats; integers wrap."""
    random = np.random.default_rng(count)
    match op:
        case "add":
            return random.integers(0, 2, count)
        case "mul":
            # At most 64, since products of bfloat16 are exact up to 256.
            return np.where(np.arange(count) % max(count // 6, 1) == 1, 2, 1)
        case "min":
            return random.integers(3, 9, count)
        case "max":
            return random.integers(-9, -3, count)
        case "and":
            return np.arange(count) != count - 1
    return np.arange(count) == count - 1


@pytest.mark.parametrize("dtype", OPS)
def test_reductions_are_right_at_every_vector_length(dtype, emulated_backend):
    module, factor = reductions(dtype)
    compiler = COMPILERS[emulated_backend]
    *_, flat = compiler.stages(module)
    for bits, kernel in compiler.kernels_by_bits(flat):
        lanes = factor * bits // 128
        for size in (0, 1, lanes - 1, lanes, lanes + 1, 37, 115):
            values = {op: values_of(op, size) for op in OPS[dtype]}
            results = [reduced(op, each, dtype) for op, each in values.items()]
            expected = np.repeat(np.array(results), FORMS)
            result = np.full_like(expected, 1)
            kernel(x=stored(np.array([*values.values()]), dtype), y=result, n=size)
            np.testing.assert_array_equal(result, expected, err_msg=f"{bits} bits, {size}")


def test_every_reducer_is_here():
    assert {op for ops in OPS.values() for op in ops} == REDUCERS.keys() == TEXTS.keys()


def reduced(op: str, values: np.ndarray, dtype: str) -> Any:
    """The reduction of integers as a dtype stores it; that of none is the identity of the reducer."""
    if not values.size:
        return stored(np.array([REDUCERS[op].identity(DType(dtype))]), dtype)[0]
    if dtype == "bfloat16":
        return stored(np.array([UFUNCS[op].reduce(values)]), dtype)[0]
    return UFUNCS[op].reduce(stored(values, dtype), dtype=dtype)
