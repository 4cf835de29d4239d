"""The declarations before the body of a program: sizes, parameters with arrays, and the lines for both."""

from __future__ import annotations

from random import Random

import numpy as np

from tests.fuzzing.lowered.programs.extreme_bounds import ENDS, MULTIPLES
from tests.fuzzing.lowered.programs.scope import EXTREMES, Drawn, Scope


class Declarations:
    """The declarations of a program at a stage; at first there are only sizes."""

    def __init__(self, rng: Random, stage: str) -> None:
        self.rng = rng
        is_careless, is_wild = rng.random() < 0.3, rng.random() < 0.35
        self.scope = Scope(
            rng, stage, careless=0.1 if is_careless else 0.002, wild=0.1 if is_wild else 0.004
        )
        self.lines: list[str] = []
        self.params: list[str] = []
        self.arrays: dict[str, np.ndarray] = {}
        self.sizes: dict[str, int | float] = {
            "n": rng.choice((0, 1, 2, 3, 4, 4, 5, 5, 6, 7, 8, 8)),
            "m": rng.choice((1, 2, 3, 4, 6, 8)),
            "s": rng.choice((*EXTREMES, *ENDS, *MULTIPLES, 0, 1, 5, -3)),
        }
        self.scope.scalars = ["n", "m"] if rng.random() < 0.6 else ["n", "m", "s"]

    def declare(self, buffer: Drawn, array: np.ndarray, *, handle: str | None = None) -> None:
        """Declares a buffer with its own parameter."""
        handle = handle or buffer.name.lower() + "_"
        if handle not in self.params:
            self.params.append(handle)
        self.arrays[handle] = array
        if not buffer.is_sparse:
            sizes = ", ".join(buffer.sizes)
            tail = "," if len(buffer.sizes) == 1 else ""
            self.lines.append(
                f'{buffer.name} = T.match_buffer({handle}, ({sizes}{tail}), "{buffer.dtype}")'
            )
        self.scope.buffers.append(buffer)

    def size(self, text: str) -> int:
        """The number of elements along a dimension."""
        if text in self.sizes:
            return int(self.sizes[text])
        return int(text.removeprefix("T.int64(").removesuffix(")"))
