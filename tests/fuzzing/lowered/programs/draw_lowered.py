"""Random programs of the position, loop and flat stage: parameters with arrays, facts, and a body."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

import numpy as np

from gossamer_ir.errors import ParseError
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from gossamer_ir.verify import diagnostics
from tests.fuzzing.lowered.programs.declarations import Declarations
from tests.fuzzing.lowered.programs.declared_reducers import draw_reducers
from tests.fuzzing.lowered.programs.facts import draw_facts
from tests.fuzzing.lowered.programs.lines import under
from tests.fuzzing.lowered.programs.lowered_program import Lowered
from tests.fuzzing.lowered.programs.position_axes import draw_forest
from tests.fuzzing.lowered.programs.scope import EXTREMES, Drawn
from tests.fuzzing.lowered.programs.statement_lines import Bodies
from tests.fuzzing.oracle.coordinate_tables import Undecided

TRIES = 400
TIDY = 0.95
"""The share of programs from which unused buffers are removed."""
REDUCING = 0.3
"""The share of programs that declare reducers."""
STAGES = {"position": 3, "loop": 6, "flat": 1}
LEVELS = {"position": 'T.func_attr({"sparse_tir_level": 1})',
          "loop": 'T.func_attr({"sparse_tir_level": 0})', "flat": 'T.stage("flat")'}  # fmt: skip
NARROW = ("int32", "int32", "uint8", "int16", "int64")


def draw_lowered(rng: Random, stage: str | None = None, *, has_blocks: bool = False) -> Lowered:
    """Draws programs until one has a meaning; `has_blocks`: mostly of blocks."""
    for _ in range(TRIES):
        program = drawn(rng, stage, has_blocks=has_blocks)
        if program is not None and program.has_meaning:
            return program
    raise AssertionError(f"none of {TRIES} programs has a meaning")


def drawn(rng: Random, stage: str | None = None, *, has_blocks: bool = False) -> Lowered | None:
    """Draws a program; None if it is not valid."""
    chosen = stage or rng.choices([*STAGES], [*STAGES.values()])[0]
    program = Drawing(rng, chosen, has_blocks=has_blocks).program()
    return None if program is None or diagnostics(program.module) else program


class Drawing(Declarations):
    """Draws declarations with arrays, then statements over them."""

    def __init__(self, rng: Random, stage: str, *, has_blocks: bool = False) -> None:
        super().__init__(rng, stage)
        self.has_blocks = has_blocks

    def program(self) -> Lowered | None:
        if self.scope.stage == "position":
            draw_forest(self)
        self._declare_buffers()
        if self.scope.stage != "flat" and self.rng.random() < REDUCING:
            self.lines += draw_reducers(self.scope)
        self.lines += draw_facts(self)
        budget = self.rng.choice((2, 3, 5, 8))
        body = Bodies(self.scope, budget, has_blocks=self.has_blocks).body()
        if self.rng.random() < TIDY:
            self._remove_unused("\n".join(body))
        header = "".join(f"{name}: T.handle, " for name in self.params)
        scalars = ", ".join(f"{name}: T.int64" for name in self.sizes)
        lines = [LEVELS[self.scope.stage], *self.lines, *body]
        text = "\n".join(
            ["@T.prim_func", *under(f"def main({header}{scalars}) -> None:", lines), ""]
        )
        module = _parsed(text)
        return module and Lowered(module, self.arrays, self.sizes)

    def _remove_unused(self, body: str) -> None:
        """Removes buffers that no statement names, and their arrays."""
        used = set(re.findall(r"\w+", body))
        for buffer in self.scope.buffers:
            handle = f"{buffer.name.lower()}_"
            if buffer.name not in used and handle in self.params:
                self.params.remove(handle)
                del self.arrays[handle]
                named = re.compile(rf"({buffer.name} = |T\.assume\(\w+\({buffer.name}\b)")
                self.lines = [line for line in self.lines if not named.match(line)]
        self.lines = [line for line in self.lines if _is_used(line, used)]
        text = "\n".join([*self.lines, body])
        for name in [name for name in self.sizes if not re.search(rf"\b{name}\b", text)]:
            del self.sizes[name]

    def _declare_buffers(self) -> None:
        rng = self.rng
        first, second = rng.choice(
            (("float32", "float32"), ("float32", "int32"), ("int32", "int32"))
        )
        self._values("X", first, "input", (self._length(),))
        self._values("Y", first, "value", (rng.choice(("n", "T.int64(8)")),))
        self._values("Z", second, "value", (rng.choice(("n", "T.int64(4)")), rng.choice("nm")))
        self._indices("P", "int64", rng.choice(("T.int64(8)", "T.int64(8)", "n")))
        self._indices("Q", rng.choice(NARROW), rng.choice(("T.int64(8)", "n")))
        cells = (0, 0, 1, 2, 3, 9, -1) if self.scope.careless > 0.01 else (0, 0, 1, 2, 3)
        self._integers("c", "cell", 4, lambda: rng.choice(cells))
        self._integers("F", "fuel", 3, lambda: rng.choice((0, 0, 1)))
        if self.scope.wild > 0.01:
            self._integers("E", "extreme", 4, lambda: rng.choice(EXTREMES))
        if rng.random() < 0.5:
            values = np.array(sorted(rng.choice((0, 1, 2, 3, 5, 8)) for _ in range(8)), np.int64)
            self.declare(Drawn("S", "int64", ("T.int64(8)",), "sorted"), values)

    def _length(self) -> str:
        return self.rng.choice(("n", "T.int64(8)", "T.int64(8)"))

    def _values(self, name: str, dtype: str, role: str, sizes: tuple[str, ...]) -> None:
        shape = tuple(map(self.size, sizes))
        values = [self.rng.randint(-3, 3) for _ in range(int(np.prod(shape)))]
        array = np.array(values, dtype).reshape(shape)
        self.declare(Drawn(name, dtype, sizes, role), array)

    def _indices(self, name: str, dtype: str, size: str) -> None:
        low = -1 if self.scope.careless > 0.01 and not dtype.startswith("u") else 0
        most = max(1, min(8, int(self.sizes["n"]) or 1)) if self.rng.random() < 0.5 else 8
        values = [self.rng.randrange(low, most) for _ in range(self.size(size))]
        if low < 0 and values and self.rng.random() < 0.5:
            values[self.rng.randrange(len(values))] = 11
        self.declare(Drawn(name, dtype, (size,), "index"), np.array(values, dtype))

    def _integers(self, name: str, role: str, count: int, draw: Callable[[], int]) -> None:
        values = np.array([draw() for _ in range(count)], np.int64)
        self.declare(Drawn(name, "int64", (f"T.int64({count})",), role), values)


def _is_used(line: str, used: set[str]) -> bool:
    """True unless a line declares a reducer that is not used."""
    return "T.comm_reducer(" not in line or line.split(" ")[0] in used


def _parsed(text: str) -> Module | None:
    try:
        return parse_module(text)
    except ParseError:
        return None


__all__ = ["Drawing", "Undecided", "draw_lowered", "drawn"]
