"""Reductions by built-in and user-declared reducers, at every stage and natively, against NumPy."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from script_runs import assert_everywhere, call, program, results

from gossamer.compilation.build_kernels import KERNELS
from gossamer.compilation.pipeline import lower_by_stage
from gossamer_ir.analysis.statements.reductions import identity
from gossamer_ir.errors import ArgumentError, ScheduleError
from gossamer_ir.interchange.records import Schedule, Step
from gossamer_ir.interpret import GuardFailed, InterpreterError, run
from gossamer_ir.nodes import Combine
from gossamer_ir.script import parse_module, print_expr
from gossamer_ir.traversal.walk import walk
from gossamer_schedule import replay
from gossamer_testkit import script

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
OPS = {
    "add": ("{old} + {new}", np.add, (*INTEGERS, "float32", "float64")),
    "mul": ("{old} * {new}", np.multiply, (*INTEGERS, "float32", "float64")),
    "min": ("T.min({old}, {new})", np.minimum, (*INTEGERS, "float32", "float64", "bool")),
    "max": ("T.max({old}, {new})", np.maximum, (*INTEGERS, "float32", "float64", "bool")),
    "and": ("{old} and {new}", np.logical_and, ("bool",)),
    "or": ("{old} or {new}", np.logical_or, ("bool",)),
}
LENGTHS = {
    "rows of all kinds": [0, 3, 1, 0, 40, 2, 17, 0],
    "no rows": [],
    "no elements": [0, 0],
    "one dense row": [100],
}
ROWS = """
@T.prim_func
def rows(a: T.handle, indptr: T.handle, indices: T.handle, y: T.handle,
         m: T.int64, n: T.int64, nnz: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    A = T.sp.match_buffer(a, (I, J), "{dtype}")
    Y = T.sp.match_buffer(y, (I,), "{dtype}")
    with T.sp.iteration([I, J], "SR", "rows") as [i, j]:
        {init}
        Y[i] = {update}
"""


def csr(lengths, columns=100):
    """The structure of a matrix with rows of these lengths."""
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype("int32")
    columns_of_rows = [
        np.sort((np.arange(k) * 37 + row) % columns) for row, k in enumerate(lengths)
    ]
    return indptr, np.concatenate([np.zeros(0), *columns_of_rows]).astype("int32")


def arguments(lengths, values, columns=100):
    indptr, indices = csr(lengths, columns)
    return {
        "a": values, "indptr": indptr, "indices": indices,
        "m": len(lengths), "n": columns, "nnz": len(values),
    }  # fmt: skip


def values_of(dtype, size):
    mixed = np.arange(size) * 5 % 7
    if dtype == "bool":
        return mixed % 3 != 0
    return (mixed - 3 * (not dtype.startswith("u"))).astype(dtype)


@pytest.mark.parametrize("pattern", LENGTHS)
@pytest.mark.parametrize("has_init", [True, False], ids=["init", "no init"])
@pytest.mark.parametrize(
    ("op", "dtype"), [(op, dtype) for op, (_, _, dtypes) in OPS.items() for dtype in dtypes]
)
def test_rows_are_reduced(op, dtype, has_init, pattern):
    text, ufunc, _ = OPS[op]
    lengths = LENGTHS[pattern]
    start = print_expr(identity(op, dtype))
    source = ROWS.format(
        dtype=dtype,
        init=f"with T.init():\n            Y[i] = {start}" if has_init else "pass",
        update=text.format(old="Y[i]", new="A[i, j]"),
    )
    before = values_of(dtype, len(lengths))
    kernel_arguments = arguments(lengths, values_of(dtype, sum(lengths))) | {"y": before}
    neutral = ufunc.identity if ufunc.identity is not None else _limit(op, dtype)
    expected = before.copy()
    for row, (first, last) in enumerate(
        zip(kernel_arguments["indptr"], kernel_arguments["indptr"][1:], strict=False)
    ):
        begin = np.asarray([neutral if has_init else before[row]], dtype)
        expected[row] = ufunc.reduce(
            np.concatenate([begin, kernel_arguments["a"][first:last]]), dtype=dtype
        )
    assert_everywhere(parse_module(source), kernel_arguments, y=expected)


def _limit(op, dtype):
    if dtype == "bool":
        return op == "min"
    if dtype.startswith("float"):
        return inf if op == "min" else -inf
    return np.iinfo(dtype).max if op == "min" else np.iinfo(dtype).min


# --- reducers that a program declares

SPECIAL = {
    "ties": np.array([1, 2, 2, -1, 2, 0, 0, 3] * 20),
    "both infinities": np.array([inf, -inf, 0, 5, -inf, inf, 1] * 20),
    "only minus infinity": np.full(150, -inf),
}


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pattern", LENGTHS)
@pytest.mark.parametrize("data", SPECIAL)
@pytest.mark.parametrize("name", ["argmax_rows", "argmin_rows_paper"])
def test_where_rows_are_extreme(name, data, pattern, dtype, index):
    lengths, sign = LENGTHS[pattern], 1 if "max" in name else -1
    kernel_arguments = arguments(lengths, SPECIAL[data][: sum(lengths)].astype(dtype))
    kernel_arguments |= {key: kernel_arguments[key].astype(index) for key in ("indptr", "indices")}
    columns, values = np.full(len(lengths), 2**63 - 1), np.full(len(lengths), sign * -inf)
    for row in range(len(lengths)):
        elements = slice(kernel_arguments["indptr"][row], kernel_arguments["indptr"][row + 1])
        if lengths[row]:
            values[row] = (sign * kernel_arguments["a"][elements]).max() * sign
            columns[row] = kernel_arguments["indices"][elements][
                np.argmax(sign * kernel_arguments["a"][elements])
            ]
    kernel_arguments |= {
        "columns": np.zeros(len(lengths), "int64"),
        "values": np.zeros(len(lengths), dtype),
    }
    module = program(name, dtype=dtype, index=index)
    assert_everywhere(module, kernel_arguments, columns=columns, values=values)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pattern", LENGTHS)
def test_log_sum_exp_of_rows(pattern, dtype):
    lengths = LENGTHS[pattern]
    data = (np.arange(sum(lengths)) * 37 % 101 - 50).astype(dtype)
    data[5:8] = -inf
    kernel_arguments = arguments(lengths, data)
    kernel_arguments |= {
        name: np.full(len(lengths), np.nan, dtype) for name in ("maxima", "sums", "y")
    }
    rows = [
        data[a:b].astype("float64") for a, b in zip(*_ends(kernel_arguments["indptr"]), strict=True)
    ]
    wanted = np.array([np.logaddexp.reduce(row) if row.size else -inf for row in rows])
    largest = np.array([row.max(initial=-inf) for row in rows])
    module = program("log_sum_exp_rows", dtype=dtype)
    for way, (y, maxima) in results(module, kernel_arguments, "y", "maxima"):
        np.testing.assert_array_equal(maxima, largest, way)
        bound = (max(lengths, default=0) + 60) * np.finfo(dtype).eps
        np.testing.assert_allclose(y, wanted, rtol=bound, atol=bound, err_msg=way)


def test_log_sum_exp_of_single_elements_and_of_none():
    lengths, data = [0, 1, 1, 0, 2, 1], np.float32([3, -inf, 7, -inf, -2])
    kernel_arguments = arguments(lengths, data)
    kernel_arguments |= {
        name: np.full(len(lengths), np.nan, "float32") for name in ("maxima", "sums", "y")
    }
    expected = np.array([-inf, 3, -inf, -inf, 7, -2])
    assert_everywhere(program("log_sum_exp_rows"), kernel_arguments, y=expected, maxima=expected)


def _ends(indptr):
    return indptr[:-1], indptr[1:]


def test_a_sum_of_products_by_a_declared_reducer_scatters_and_gathers():
    source = """
@T.prim_func
def spread(a: T.handle, q: T.handle, low: T.handle, high: T.handle, m: T.int64, n: T.int64):
    I = T.sp.dense_fixed(m)
    K = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I,), "int64")
    Q = T.sp.match_buffer(q, (I,), "int64")
    L = T.sp.match_buffer(low, (K,), "int64")
    H = T.sp.match_buffer(high, (K,), "int64")
    span = T.comm_reducer(lambda a, b, c, d: (T.min(a, c), T.max(b, d)),
                          (T.max_value("int64"), T.min_value("int64")))
    with T.sp.iteration([I], "S", "spread") as [i]:
        L[Q[i]], H[Q[i]] = span(L[Q[i]], H[Q[i]], A[i], A[i] * 2)
