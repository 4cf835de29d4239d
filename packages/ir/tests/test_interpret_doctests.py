"""The examples in the interpreter's docstrings."""

import doctest

from gossamer_ir.interpret import program


def test_the_examples_hold():
    result = doctest.testmod(program)
    assert result.attempted > 0
    assert result.failed == 0
