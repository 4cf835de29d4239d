"""The inspector passes: searches become a separate kernel, and the other kernel reads what it found."""

from __future__ import annotations

import numpy as np
import pytest
from searching_programs import HEAD, PROGRAMS, at_stage, run_on, to_flat

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import GuardFailed
from gossamer_ir.nodes import Guard, InRange, Search
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import verify
from gossamer_lower import (
    extract_inspector,
    lower_buffers,
    lower_iterations,
    lower_to_flat,
    use_inspector_results,
)
from gossamer_testkit.examples import program
from gossamer_testkit.show import body_text

ROWS, COLUMNS = 6, 5
FULL = np.add.outer(np.arange(ROWS), 2 * np.arange(COLUMNS)) % 3 == 0
MASKS = {
    "some": (FULL & (np.arange(ROWS) % 5 > 0)[:, None], FULL.copy() * (np.arange(COLUMNS) != 3)),
    "nothing": (np.zeros((ROWS, COLUMNS), bool), FULL),
    "everything": (np.ones((ROWS, COLUMNS), bool), ~FULL),
    "no rows": (np.zeros((0, COLUMNS), bool), np.zeros((0, COLUMNS), bool)),
    "one dense row": (np.arange(ROWS)[:, None] == np.full(COLUMNS, 4), FULL),
}


def case(name, mine, theirs):
    """The arguments, and the expected result in float64."""
    m, n = mine.shape
    a, b = (np.arange(mask.sum(), dtype="float32") % 7 + 1 for mask in (mine, theirs))
    dense = (np.arange(m * n, dtype="float32") % 5 - 2).reshape(m, n)
    left, right = np.zeros((m, n)), np.zeros((m, n))
    left[mine], right[theirs] = a, b
    right = right if name == "of another tree" else dense
    product = left * right
    expected = product if name == "dense" else product[mine]
    arrays = {
        "a": a, "b": b if name == "of another tree" else dense,
        "c": np.full(expected.shape, np.nan, "float32"),
        "m": m, "n": n, "nnz_a": len(a), "nnz_b": len(b),
    }  # fmt: skip
    for (indptr, indices), mask in zip((("p", "q"), ("r", "s")), (mine, theirs), strict=True):
        arrays[indptr] = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype("int32")
        arrays[indices] = np.nonzero(mask)[1].astype("int32")
    return arrays, expected


def results_of(module, arguments, *, stage, dtype):
    """Runs the two kernels one after the other and returns the result of the second."""
    first, second = (
        pass_(module, dtype=dtype) for pass_ in (extract_inspector, use_inspector_results)
    )
    if stage == "flat":
        first, second = to_flat(first), to_flat(second)
    kernel_arguments = dict(arguments, c=arguments["c"].copy())
    for param in first.functions[0].params:
        if param.name not in kernel_arguments:
            size = (
                kernel_arguments["nnz_a"]
                if arguments["c"].ndim == 1
                else kernel_arguments["c"].size
            )
            kernel_arguments[param.name] = np.full(size, 99, dtype)
    run_on(first, kernel_arguments)
    assert not any(isinstance(node, Search) for node in walk(second))
    run_on(second, kernel_arguments)
    return kernel_arguments["c"]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(
    ("name", "stage"),
    [(name, "loop") for name in PROGRAMS] + [("fused", "position"), ("dense", "position")],
)
def test_two_kernels_do_what_one_did(name, stage, dtype, mask):
    arguments, expected = case(name, *MASKS[mask])
    module = at_stage(name, stage)
    for last in ("same", "flat"):
        actual = results_of(module, arguments, stage=last, dtype=dtype)
        np.testing.assert_array_equal(actual.reshape(expected.shape), expected)


@pytest.mark.parametrize("name", ["dense", "of another tree"])
def test_what_is_tested_and_then_read_is_searched_once(name):
    position = lower_iterations(parse_module(HEAD + PROGRAMS[name]))
    searches = [node for node in walk(extract_inspector(position)) if isinstance(node, Search)]
    assert len(searches) == 1
    rest = use_inspector_results(position)
    assert not [node for node in walk(rest) if isinstance(node, Search)]


def test_accesses_at_found_positions_need_no_guard():
    loops = lower_buffers(lower_iterations(parse_module(HEAD + PROGRAMS["dense"])))
    flat = lower_to_flat(use_inspector_results(loops))
    assert [node for node in walk(flat) if isinstance(node, Guard)] == []


def test_the_rows_of_all_elements():
    module = at_stage("fused", "loop")
    (first,) = extract_inspector(module).functions
    assert [param.name for param in first.params] == ["p", "m", "nnz_a", "J_indptr_found"]
    (second,) = use_inspector_results(module).functions
    arguments, _ = case("fused", *MASKS["some"])
    rows = np.zeros(arguments["nnz_a"], "int64")
    run_on(extract_inspector(module), arguments | {"J_indptr_found": rows})
    np.testing.assert_array_equal(rows, np.nonzero(MASKS["some"][0])[0])
    assert any(isinstance(fact, InRange) and "found" in fact.buffer for fact in second.facts)


def test_a_result_that_does_not_fit_stops_the_kernel():
    module = program("""
    for i in T.serial(n):
        Y[i] = X[T.search("upper", P, begin=0, end=n, value=i + 1) + 2147483647]
    """)
    p = np.array([0], "int64")
    arguments = {"p": p, "n": 1, "P_found": np.zeros(1, "int32")}
    with pytest.raises(GuardFailed, match="P_found_data"):
        run_on(extract_inspector(module, dtype="int32"), arguments)


