"""Statements of the flat stage, calls between functions, and invalid arguments of `run`."""

import math
import pickle

import numpy as np
import pytest
from msgspec.structs import replace

from gossamer_ir.core.build import index_var
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interpret import GuardFailed, InterpreterError, run
from gossamer_ir.interpret.program import InterpretedKernel
from gossamer_ir.nodes import Const, Store
from gossamer_ir.script import parse_module

NAN = np.nan


def flat(body, params="x: T.handle, n: T.int64", dtype="float64", shape="n"):
    return parse_module(f"""
@T.prim_func
def main({params}) -> None:
    T.stage("flat")
    X = T.match_buffer(x, ({shape},), "{dtype}")
{body}
""")


def array(*values):
    return np.array(values, np.float64)


def test_scatters_write_where_the_predicate_holds():
    x = array(1, 2, 3, 4, 5)
    body = """
    lanes = T.ramp(0, 2, 4)
    T.store(X, lanes, value=T.broadcast(9.0, 4), predicate=lanes < T.broadcast(n, 4))
"""
    run(flat(body), {"x": x, "n": 5})
    np.testing.assert_array_equal(x, [9, 2, 9, 4, 9])
    with pytest.raises(InterpreterError, match=r"X\[6\]"):
        run(flat("    X[T.ramp(0, 2, 4)] = T.broadcast(9.0, 4)"), {"x": array(0, 0, 0, 0), "n": 4})


SCALABLE = """
    lanes = T.vscale() * 4
    for i in T.serial((n + lanes - 1) // lanes):
        place = T.ramp(i * lanes, 1, 4 * T.vscale())
        inside = place < T.broadcast(n, 4 * T.vscale())
        old = T.load(X, place, predicate=inside, passthrough=T.broadcast(0.0, 4 * T.vscale()))
        T.store(X, place, value=old + old, predicate=inside)
"""


@pytest.mark.parametrize("vscale", [1, 2, 4])
def test_scalable_loops_do_not_depend_on_the_machine(vscale):
    x = np.arange(11.0)
    run(flat(SCALABLE), {"x": x, "n": 11}, vscale=vscale)
    np.testing.assert_array_equal(x, 2 * np.arange(11.0))


def test_a_module_that_ran_runs_on_another_machine():
    module = flat(
        "    X[0] = T.float64(T.vscale())\n    for i in T.parallel(2):\n        X[1] = T.float64(i)"
    )
    for vscale, chunks, last in ((1, 1, 1), (4, 1, 1), (4, 2, 0), (1, 1, 1)):
        x = np.zeros(2)
        run(module, {"x": x, "n": 2}, vscale=vscale, chunks=chunks)
        np.testing.assert_array_equal(x, [vscale, last])


@pytest.mark.parametrize(
    "value",
    ["y", "-y", "y + 1.0", "1.0 + y", "y * y", "X[0] + y", "y + X[0]", "T.float64(T.int64(y))"],
)
def test_a_variable_without_a_value_is_an_error(value):
    """The parser and the verifier refuse such a module."""
    module = flat(f"    y: T.float64 = 2.0\n    X[0] = {value}")
    (function,) = module.functions
    x = array(3.0)
    run(module, {"x": x, "n": 1})
    expected = eval(value.replace("T.", ""), {"y": 2.0, "X": [3.0], "float64": float, "int64": int})
    np.testing.assert_array_equal(x, [expected])
    without = replace(module, functions=(replace(function, body=function.body[1:]),))
    with pytest.raises(InterpreterError, match="The variable 'y' has no value here"):
        run(without, {"x": array(3.0), "n": 1})


@pytest.mark.parametrize("indices", ["i", "i, i", "i, i, i"])
def test_an_index_without_a_value_is_an_error(indices):
    """The parser and the verifier refuse such a module."""
    shape = ", ".join("n" for _ in indices.split(","))
    module = flat(f"    i: T.int64 = n - 1\n    X[{indices}] = 5.0", shape=shape)
    (function,) = module.functions
    x = np.zeros([2] * len(indices.split(",")))
    run(module, {"x": x, "n": 2})
    assert x.flat[-1] == 5.0
    without = replace(module, functions=(replace(function, body=function.body[1:]),))
    with pytest.raises(InterpreterError, match="The variable 'i' has no value here"):
        run(without, {"x": x, "n": 2})


