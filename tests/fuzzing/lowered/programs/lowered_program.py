"""A program of the position, loop or flat stage with its arguments and its expected results."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from gossamer_ir.interpret import InterpreterError
from tests.fuzzing.execution.races import Race, require_no_race
from tests.fuzzing.lowered.evaluator import NoOracle, evaluated
from tests.fuzzing.lowered.limited_interpreter import TooManySteps, run_limited
from tests.fuzzing.oracle.coordinate_tables import Undecided
from tests.fuzzing.oracle.evaluation import Meaning
from tests.fuzzing.programs.program import Program

MAX_STMTS = 4_000


@dataclass(frozen=True, repr=False)
class Lowered(Program):
    """A program whose meaning the evaluator defines, or the interpreter if the evaluator cannot."""

    @cached_property
    def is_evaluated(self) -> bool:
        """True if the evaluator defines its meaning."""
        try:
            evaluated(self.module, self.arrays, self.sizes)
        except (NoOracle, Undecided):
            return False
        return True

    @cached_property
    def meaning(self) -> Meaning:
        """The expected arrays; raises `Undecided` if there are none."""
        try:
            expected = evaluated(self.module, self.arrays, self.sizes)
        except NoOracle:
            expected = self._interpreted()
        self._require_no_race()
        return Meaning(expected, Counter())

    def _interpreted(self) -> dict | None:
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        try:
            run_limited(self.module, {**arrays, **self.sizes}, most=MAX_STMTS, is_strict=True)
        except InterpreterError as error:
            if not error.buffer:  # an iterator outside of its domain, say, and no access
                raise Undecided(str(error)) from None
            return None
        except TooManySteps:
            raise Undecided("a program that runs for long") from None
        return arrays

    def _require_no_race(self) -> None:
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        try:
            require_no_race(self.module, {**arrays, **self.sizes})
        except InterpreterError:
            pass
        except Race as race:
            raise Undecided(str(race)) from None
