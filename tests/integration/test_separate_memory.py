"""A plugin for a device with a memory of its own: arrays by DLPack, streams, graphs, scratch memory,
spaces."""

from __future__ import annotations

import numpy as np
import pytest
from acme_separate.backend import SeparateMemory
from acme_separate.memory import DEVICE, STORAGE, SeparateArray, to_device, to_host
from acme_separate.stream import DEFAULT, Stream
from scipy import sparse

import gossamer as gs
from gossamer.operators.spmm import SCRIPT as SPMM
from gossamer_backend import CallContext, Device
from gossamer_backend.internal_api import fixed_arguments
from gossamer_ir import print_expr
from gossamer_ir.errors import ArgumentError
from gossamer_testkit import BackendSuite
from tests.integration.separate_memory import install_separate_memory

DEVICE_ONLY, COPYING = "separate-memory", "separate-memory:host_arrays=copy"
ROWS, COLUMNS, FEATURES = 5, 4, 3
SHIFT = """
@T.prim_func
def shift(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    Z = T.alloc_buffer((n,), "float32")
    for i in T.serial(n):
        Z[i] = X[i] + 1.0
    for i in T.serial(n):
        Y[i] = Z[n - 1 - i]
"""


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    """The plugin, found by its entry point."""
    install_separate_memory(tmp_path, monkeypatch)


def shift():
    return gs.compile(SHIFT, target=DEVICE_ONLY)


def numbers(size=6):
    return np.arange(size, dtype=np.float32)


def shifted(array):
    return (array + 1)[::-1]


def operands():
    matrix = sparse.random_array(
        (ROWS, COLUMNS), density=0.4, format="csr", rng=1, dtype=np.float32
    )
    matrix.data[:] = np.arange(1, matrix.nnz + 1)
    dense = np.arange(COLUMNS * FEATURES, dtype=np.float32).reshape(COLUMNS, FEATURES)
    arrays = {"a": matrix.data, "b": dense, "indptr": matrix.indptr, "indices": matrix.indices}
    return matrix, dense, {name: to_device(array) for name, array in arrays.items()}


def test_a_call_is_put_on_a_stream():
    kernel, x, y = shift(), to_device(numbers()), SeparateArray((6,), np.float32)
    kernel(x, y)
    assert not to_host(y).any()
    DEFAULT.synchronize()
    np.testing.assert_array_equal(to_host(y), shifted(numbers()))


def test_a_program_over_a_sparse_matrix_runs_on_arrays_of_the_device():
    matrix, dense, arrays = operands()
    kernel = gs.compile(SPMM, target=DEVICE_ONLY)
    stream, c = Stream(), SeparateArray((ROWS, FEATURES), np.float32)
    kernel(**arrays, c=c, context=CallContext(DEVICE, stream))
    stream.synchronize()
    np.testing.assert_array_equal(to_host(c), matrix @ dense)


def test_facts_are_checked_on_the_device_without_a_copy():
    _, _, arrays = operands()
    copied = STORAGE.copied
    gs.compile(SPMM, target=DEVICE_ONLY).bind(
        **arrays, c=SeparateArray((ROWS, FEATURES), np.float32)
    )
    assert STORAGE.copied == copied


WRONG = {
    "a column too far": ("indices", 2, COLUMNS, "kernel.range"),
    "a negative column": ("indices", 0, -1, "kernel.range"),
    "no zero at the beginning": ("indptr", 0, 1, "kernel.value"),
    "another end than the number of elements": ("indptr", ROWS, 7, "kernel.value"),
    "fewer elements before a row": ("indptr", 2, 0, "kernel.monotone"),
}


@pytest.mark.parametrize(("name", "at", "value", "code"), WRONG.values(), ids=WRONG.keys())
def test_a_fact_that_does_not_hold_on_the_device_is_named(name, at, value, code):
    _, _, arrays = operands()
    wrong = to_host(arrays[name])
    wrong[at] = value
    arrays[name] = to_device(wrong)
    copied = STORAGE.copied
    with pytest.raises(ArgumentError, match=f"'{name}'") as caught:
        gs.compile(SPMM, target=DEVICE_ONLY).bind(
            **arrays, c=SeparateArray((ROWS, FEATURES), np.float32)
        )
    assert caught.value.code == code
    assert STORAGE.copied > copied


