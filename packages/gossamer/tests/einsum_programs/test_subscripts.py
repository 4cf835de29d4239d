"""Subscripts are those of NumPy, and problems are named."""

import pytest

from gossamer.einsum_programs.subscripts import parse_subscripts, require_operand_count
from gossamer_ir.errors import ArgumentError


@pytest.mark.parametrize(
    ("text", "operands", "result"),
    [
        ("ij,jk->ik", ("ij", "jk"), "ik"),
        (" ij , jk ", ("ij", "jk"), "ik"),
        ("ba", ("ba",), "ab"),
        ("i,i", ("i", "i"), ""),
        ("ij->", ("ij",), ""),
        ("Ij,jI->j", ("Ij", "jI"), "j"),
    ],
)
def test_subscripts_are_read(text, operands, result):
    subscripts = parse_subscripts(text)
    assert (subscripts.operands, subscripts.result) == (operands, result)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("i1,j->ij", "'i1' has other characters than letters"),
        ("...j,j", "'...j' has other characters than letters"),
        ("ij->ik", "the result has 'k', which no operand has"),
        ("ij->ii", "the result 'ii' has a letter twice"),
        ("ij->i->j", "'i->j' has other characters than letters"),
    ],
)
def test_problems_are_named(text, problem):
    with pytest.raises(ArgumentError) as raised:
        parse_subscripts(text)
    assert problem in str(raised.value)


def test_each_operand_has_subscripts():
    with pytest.raises(ArgumentError, match="they are those of 2 operands, and there are 3"):
        require_operand_count("ij,jk", parse_subscripts("ij,jk"), 3)
