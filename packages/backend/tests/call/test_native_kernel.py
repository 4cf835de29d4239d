"""Kernel calls: arguments reach the machine code, statuses become errors, bound calls keep arrays alive."""

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest

from gossamer_backend.call.abi import scalar_type
from gossamer_ir.core.build import index_var
from gossamer_ir.errors import ArgumentError, InternalError, UnsupportedError
from gossamer_ir.interchange.kernel_abi import INTERRUPTED, OUT_OF_BOUNDS, OUT_OF_MEMORY
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature

X = BufferParam("x", "X", "float64", (index_var("n"),), is_read=True, is_written=True)
SCALE = Signature(
    "scale",
    (X,),
    (ScalarParam("n", "int64"), ScalarParam("by", "float64")),
    ("x", "n", "by"),
)


def scale(x, n, by, workspace):
    values = np.frombuffer((ctypes.c_double * n).from_address(x)) if n else np.empty(0)
    values *= by
    return 0


def test_a_call_runs_on_the_callers_memory(make_kernel):
    x = np.arange(4.0)
    make_kernel(SCALE, scale)(x, by=3)
    np.testing.assert_array_equal(x, [0, 3, 6, 9])


def test_every_kind_of_scalar_arrives(make_kernel):
    dtypes = ("bool", "int8", "uint16", "int32", "int64", "uint64", "float32", "float64")
    values = (True, -7, 65535, -(2**31), -(2**63), 2**63 - 1, 0.5, 1e300)
    params = tuple(ScalarParam(f"s{number}", dtype) for number, dtype in enumerate(dtypes))
    seen = []

    def record(*values):
        seen.extend(values[:-1])
        return 0

    order = tuple(param.name for param in params)
    make_kernel(Signature("record", (), params, order), record)(*values)
    assert seen == list(values)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32x4", "handle"])
def test_scalars_that_the_abi_has_not_are_refused(dtype):
    with pytest.raises(UnsupportedError, match=dtype):
        scalar_type(dtype)


def test_a_bound_kernel_can_be_called_again(make_kernel):
    x = np.ones(3)
    bound = make_kernel(SCALE, scale).bind(x=x, by=2.0)
    bound()
    bound()
    np.testing.assert_array_equal(x, [4, 4, 4])
    assert list(bound.arguments) == ["x", "n", "by"]
    assert bound.arguments["n"] == 3


def test_trusted_arguments_are_passed_in_order(make_kernel):
    x = np.ones(3)
    kernel = make_kernel(SCALE, scale)
    kernel.run_trusted(x, 3, 2)
    with pytest.raises(TypeError, match="takes 3 arguments; 2 were passed"):
        kernel.run_trusted(x, 3)
    np.testing.assert_array_equal(x, [2, 2, 2])


def test_a_bound_kernel_keeps_its_arrays_alive(make_kernel):
    x = np.ones(3)
    watch = weakref.ref(x)
    bound = make_kernel(SCALE, scale).bind(x=x, by=2.0)
    del x
    gc.collect()
    bound()
    np.testing.assert_array_equal(watch(), [2, 2, 2])
    del bound
    gc.collect()
    assert watch() is None


def test_a_refused_call_writes_nothing(make_kernel):
    x = np.ones(3)
    with pytest.raises(ArgumentError):
        make_kernel(SCALE, scale)(x, n=4, by=3.0)
    np.testing.assert_array_equal(x, [1, 1, 1])


NOTHING = Signature("nothing", (), (), ())


def returning(status, failed):
    def run(workspace):
        workspace.failed_buffer = failed
        return status

    return run


def test_a_failed_guard_names_the_buffer(make_kernel):
    kernel = make_kernel(
        NOTHING, returning(OUT_OF_BOUNDS, 1), bounds_checked_buffers=("A_data", "B_data")
    )
    with pytest.raises(ArgumentError, match="accessed 'B_data' out of bounds") as caught:
        kernel()
    assert caught.value.code == "kernel.out_of_bounds"


def test_no_memory_is_a_memory_error(make_kernel):
    with pytest.raises(MemoryError, match="kernel 'nothing' could not allocate"):
        make_kernel(NOTHING, returning(OUT_OF_MEMORY, -1))()


@pytest.mark.parametrize(("status", "failed"), [(7, 0), (OUT_OF_BOUNDS, 2), (OUT_OF_BOUNDS, -1)])
def test_a_status_that_means_nothing_is_a_bug(make_kernel, status, failed):
    kernel = make_kernel(
        NOTHING, returning(status, failed), bounds_checked_buffers=("A_data", "B_data")
    )
    with pytest.raises(InternalError, match=f"unknown status {status}"):
        kernel()


def test_threads_are_asked_for_before_each_call(make_kernel):
    settings, seen = [(1, None, None), (3, 4096, None)], []

    def record(workspace):
        seen.append((workspace.threads, workspace.parallel, workspace.failed_buffer))
        return 0

    bound = make_kernel(NOTHING, record, parallelism=lambda: settings[len(seen)]).bind()
    bound()
    bound()
    assert seen == [(1, None, -1), (3, 4096, -1)]


def test_an_interrupted_kernel_raises_what_interrupted_it(make_kernel):
    kernel = make_kernel(
        NOTHING, returning(INTERRUPTED, -1), interruption=lambda: TimeoutError("x")
    )
    with pytest.raises(TimeoutError, match="x"):
        kernel()
    with pytest.raises(KeyboardInterrupt):
        make_kernel(NOTHING, returning(INTERRUPTED, -1))()


def test_calls_from_two_threads_have_a_workspace_each(make_kernel):
    both_inside = threading.Barrier(2, timeout=20)
    failures = {}

    def meet(at, workspace):
        workspace.failed_buffer = at
        both_inside.wait()
        return OUT_OF_BOUNDS

    signature = Signature("meet", (), (ScalarParam("at", "int64"),), ("at",))
    kernel = make_kernel(signature, meet, bounds_checked_buffers=("A", "B"))

    def call(at):
        with pytest.raises(ArgumentError) as caught:
            kernel(at)
        failures[at] = str(caught.value)

    threads = [threading.Thread(target=call, args=(at,)) for at in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "accessed 'A' out" in failures[0]
    assert "accessed 'B' out" in failures[1]
