"""Joint plans: several kernels, one after the other, on arrays that are checked once."""

import ctypes
import gc
import weakref

import numpy as np
import pytest

from gossamer_backend import JointPlan
from gossamer_ir.core.build import index, index_var
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.kernel_abi import OUT_OF_BOUNDS
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature
from gossamer_ir.nodes import InRange

N, M = (index_var("n"),), (index_var("m"),)
X = BufferParam("x", "X", "float64", N, is_read=True, is_written=False)
Y = BufferParam("y", "Y", "float64", N, is_read=True, is_written=True)
W = BufferParam("w", "W", "float64", M, is_read=True, is_written=False)
SCALARS = (ScalarParam("n", "int64"), ScalarParam("m", "int64"))
ADD = Signature("add", (X, Y, W), SCALARS, ("x", "y", "n", "w", "m"))


def add(x, y, n, w, m, workspace):
    """Adds the sum of w times x to y."""

    def view(start, count):
        return np.frombuffer((ctypes.c_double * count).from_address(start))

    view(y, n)[:] += view(x, n) * view(w, m).sum()
    return 0


@pytest.fixture
def calls(make_kernel):
    kernel = make_kernel(ADD, add)
    return [kernel.bind(x=np.zeros(3), y=np.zeros(3), w=np.full(count, 2.0)) for count in (1, 2)]


def set_zero(array):
    array.fill(0)


def test_all_kernels_run_on_the_arrays_of_a_call(calls):
    plan = JointPlan(calls, passed=("x", "y"), prepare=set_zero)
    for start in (0.0, 10.0):
        y = np.full(3, 7.0)
        assert plan.run((np.arange(3) + start,), y) is y
        np.testing.assert_array_equal(y, 6 * (np.arange(3) + start))
        np.testing.assert_array_equal(plan.run((np.arange(3) + start,), None), y)
    adding = JointPlan(calls, passed=("x", "y"))
    np.testing.assert_array_equal(adding.run((np.ones(3),), np.ones(3)), 7)


LEFT_TO_THE_CALLER = {
    "another dtype": (np.ones(3, np.float32), np.zeros(3)),
    "another length": (np.ones(4), np.zeros(4)),
    "strides": (np.ones(6)[::2], np.zeros(3)),
    "a list": ([1.0, 2.0, 3.0], np.zeros(3)),
    "an output of another length": (np.ones(3), np.zeros(2)),
    "an output with strides": (np.ones(3), np.zeros(6)[::2]),
}


@pytest.mark.parametrize("name", LEFT_TO_THE_CALLER)
def test_unusual_arrays_are_left_to_the_caller(calls, name):
    x, y = LEFT_TO_THE_CALLER[name]
    plan = JointPlan(calls, passed=("x", "y"), prepare=set_zero)
    before = np.array(y)
    assert plan.run((x,), y) is None
    np.testing.assert_array_equal(y, before)


def test_an_output_that_overlaps_another_array_is_left_to_the_caller(make_kernel):
    kernel, memory = make_kernel(ADD, add), np.zeros(12)
    call = kernel.bind(x=np.zeros(3), y=np.zeros(3), w=memory[:4])
    plan = JointPlan([call], passed=("x", "y"))
    assert plan.run((np.ones(3),), memory[3:6]) is None
    assert plan.run((memory[4:7],), memory[6:9]) is None
    assert plan.run((memory[4:7],), memory[7:10]) is not None


def test_arrays_of_the_calls_are_kept_but_not_those_that_are_passed(make_kernel):
    kernel = make_kernel(ADD, add)
    x, y, w = np.zeros(3), np.zeros(3), np.ones(2)
    passed, operand = weakref.ref(x), weakref.ref(w)
    plan = JointPlan([kernel.bind(x=x, y=y, w=w)], passed=("x", "y"))
    del x, y, w
    gc.collect()
    assert passed() is None
    assert operand() is not None
    np.testing.assert_array_equal(plan.run((np.ones(3),), np.zeros(3)), 2)


def test_a_status_becomes_the_error_of_its_kernel(make_kernel, calls):
    def fail(x, y, n, w, m, workspace):
        workspace.failed_buffer = 0
        return OUT_OF_BOUNDS

    failing = make_kernel(ADD, fail, bounds_checked_buffers=("W",))
    call = failing.bind(x=np.zeros(3), y=np.zeros(3), w=np.ones(2))
    plan = JointPlan([calls[0], call], passed=("x", "y"))
    with pytest.raises(ArgumentError, match="'W' out of bounds"):
        plan.run((np.ones(3),), np.zeros(3))


def test_the_first_parameters_of_all_kernels_are_passed(make_kernel, calls):
    shorter = make_kernel(ADD, add).bind(x=np.zeros(2), y=np.zeros(2), w=np.ones(2))
    facts = (InRange("X", index(0), index(9)),)
    indices = BufferParam("x", "X", "int32", N, is_read=True, is_written=False, facts=facts)
    gather = Signature("gather", (indices, Y, W), SCALARS, ADD.order)
    indexed = make_kernel(gather, add).bind(
        x=np.zeros(3, np.int32), y=np.zeros(3), w=np.ones(2), verified=("x",)
    )
    for out, passed in (
        ([], ("x", "y")),
        (calls, ("y", "x")),
        (calls, ("x", "n")),
        ([*calls, shorter], ("x", "y")),
        ([indexed], ("x", "y")),
        (calls, ("x", "y", "n")),
    ):
        with pytest.raises(ArgumentError) as caught:
            JointPlan(out, passed=passed)
        assert caught.value.code == "kernel.plan"
