"""Call plans: new arrays at each call, checked by generated code; all else is left to the caller."""

import ctypes
import threading

import numpy as np
import pytest

from gossamer_backend.call.native_plan import fixed_arguments
from gossamer_ir.core.build import add, index, index_var, mul
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.kernel_abi import OUT_OF_BOUNDS, OUT_OF_MEMORY
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature
from gossamer_ir.nodes import InRange

N = (index_var("n"),)
FACTS = (InRange("P", index(0), index_var("n")),)
P = BufferParam("p", "P", "int32", N, is_read=True, is_written=False, facts=FACTS)
X = BufferParam("x", "X", "float64", N, is_read=True, is_written=False)
Y = BufferParam("y", "Y", "float64", N, is_read=False, is_written=True)
GATHER = Signature("gather", (P, X, Y), (ScalarParam("n", "int64"),), ("p", "x", "y", "n"))
POSITIONS = np.array([2, 0, 1], dtype=np.int32)


def gather(p, x, y, n, workspace):
    def view(kind, start):
        return np.frombuffer((kind * n).from_address(start))

    positions = np.frombuffer((ctypes.c_int32 * n).from_address(p), dtype=np.int32)
    view(ctypes.c_double, y)[:] = view(ctypes.c_double, x)[positions]
    return 0


class BoundPlan:
    """A plan whose `run` binds the fixed arguments first."""

    def __init__(self, plan):
        self._plan = plan

    def run(self, fixed, inputs, output):
        return self._plan.bind(fixed)(inputs, output)


@pytest.fixture(params=["run", "bind"])
def plan(make_kernel, request):
    """A plan of `gather` for the parameters x and y; other kernels may have the pointer q as well."""
    kernel = make_kernel(GATHER, gather)
    plan = kernel.plan(pointers=("p", "q"), scalars=("n", "m"), passed=("x", "y"))
    return plan if request.param == "run" else BoundPlan(plan)


@pytest.fixture
def fixed():
    return fixed_arguments((POSITIONS, np.zeros(5)), (3, 7))


def test_each_call_has_arrays_of_its_own(plan, fixed):
    for start in (0.0, 10.0):
        y = np.zeros(3)
        assert plan.run(fixed, (np.arange(3) + start,), y) is y
        np.testing.assert_array_equal(y, [2 + start, start, 1 + start])
        fresh = plan.run(fixed, (np.arange(3) + start,), None)
        np.testing.assert_array_equal(fresh, y)


def test_a_bound_plan_is_called_with_arrays_of_its_own(make_kernel, fixed):
    plan = make_kernel(GATHER, gather).plan(pointers=("p", "q"), scalars=("n",), passed=("x", "y"))
    other = fixed_arguments((POSITIONS[:2] * 0, np.zeros(5)), (2,))
    three, two = plan.bind(fixed._replace(scalars=(3,))), plan.bind(other)
    for _ in range(2):
        np.testing.assert_array_equal(three((np.arange(3.0),), None), [2, 0, 1])
        np.testing.assert_array_equal(two((np.arange(2.0),), None), [0, 0])
    assert three((np.arange(2.0),), None) is None


def test_a_workspace_follows_the_number_of_threads(make_kernel, fixed):
    seen, number = [], [(1, None, None)]

    def record(p, x, y, n, workspace):
        seen.append(workspace.threads)
        return 0

    kernel = make_kernel(GATHER, record)
    kernel.parallelism = lambda: number[0]
    plan = kernel.plan(pointers=("p", "q"), scalars=("n", "m"), passed=("x", "y"))
    for threads in (1, 3, 3, 2):
        number[0] = (threads, None, None)
        plan.run(fixed, (np.ones(3),), None)
    assert seen == [1, 3, 3, 2]


@pytest.mark.parametrize("inputs", [(), (np.arange(3.0), np.arange(3.0))])
def test_another_number_of_inputs_is_left_to_the_caller(plan, fixed, inputs):
    assert plan.run(fixed, inputs, None) is None


def read_only(array):
    array.flags.writeable = False
    return array


class Marked(np.ndarray):
    pass


def unaligned():
    return np.frombuffer(bytearray(25), np.uint8)[1:].view(np.float64)


GOOD = np.arange(3.0)
LEFT_TO_THE_CALLER = {
    "another dtype": (np.ones(3, np.float32), np.zeros(3)),
    "another byte order": (np.ones(3, ">f8"), np.zeros(3)),
    "another length": (np.ones(4), np.zeros(3)),
    "another number of dimensions": (np.ones((3, 1)), np.zeros(3)),
    "strides": (np.ones(6)[::2], np.zeros(3)),
    "a list": ([1.0, 2.0, 3.0], np.zeros(3)),
    "None": (None, np.zeros(3)),
    "a subclass": (GOOD.view(Marked), np.zeros(3)),
    "a masked array": (np.ma.masked_array(GOOD), np.zeros(3)),
    "an unaligned operand": (unaligned(), np.zeros(3)),
    "an unaligned output": (GOOD, unaligned()),
    "a read-only output": (GOOD, read_only(np.zeros(3))),
    "an output of another dtype": (GOOD, np.zeros(3, np.int64)),
    "an output with strides": (GOOD, np.zeros(6)[::2]),
    "an output of another length": (GOOD, np.zeros(2)),
}