SCATTER = """
@T.prim_func
def scatter(x: T.handle, rows: T.handle, y: T.handle, n: T.int64, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Rows = T.match_buffer(rows, (n,), "int32")
    Y = T.match_buffer(y, (m,), "float32")
    T.assume(in_range(Rows, 0, m))
    T.assume(distinct(Rows))
    for i in T.serial(n):
        Y[T.int64(Rows[i])] = X[i]
"""
SCATTER_ANYWHERE = SCATTER.replace("    T.assume(in_range(Rows, 0, m))\n", "")
SETS = """
@T.prim_func
def copy(
    x: T.handle,
    y: T.handle,
    p: T.handle,
    l: T.handle,
    q: T.handle,
    r: T.handle,
    w: T.handle,
    m: T.int64,
    a: T.int64,
    b: T.int64,
    n: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    P = T.match_buffer(p, (m,), "int32")
    L = T.match_buffer(l, (a,), "int32")
    Q = T.match_buffer(q, (m,), "int32")
    R = T.match_buffer(r, (b,), "int32")
    W = T.match_buffer(w, (m - 1,), "uint32")
    T.assume(monotone(P))
    T.assume(monotone(Q))
    T.assume(sorted_segments(L, P, unique=True))
    T.assume(sorted_segments(R, Q, unique=True))
    T.assume(subset(L, R))
    T.assume(bit_counts(W, P, 8))
    for i in T.serial(n):
        Y[i] = X[i]
"""
PRODUCTS = """
@T.prim_func
def copy(x: T.handle, y: T.handle, p: T.handle, l: T.handle, r: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    P = T.match_buffer(p, (m,), "int32")
    L = T.match_buffer(l, (m,), "int32")
    R = T.match_buffer(r, (m,), "int32")
    T.assume(monotone(P))
    T.assume(monotone(L))
    T.assume(monotone(R))
    T.assume(product_steps(P, L, R))
    for i in T.serial(n):
        Y[i] = X[i]
"""


def on_device(values):
    """Return arrays of integers on the device; words of bits are unsigned."""
    dtypes = {"w": np.uint32}
    return {
        name: to_device(np.array(each, dtypes.get(name, np.int32))) for name, each in values.items()
    }


OF_SETS = {"p": (0, 2, 2), "l": (0, 2), "q": (0, 3, 4), "r": (0, 1, 2, 3), "w": (5, 0)}
OF_SEVERAL = {
    "distinct values": (SCATTER, {"rows": (3, 0, 2)}, {"rows": (3, 0, 3)}, "kernel.distinct"),
    "distinct values of any range": (
        SCATTER_ANYWHERE,
        {"rows": (3, 0, 2)},
        {"rows": (1 << 30, 0, 1 << 30)},
        "kernel.distinct",
    ),
    "a relation of sets": (SETS, OF_SETS, {**OF_SETS, "l": (0, 3)}, "kernel.subset"),
    "bits of words": (SETS, OF_SETS, {**OF_SETS, "w": (1, 1)}, "kernel.bits"),
    "steps of products": (
        PRODUCTS,
        {"p": (0, 6, 6), "l": (0, 2, 5), "r": (0, 3, 3)},
        {"p": (0, 6, 7), "l": (0, 2, 5), "r": (0, 3, 3)},
        "kernel.product",
    ),
}


@pytest.mark.parametrize(("script", "right", "wrong", "code"), OF_SEVERAL.values(), ids=OF_SEVERAL)
def test_facts_about_several_elements_are_checked_on_the_device(script, right, wrong, code):
    kernel = gs.compile(script, target=DEVICE_ONLY)
    rows = 4 if "Rows" in script else 3
    floats = {"x": to_device(numbers(3)), "y": SeparateArray((rows,), np.float32)}
    copied = STORAGE.copied
    kernel.bind(**floats, **on_device(right))
    assert STORAGE.copied == copied
    with pytest.raises(ArgumentError) as caught:
        kernel.bind(**floats, **on_device(wrong))
    assert caught.value.code == code
    assert STORAGE.copied > copied


def test_wrong_indices_of_the_device_are_named():
    _, _, arrays = operands()
    wrong = to_host(arrays["indices"])
    wrong[2] = COLUMNS
    arrays["indices"] = to_device(wrong)
    kernel = gs.compile(SPMM, target=DEVICE_ONLY)
    with pytest.raises(ArgumentError, match="Element 2 of 'indices' is 4") as caught:
        kernel.bind(**arrays, c=SeparateArray((ROWS, FEATURES), np.float32))
    assert caught.value.code == "kernel.range"


def test_exporters_are_given_the_stream_of_the_call():
    x, stream = to_device(numbers()), Stream()
    shift().bind(x, SeparateArray((6,), np.float32), context=CallContext(DEVICE, stream))
    assert x.streams == [stream]


def test_arrays_of_the_host_are_refused_by_the_name_of_the_device():
    with pytest.raises(
        ArgumentError, match="'x' is on the device 'cpu', and the kernel runs on 'ext_dev:0'"
    ):
        shift()(numbers(), SeparateArray((6,), np.float32))


def test_arrays_of_the_device_are_refused_by_a_kernel_of_the_host():
    kernel = gs.compile(SHIFT)
    with pytest.raises(ArgumentError, match="'x' is on the device 'ext_dev:0'") as caught:
        kernel(to_device(numbers()), np.empty(6, np.float32))
    assert caught.value.code == "kernel.device"


