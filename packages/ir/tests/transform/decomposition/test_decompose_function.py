"""Decomposed programs compute what the undivided ones do, as the reference interpreter runs them."""

import numpy as np
import pytest
from decomposed_programs import ROW_SUMS
from msgspec.structs import replace

from gossamer_ir.interpret import run
from gossamer_ir.script import parse_format
from gossamer_ir.transform.decomposition.decompose_function import decompose_function
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.transform.decomposition.instantiated_format import NamedFormat
from gossamer_ir.transform.decomposition.rows_of_parts import RowsOfParts
from gossamer_ir.verify import verify

ELL = parse_format("""
@T.format
def ell(data: T.handle, indices: T.handle, m: T.int64, n: T.int64, width: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (n, width), indices, "int32")
    A = T.sp.match_buffer(data, (I, J), "float32")
""")
# [[1, 2, 0], [0, 0, 0], [4, 0, 8]]
INDPTR, COLUMNS = np.array([0, 2, 2, 4], np.int32), np.array([0, 1, 0, 2], np.int32)
VALUES = np.array([1, 2, 4, 8], np.float32)


def in_parts(**options):
    (function,) = ROW_SUMS.functions
    rules = [NamedFormat("first", ELL), NamedFormat("second", ELL)]
    module = replace(ROW_SUMS, functions=(decompose_function(function, ["A"], rules, **options),))
    verify(module)
    return module


def test_parts_add_up_after_one_init():
    result = np.full(3, np.nan, np.float32)
    arguments = {
        "y": result, "m": 3, "n": 3,
        "data_first": np.array([1, 4, 0], np.float32), "width_first": 1,
        "indices_first": np.array([0, 0, 3], np.int32),
        "data_second": np.array([2, 0, 8], np.float32), "width_second": 1,
        "indices_second": np.array([1, 3, 2], np.int32),
    }  # fmt: skip
    # The second slot of the first part is in row 1: parts may divide the elements in any way.
    run(in_parts(), arguments)
    np.testing.assert_array_equal(result, [3, 4, 8])


def test_a_conversion_reads_the_undivided_tensor():
    result, data = np.full(3, np.nan, np.float32), np.full((2, 3), np.nan, np.float32)
    arguments = {
        "a": VALUES, "y": result, "p": INDPTR, "x": COLUMNS, "m": 3, "n": 3,
        "data_first": data[0], "indices_first": np.array([0, 3, 0], np.int32), "width_first": 1,
        "data_second": data[1], "indices_second": np.array([1, 3, 2], np.int32), "width_second": 1,
    }  # fmt: skip
    run(in_parts(converts=True), arguments)
    np.testing.assert_array_equal(data[0][[0, 2]], [1, 4])
    np.testing.assert_array_equal(data[1][[0, 2]], [2, 8])
    np.testing.assert_array_equal(result, [3, 0, 12])


def bucket(name):
    return NamedFormat(name, parse_format("""
@T.format
def rows(data: T.handle, rows: T.handle, indices: T.handle, m: T.int64, n: T.int64, stored: T.int64) -> None:
    O = T.sp.dense_fixed(1)
    I = T.sp.compressed_fixed(O, (m, stored), rows, "int32", padded=False)
    J = T.sp.compressed_fixed(I, (n, 1), indices, "int32")
    A = T.sp.match_buffer(data, (O, I, J), "float32")
    T.sp.map(lambda o, i, j: (i, j), shape=(m, n))
"""))  # fmt: skip


def test_parts_that_are_declared_to_have_rows_of_their_own_initialize_them_first():
    (function,) = ROW_SUMS.functions
    asked = []

    def rows(dimension):
        asked.append(dimension)
        return RowsOfParts(("second",), are_all=False)

    changed = decompose_function(function, ["A"], [bucket("first"), bucket("second")], rows=rows)
    module = replace(ROW_SUMS, functions=(changed,))
    verify(module)
    assert asked == [0]
    assert [(part.name, bool(part.init)) for part in changed.body] == [
        ("sums_init", False), ("sums_second", True), ("sums_first", False),
    ]  # fmt: skip
    result = np.full(3, np.nan, np.float32)
    arguments = {
        "y": result, "m": 3, "n": 3,
        "data_first": np.array([1, 5], np.float32), "rows_first": np.array([0, 2], np.int32),
        "indices_first": np.array([0, 0], np.int32), "stored_first": 2,
        "data_second": np.array([4], np.float32), "rows_second": np.array([2], np.int32),
        "indices_second": np.array([2], np.int32), "stored_second": 1,
    }  # fmt: skip
    run(module, arguments)
    np.testing.assert_array_equal(result, [1, 0, 9])


def test_an_error_has_the_reason():
    (function,) = ROW_SUMS.functions
    with pytest.raises(DecompositionError, match="'B' is not a sparse buffer") as caught:
        decompose_function(function, ["B"], [NamedFormat("first", ELL)])
    assert caught.value.reason == "buffer"


GROUPS = """
@T.format
def groups(
    data: T.handle, indptr: T.handle, indices: T.handle, rows: T.handle, m: T.int64, n: T.int64,
    slots: T.int64,
) -> None:
    G = T.sp.dense_fixed((m + 1) // 2)
    J = T.sp.compressed_varied(G, (n, slots), (indptr, indices), "int32")
    R = T.sp.dense_fixed(2)
    A = T.sp.match_buffer(data, (G, J, R), "float32")
    ROWS = T.match_buffer(rows, ((m + 1) // 2, 2), "int32")
    T.assume(in_range(ROWS, 0, (m + 1) // 2 * 2))
    T.assume(distinct(ROWS))
    T.sp.map(lambda g, j, r: (T.int64(ROWS[g, r]), j), shape=(m, n))
"""
NOT_PROVED = {
    "rows may be repeated": ("    T.assume(distinct(ROWS))\n", ""),
    "rows may be after the last": ("// 2 * 2)", "// 2 * 2 + 1)"),
    "rows are in no range": ("    T.assume(in_range(ROWS, 0, (m + 1) // 2 * 2))\n", ""),
    "rows are missing": ("(m + 1) // 2", "m // 2"),
    "rows are those of some groups": (
        "T.match_buffer(rows, ((m + 1) // 2, 2)",
        "T.match_buffer(rows, (m, 2)",
    ),
    "rows of two places": ("ROWS[g, r]", "ROWS[g, g]"),
}


def in_groups(text):
    rules = [NamedFormat("p", parse_format(text))]
    function = decompose_function(ROW_SUMS.functions[0], ["A"], rules)
    verify(module := replace(ROW_SUMS, functions=(function,)))
    return module


def test_all_rows_in_any_order_are_initialized_where_they_are_computed():
    module = in_groups(GROUPS)
    assert len(module.functions[0].body) == 1
    result = np.full(3, np.nan, np.float32)
    arguments = {
        "y": result, "m": 3, "n": 3, "slots_p": 3, "indptr_p": np.array([0, 2, 3], np.int32),
        "indices_p": np.array([0, 2, 1], np.int32), "rows_p": np.array([[2, 0], [1, 3]], np.int32),
        "data_p": np.array([[4, 1], [8, 0], [16, 0]], np.float32),
    }  # fmt: skip
    run(module, arguments)
    np.testing.assert_array_equal(result, [1, 16, 12])


@pytest.mark.parametrize(("old", "new"), NOT_PROVED.values(), ids=NOT_PROVED)
def test_rows_that_may_be_missing_are_initialized_before(old, new):
    assert old in GROUPS
    assert len(in_groups(GROUPS.replace(old, new)).functions[0].body) == 2
