"""`share_gathers`: a gather takes the elements of the one before if indices are equal, with equal results."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import IfThenElse
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import collect
from gossamer_ir.verify import verify
from gossamer_lower import share_gathers

HEADER = """
@T.prim_func
def main(x: T.handle, j: T.handle, u: T.handle, p: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (9,), "float32")
    J = T.match_buffer(j, (24,), "int32")
    U = T.match_buffer(u, (24,), "uint32")
    P = T.match_buffer(p, (6,), "int32")
    Y = T.match_buffer(y, (24,), "float32")
"""
LOOP = 'for i in T.serial(n, annotations={"equal_indices": True}):'
ZEROS = "T.broadcast(0.0, 4)"


def run_of(row):
    return f"T.ramp(i * 12 + {row} * 4, 1, 4)"


def gather(row, *, indices="J", zero="T.int32(0)", masked=True, index_mask=None):
    """Return the text of a gather by the indices of a row of 4, as many of them as P says."""
    mask = f"T.ramp(0, 1, 4) < T.broadcast(T.int64(P[i * 3 + {row}]), 4)"
    if not masked:
        return f'X[T.cast({indices}[{run_of(row)}], "int64x4")]'
    rest = f"predicate={index_mask or mask}, passthrough=T.broadcast({zero}, 4)"
    vector = f"T.load({indices}, {run_of(row)}, {rest})"
    return f'T.load(X, T.cast({vector}, "int64x4"), predicate={mask}, passthrough={ZEROS})'


def rows(*values, loop=LOOP):
    """Return a loop that stores vectors into the rows of Y."""
    stores = (f"    Y[{run_of(row)}] = {value}" for row, value in enumerate(values))
    return "\n".join((loop, *stores))


SHARED = {
    "masked": (rows(*map(gather, range(3))), 2),
    "not masked": (rows(*(gather(row, masked=False) for row in range(3))), 2),
    "with one that is not masked": (rows(gather(0, masked=False), gather(1), gather(2)), 1),
    "in an operand": (rows(*(f"{gather(row)} * T.broadcast(2.0, 4)" for row in range(2))), 1),
    "in a variable": (f"{LOOP}\n    v: T.float32x4 = {gather(0)}\n    Y[{run_of(0)}] = v * {gather(1)}", 1),
    "in one statement": (rows(f"{gather(0)} * {gather(1)}"), 1),
    "unsigned and not masked": (rows(*(gather(row, indices="U", masked=False) for row in range(2))), 1),
    "with one by other indices": (rows(gather(0), gather(1, indices="U", masked=False), gather(2)), 1),
}  # fmt: skip
UNSIGNED = {"indices": "U", "zero": "T.uint32(0)"}
LEFT = {
    "one gather": rows(gather(0)),
    "unsigned indices under a mask": rows(gather(0, **UNSIGNED), gather(1, **UNSIGNED)),
    "indices under another mask": rows(
        *(gather(row, index_mask="T.broadcast(True, 4)") for row in range(2))
    ),
    "an array that is written": f"{rows(gather(0), gather(1))}\n    X[0] = X[0] * 2.0",
    "indices that are written": f"{rows(gather(0), gather(1))}\n    J[0] = T.int32(0)",
    "indices that are computed": rows(
        *(f"X[J[{run_of(row)}] + J[{run_of(row)}] - J[{run_of(row)}]]" for row in range(2))
    ),
    "a choice": rows(*(f"T.if_then_else(n > 1, {gather(row)}, {ZEROS})" for row in range(2))),
    "an inner loop": f"{LOOP}\n    for k in T.serial(2):\n        Y[{run_of(0)}] = {gather(0)} * {gather(1)}",
    "the annotation false": rows(gather(0), gather(1), loop=LOOP.replace("True", "False")),
}  # fmt: skip
COLUMNS = {
    "equal": [1, 3, 4, 8] * 6,
    "different": [1, 3, 4, 8, 1, 3, 5, 8, 2, 3, 5, 8] * 2,
    "the first two equal": [0, 1, 2, 3] * 2 + [4, 5, 6, 7] + [8, 8, 8, 8] * 2 + [8, 8, 8, 7],
    # A lane that is not enabled in the first row must not count as one with the column 0.
    "0 in lanes that others do not have": [5, 0, 0, 0] * 6,
}
LENGTHS = ([4] * 6, [3] * 6, [0] * 6, [1, 4, 4, 4, 1, 4], [4, 1, 2, 0, 3, 4])


def module_of(body):
    return parse_module(HEADER + "\n".join("    " + line for line in body.splitlines()) + "\n")


def results(module, columns, lengths):
    y = np.zeros(24, np.float32)
    arrays = {"x": np.arange(1, 10, dtype=np.float32), "p": np.array(lengths, np.int32), "y": y}
    run(
        module,
        {**arrays, "j": np.array(columns, np.int32), "u": np.array(columns, np.uint32), "n": 2},
    )
    return y.tolist()


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("name", SHARED)
def test_results_are_the_same(name, columns):
    body, shared = SHARED[name]
    before = module_of(body)
    after = verify(share_gathers(before))
    assert len(set(collect(IfThenElse, after))) == shared
    for lengths in LENGTHS:
        expected = results(before, COLUMNS[columns], lengths)
        assert results(after, COLUMNS[columns], lengths) == expected


@pytest.mark.parametrize("name", LEFT)
def test_other_loops_only_lose_the_annotation(name):
    before = module_of(LEFT[name])
    plain = module_of(LEFT[name].replace(', annotations={"equal_indices": True}', ""))
    plain = plain if "False" not in LEFT[name] else share_gathers(plain)
    assert share_gathers(before) == plain


def test_loops_without_the_annotation_stay():
    module = module_of(rows(gather(0), gather(1), loop="for i in T.serial(n):"))
    assert share_gathers(module) == module
