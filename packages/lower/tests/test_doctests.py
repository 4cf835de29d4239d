"""Runs the examples of the README and of the docstrings, and checks the order of the passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gossamer_lower
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.script import parse_module, print_module
from gossamer_lower import lower_buffers, lower_iterations, lower_to_flat
from gossamer_lower.passes import PASS_RECORDS
from gossamer_lower.passes_by_name import PASSES
from tests.doctests.docstrings import modules_with_examples, run_docstrings


def test_the_example_of_the_readme():
    text = (Path(__file__).parents[1] / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert list(names["y"]) == [3, 4]


@pytest.mark.parametrize("name", modules_with_examples(gossamer_lower))
def test_the_examples_of_the_docstrings(name):
    run_docstrings(name)


@pytest.mark.parametrize(
    "name",
    [record.name for record in PASS_RECORDS],
)
def test_every_pass_shows_a_before_and_after(name):
    assert run_docstrings(getattr(gossamer_lower, name).__module__) >= 2


def test_the_readme_lists_every_pass():
    text = (Path(__file__).parents[1] / "README.md").read_text()
    passes = [record.name for record in PASS_RECORDS if record.pipeline is not None]
    assert re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE) == passes
    assert [name for name in PASSES if f"`{name}`" not in text] == []


@pytest.mark.parametrize("lower", [lower_buffers, lower_to_flat])
def test_a_pass_refuses_a_module_of_another_stage(spmm, lower):
    with pytest.raises(ArgumentError, match="this one is of the coordinate stage"):
        lower(spmm)


HEADER = """
@T.prim_func
def program(a: T.handle, b: T.handle, p: T.handle, q: T.handle,
            m: T.int32, n: T.int32, nnz: T.int32) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q), "int32", sorted=False)
    D = T.sp.dense_fixed(n)
"""
REFUSED = {
    "lower.lower_iterations.unsorted_lookup": """
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (I, D), "float32")
    with T.sp.iteration([I, D], "SS", "x") as [i, d]:
        B[i, d] = A[i, d]
""",
    "lower.lower_iterations.missing_parent": """
    D2 = T.sp.dense_fixed(3, parent=J)
    L = T.sp.dense_varied(D2, (n, nnz), p)
    A = T.sp.match_buffer(a, (I, J, D2, L), "float32")
    with T.sp.iteration([D2, L], "RR", "x") as [d, l]:
        A[0, 0, d, l] = A[0, 0, d, l] + 1.0
""",
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_cannot_be_lowered_is_refused_by_name(code):
    with pytest.raises(UnsupportedError) as caught:
        lower_iterations(parse_module(HEADER + REFUSED[code]))
    assert caught.value.code == code


def test_an_axis_that_does_not_count_its_elements_has_as_many_as_its_indptr_says():
    text = """
@T.prim_func
def ragged(a: T.handle, p: T.handle, m: T.int32, n: T.int32) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, n, p)
    A = T.sp.match_buffer(a, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "x") as [i, j]:
        A[i, j] = 1.0
"""
    loop = lower_buffers(lower_iterations(parse_module(text)))
    assert 'A_data = T.match_buffer(a, (T.int64(J_indptr[m]),), "float32")' in print_module(loop)
    assert "guard" not in print_module(lower_to_flat(loop))
