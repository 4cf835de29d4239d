"""Members of `T` in Python code outside of scripts."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.script import T, parse_expr, print_expr


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (T.vscale(), "T.vscale()"),
        (T.vscale() * 4, "4 * T.vscale()"),
        (2 * T.vscale() * np.int64(4), "8 * T.vscale()"),
    ],
)
def test_a_multiple_of_vscale_is_the_text_of_an_expression(value, text):
    assert repr(value) == text
    assert print_expr(parse_expr(repr(value), {})) == text


def test_vscale_is_multiplied_by_integers_only():
    with pytest.raises(TypeError):
        T.vscale() * 1.5
