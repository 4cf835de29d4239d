"""Sparse buffers become ordinary ones: text and facts after the pass, and the same results as before it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.verify import verify
from gossamer_lower import lower_buffers, lower_iterations, lower_to_flat

HEAD = """
@T.prim_func
def f(a: T.handle, y: T.handle, ARRAYS, m: T.int64, n: T.int64, nnz: T.int64):
    I = T.sp.dense_fixed(m)
"""
SUMS = """
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([AXES], "KINDS", "sums") as [VARS]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[VARS]
"""


def sums(axes, *, names="I, J", kinds="SR", vars="i, j"):
    arrays = ", ".join(f"{name}: T.handle" for name in "pq" if re.search(rf"\b{name}\b", axes))
    head = HEAD.replace("ARRAYS", arrays) + axes
    head += f'    A = T.sp.match_buffer(a, ({names}), "float32")\n'
    body = SUMS.replace("AXES", names).replace("KINDS", kinds).replace("VARS", vars)
    return lower_iterations(parse_module(head + body))


CSR = "    J = T.sp.compressed_varied(I, (n, nnz), (p, q))\n"
RAGGED = "    J = T.sp.dense_varied(I, (n, nnz), p)\n"
ELL = "    J = T.sp.compressed_fixed(I, (n, 3), q)\n"
BLOCKS = CSR + "    B = T.sp.dense_fixed(2)\n"
CASES = {
    "varied dimensions are one": (
        sums(CSR),
        'A_data = T.match_buffer(a, (nnz,), "float32")',
        "Y_data[vi] = Y_data[vi] + A_data[J_indptr[vi] + vj]",
    ),
    "also without coordinates": (
        sums(RAGGED),
        'A_data = T.match_buffer(a, (nnz,), "float32")',
        "Y_data[vi] = Y_data[vi] + A_data[J_indptr[vi] + vj]",
    ),
    "fixed dimensions stay": (
        sums(ELL),
        'A_data = T.match_buffer(a, (m, 3), "float32")',
        "Y_data[vi] = Y_data[vi] + A_data[vi, vj]",
    ),
    "a fixed dimension after varied ones": (
        sums(BLOCKS, names="I, J, B", kinds="SRR", vars="i, j, b"),
        'A_data = T.match_buffer(a, (nnz, 2), "float32")',
        "Y_data[vi] = Y_data[vi] + A_data[J_indptr[vi] + vj, vb]",
    ),
}


@pytest.mark.parametrize(("module", "declared", "store"), CASES.values(), ids=CASES)
def test_accesses_are_to_elements_of_ordinary_buffers(module, declared, store):
    lowered = verify(lower_buffers(module))
    assert lowered.stage == "loop"
    assert lowered.functions[0].axes == ()
    lines = print_module(lowered).replace("T.int64(J_indptr[vi])", "J_indptr[vi]").splitlines()
    assert declared in [line.strip() for line in lines]
    assert lines[-1].strip() == store


def test_properties_of_axes_are_facts_about_index_arrays():
    text = print_module(lower_buffers(sums(CSR)))
    facts = [line.strip() for line in text.splitlines() if "T.assume" in line]
    assert facts == [
        "T.assume(in_range(J_indptr, 0, nnz + 1))",
        "T.assume(monotone(J_indptr))",
        "T.assume(has_value(J_indptr, 0, 0))",
        "T.assume(has_value(J_indptr, m, nnz))",
        "T.assume(in_range(J_indices, 0, n))",
        "T.assume(sorted_segments(J_indices, J_indptr, unique=True))",
    ]


@pytest.mark.parametrize("module", [case[0] for case in CASES.values()], ids=CASES)
@pytest.mark.parametrize("lengths", [[], [0], [0, 3, 3, 0, 1, 0]])
def test_the_results_stay(module, lengths):
    text, rows, width = print_module(module), len(lengths), 3
    is_padded = "compressed_fixed" in text
    stored = width * rows if is_padded else sum(lengths)
    shape = (stored, 2) if "dense_fixed(2)" in text else (stored,)
    held = [np.arange(width)] * rows if is_padded else [np.arange(length) for length in lengths]
    arguments = {
        "a": np.arange(np.prod(shape), dtype="float32").reshape(shape) - 4,
        "p": np.cumsum([0, *lengths]).astype("int32"),
        "q": np.concatenate([*held, []]).astype("int32"),
        "m": rows, "n": 5, "nnz": stored,
    }  # fmt: skip
    results = []
    for stage in (module, lower_buffers(module), lower_to_flat(lower_buffers(module))):
        y = np.full(rows, np.nan, "float32")
        passed = arguments | {"y": y}
        run(verify(stage), {param.name: passed[param.name] for param in stage.functions[0].params})
        results.append(y)
    for y in results[1:]:
        np.testing.assert_array_equal(y, results[0])
