"""Fused axes from script to machine code, with hand-written schedules, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from sparse_programs import SMALL, matrices, values

import gossamer
from gossamer.compilation.build_kernels import KERNELS
from gossamer.compilation.pipeline import lower_by_stage
from gossamer_backend.call.threads import reset_num_threads
from gossamer_ir.interchange.records import Schedule, Step
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Guard, Search
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import diagnostics

KINDS = [(dtype, index) for dtype in ("float32", "float64") for index in ("int32", "int64")]
HEAD = """
@T.prim_func
def main({handles}: T.handle, indptr: T.handle, indices: T.handle,
         m: T.int64, n: T.int64, nnz: T.int64, feat: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 2, "tir.noalias": True}})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), sorted=False, unique=False)
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(feat)
"""
SDDMM = (
    HEAD.format(handles="x: T.handle, y: T.handle, out")
    + """
    X = T.sp.match_buffer(x, (I, K), "float32")
    Y = T.sp.match_buffer(y, (N, K), "float32")
    Out = T.sp.match_buffer(out, (I, J), "float32")
    with T.sp.iteration([I, J, K], "SSR", "sddmm") as [i, j, k]:
        with T.init():
            Out[i, j] = 0.0
        Out[i, j] = Out[i, j] + X[i, k] * Y[j, k]
"""
)
SCALED = (
    HEAD.format(handles="a: T.handle, x: T.handle, y: T.handle, out")
    + """
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (I,), "float32")
    Y = T.sp.match_buffer(y, (N,), "float32")
    Out = T.sp.match_buffer(out, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "scaled") as [i, j]:
        Out[i, j] = A[i, j] * X[i] + Y[j]
"""
)
PRODUCT = (
    HEAD.format(handles="a: T.handle, x: T.handle, y: T.handle, out")
    + """
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (I, K), "float32")
    Y = T.sp.match_buffer(y, (N, K), "float32")
    Out = T.sp.match_buffer(out, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "product") as [i, j, k]:
        with T.init():
            Out[i, k] = X[i, k]
        Out[i, k] = Out[i, k] + A[i, j] * Y[j, k]
