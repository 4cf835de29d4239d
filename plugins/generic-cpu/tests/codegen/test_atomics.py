"""Atomic updates of every number dtype, on few elements, so that threads conflict."""

import numpy as np
import pytest

from gossamer_backend.call.threads import reset_num_threads, set_num_threads
from gossamer_ir.core.bfloat16 import decode_bfloat16, encode_bfloat16, round_bfloat16
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify

COUNT = 400_000
COMBINED = {"add": np.add, "min": np.minimum, "max": np.maximum}
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
BUFFERS = """
    T.stage("flat")
    Y = T.match_buffer(y, (m,), "DTYPE")
    P = T.match_buffer(p, (n,), "uint8")
    A = T.match_buffer(a, (n,), "DTYPE")
"""
PARAMETERS = "y: T.handle, p: T.handle, a: T.handle, n: T.int64, m: T.int64"
SCATTER = f"""
@T.prim_func(entry=True)
def scatter({PARAMETERS}) -> None:{BUFFERS}
    T.parallel_for("chunk", "i", n, args=[y, p, a, n, m], grain=1)

@T.prim_func
def chunk(begin: T.int64, end: T.int64, {PARAMETERS}) -> None:{BUFFERS}
    for i in T.serial(begin, end):
        T.atomic_OP(Y[T.int64(P[i])], A[i])
"""


def scatter(op, dtype):
    return verify(parse_module(SCATTER.replace("DTYPE", dtype).replace("OP", op)))


@pytest.fixture(params=[1, 2, 5], autouse=True)
def threads(request):
    set_num_threads(request.param)
    yield request.param
    reset_num_threads()


@pytest.fixture(name="run_native")
def give_run_native(build):
    return lambda module, **arguments: build(module)(**arguments)


def combined(start, places, terms, *, op):
    expected = start.copy()
    with np.errstate(invalid="ignore"):
        COMBINED[op].at(expected, places, terms)
    return expected


def arguments(start, terms, *, places=None):
    if places is None:
        places = np.arange(len(terms)) * 5 % 7 % max(len(start), 1)
    return {"y": start.copy(), "p": places.astype(np.uint8), "a": terms}


@pytest.mark.parametrize("op", COMBINED)
@pytest.mark.parametrize("dtype", [*INTEGERS, "float16", "float32", "float64"])
def test_nothing_that_threads_combine_is_lost(run_native, op, dtype):
    random = np.random.default_rng(3)
    terms = random.integers(0 if dtype.startswith("u") else -3, 4, COUNT).astype(dtype)
    if dtype == "float16":  # so that each sum on the way is a number that it has
        terms = np.tile(np.array([1, -1, 0], dtype), COUNT)[:COUNT]
    kernel_arguments = arguments(np.arange(3).astype(dtype), terms)
    expected = combined(kernel_arguments["y"], kernel_arguments["p"], terms, op=op)
    run_native(scatter(op, dtype), **kernel_arguments, n=COUNT, m=3)
    np.testing.assert_array_equal(kernel_arguments["y"], expected)


@pytest.mark.parametrize("op", COMBINED)
def test_bfloat16_is_combined_as_float32_and_rounded(run_native, op):
    terms = np.tile(np.array([2, -2, 0.5, -0.5, 3, -3], np.float32), COUNT)[:COUNT]
    kernel_arguments = arguments(np.ones(1, np.float32), terms)
    expected = combined(kernel_arguments["y"], kernel_arguments["p"], terms, op=op)
    stored = {key: encode_bfloat16(round_bfloat16(kernel_arguments[key])) for key in ("y", "a")}
    run_native(scatter(op, "bfloat16"), **(kernel_arguments | stored), n=COUNT, m=1)
    np.testing.assert_array_equal(decode_bfloat16(stored["y"]), expected)


@pytest.mark.parametrize("op", COMBINED)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_stays_and_infinities_are_numbers(run_native, op, dtype):
    terms = np.array([1, np.nan, 2, np.inf, -np.inf, 3, 0, -4], dtype)
    places = np.array([0, 0, 0, 1, 2, 3, 3, 3])
    kernel_arguments = arguments(np.array([1, 1, 1, 1, 9], dtype), terms, places=places)
    expected = combined(kernel_arguments["y"], places, terms, op=op)
    run_native(scatter(op, dtype), **kernel_arguments, n=len(terms), m=5)
    np.testing.assert_array_equal(kernel_arguments["y"], expected)


@pytest.mark.parametrize("count", [0, 1, 17])
def test_the_interpreter_agrees_in_any_order_of_chunks(run_native, count):
    terms = np.arange(count, dtype=np.float32)
    native, interpreted = (arguments(np.zeros(4, np.float32), terms) for _ in range(2))
    run_native(scatter("add", "float32"), **native, n=count, m=4)
    run(scatter("add", "float32"), interpreted | {"n": count, "m": 4}, chunks=3)
    np.testing.assert_array_equal(native["y"], interpreted["y"])
    np.testing.assert_array_equal(native["y"], combined(np.zeros(4), native["p"], terms, op="add"))