@pytest.mark.parametrize("name", LEFT_TO_THE_CALLER)
def test_unusual_arrays_are_left_to_the_caller(plan, fixed, name):
    x, y = LEFT_TO_THE_CALLER[name]
    before = np.array(y)
    assert plan.run(fixed, (x,), y) is None
    np.testing.assert_array_equal(y, before)


def test_a_read_only_operand_is_usual(plan, fixed):
    np.testing.assert_array_equal(plan.run(fixed, (read_only(np.arange(3.0)),), None), [2, 0, 1])


def test_arguments_are_checked_directly_before_each_run(plan):
    seen, verdict = [], [True]

    def check(fixed, workspace):
        assert workspace
        seen.append(fixed)
        return verdict[0]

    fixed = fixed_arguments((POSITIONS, np.zeros(5)), (3, 7), check=check)
    assert plan.run(fixed, (GOOD,), None) is not None
    verdict[0] = False
    y = np.full(3, 7.0)
    assert plan.run(fixed, (GOOD,), y) is None
    np.testing.assert_array_equal(y, 7)
    assert seen == [fixed, fixed]
    assert plan.run(fixed, (GOOD[::-1],), None) is None
    assert len(seen) == 2, "arrays that the plan refuses are not its business"


def test_empty_arrays_are_left_to_the_caller(plan):
    fixed = fixed_arguments((np.empty(0, np.int32), np.empty(0)), (0, 0))
    assert plan.run(fixed, (np.empty(0),), None) is None
    assert plan.run(fixed, (np.empty(0),), np.empty(0)) is None


def test_an_output_that_overlaps_another_array_is_left_to_the_caller(plan):
    memory = np.zeros(8)
    for shift in (-2, -1, 0, 1, 2):
        x, y = memory[2:5], memory[2 + shift : 5 + shift]
        assert plan.run(fixed_arguments((POSITIONS, np.zeros(5)), (3, 7)), (x,), y) is None
    apart = plan.run(fixed_arguments((POSITIONS, np.zeros(5)), (3, 7)), (memory[:3],), memory[3:6])
    assert apart is not None
    both = np.zeros(4)
    positions = both.view(np.int32)[:3]
    assert plan.run(fixed_arguments((positions, np.zeros(5)), (3, 7)), (GOOD,), both[:3]) is None
    assert plan.run(fixed_arguments((POSITIONS, both), (3, 7)), (GOOD,), both[1:]) is None


@pytest.mark.parametrize("passed", [("n", "y"), ("p", "y"), ("absent", "y"), ("y", "x"), ("y",)])
def test_only_arrays_of_values_are_passed_and_the_last_is_written(make_kernel, passed):
    kernel = make_kernel(GATHER, gather)
    with pytest.raises(ArgumentError, match=r"kernel\.plan"):
        kernel.plan(pointers=("q",), scalars=("n",), passed=passed)


def test_the_shape_of_what_is_passed_must_be_linear(make_kernel):
    square = BufferParam(
        "x", "X", "float64", (mul(index_var("n"), index_var("n")),), is_read=True, is_written=False
    )
    signature = Signature("f", (square, Y), (ScalarParam("n", "int64"),), ("x", "y", "n"))
    kernel = make_kernel(signature, lambda x, y, n, workspace: 0)
    with pytest.raises(ArgumentError, match="The shape of 'x' is not linear"):
        kernel.plan(pointers=(), scalars=("n",), passed=("x", "y"))


def test_shapes_may_be_linear_in_a_size(make_kernel):
    shape = (add(mul(index_var("n"), index(2)), index(1)), index(4))
    x = BufferParam("x", "X", "float64", shape, is_read=True, is_written=False)
    signature = Signature("f", (x, Y), (ScalarParam("n", "int64"),), ("x", "y", "n"))
    kernel = make_kernel(signature, lambda x, y, n, workspace: 0)
    plan = kernel.plan(pointers=(), scalars=("n",), passed=("x", "y"))
    fixed = fixed_arguments((), (3,))
    assert plan.run(fixed, (np.ones((7, 4)),), None).shape == (3,)
    assert plan.run(fixed, (np.ones((6, 4)),), None) is None


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [(OUT_OF_BOUNDS, ArgumentError, "out of bounds"), (OUT_OF_MEMORY, MemoryError, "gather")],
)
def test_a_status_becomes_an_error(make_kernel, fixed, status, error, text):
    def fail(p, x, y, n, workspace):
        workspace.failed_buffer = 0
        return status

    kernel = make_kernel(GATHER, fail, bounds_checked_buffers=("X",))
    plan = kernel.plan(pointers=("p", "q"), scalars=("n", "m"), passed=("x", "y"))
    with pytest.raises(error, match=text):
        plan.run(fixed, (np.ones(3),), np.ones(3))


def test_each_thread_has_a_workspace_of_its_own(make_kernel, fixed):
    seen = []

    def record(p, x, y, n, workspace):
        seen.append(ctypes.addressof(workspace))
        return 0

    plan = make_kernel(GATHER, record).plan(
        pointers=("p", "q"), scalars=("n", "m"), passed=("x", "y")
    )
    kept = threading.Barrier(2)

    def call():
        plan.run(fixed, (np.ones(3),), None)
        plan.run(fixed, (np.ones(3),), None)
        kept.wait()

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    assert len(set(seen)) == 2