"""
)


def schedule(iteration, *loop):
    """Fuses rows and columns, then applies these steps at the loop stage."""
    fuse = Step("sparse_fuse", {"iteration": iteration, "axes": ("I", "J")})
    return Schedule(coordinate=(fuse,), loop=tuple(Step(op, args) for op, args in loop))


def split(loop, *factors):
    return ("split", {"loop": loop, "factors": (None, *factors)})


SCHEDULES = {
    "plain": (SDDMM, "sddmm", ()),
    "parallel": (SDDMM, "sddmm", (("parallel", {"loop": "i_j"}),)),
    "parallel blocks": (
        SDDMM,
        "sddmm",
        (split("i_j", 8, 4), ("parallel", {"loop": "i_j_0", "grain": 1})),
    ),
    "vectors": (
        SDDMM,
        "sddmm",
        (
            split("i_j", 16),
            split("k", 8),
            ("vectorize", {"loop": "k_1"}),
            ("parallel", {"loop": "i_j_0", "grain": 1}),
        ),
    ),
    "groups": (
        SDDMM,
        "sddmm",
        (
            split("i_j", 4, 4),
            split("k", 8),
            ("reorder", {"loops": ("k_0", "i_j_2", "k_1")}),
            ("vectorize", {"loop": "k_1"}),
            ("unroll", {"loop": "i_j_2"}),
            ("parallel", {"loop": "i_j_0", "grain": 1}),
        ),
    ),
    "groups in registers": (
        SDDMM,
        "sddmm",
        (
            ("cache_write", {"block": "sddmm", "buffer": "Out_data", "scope": "local"}),
            split("i_j", 16, 4),
            ("reverse_compute_at", {"block": "sddmm_Out_data_local", "loop": "i_j_1"}),
            split("k", 8),
            ("reorder", {"loops": ("k_0", "i_j_2", "k_1")}),
            ("vectorize", {"loop": "k_1"}),
            ("unroll", {"loop": "i_j_2"}),
            ("parallel", {"loop": "i_j_0", "grain": 1}),
        ),
    ),
    "scaled": (SCALED, "scaled", (split("i_j", 4), ("unroll", {"loop": "i_j_1"}))),
    "scaled in parallel": (SCALED, "scaled", (("parallel", {"loop": "i_j", "grain": 1}),)),
    "rows are reduced": (PRODUCT, "product", ()),
    "rows are reduced in vectors": (
        PRODUCT,
        "product",
        (split("k", 8), ("vectorize", {"loop": "k_1"})),
    ),
    "rows are reduced in parallel, with copies": (
        PRODUCT,
        "product",
        (("parallel_reduction", {"loop": "i_j", "parts": 3}),),
    ),
    "rows are reduced in parallel, in order": (
        PRODUCT,
        "product",
        (
            split("k", 8),
            ("vectorize", {"loop": "k_1"}),
            ("parallel_reduction", {"loop": "i_j", "form": "segmented", "parts": 5}),
        ),
    ),
}


@pytest.fixture(autouse=True)
def as_many_threads_as_before():
    yield
    reset_num_threads()


def module_of(script, dtype="float32", index="int32"):
    module = parse_module(script)
    names = {buffer.name: dtype for buffer in module.functions[0].buffers}
    return specialize(module, {}, dtypes=names | {"J": index})


def call_of(script, matrix, features):
    """The arguments, and the expected result in float64."""
    dtype = matrix.data.dtype
    x = values((matrix.shape[0], features), dtype)
    y = values((matrix.shape[1], features), dtype)[:, ::-1].copy()
    a, wide_x, wide_y = matrix.data.astype(float), x.astype(float), y.astype(float)
    if "sddmm" in script:
        expected = (wide_x[matrix.rows] * wide_y[matrix.indices]).sum(axis=1)
    elif "scaled" in script:
        x, y = x[:, 0].copy(), y[:, 0].copy()
        expected = a * wide_x[matrix.rows, 0] + wide_y[matrix.indices, 0]
    else:
        expected = wide_x.copy()
        np.add.at(expected, matrix.rows, a[:, None] * wide_y[matrix.indices])
    arguments = {
        "x": x, "y": y, "a": matrix.data, "out": np.full(expected.shape, np.nan, dtype),
        "indptr": matrix.indptr, "indices": matrix.indices,
        "m": matrix.shape[0], "n": matrix.shape[1], "nnz": len(matrix.indices), "feat": features,
    }  # fmt: skip
    return arguments, expected


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_stage_means_the_same(name):
    script, iteration, steps = SCHEDULES[name]
    module = module_of(script, "float64", "int64")
    for lowered in lower_by_stage(module, schedule(iteration, *steps)):
        assert diagnostics(lowered) == (), lowered.stage
        for matrix in matrices("float64", "int64"):
            if matrix.name in SMALL:
                arguments, expected = call_of(script, matrix, 5)
                (entry,) = (f for f in lowered.functions if f.name == lowered.entry)
                run(lowered, {param.name: arguments[param.name] for param in entry.params})
                np.testing.assert_array_equal(
                    arguments["out"], expected, f"{matrix.name}, {lowered.stage}"
                )


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("name", SCHEDULES)
def test_kernels_are_exact(name, dtype, index, threads):
    script, iteration, steps = SCHEDULES[name]
    gossamer.set_num_threads(threads)
    module = module_of(script, dtype, index)
    kernel = KERNELS.build_module(module, schedule=schedule(iteration, *steps)).kernel
    names = [param.name for param in module.functions[0].params]
    for matrix in matrices(dtype, index):
        for features in (1, 24):
            arguments, expected = call_of(script, matrix, features)
            kernel(**{name: arguments[name] for name in names})
            np.testing.assert_array_equal(arguments["out"], expected, matrix.name)


@pytest.mark.parametrize("name", SCHEDULES)
def test_nothing_is_guarded_and_nothing_is_searched_in_the_end(name):
    script, iteration, steps = SCHEDULES[name]
    *_, flat = lower_by_stage(module_of(script), schedule(iteration, *steps))
    assert not any(isinstance(node, (Guard, Search)) for node in walk(flat))


TREE = """
@T.prim_func
def main(a: T.handle, x: T.handle, out: T.handle, p: T.handle, q: T.handle, p2: T.handle,
         m: T.int64, n: T.int64, nnz: T.int64, nnz2: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q), sorted=False, unique=False)
    L = T.sp.dense_varied(J, (7, nnz2), p2)
    A = T.sp.match_buffer(a, (I, J, L), "float32")
    X = T.sp.match_buffer(x, (I, J), "float32")
    Out = T.sp.match_buffer(out, (I, J, L), "float32")
    with T.sp.iteration([AXES], "SSS", "tree") as [i, j, l]:
        Out[i, j, l] = A[i, j, l] * X[i, j] + T.cast(l + i, "float32")
"""


@pytest.mark.parametrize("axes", ["T.sp.fuse(I, J, L)", "I, T.sp.fuse(J, L)", "T.sp.fuse(I, J), L"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_trees_of_three_axes(axes, index):
    module = parse_module(TREE.replace("AXES", axes))
    module = specialize(module, {}, dtypes={"J": index, "L": index})
    kernel = KERNELS.build_module(module).kernel
    for matrix in matrices("float32", index):
        nnz = len(matrix.indices)
        counts = np.arange(nnz) * 5 % 7
        p2 = np.concatenate([[0], np.cumsum(counts)]).astype(index)
        parents = np.repeat(np.arange(nnz), counts)
        a, out = values((len(parents),), "float32"), np.full(len(parents), np.nan, "float32")
        leaves = np.arange(len(parents)) - p2[parents]
        kernel(a=a, x=matrix.data, out=out, p=matrix.indptr, q=matrix.indices, p2=p2,
               m=matrix.shape[0], n=matrix.shape[1], nnz=nnz, nnz2=len(a))  # fmt: skip
        expected = a * matrix.data[parents] + leaves + matrix.rows[parents]
        np.testing.assert_array_equal(out, expected, matrix.name)
