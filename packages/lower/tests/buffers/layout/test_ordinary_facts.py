"""Facts about sparse buffers still hold for the ordinary buffers that replace them."""

from __future__ import annotations

import pytest

from gossamer_ir.script import parse_module, print_module
from gossamer_ir.verify import diagnostics
from gossamer_lower import lower_buffers, lower_iterations

SCRIPT = """
@T.prim_func
def f(y: T.handle, e: T.handle, s: T.handle, p: T.handle, q: T.handle, m: T.int64, n: T.int64,
      r: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, n, (p, q))
    E = T.sp.match_buffer(e, (I, J), "int32")
    S = T.sp.match_buffer(s, (I,), "int32")
    Y = T.sp.match_buffer(y, (I, J), "float32")
    T.assume(FACT)
    with T.sp.iteration([I, J], "SS", "x") as [i, j]:
        Y[i, j] = T.cast(E[i, j] + S[i], "float32")
"""
STATED = {
    "in_range(E, 0, r)": "in_range(E_data, 0, r)",
    "in_range(E, 0, T.int64(S[0]) + 1)": "in_range(E_data, 0, T.int64(S_data[0]) + 1)",
    "in_range(S, 0, 5)": "in_range(S_data, 0, 5)",
    "monotone(S)": "monotone(S_data)",
    "monotone(E)": None,
    "sorted_segments(S, unique=True)": "sorted_segments(S_data, unique=True)",
    "sorted_segments(E, unique=True)": None,
    "sorted_segments(E, S, unique=True)": "sorted_segments(E_data, S_data, unique=True)",
    "padded_slots(E, r)": "padded_slots(E_data, r)",
}
"""Facts about sparse buffers, and the facts about the ordinary buffers that replace them. A fact about each
row does not hold for the whole buffer."""


def assumed(text):
    """The facts about the ordinary buffers of a script."""
    loop = lower_buffers(lower_iterations(parse_module(text)))
    assert diagnostics(loop) == ()
    return {line.strip() for line in print_module(loop).splitlines() if "T.assume(" in line}


@pytest.mark.parametrize("fact", STATED)
def test_facts_are_about_what_buffers_become(fact):
    axis_facts = assumed(SCRIPT.replace("    T.assume(FACT)\n", ""))
    stated = {f"T.assume({text})" for text in [STATED[fact]] if text is not None}
    assert axis_facts
    assert assumed(SCRIPT.replace("FACT", fact)) == axis_facts | stated


FOREST = """
@T.prim_func
def f(p: T.handle, q: T.handle, r: T.handle, s: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    H = T.sp.dense_fixed(ROWS)
    I1 = T.sp.dense_fixed(3, parent=I)
    H1 = T.sp.dense_fixed(WIDTH, parent=H)
    J = T.sp.compressed_varied(ABOVE_J, n, (p, q))
    K = T.sp.compressed_varied(ABOVE_K, n, (r, s))
    T.sp.assume(RELATION(J, K))
"""
NUMBERED = {
    "one parent": ("I", "I", "m", "3", True),
    "rows": ("I", "H", "m", "3", True),
    "more rows": ("I", "H", "m + 1", "3", True),
    "rows of rows": ("I1", "H1", "n", "3", True),
    "rows of rows of another length": ("I1", "H1", "m", "2", False),
    "rows, and rows of rows": ("I", "H1", "m", "3", False),
    "rows and columns": ("I", "J", "m", "3", False),
}
"""The parents of two axes, the lengths of H and H1, and whether equal coordinates of the parents mean
equal numbers."""


@pytest.mark.parametrize(
    ("above_j", "above_k", "rows", "width", "is_alike"), NUMBERED.values(), ids=NUMBERED
)
@pytest.mark.parametrize("relation", ["subset", "disjoint"])
def test_related_axes_have_related_coordinates(above_j, above_k, rows, width, is_alike, relation):
    text = FOREST.replace("ABOVE_J", above_j).replace("ABOVE_K", above_k)
    text = text.replace("ROWS", rows).replace("WIDTH", width).replace("RELATION", relation)
    assert (f"T.assume({relation}(J_indices, K_indices))" in assumed(text)) == is_alike


MISSING = """
@T.prim_func
def f(y: T.handle, a: T.handle, p: T.handle, q: T.handle, r: T.handle, s: T.handle, m: T.int64,
      n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = WALKED
    K = T.sp.compressed_varied(I, n, (r, s))
    T.sp.assume(subset(J, K))
    A = T.sp.match_buffer(a, (I, K), "float32")
    Y = T.sp.match_buffer(y, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "x") as [i, j]:
        Y[i, j] = A[i, j]
"""


@pytest.mark.parametrize(
    ("walked", "is_checked"),
    [
        ("T.sp.compressed_varied(I, n, (p, q))", True),
        ("T.sp.compressed_varied(I, n, (p, q), unique=False)", True),
        ("T.sp.compressed_varied(I, n, (p, q), sorted=False, unique=False)", False),
        ("T.sp.dense_varied(I, n, p)", False),
    ],
)
def test_what_cannot_be_checked_is_not_relied_on(walked, is_checked):
    text = MISSING.replace("WALKED", walked)
    position = print_module(lower_iterations(parse_module(text)))
    assert ("T.if_then_else(" in position) != is_checked
    assert any("subset" in line for line in assumed(text)) == is_checked


def test_what_is_stated_of_an_axis_as_well_is_said_once():
    position = lower_iterations(parse_module(SCRIPT.replace("FACT", "in_range(S, 0, 5)")))
    twice = print_module(position).replace("in_range(S, 0, 5)", "in_range(J_indices, 0, n)")
    assert print_module(lower_buffers(parse_module(twice))).count("in_range(J_indices, 0, n)") == 1
