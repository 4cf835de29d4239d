"""Random programs as Hypothesis strategies, which can shrink them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.generated.drawing import drawn
from tests.generated.program import Program

STEPS = 128
"""Of so few whole numbers Hypothesis draws each as often as any other; of more, and of floats, mostly
those near 0."""


class Draws(Random):
    """Draws of a generator, each of them a whole number of a source. The smaller the number, the less
    `random() < p` holds: where Hypothesis makes numbers smaller, rare things vanish."""

    def __init__(self, source: Random) -> None:
        super().__init__()
        self._source = source

    def random(self) -> float:
        return 1 - (self._source.randrange(STEPS) + 1) / STEPS

    def _randbelow(self, n: int) -> int:
        """What all methods that draw whole numbers are made of."""
        return self._source.randrange(n)


def draws() -> SearchStrategy[Random]:
    """Sources of randomness."""
    return st.randoms(use_true_random=False).map(Draws)


@st.composite
def programs(draw: Callable[[SearchStrategy[Random]], Random]) -> Program:
    """Programs that have a meaning."""
    program = drawn(draw(draws()))
    assume(program.has_meaning)
    return program