def test_lets_conditions_loops_and_predicated_stores():
    x = np.zeros(6)
    body = """
    for i in T.serial(1, n):
        half = i // 2
        if half * 2 == i:
            X[i] = T.float64(half)
        else:
            T.store(X, i, value=-1.0, predicate=i < 4)
    for j in T.serial(0 - 3):
        X[0] = 7.0
"""
    run(flat(body), {"x": x, "n": 6})
    np.testing.assert_array_equal(x, [0, -1, 1, -1, 2, 0])


def test_prefetch_does_nothing_even_outside():
    x = array(1.0)
    run(flat("    T.prefetch(X, n + 1000)"), {"x": x, "n": 1})
    assert x[0] == 1.0


def test_a_guard_stops_the_program_with_the_name_of_the_buffer():
    x = array(0.0, 0.0)
    body = "    X[0] = 1.0\n    T.guard(n > 2, X)\n    X[1] = 1.0"
    with pytest.raises(GuardFailed, match="'X'") as caught:
        run(flat(body), {"x": x, "n": 2})
    assert caught.value.buffer == "X"
    np.testing.assert_array_equal(x, [1, 0])


def test_an_allocation_is_sized_at_run_time_and_full_of_garbage():
    body = """
    for i in T.serial(n):
        Y = T.alloc_buffer((i + 1,), "float64", scope="local")
        X[i] = Y[i]
        Y[i] = 1.0
"""
    x = np.zeros(3)
    run(flat(body), {"x": x, "n": 3})
    np.testing.assert_array_equal(x, [NAN, NAN, NAN])


def test_a_run_leaves_no_trace_in_the_next_one():
    body = """
    Y = T.alloc_buffer((n,), "float64")
    T.guard(n < 4, X)
    for i in T.serial(n):
        X[i] = Y[i]
        Y[i] = 1.0
"""
    kernel = InterpretedKernel(flat(body), vscale=1, chunks=1)
    for size in (2, 3, 0, 3):
        x = np.zeros(size)
        kernel.run({"x": x, "n": size})
        np.testing.assert_array_equal(x, [NAN] * size)
        with pytest.raises(GuardFailed):
            kernel.run({"x": np.zeros(4), "n": 4})


@pytest.mark.parametrize("size", [2**45, 2**62, 2**63 - 1])
def test_a_buffer_that_cannot_be_allocated_is_an_error(size):
    body = '    W = T.alloc_buffer((n, 8), "float64")\n    X[0] = 1.0'
    with pytest.raises(
        InterpreterError, match=rf"shape \({size}, 8\) needs {64 * size} bytes"
    ) as caught:
        run(flat(body, shape="1"), {"x": array(0), "n": size})
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_garbage_integers_are_no_index():
    body = '    Y = T.alloc_buffer((1,), "int32")\n    X[T.int64(Y[0])] = 1.0'
    with pytest.raises(InterpreterError, match="X"):
        run(flat(body), {"x": np.zeros(3), "n": 3})


CALLS = """
@T.prim_func(entry=True)
def main(x: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float64")
    Y = T.alloc_buffer((n,), "float64")
    T.parallel_for("fill", "i", 1, n, args=[Y, n], weight=i * 3, grain=2)
    T.launch("copy", [Y, x, n], threads={"blockIdx.x": n, "threadIdx.x": 1})

@T.prim_func
def fill(begin: T.int64, end: T.int64, y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    Y = T.match_buffer(y, (n,), "float64")
    for i in T.serial(begin, end):
        Y[i] = T.float64(begin)

@T.prim_func
def copy(y: T.handle, z: T.handle, n: T.int64) -> None:
    T.stage("flat")
    Y = T.match_buffer(y, (n,), "float64")
    Z = T.match_buffer(z, (n,), "float64")
    for b in T.thread_binding(n, thread="blockIdx.x"):
        for t in T.thread_binding(1, thread="threadIdx.x"):
            Z[b] = Y[b] + T.float64(t)
"""

