"""Iterations become loop nests around blocks: text after the pass, and results of the coordinate stage."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_lower import lower_iterations
from gossamer_testkit.show import body_text

HEAD = """
@T.prim_func
def f(a: T.handle, x: T.handle, y: T.handle, p: T.handle, q: T.handle, m: T.int64, n: T.int64,
      nnz: T.int64):
    ATTRIBUTES
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (N,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
"""
PRODUCT = """
    with T.sp.iteration([I, J], "SR", "product") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j] * X[j]
"""
SCALED = """
    with T.sp.iteration([T.sp.fuse(I, J)], "SS", "scaled") as [i, j]:
        A[i, j] = A[i, j] * X[j]
"""
COLUMNS = """
    with T.sp.iteration([I, J], "RS", "columns") as [i, j]:
        X[j] = X[j] + A[i, j]
"""


def program(*iterations, attributes="pass"):
    stated = "" if attributes == "pass" else f"    T.func_attr({attributes})\n"
    return parse_module(HEAD.replace("    ATTRIBUTES\n", stated) + "".join(iterations))


CASES = {
    "a reduction": (
        PRODUCT,
        """
for i in T.serial(m):
    for j in T.serial(J_indptr[i + 1] - J_indptr[i]):
        with T.block("product"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                Y[vi] = 0.0
            Y[vi] = Y[vi] + A[vi, vj] * X[J_indices[vi, vj]]
""",
    ),
    "an update of coordinates": (
        COLUMNS,
        """
for i in T.serial(m):
    for j in T.serial(J_indptr[i + 1] - J_indptr[i]):
        with T.block("columns"):
            vi, vj = T.axis.remap("RS", [i, j])
            X[J_indices[vi, vj]] = X[J_indices[vi, vj]] + A[vi, vj]
""",
    ),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_an_iteration_becomes_a_loop_nest(before, after):
    lowered = verify(lower_iterations(program(before)))
    assert lowered.stage == "position"
    text = body_text(lowered)
    for name in ("J_indptr[i + 1]", "J_indptr[i]", "J_indices[vi, vj]"):
        text = text.replace(f"T.int64({name})", name)
    assert text == after.strip("\n")


def test_fused_axes_become_one_loop():
    lines = body_text(lower_iterations(program(SCALED))).splitlines()
    assert [line.strip() for line in lines if "for" in line] == ["for i_j in T.serial(nnz):"]


def test_the_inits_of_parts_run_before_the_first_part():
    second = PRODUCT.replace("product", "again").replace(
        "        with T.init():\n            Y[i] = 0.0\n", ""
    )
    lowered = lower_iterations(program(PRODUCT, second, attributes='{"composable": True}'))
    text = body_text(lowered)
    assert text.index("Y[vi_init] = 0.0") < text.index("A[vi, vj]")
    blocks = [line.strip() for line in text.splitlines() if "T.block" in line]
    assert blocks == [
        'with T.block("product_init"):',
        'with T.block("product"):',
        'with T.block("again"):',
    ]
    assert "composable" not in dict(lowered.functions[0].annotations)


def arguments(lengths, columns=7):
    random, nnz = np.random.default_rng(len(lengths)), sum(lengths)
    held = [np.sort(random.choice(columns, length, replace=False)) for length in lengths]
    return {
        "a": random.integers(-4, 5, nnz).astype("float32"),
        "x": random.integers(-4, 5, columns).astype("float32"),
        "y": np.full(len(lengths), 3, "float32"),
        "p": np.cumsum([0, *lengths]).astype("int32"),
        "q": np.concatenate([*held, []]).astype("int32"),
        "m": len(lengths), "n": columns, "nnz": nnz,
    }  # fmt: skip


@pytest.mark.parametrize("body", [PRODUCT, SCALED, COLUMNS, PRODUCT + SCALED + COLUMNS])
@pytest.mark.parametrize("lengths", [[], [0], [0, 3, 7, 0, 1, 0]])
def test_the_results_are_those_of_the_coordinate_stage(body, lengths):
    module, before, after = program(body), arguments(lengths), arguments(lengths)
    run(module, before)
    run(lower_iterations(module), after)
    for name in "axy":
        np.testing.assert_array_equal(after[name], before[name])


UNSORTED = (
    HEAD.replace("    ATTRIBUTES\n", "").replace("(p, q))", "(p, q), sorted=False)")
    + """
    with T.sp.iteration([I, N], "SR", "dense") as [i, k]:
        Y[i] = Y[i] + A[i, k] * X[k]
"""
)
NO_PARENT = (
    HEAD.replace("    ATTRIBUTES\n", "")
    + """
    with T.sp.iteration([J], "S", "fibers") as [j]:
        X[j] = 1.0
"""
)


@pytest.mark.parametrize(
    ("text", "code"), [(UNSORTED, "unsorted_lookup"), (NO_PARENT, "missing_parent")]
)
def test_what_cannot_be_lowered_is_refused_by_name(text, code):
    with pytest.raises(UnsupportedError) as caught:
        lower_iterations(parse_module(text))
    assert caught.value.code == f"lower.lower_iterations.{code}"
