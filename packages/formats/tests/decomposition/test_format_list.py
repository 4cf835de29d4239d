"""Parts in formats that a user lists, with functions that choose their elements."""

from __future__ import annotations

import numpy as np
import pytest
from decomposed_matrices import left_of_4, matrix, require_parts_of

from gossamer_formats import decompose, from_scipy
from gossamer_ir.errors import FormatError


def test_a_list_of_formats_takes_each_element_in_the_first_part_that_chooses_it():
    stored = matrix((32, 32))
    decomposition = decompose(
        from_scipy(stored),
        [
            ("dia", lambda i, j: abs(i - j) <= 1),
            ("bsr", lambda i, j: (i // 8 + j // 8) % 2 == 0, {"block_rows": 8, "block_columns": 8}),
            ("ell_rows", lambda i, j: j < 0, {"width": 4}),
            "csr",
        ],
    )
    assert [part.name for part in decomposition.parts] == ["dia_0", "bsr_1", "csr_3"]
    assert [part.fixed_sizes for part in decomposition.parts][1] == {
        "block_rows": 8,
        "block_columns": 8,
    }
    require_parts_of(decomposition, stored)


@pytest.mark.parametrize(
    ("formats", "parameters", "code"),
    [
        ("hub", {}, "format.unknown"),
        ("hyb", {"b": 3}, "format.parameter"),
        ("hyb", {"c": 0}, "format.parameter.value"),
        ("hyb", {"c": None}, "format.parameter.value"),
        ("hyb", {"c": 2.0}, "format.parameter.value"),
        ("hyb", {"k": -1}, "format.parameter.value"),
        ("hyb", {"k": 25}, "format.parameter.value"),
        (["csr"], {"c": 1}, "format.parameter"),
        (["rows"], {}, "format.unknown"),
        (["bsr"], {}, "format.parameter.missing"),
        ([("csr", left_of_4)], {}, "format.parts"),
        (["ell3d"], {}, "format.dimensions"),
        ([("csr", "left")], {}, "format.parts"),
        ([("csr", left_of_4, {}, {})], {}, "format.parts"),
        ([("csr", lambda i, j: j)], {}, "format.parts"),
        ([("csr", lambda i, j: np.array([True]))], {}, "format.parts"),
        ([("ell", None, {"width": 1})], {}, "format.width"),
    ],
)
def test_what_cannot_be_decomposed_raises(formats, parameters, code):
    with pytest.raises(FormatError) as caught:
        decompose(from_scipy(matrix()), formats, **parameters)
    assert caught.value.code == code


def test_a_list_of_formats_is_converted_back():
    stored = matrix()
    decomposition = decompose(
        stored, [("bsr", left_of_4, {"block_rows": 2, "block_columns": 2}), "csr"]
    )
    decomposition.check()
    assert np.array_equal(decomposition.tocsr().toarray(), stored.toarray())
