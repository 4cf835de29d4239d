"""Random programs as Hypothesis strategies, which can shrink them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.fuzzing.programs.draw_program import drawn
from tests.fuzzing.programs.program import Program

STEPS = 128
"""Hypothesis draws integers from a range of this size uniformly; from a larger range, and for floats, mostly
values near 0."""


class Draws(Random):
    """A random generator whose draws are integers of a source. The smaller the integer, the less often
    `random() < p` holds, so that rare features vanish when Hypothesis shrinks."""

    def __init__(self, source: Random) -> None:
        super().__init__()
        self._source = source

    def random(self) -> float:
        return 1 - (self._source.randrange(STEPS) + 1) / STEPS

    def _randbelow(self, n: int) -> int:
        """The method on which all methods that draw integers are based."""
        return self._source.randrange(n)


def draws() -> SearchStrategy[Random]:
    """Sources of randomness."""
    return st.randoms(use_true_random=False).map(Draws)


@st.composite
def programs(draw: Callable[[SearchStrategy[Random]], Random]) -> Program:
    """Programs with a meaning."""
    program = drawn(draw(draws()))
    assume(program.has_meaning)
    return program
