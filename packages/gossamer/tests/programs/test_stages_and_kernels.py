"""Programs from script to machine code: every stage and the kernel agree with NumPy in float64."""

from __future__ import annotations

import re
from itertools import cycle

import numpy as np
import pytest
from sparse_programs import ELEMENTS, PROGRAMS, SMALL, TIMES_DENSE, TIMES_VECTOR, matrices

import gossamer
from gossamer.compilation.build_kernels import KERNELS
from gossamer.compilation.pipeline import lower_by_stage, schedule_for_target
from gossamer_backend.call.threads import reset_num_threads
from gossamer_ir.errors import UserError
from gossamer_ir.interchange.records import Stats, Target
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.transform.retype_module import retype_module
from gossamer_ir.transform.specialize import specialize

pytestmark = pytest.mark.unserialized

TARGET = Target("generic-cpu")
KINDS = [(dtype, index) for dtype in ("float32", "float64") for index in ("int32", "int64")]
MEANS = {"short rows": 2.0, "middle rows": 20.0, "long rows": 100.0}


@pytest.fixture(autouse=True)
def as_many_threads_as_before():
    yield
    reset_num_threads()


def module_of(script, dtype="float32", index="int32", **sizes):
    module = retype_module(parse_module(script), dtype=dtype, index_dtype=index)
    params = {param.name for param in module.functions[0].params}
    return specialize(module, {name: size for name, size in sizes.items() if name in params})


def stats_of(mean):
    return Stats(100, 100, int(100 * mean), 100, 0)


def arguments_of(module, call):
    (function,) = module.functions
    return {param.name: call.arguments[param.name] for param in function.params}


def stages_of(module, stats=None):
    return {
        stage.stage: stage
        for stage in lower_by_stage(module, schedule_for_target(module, TARGET, stats))
    }


def text_of(name, stats=None, **options):
    module = module_of(PROGRAMS[name].script, **options)
    return print_module(stages_of(module, stats)["flat"])


def call_kernel(module, call, stats=None):
    kernel = KERNELS.build_module(module, stats=stats).kernel
    names = [param.name for param in kernel.signature.buffers]
    sizes = [param.name for param in kernel.signature.scalars]
    kernel(**{name: call.arguments[name] for name in (*names, *sizes)})


@pytest.mark.parametrize("sizes", [{}, {"feat": 5}])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_means_the_same(name, sizes):
    program = PROGRAMS[name]
    module = module_of(program.script, "float64", "int64", **sizes)
    stages = stages_of(module, stats_of(20))
    small = [matrix for matrix in matrices("float64", "int64") if matrix.name in SMALL]
    assert len(small) == len(SMALL)
    for matrix in small:
        for stage, module_there in stages.items():
            call = program.call(matrix, 5)
            (function,) = (f for f in module_there.functions if f.name == module_there.entry)
            run(module_there, {param.name: call.arguments[param.name] for param in function.params})
            np.testing.assert_array_equal(call.result, call.expected, f"{matrix.name}, {stage}")


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("name", TIMES_DENSE)
def test_kernels_with_features_are_exact(name, dtype, index, threads):
    program = TIMES_DENSE[name]
    gossamer.set_num_threads(threads)
    for sizes in ({}, {"feat": 24}):
        module = module_of(program.script, dtype, index, **sizes)
        for matrix in matrices(dtype, index):
            call = program.call(matrix, 24)
            call_kernel(module, call)
            np.testing.assert_array_equal(call.result, call.expected, matrix.name)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("name", TIMES_VECTOR | ELEMENTS)
def test_kernels_without_features_are_exact(name, dtype, index, mean):
    program = PROGRAMS[name]
    module = module_of(program.script, dtype, index)
    for matrix in matrices(dtype, index):
        call = program.call(matrix, 1)
        call_kernel(module, call, stats_of(MEANS[mean]))
        np.testing.assert_array_equal(call.result, call.expected, matrix.name)


FIXED = tuple({"feat": features} for features in (1, 24, 128, 600))
FEATURES = (0, 1, 2, 7, 15, 16, 17, 31, 33, 64, 100, 257, 600)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("name", TIMES_DENSE)
def test_any_number_of_features_is_exact(name, features):
    program = TIMES_DENSE[name]
    for sizes in ({}, {"feat": features}):
        module = module_of(program.script, **sizes)
        for matrix in matrices("float32", "int32"):
            if matrix.name in (*SMALL, "row lengths 0 to 40"):
                call = program.call(matrix, features)
                call_kernel(module, call)
                np.testing.assert_array_equal(call.result, call.expected, matrix.name)


