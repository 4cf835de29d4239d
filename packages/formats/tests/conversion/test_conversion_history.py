"""Conversions that are refused before anything is converted."""

from __future__ import annotations

import numpy as np
import pytest
from format_conversions import TILES, with_duplicates
from scipy import sparse

from gossamer_formats import convert, from_scipy
from gossamer_ir.errors import FormatError, UnsupportedError
from gossamer_ir.script import parse_format


@pytest.mark.parametrize("option", ["duplicates", "zeros"])
def test_an_unknown_word_for_an_option_is_refused(option):
    with pytest.raises(FormatError, match="expected one of") as caught:
        with_duplicates().asformat("csr", **{option: "all"})
    assert caught.value.code == "format.parameter.value"


@pytest.mark.usefixtures("converted_by")
def test_a_description_with_two_buffers_is_refused():
    second = '    B = T.sp.match_buffer(other, (JO, IO, II, JI), "float32")\n    T.sp.map'
    text = TILES.format(shape=", shape=(m, n)").replace("    T.sp.map", second)
    text = text.replace("data: T.handle", "data: T.handle, other: T.handle")
    with pytest.raises(UnsupportedError) as caught:
        from_scipy(sparse.eye_array(3)).asformat(parse_format(text), side=2)
    assert caught.value.code == "format.value_buffers"


@pytest.mark.parametrize("dtype", ["int8", "float32", "uint64"])
@pytest.mark.usefixtures("converted_by")
def test_indices_have_two_dtypes_only(dtype):
    with pytest.raises(FormatError, match="expected int32 or int64") as caught:
        from_scipy(sparse.eye_array(3)).asformat("csc", index_dtype=dtype)
    assert caught.value.code == "format.index_dtype"


SQUARES = """
@T.format
def squares(data: T.handle, m: T.int64, n: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(data, (I, J), "float32")
    T.sp.map(lambda i, j: ({map}), shape=(m, n))
"""


TWO_VARIED = """
@T.format
def two(data: T.handle, p: T.handle, q: T.handle, m: T.int64, n: T.int64, a: T.int64, b: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (n, a), p, "int32")
    R = T.sp.dense_fixed(2)
    K = T.sp.dense_varied(R, (n, b), q, "int32")
    A = T.sp.match_buffer(data, (I, J, R, K), "float32")
    T.sp.map(lambda i, j, r, k: (i, j), shape=(m, n))
"""


SPREAD = (
    SQUARES.format(map="i, j")
    .replace("lambda i, j", "lambda i, j, k")
    .replace(
        "    A = T.sp.match_buffer(data, (I, J),",
        "    K = T.sp.dense_fixed(2)\n    A = T.sp.match_buffer(data, (I, J, K),",
    )
)
SHIFTED = """
@T.format
def shifted(data: T.handle, rows: T.handle, m: T.int64, n: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(data, (I, J), "float32")
    ROWS = T.match_buffer(rows, (m + 1,), "int32")
    T.sp.map(lambda i, j: (T.int64(ROWS[i + 1]), j), shape=(m, n))
"""


REPEATED = """
@T.format
def repeated(data: T.handle, offsets: T.handle, m: T.int64, n: T.int64, most: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    D = T.sp.dense_fixed(most)
    A = T.sp.match_buffer(data, (I, D), "float32")
    OFFSETS = T.match_buffer(offsets, (m, most), "int32")
    T.assume(distinct(OFFSETS))
    T.sp.map(lambda i, d: (i, i + T.int64(OFFSETS[i, d])), shape=(m, n))
"""


REFUSED = {
    "a name": ("rows", {}, "format.unknown"),
    "a missing parameter": ("bsr", {"block_rows": 2}, "format.parameter.missing"),
    "an unknown parameter": ("csr", {"width": 2}, "format.parameter"),
    "a parameter of zero": ("ell", {"width": 0}, "format.parameter.value"),
    "a parameter that is a float": ("ell", {"width": 2.0}, "format.parameter.value"),
    "a width that is too small": ("ell", {"width": 1}, "format.width"),
    "three dimensions": ("ell3d", {}, "format.dimensions"),
    "a map without shape": (parse_format(TILES.format(shape="")), {"side": 2}, "format.shape.undeclared"),
    "a size that is missing": (
        parse_format(TILES.format(shape=", shape=(m, n)")), {}, "format.parameter.missing",
    ),
    "a size that is none": (
        parse_format(TILES.format(shape=", shape=(m, n)")), {"sides": 2}, "format.parameter",
    ),
    "a map that is not affine": (parse_format(SQUARES.format(map="i * i, j")), {}, "format.inverse"),
    "a map that determines too little": (parse_format(SQUARES.format(map="i, i")), {}, "format.map"),
    "an axis that nothing determines": (parse_format(SPREAD), {}, "format.inverse"),
    "an array at an expression": (parse_format(SHIFTED), {}, "format.inverse"),
    "a map that does not reach an element": (
        parse_format(SQUARES.format(map="i, j + 1")), {}, "format.coordinate",
    ),
    "a map with gaps": (parse_format(SQUARES.format(map="i, 2 * j")), {}, "format.map"),
    "distinct contents in several places": (
        parse_format(REPEATED), {}, "format.distinct",
    ),
    "siblings that vary": (parse_format(TWO_VARIED), {}, "format.nesting"),
    "another shape": (
        parse_format(SQUARES.format(map="i, j").replace("shape=(m, n)", "shape=(m, n // 2 * 2)")),
        {"n": 3}, "format.shape",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("destination", "parameters", "code"), REFUSED.values(), ids=REFUSED)
@pytest.mark.usefixtures("converted_by")
def test_impossible_conversions_are_refused(destination, parameters, code):
    matrix = from_scipy(sparse.csr_array(np.array([[1, 1, 1], [0, 0, 1]], np.float32)))
    with pytest.raises((FormatError, UnsupportedError)) as caught:
        convert(matrix, destination, **parameters)
    assert caught.value.code == code
