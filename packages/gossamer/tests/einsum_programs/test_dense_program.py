"""The program of a sum of products: its loops are in the order of the iterated operand, and it is valid."""

from gossamer.einsum_programs.dense_program import EinsumProgram, dense_program
from gossamer.einsum_programs.subscripts import parse_subscripts
from gossamer_ir.verify import verify
from gossamer_testkit.show import body_text


def text(subscripts, iterated=0, **options):
    program = EinsumProgram(parse_subscripts(subscripts), "float64", iterated, **options)
    return body_text(verify(dense_program(program, {"k": 8})))


def test_loops_are_in_the_order_of_the_iterated_operand():
    assert 'T.sp.iteration([I, J, K], "SRS", "einsum") as [i, j, k]' in text("ij,jk->ki")
    assert 'T.sp.iteration([J, K, I], "RSS", "einsum") as [j, k, i]' in text(
        "ij,jk->ki", iterated=1
    )


def test_capital_letters_have_names_of_their_own():
    assert "Out[upper_i] = Out[upper_i] + X0[i, upper_i]" in text("iI->I")


def test_a_result_without_letters_has_one_element():
    assert "Out[0] = Out[0] + X0[i, j]" in text("ij->")


def test_an_epilogue_reads_and_writes_the_result():
    written = text("ij->i", reducer="max", epilogue="out * out")
    assert 'T.float64("-inf")' in written
    assert "Out[i_1] = Out[i_1] * Out[i_1]" in written