"""
    rng = np.random.default_rng(3)
    a, q = rng.integers(-50, 50, 40), rng.integers(0, 6, 40)
    low, high = np.full(6, 10), np.full(6, -10)
    expected = low.copy(), high.copy()
    np.minimum.at(expected[0], q, a)
    np.maximum.at(expected[1], q, 2 * a)
    arguments = {"a": a, "q": q, "low": low, "high": high, "m": 40, "n": 6}
    assert_everywhere(parse_module(source), arguments, low=expected[0], high=expected[1])


SCATTER = """
@T.prim_func
def argmax_into(a: T.handle, p: T.handle, q: T.handle, c: T.handle, v: T.handle, r: T.handle,
                s: T.handle, m: T.int64, n: T.int64, nnz: T.int64, stored: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    O = T.sp.dense_fixed(1)
    R = T.sp.compressed_varied(O, (m, stored), (r, s))
    A = T.sp.match_buffer(a, (I, J), "float32")
    C = T.sp.match_buffer(c, (O, R), "int64")
    V = T.sp.match_buffer(v, (O, R), "float32")
    argmax = T.comm_reducer(
        lambda c0, v0, c1, v1: (T.Select(v0 > v1 or (v0 == v1 and c0 < c1), c0, c1), T.max(v0, v1)),
        (T.max_value("int64"), T.float32("-inf")))
    with T.sp.iteration([T.sp.fuse(I, J)], "SR", "rows") as [i, j]:
        C[0, i], V[0, i] = argmax(C[0, i], V[0, i], j, A[i, j])
"""


def test_elements_that_are_looked_up_are_combined_together_or_not_at_all():
    kernel_arguments = arguments([0, 3, 1, 0, 4], np.array([1, 3, 3, -2, 5, 0, 5, 1], "float32"))
    kernel_arguments |= {"p": kernel_arguments["indptr"], "q": kernel_arguments["indices"], "m": 5}
    for rows, is_missing in (([1, 2, 4], False), ([2, 4], True)):
        structure = {"r": np.array([0, len(rows)], "int32"), "s": np.array(rows, "int32")}
        kernel_arguments |= structure | {"stored": len(rows), "c": np.full(len(rows), 2**62)}
        kernel_arguments |= {"v": np.full(len(rows), -inf, "float32")}
        module = parse_module(SCATTER)
        if not is_missing:
            at = kernel_arguments["indptr"][rows] + np.array([1, 0, 0])
            expected = kernel_arguments["indices"][at], kernel_arguments["a"][at]
            assert_everywhere(module, kernel_arguments, c=expected[0], v=expected[1])
            continue
        for lowered in lower_by_stage(module, Schedule()):
            copies = {
                name: kernel_arguments[name]
                for name in [p.name for p in module.functions[0].params]
            }
            with pytest.raises(GuardFailed):
                run(lowered, copies)
        with pytest.raises(ArgumentError) as caught:
            call(KERNELS.build_module(module, schedule=Schedule()).kernel, kernel_arguments)
        assert caught.value.code == "kernel.out_of_bounds"


# --- schedules


def scheduled(module, *steps, stage="loop"):
    return KERNELS.build_module(module, schedule=Schedule(**{stage: tuple(steps)}))


def step(op, **args):
    return Step(op, args)


ACCEPTED = {
    "parallel rows": [step("parallel", loop="i")],
    "split rows": [step("split", loop="i", factors=(None, 4)), step("unroll", loop="i_1")],
    "split columns": [step("split", loop="j", factors=(None, 4)), step("unroll", loop="j_1")],
    "init apart": [step("decompose_reduction", block="argmax", loop="j")],
    "init far apart": [step("decompose_reduction", block="argmax", loop="i")],
    "elements in registers": [
        step("cache_write", block="argmax", buffer="V_data", scope="local"),
        step("cache_write", block="argmax", buffer="C_data", scope="local"),
        step("decompose_reduction", block="argmax", loop="j"),
    ],
    "digits exchanged": [
        step("split", loop="j", factors=(None, 4)),
        step("reorder", loops=("j_1", "j_0")),
    ],
}
REFUSED = {
    "vectorize.not_reducer": [
        step("split", loop="j", factors=(None, 8)),
        step("vectorize", loop="j_1"),
    ],
    "parallel.race": [step("parallel", loop="j")],
}


def argmax_case():
    lengths = LENGTHS["rows of all kinds"]
    kernel_arguments = arguments(lengths, SPECIAL["ties"][: sum(lengths)].astype("float32"))
    shape = len(lengths)
    return kernel_arguments | {
        "columns": np.zeros(shape, "int64"),
        "values": np.zeros(shape, "float32"),
    }


@pytest.mark.parametrize("steps", ACCEPTED.values(), ids=ACCEPTED)
def test_schedules_keep_what_a_declared_reducer_gives(steps):
    module, plain, moved = program("argmax_rows"), argmax_case(), argmax_case()
    call(KERNELS.build_module(module, schedule=Schedule()).kernel, plain)
    call(scheduled(module, *steps).kernel, moved)
    for name in ("columns", "values"):
        np.testing.assert_array_equal(moved[name], plain[name])
    for lowered in lower_by_stage(module, Schedule(loop=tuple(steps))):
        again = argmax_case()
        run(lowered, again, chunks=3)
        for name in ("columns", "values"):
            np.testing.assert_array_equal(again[name], plain[name], lowered.stage)


@pytest.mark.parametrize(("code", "steps"), REFUSED.items(), ids=REFUSED)
def test_schedules_that_a_declared_reducer_forbids_are_refused_by_name(code, steps):
    module = list(lower_by_stage(program("argmax_rows"), Schedule()))[2]
    assert any(isinstance(node, Combine) for node in walk(module))
    with pytest.raises(ScheduleError) as caught:
        replay(module, tuple(steps))
    assert caught.value.code == f"schedule.{code}"


def test_a_cache_of_what_a_declared_reducer_goes_on_from_loads_it():
    before, _, after = script("argmax_rows").partition("        with T.init")
    module = parse_module(before + after[after.index("        C[i], V[i]") :])
    cached = [step("cache_write", block="argmax", buffer="V_data", scope="local")]
    for lowered in lower_by_stage(module, Schedule(loop=tuple(cached))):
        inputs, expected = argmax_case(), argmax_case()
        for arrays in (inputs, expected):
            arrays["columns"][:], arrays["values"][:] = 1, 2.0
        run(module, expected)
        run(lowered, inputs, chunks=3)
        for name in ("columns", "values"):
            np.testing.assert_array_equal(inputs[name], expected[name], lowered.stage)


def test_the_columns_of_a_matrix_are_reduced_in_lanes():
    source = """
@T.prim_func
def columns(a: T.handle, where: T.handle, y: T.handle, m: T.int64, n: T.int64):
    I = T.sp.dense_fixed(m)
    K = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, K), "float32")
    W = T.sp.match_buffer(where, (K,), "int64")
    Y = T.sp.match_buffer(y, (K,), "float32")
    argmax = T.comm_reducer(
        lambda c0, v0, c1, v1: (T.Select(v0 > v1 or (v0 == v1 and c0 < c1), c0, c1), T.max(v0, v1)),
        (T.max_value("int64"), T.float32("-inf")))
    with T.sp.iteration([I, K], "RS", "columns") as [i, k]:
        with T.init():
            W[k] = T.max_value("int64")
            Y[k] = T.float32("-inf")
        W[k], Y[k] = argmax(W[k], Y[k], i, A[i, k])
"""
    module = parse_module(source)
    a = (np.arange(13 * 21) * 7 % 11).astype("float32").reshape(13, 21)
    steps = [step("split", loop="k", factors=(None, 8)), step("vectorize", loop="k_1")]
    for schedule in (Schedule(), Schedule(loop=tuple(steps))):
        arguments = {"a": a, "where": np.zeros(21, "int64"), "y": np.zeros(21, "float32")}
        call(KERNELS.build_module(module, schedule=schedule).kernel, arguments | {"m": 13, "n": 21})
        np.testing.assert_array_equal(arguments["where"], a.argmax(axis=0))
        np.testing.assert_array_equal(arguments["y"], a.max(axis=0))


def test_an_identity_that_changes_itself_is_found_by_the_interpreter():
    text = "lambda x, y: (x + y,), (T.float32(1),)"
    source = ROWS.format(dtype="float32", init="pass", update="f(Y[i], A[i, j])")
    source = source.replace("    with T.sp", f"    f = T.comm_reducer({text})\n    with T.sp")
    kernel_arguments = arguments([2], np.ones(2, "float32")) | {"y": np.zeros(1, "float32")}
    with pytest.raises(InterpreterError, match="identity of the reducer 'f'"):
        run(parse_module(source), kernel_arguments)