REFUSED = {
    "lower.inspector.stage": (lower_to_flat(program("Y[0] = 0")), "int64"),
    "lower.inspector.dtype": (program("Y[0] = 0"), "uint8"),
    "lower.inspector.no_search": (program("Y[0] = 0"), "int64"),
}
LEFT = {
    "the searched array is written": "P[0] = 1\nY[T.search('lower', P, begin=0, end=n, value=1)] = 0",
    "the value searched for is not an index": """
for i in T.serial(n):
    Y[T.search('lower', P, begin=0, end=n, value=T.int64(X[i]))] = 0""",
    "the number of results is not known": """
for i in T.serial(P[0]):
    Y[T.search('lower', P, begin=0, end=n, value=i)] = 0""",
    "the loop is a while": """
while X[0] > 0.0:
    Y[T.search('lower', P, begin=0, end=n, value=0)] = 0""",
    "a condition in another loop decides what there is to search": """
for i in T.serial(n):
    for k in T.serial(4):
        if P[k] > 0:
            Y[T.search('lower', P, begin=0, end=P[i], value=i)] = 0""",
    "a condition that may wrap around decides what there is to search": """
for i in T.serial(n):
    if X[i] > 0.0:
        if P[0] >= 0 and i + P[0] < n:
            Y[T.search('lower', P, begin=0, end=n, value=P[i + P[0]])] = 0""",
    "a condition on values decides what there is to search": """
for i in T.serial(n):
    if X[i] > 0.0:
        Y[T.search('lower', P, begin=0, end=P[i], value=i)] = 0""",
}


@pytest.mark.parametrize("condition", ["X[i] > 0.0", "P[k] > 1", "Y[i] == 0.0", "k < 3"])
def test_a_search_that_has_an_answer_everywhere_is_made_without_its_condition(condition):
    module = program(f"""
    for i in T.serial(n):
        for k in T.serial(4):
            if {condition}:
                Y[T.search("lower", P, begin=0, end=n, value=i * 2) % 5] = T.float32(7 + k)
    """)
    x, p = np.array([-1, 1, 0, 2, 3], "float32"), np.array([0, 1, 3, 6, 8], "int64")
    arguments, expected = {"x": x, "p": p, "n": 5}, np.zeros(5, "float32")
    run_on(module, arguments | {"y": expected})
    searched, y = np.full(5, -9, "int64"), np.zeros(5, "float32")
    first, second = to_flat(extract_inspector(module)), to_flat(use_inspector_results(module))
    run_on(first, arguments | {"P_found": searched})
    np.testing.assert_array_equal(searched, np.searchsorted(p, np.arange(5) * 2))
    run_on(second, arguments | {"P_found": searched, "y": y})
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("extract", [extract_inspector, use_inspector_results])
@pytest.mark.parametrize("code", REFUSED)
def test_what_cannot_be_taken_out_is_refused_by_name(code, extract):
    module, dtype = REFUSED[code]
    with pytest.raises(UnsupportedError) as caught:
        extract(module, dtype=dtype)
    assert caught.value.code == code


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_searches_that_depend_on_more_than_index_arrays_stay(body):
    with pytest.raises(UnsupportedError) as caught:
        use_inspector_results(program(body))
    assert caught.value.code == "lower.inspector.no_search"


def test_a_search_in_a_combination_is_made_before():
    module = program("""
        largest = T.comm_reducer(lambda x, y: (T.max(x, y),), (T.float32("-inf"),))
        for i in T.serial(n):
            Y[0], = largest(Y[0], X[T.search("upper", P, begin=1, end=n, value=i) - 1])
    """)
    text = body_text(use_inspector_results(module))
    assert text.splitlines()[-1].strip() == "Y[0] = largest(Y[0], X[P_found_data[i]])"


MARKED = """
@T.prim_func
def scaled(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n)
    X = T.sp.match_buffer(x, (I,), "float64")
    Y = T.sp.match_buffer(y, (I,), "float64")
    W = T.sp.alloc_buffer((I,), "float64")
    with T.sp.iteration([I], "S", "prepare") as [i]:
        T.sp.iteration_attr({"preprocess": True})
        W[i] = X[i] * 2.0
    with T.sp.iteration([I], "S", "use") as [k]:
        Y[k] = Y[k] + W[k]
"""


@pytest.mark.parametrize("stage", ["position", "loop"])
def test_marked_blocks_become_a_kernel_of_their_own(stage):
    module = lower_iterations(parse_module(MARKED))
    module = lower_buffers(module) if stage == "loop" else module
    first, second = verify(extract_inspector(module)), verify(use_inspector_results(module))
    assert [param.name for param in first.functions[0].params] == [
        "x",
        "n",
        first.functions[0].params[-1].name,
    ]
    pointer = first.functions[0].params[-1].name
    x, w = np.arange(3.0), np.zeros(3)
    run_on(first, {"x": x, "n": 3, pointer: w})
    np.testing.assert_array_equal(w, 2 * x)
    y = np.ones(3)
    for _ in range(2):
        run_on(second, {"x": x * 0, "y": y, "n": 3, pointer: w})
    np.testing.assert_array_equal(y, 1 + 4 * x)


NOT_ALONE = {
    "the rest writes what it reads": MARKED + "    with T.sp.iteration([I], 'S', 'end') as [j]:\n"
    "        X[j] = 1.0\n",
    "the rest writes what it writes": MARKED + "    with T.sp.iteration([I], 'S', 'end') as [j]:\n"
    "        W[j] = 1.0\n",
}


@pytest.mark.parametrize("text", NOT_ALONE.values(), ids=NOT_ALONE)
@pytest.mark.parametrize("part", [extract_inspector, use_inspector_results])
def test_a_marked_block_in_a_loop_with_others_is_refused(part, text):
    with pytest.raises(UnsupportedError) as caught:
        part(lower_iterations(parse_module(text)))
    assert caught.value.code == "lower.inspector.marked_blocks"