def test_a_context_of_another_device_is_refused():
    with pytest.raises(ArgumentError, match="the context is one of 'cuda:0'"):
        shift()(to_device(numbers()), to_device(numbers()), context=CallContext(Device(2, 0)))


def test_a_bound_call_is_captured_and_its_graph_runs_again():
    x, y, stream = to_device(numbers()), SeparateArray((6,), np.float32), Stream()
    bound = shift().bind(x, y, context=CallContext(DEVICE, stream))
    used, copied = STORAGE.used, STORAGE.copied
    stream.begin_capture()
    bound()
    graph = stream.end_capture()
    for factor in (1, 10):
        STORAGE.elements(x.address, x.shape, x.dtype)[...] = factor * numbers()
        graph.launch(stream)
        stream.synchronize()
        # Neither memory nor copies: both would end a capture.
        assert (STORAGE.used, STORAGE.copied) == (used, copied)
        result = STORAGE.elements(y.address, y.shape, y.dtype)
        np.testing.assert_array_equal(result, shifted(factor * numbers()))


def test_the_signature_states_spaces_and_scratch():
    signature, host = shift().signature, gs.compile(SHIFT).signature
    assert [param.space for param in signature.buffers] == ["global", "global"]
    assert print_expr(signature.scratch) == "(n * 4 + 255) // 256 * 256"
    assert ([param.space for param in host.buffers], host.scratch) == (["host", "host"], None)


def test_scratch_memory_comes_from_the_context_and_is_kept_by_a_bound_call():
    asked = []

    def allocate(size):
        asked.append(SeparateArray((size,), np.uint8))
        return asked[-1]

    x, y, stream = to_device(numbers()), SeparateArray((6,), np.float32), Stream()
    bound = shift().bind(x, y, context=CallContext(DEVICE, stream, allocate))
    for _ in range(2):
        bound()
        stream.synchronize()
    assert [array.shape for array in asked] == [(256,)]
    # The sums before they are reversed: the kernel used this memory.
    scratch = STORAGE.elements(asked[0].address, (6,), np.float32)
    np.testing.assert_array_equal(scratch, numbers() + 1)


def test_a_plan_takes_arrays_of_the_device_and_leaves_others():
    plan = shift().plan(pointers=(), scalars=("n",), passed=("x", "y"))
    fixed = fixed_arguments((), (6,))
    y = plan.run(fixed, (to_device(numbers()),), None)
    DEFAULT.synchronize()
    np.testing.assert_array_equal(to_host(y), shifted(numbers()))
    assert plan.run(fixed, (numbers(),), None) is None
    assert plan.run(fixed, (to_device(numbers(5)),), None) is None


GUARDED = """
@T.prim_func
def pick(x: T.handle, y: T.handle, n: T.int64, at: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (1,), "float32")
    T.guard(at < n, X)
    Y[0] = X[at]
"""


def test_an_access_out_of_bounds_is_reported_when_the_stream_is_waited_for():
    kernel = gs.compile(GUARDED, target=DEVICE_ONLY)
    x, y = to_device(numbers()), SeparateArray((1,), np.float32)
    kernel(x, y, at=6)
    with pytest.raises(ArgumentError, match="accessed 'X' out of bounds") as caught:
        DEFAULT.synchronize()
    assert caught.value.code == "kernel.out_of_bounds"


@pytest.mark.parametrize("calls", [1, 3])
def test_operators_copy_arrays_of_the_host_where_the_target_says_so(calls):
    matrix, dense, _ = operands()
    for _ in range(calls):
        np.testing.assert_array_equal(gs.spmm(matrix, dense, target=COPYING), matrix @ dense)
    out = np.empty((ROWS, FEATURES), np.float32)
    step = gs.spmm.bind(matrix, dense, out=out, target=COPYING)
    step()
    dense *= 2
    step()
    np.testing.assert_array_equal(out, matrix @ dense)


def test_operators_refuse_arrays_of_the_host_otherwise():
    matrix, dense, _ = operands()
    with pytest.raises(ArgumentError, match="is on the device 'cpu'"):
        gs.spmm(matrix, dense, target=DEVICE_ONLY)


def test_a_matrix_in_parts_has_kernels_of_the_device():
    matrix, dense, _ = operands()
    parts = gs.decompose(matrix, "hyb", k=2)
    for _ in range(2):
        np.testing.assert_array_equal(gs.spmm(parts, dense, target=COPYING), matrix @ dense)


class TestSeparateMemory(BackendSuite):
    backend = SeparateMemory()
    targets = (COPYING,)

    def test_two_threads_may_call_one_kernel(self, target):
        # The plugin runs all programs in one way: by the interpreter, which the suite of the tiny plugin
        # calls from two threads with each of them.
        for program in self.all_covered()[::8]:
            super().test_two_threads_may_call_one_kernel(program.name, target)

    def test_the_number_of_threads_changes_nothing(self):
        pytest.skip("a kernel is interpreted by the thread that synchronizes its stream")