@pytest.mark.parametrize(("name", "first"), [*zip(PROGRAMS, cycle(range(4)), strict=False)])
def test_every_size_may_be_given(name, first):
    """Each program is compiled for a quarter of the matrices, and each matrix is given to some programs."""
    program = PROGRAMS[name]
    for matrix in [*matrices("float32", "int32")][first::4]:
        call = program.call(matrix, 20)
        sizes = {key: value for key, value in call.arguments.items() if isinstance(value, int)}
        module = module_of(program.script, **sizes)
        assert all(param.dtype == "handle" for param in module.functions[0].params)
        call_kernel(module, call)
        np.testing.assert_array_equal(call.result, call.expected, matrix.name)


VARIANTS = [(name, None, sizes) for name in TIMES_DENSE for sizes in ({}, *FIXED)]
VARIANTS += [(name, mean, {}) for name in TIMES_VECTOR for mean in (None, *MEANS.values())]


@pytest.mark.parametrize(("name", "mean", "sizes"), VARIANTS)
def test_rows_run_in_parallel_and_no_access_is_guarded(name, mean, sizes):
    text = text_of(name, None if mean is None else stats_of(mean), **sizes)
    assert text.count("T.parallel_for(") == 1
    assert "weight=" in text
    assert "T.guard(" not in text


FLAT = ["elements scaled", "elements by column", "ragged elements scaled"]


@pytest.mark.parametrize("name", ELEMENTS)
def test_elements_are_numbered_through_unless_the_row_matters(name):
    text = text_of(name)
    assert text.count("T.parallel_for(") == 1
    assert ("weight=" in text) != (name in FLAT)
    assert "T.ramp(" in text
    assert "T.guard(" not in text
    assert "while" not in text


@pytest.mark.parametrize("sizes", [{}, {"feat": 16}, *FIXED])
@pytest.mark.parametrize("name", ["ell times dense", "bucket of rows times dense"])
def test_a_slot_is_tested_by_one_branch_for_all_its_vectors(name, sizes):
    lines = text_of(name, **sizes).splitlines()
    tests = [line.strip() for line in lines if "!=" in line]
    assert tests
    assert all(line.startswith("if T.int64(J_indices[") for line in tests)
    assert len(tests) == sum("in T.serial(width):" in line for line in lines)


@pytest.mark.parametrize("name", ["segment sums of features", "segment sums", "row sums"])
def test_contiguous_terms_are_loaded_as_vectors(name):
    assert re.search(r"\bA_data[,\[][^=]*T\.ramp\(", text_of(name))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", [name for name in TIMES_DENSE if "times" in name])
def test_rows_of_the_dense_operand_that_nothing_refers_to_do_not_matter(name, bad):
    program = TIMES_DENSE[name]
    module = module_of(program.script, feat=20)
    for matrix in matrices("float32", "int32"):
        call = program.call(matrix, 20)
        unused = np.setdiff1d(np.arange(matrix.shape[1]), matrix.indices)
        call.arguments["b"][unused] = bad
        call_kernel(module, call)
        np.testing.assert_array_equal(call.result, call.expected, matrix.name)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if "max" in name or "min" in name])