CHUNKS = [(1, [NAN, 1, 1, 1, 1, 1, 1]), (2, [NAN, 1, 1, 1, 4, 4, 4]), (3, [NAN, 1, 1, 3, 3, 5, 5])]


@pytest.mark.parametrize(("chunks", "expected"), CHUNKS)
def test_functions_are_called_for_chunks_and_launched_over_threads(chunks, expected):
    x = np.zeros(7)
    run(parse_module(CALLS), {"x": x, "n": 7}, chunks=chunks)
    np.testing.assert_array_equal(x, expected)


def test_a_parallel_loop_wraps_as_a_serial_one_does():
    x = np.zeros(7)
    text = CALLS.replace('"i", 1, n,', '"i", 9223372036854775805, 9223372036854775802 + n,')
    text = text.replace(", weight=i * 3", "").replace("Y[i] = T.float64(begin)", "Y[i % 7] = 1.0")
    run(parse_module(text), {"x": x, "n": 7}, chunks=2)
    assert [at for at in range(7) if x[at] == 1] == [0, 5, 6]  # -2^63 is 6, too


def test_another_function_than_the_entry_can_be_run():
    y = np.zeros(3)
    run(parse_module(CALLS), {"begin": 1, "end": 3, "y": y, "n": 3}, "fill")
    np.testing.assert_array_equal(y, [0, 1, 1])


def test_a_decreasing_weight_is_an_error():
    with pytest.raises(InterpreterError, match="weight of loop 'i' decreases, 0 to -2"):
        run(
            flat("    for i in T.parallel(n, weight=0 - i):\n        X[i] = 1.0"),
            {"x": np.zeros(2), "n": 2},
        )


def test_arrays_may_be_flat_or_shaped_but_not_copied():
    module = flat("    X[1, 2] = 5.0", shape="2, n")
    for shape in [(2, 3), (6,), (3, 2)]:
        x = np.zeros(shape)
        run(module, {"x": x, "n": 3})
        assert x.reshape(-1)[5] == 5.0
    strided = np.zeros((2, 6))[:, ::2]
    run(module, {"x": strided, "n": 3})
    assert strided[1, 2] == 5.0
    with pytest.raises(ArgumentError, match="contiguous"):
        run(module, {"x": np.zeros(12)[::2], "n": 3})


def read_only():
    x = np.zeros(2)
    x.flags.writeable = False
    return x


WRONG = [
    ({"n": 2}, "interpret.missing_argument", "'x' of 'main' is missing"),
    ({"x": np.zeros(2), "n": 2, "y": 1}, "interpret.unknown_argument", "'y'"),
    ({"x": 5, "n": 2}, "interpret.argument", "'x' is 5; expected an array"),
    ({"x": np.zeros(2), "n": 2.0}, "interpret.argument", "'n' is 2.0; expected a scalar"),
    ({"x": np.zeros(2), "n": 2**63}, "interpret.argument", "'n' is 9223372036854775808"),
    ({"x": np.zeros(2), "n": np.zeros(2)}, "interpret.argument", "'n' is ndarray"),
    ({"x": np.zeros(2, np.float32), "n": 2}, "interpret.argument", "expected float64"),
    ({"x": np.zeros(3), "n": 2}, "interpret.argument", r"shape \(3,\); expected .* \(2,\)"),
    ({"x": read_only(), "n": 2}, "interpret.read_only", "'x'"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), WRONG)
