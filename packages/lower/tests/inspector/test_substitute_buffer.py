"""`substitute_buffer`: arrays are replaced by expressions, and shapes by constants."""

from __future__ import annotations

import numpy as np
import pytest
from searching_programs import HEAD, run_on, to_flat

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.script import parse_module
from gossamer_lower import lower_buffers, lower_iterations, substitute_buffer
from gossamer_testkit.examples import program
from gossamer_testkit.show import body_text

READING = program("for i in T.serial(n): Y[i] = X[P[i]]")
WRONG = {
    "unknown": (READING, {"buffer": "Z", "indices": ("i",), "value": "i"}),
    "written": (READING, {"buffer": "Y", "indices": ("i",), "value": "T.float32(0)"}),
    "search": (
        program("Y[T.search('lower', P, begin=0, end=n, value=1)] = 0"),
        {"buffer": "P", "indices": ("i",), "value": "i"},
    ),
    "rank": (READING, {"buffer": "P", "indices": ("i", "j"), "value": "i"}),
    "dtype": (READING, {"buffer": "P", "indices": ("i",), "value": "T.int32(i)"}),
    "shape": (program("Y[P[0] + 0] = 0"), {"buffer": "P", "shape": (3, 3)}),
}


@pytest.mark.parametrize("code", WRONG)
def test_what_cannot_be_substituted_is_refused_by_name(code):
    module, arguments = WRONG[code]
    with pytest.raises(UnsupportedError) as caught:
        substitute_buffer(module, **arguments)
    assert caught.value.code in (
        f"lower.substitute_buffer.{code}",
        "lower.substitute_buffer.dimensions",
    )


def test_the_indices_of_a_band_need_no_array():
    source = (
        HEAD
        + """
    B = T.sp.match_buffer(b, (D,), "float32")
    C = T.sp.match_buffer(c, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "band") as [i, j]:
        C[i] = C[i] + A[i, j] * B[j]
"""
    )
    module = lower_buffers(lower_iterations(parse_module(source)))
    plain = substitute_buffer(module, buffer="J_indptr", indices=("i",), value="i * 2")
    banded = substitute_buffer(plain, buffer="J_indices", indices=("e",), value="e // 2 + e % 2")
    assert {"p", "q"}.isdisjoint(param.name for param in banded.functions[0].params)
    assert "J_ind" not in body_text(banded)
    m, a = 5, np.arange(10, dtype="float32")
    b, c = np.arange(6, dtype="float32") - 2, np.zeros(5, "float32")
    arguments = {"a": a, "b": b, "c": c, "m": m, "n": 6, "nnz_a": 10, "nnz_b": 0}
    run_on(to_flat(banded), arguments)
    np.testing.assert_array_equal(c, a[::2] * b[:-1] + a[1::2] * b[1:])


def test_a_shape_becomes_constant():
    module = substitute_buffer(READING, buffer="X", shape=(4,))
    assert [param.name for param in module.functions[0].params] == ["x", "y", "p"]
    with pytest.raises(UnsupportedError, match="cannot be 5"):
        substitute_buffer(module, buffer="X", shape=(5,))
