"""Sizes and shapes of storage derived from format descriptions, also for formats other than CSR."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gossamer_formats import descriptions, format_named
from gossamer_formats.description_sizes import evaluate
from gossamer_formats.storage import Storage, element_count, value_count
from gossamer_ir.errors import FormatError, UnsupportedError
from gossamer_ir.nodes import VScale
from gossamer_ir.script import parse_expr, parse_format, print_format
from gossamer_ir.verify.formats import diagnostics_of_format

HEADER = "@T.format\ndef made({params}) -> None:\n"
SIZES = {"m": 4, "n": 10, "w": 3, "b": 2, "nnz": 7}
INDPTR = np.array([0, 2, 2, 5, 7])
FORMATS = {
    "padded rows": (
        """
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (n, w), indices, padded=True)
    A = T.sp.match_buffer(data, (I, J), "float32")
""",
        {"I": 4, "J": 12},
        12,
    ),
    "blocks of compressed rows": (
        """
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    BI = T.sp.dense_fixed(b)
    BJ = T.sp.dense_fixed(b)
    A = T.sp.match_buffer(data, (I, J, BI, BJ), "float32")
""",
        {"I": 4, "J": 7, "BI": 2, "BJ": 2},
        28,
    ),
    "ragged rows": (
        """
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (n, nnz), indptr)
    A = T.sp.match_buffer(data, (I, J), "float32")
""",
        {"I": 4, "J": 7},
        7,
    ),
    "a dense row under each row": (
        """
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(w, parent=I)
    A = T.sp.match_buffer(data, (I, J), "float32")
""",
        {"I": 4, "J": 12},
        12,
    ),
}
PARAMS = ", ".join(
    [f"{name}: T.handle" for name in ("data", "indptr", "indices")]
    + [f"{name}: T.int64" for name in SIZES]
)


def test_every_format_of_the_library_is_listed():
    folder = Path(descriptions.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(descriptions.NAMES)
    for name in descriptions.NAMES:
        described = format_named(name).describe()
        assert described.name == format_named(name).name == name
        assert diagnostics_of_format(described) == ()
        assert parse_format(print_format(described)) == described


def storage_of(body):
    description = parse_format(HEADER.format(params=PARAMS) + body.lstrip("\n"))
    return Storage(description, SIZES, {"indptr": INDPTR})


@pytest.mark.parametrize(("body", "counts", "values"), FORMATS.values(), ids=FORMATS)
def test_elements_and_values_are_counted(body, counts, values):
    storage = storage_of(body)
    assert {name: element_count(storage, name) for name in counts} == counts
    assert value_count(storage) == values


@pytest.mark.parametrize(
    ("text", "value"),
    [("m + 1", 5), ("n - m", 6), ("m * w", 12), ("(n + 3) // 4", 3), ("T.max(m, 7)", 7), ("7", 7)],
)
def test_sizes_are_evaluated(text, value):
    assert evaluate(parse_expr(text, dict.fromkeys(SIZES, "int64")), SIZES) == value


def test_a_size_that_is_none_of_a_format_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="VScale") as caught:
        evaluate(VScale(), SIZES)
    assert caught.value.code == "format.size"


def test_a_size_that_is_divided_by_zero_is_refused():
    width = parse_expr("n // w", dict.fromkeys(SIZES, "int64"))
    with pytest.raises(FormatError, match="divided by zero") as caught:
        evaluate(width, SIZES | {"w": 0})
    assert caught.value.code == "format.shape"