def test_arguments_that_do_not_fit_are_refused(arguments, code, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        run(flat("    X[0] = 1.0"), arguments)
    assert caught.value.code == code


def test_an_unknown_function_is_refused():
    with pytest.raises(ArgumentError, match="main") as caught:
        run(flat("    X[0] = 1.0"), {"x": np.zeros(1), "n": 1}, "other")
    assert caught.value.code == "interpret.function"


SCALARS = [
    ("float32", 0.1, float(np.float32(0.1))),
    ("float64", 3, 3.0),
    ("bfloat16", 1.01171875, 1.015625),
    ("bool", True, 1.0),
    ("uint8", 255, 255.0),
]


@pytest.mark.parametrize(("dtype", "value", "expected"), SCALARS)
def test_scalar_arguments_are_rounded_to_their_type(dtype, value, expected):
    x = np.zeros(1)
    params = f"x: T.handle, n: T.int64, value: T.{dtype}"
    run(flat('    X[0] = T.cast(value, "float64")', params), {"x": x, "n": 1, "value": value})
    assert x[0] == expected


BOUNDS = [("n", 3), ("0 - 1", -1)]


@pytest.mark.parametrize(("index", "shown"), BOUNDS)
@pytest.mark.parametrize("stmt", ["X[INDEX] = 1.0", "X[0] = X[INDEX]"])
def test_an_access_out_of_bounds_names_buffer_index_and_shape(stmt, index, shown):
    with pytest.raises(InterpreterError) as caught:
        run(flat("    " + stmt.replace("INDEX", index)), {"x": np.zeros(3), "n": 3})
    assert str(caught.value) == f"X[{shown}] is out of bounds: the shape there is (3,)."
    assert caught.value.buffer == "X"


@pytest.mark.parametrize(("rank", "number"), [(2, 0), (2, 1), (3, 0), (3, 2)])
@pytest.mark.parametrize(("index", "shown"), BOUNDS)
def test_each_index_of_an_access_is_checked(rank, number, index, shown):
    indices = [index if other == number else "1" for other in range(rank)]
    module = flat(f"    X[{', '.join(indices)}] = 1.0", shape=", ".join("n" * rank))
    with pytest.raises(InterpreterError) as caught:
        run(module, {"x": np.zeros((3,) * rank), "n": 3})
    place = ", ".join(str(shown) if other == number else "1" for other in range(rank))
    assert str(caught.value).startswith(f"X[{place}] is out of bounds")


@pytest.mark.parametrize(("start", "shown"), [("0 - 1", -1), ("n - 3", 3)])
@pytest.mark.parametrize("stmt", ["X[LANES] = ONES", 'X[0] = T.lane_reduce("add", X[LANES])'])
def test_each_lane_of_an_access_is_checked(stmt, start, shown):
    body = stmt.replace("LANES", f"T.ramp({start}, 1, 4)").replace("ONES", "T.broadcast(1.0, 4)")
    with pytest.raises(InterpreterError) as caught:
        run(flat(f"    {body}"), {"x": np.zeros(3), "n": 3})
    assert str(caught.value) == f"X[{shown}] is out of bounds: the shape there is (3,)."


def test_warnings_of_numpy_do_not_escape():
    x = array(math.inf, 3e300, 0.0)
    body = "    X[2] = (X[0] - X[0]) + X[1] * X[1] / (X[2] * 0.0)"
    run(flat(body), {"x": x, "n": 3})
    assert math.isnan(x[2])


def test_bfloat16_arrays_hold_upper_halves():
    x = np.array([0x3F80, 0x4000, 0], np.uint16)
    run(flat("    X[2] = X[0] + X[1] / X[0]", dtype="bfloat16"), {"x": x, "n": 3})
    assert x[2] == 0x4040


@pytest.mark.parametrize("option", ["vscale", "chunks"])
def test_options_are_positive(option):
    with pytest.raises(ArgumentError, match=f"{option} is 0") as caught:
        run(flat("    X[0] = 1.0"), {"x": np.zeros(1), "n": 1}, **{option: 0})
    assert caught.value.code == "interpret.option"


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_variable_without_a_value_is_named(rank):
    """A module that was not verified may have one."""
    indices = tuple(index_var(name) for name in ("n", "m", "k")[-rank:])
    body = (Store("X", indices, Const("float64", "1.0")),)
    (function,) = (module := flat("    X[0, 0, 0] = 1.0", shape="n, n, n")).functions
    module = replace(module, functions=(replace(function, body=body),))
    with pytest.raises(InterpreterError, match="'k' has no value" if rank == 1 else "'m' has no"):
        run(module, {"x": np.zeros((2, 2, 2)), "n": 2})