def test_extrema_of_nan_are_nan(name):
    program = PROGRAMS[name]
    for matrix in matrices("float32", "int32"):
        if not len(matrix.indices):
            continue
        call = program.call(matrix, 3)
        at = len(matrix.indices) // 2
        row = matrix.rows[at]
        place = (row, at - matrix.indptr[row]) if name.startswith("ell") else at
        call.arguments["a"][place] = np.nan
        call.expected[row] = np.nan
        call_kernel(module_of(program.script), call)
        np.testing.assert_array_equal(call.result, call.expected, matrix.name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_inputs_may_be_read_only(name):
    program = PROGRAMS[name]
    (matrix,) = (
        candidate for candidate in matrices("float32", "int32") if candidate.name == "unsorted"
    )
    call = program.call(matrix, 3)
    for array in call.arguments.values():
        if isinstance(array, np.ndarray) and array is not call.result:
            array.flags.writeable = False
    call_kernel(module_of(program.script), call)
    np.testing.assert_array_equal(call.result, call.expected)


@pytest.mark.parametrize("ends", [(0, 1999), (700, 2000), (5, 5)])
def test_a_fiber_of_stored_rows_holds_all_of_them(ends):
    (matrix,) = (
        candidate for candidate in matrices("float32", "int32") if candidate.name == "many rows"
    )
    call = PROGRAMS["dcsr times dense"].call(matrix, 9)
    call.arguments["indptr_i"][:] = ends
    with pytest.raises(UserError, match=r"Element \d of 'indptr_i' is \d+; expected \d+"):
        call_kernel(module_of(PROGRAMS["dcsr times dense"].script, feat=9), call)
    assert (call.result == -77).all()


@pytest.mark.parametrize("rows", [[3, 1], [2, 2], [0, 9]])
def test_stored_rows_that_are_not_what_the_axis_says_are_refused(rows):
    program = PROGRAMS["dcsr times dense"]
    arguments = {
        "a": np.ones(2, np.float32), "b": np.ones((4, 3), np.float32),
        "c": np.full((9, 3), 7, np.float32), "indptr_i": np.array([0, 2], np.int32),
        "indices_i": np.array(rows, np.int32), "indptr_j": np.array([0, 1, 2], np.int32),
        "indices_j": np.array([0, 3], np.int32),
    }  # fmt: skip
    kernel = KERNELS.build_module(module_of(program.script, feat=3)).kernel
    with pytest.raises(UserError, match="indices_i"):
        kernel(**arguments)
    assert (arguments["c"] == 7).all()


LOOSE = {
    "duplicates": ("unique=False", [1, 1, 5]),
    "unsorted": ("sorted=False", [5, 1, 7]),
}


@pytest.mark.parametrize("loose", LOOSE)
def test_stored_rows_in_no_order_are_summed_one_after_the_other(loose):
    option, rows = LOOSE[loose]
    script = PROGRAMS["dcsr times dense"].script
    module = module_of(
        script.replace("(indptr_i, indices_i)", f"(indptr_i, indices_i), {option}"), feat=3
    )
    assert "T.parallel_for(" not in print_module(stages_of(module)["flat"])
    b = np.arange(12, dtype=np.float32).reshape(4, 3)
    arguments = {
        "a": np.array([2, 3, 5], np.float32), "b": b, "indptr_i": np.array([0, 3], np.int32),
        "indices_i": np.array(rows, np.int32), "indptr_j": np.arange(4, dtype=np.int32),
        "indices_j": np.array([0, 3, 1], np.int32), "m": 9, "n": 4, "stored": 3, "nnz": 3,
    }  # fmt: skip
    expected = np.full((9, 3), 7.0)
    expected[rows] = 0
    np.add.at(expected, rows, arguments["a"][:, None] * b[[0, 3, 1]])
    for stage in stages_of(module).values():
        c = np.full((9, 3), 7, np.float32)
        run(stage, {**arguments, "c": c})
        np.testing.assert_array_equal(c, expected)
    c = np.full((9, 3), 7, np.float32)
    kernel = KERNELS.build_module(module).kernel
    kernel(**{param.name: {**arguments, "c": c}[param.name] for param in kernel.signature.buffers})
    np.testing.assert_array_equal(c, expected)


LOOKED_UP = """
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle, w: T.handle, indptr: T.handle, indices: T.handle,
         m: T.int64, n: T.int64, r: T.int64, nnz: T.int64, feat: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), sorted=False, unique=False)
    N = T.sp.dense_fixed(n)
    R = T.sp.dense_fixed(r)
    K = T.sp.dense_fixed(feat)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (R, K), "float32")
    W = T.sp.match_buffer(w, (N,), "int32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "product") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[T.int64(W[j]), k]
"""


@pytest.mark.parametrize("sizes", [{}, {"feat": 24}])
def test_rows_that_are_looked_up_are_guarded(sizes):
    kernel = KERNELS.build_module(specialize(parse_module(LOOKED_UP), sizes)).kernel
    for matrix in matrices("float32", "int32"):
        call = PROGRAMS["csr times dense"].call(matrix, 24)
        order = np.arange(matrix.shape[1], dtype=np.int32)[::-1].copy()
        arguments = {**call.arguments, "w": order, "r": len(order)}
        arguments["b"] = call.arguments["b"][::-1].copy()
        names = (*kernel.signature.buffers, *kernel.signature.scalars)
        kernel(**{param.name: arguments[param.name] for param in names})
        np.testing.assert_array_equal(call.result, call.expected, matrix.name)
        if len(matrix.indices):
            order[matrix.indices[0]] = len(order)
            with pytest.raises(UserError, match="accessed 'B_data' out of bounds"):
                kernel(**{param.name: arguments[param.name] for param in names})
