"""A random program with its arguments and its expected results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gossamer_ir.nodes import Module
from gossamer_ir.script import print_module
from tests.fuzzing.execution.array_placement import Place
from tests.fuzzing.oracle.coordinate_tables import Undecided
from tests.fuzzing.oracle.evaluation import Meaning, meaning


@dataclass(frozen=True, repr=False)
class Program:
    """A program with its arguments. `sizes` are all scalars; `tolerances` bound the differences of results;
    `places` are those of the arrays for machine code."""

    module: Module
    arrays: Mapping[str, np.ndarray]
    sizes: Mapping[str, int | float]
    tolerances: Mapping[str, float] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)

    def __repr__(self) -> str:
        """The script and its arguments."""
        values = (
            f"{name} = {value!r}" for name, value in (*self.sizes.items(), *self.arrays.items())
        )
        return "\n".join((self.text, *values))

    @cached_property
    def text(self) -> str:
        return print_module(self.module)

    @cached_property
    def meaning(self) -> Meaning:
        """The meaning by the oracle; raises `Undecided` if there is none."""
        return meaning(self.module, self.arrays, self.sizes)

    @cached_property
    def has_meaning(self) -> bool:
        """True if the oracle defines the meaning."""
        try:
            return self.meaning is not None
        except Undecided:
            return False

    @property
    def expected(self) -> Mapping[str, np.ndarray] | None:
        """The expected arrays that the program stores to; None if it stops."""
        return self.meaning.arrays
