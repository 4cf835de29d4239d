"""What may be relied on all through a function: what nothing in it changes."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.lasting import lasting_facts
from gossamer_ir.nodes import Expr, Fact, For, Function, Stmt, Store
from gossamer_ir.prove import Prover
from gossamer_ir.walk import walk
from gossamer_schedule.accesses import mentioned


def stored(body: Iterable[Stmt]) -> set[str]:
    """The buffers that statements store to, those that they allocate, too."""
    return {found.buffer for found in walk(*body) if isinstance(found, Store)}


class Knowledge(Prover):
    """A prover that takes no notice of what reads a buffer that the function writes."""

    def __init__(self, function: Function, *more: Fact) -> None:
        super().__init__((*lasting_facts(function), *more))
        self._changing = stored(function.body)

    def learn_range(self, var: str, start: Expr, extent: Expr) -> None:
        """From here on, start <= var < start + extent holds."""
        if not mentioned((start, extent)) & self._changing:
            self.assume_range(var, start, extent)

    def learn_loop(self, loop: For) -> None:
        """From here on, a loop runs."""
        self.learn_range(loop.var, loop.start, loop.extent)

    def learn(self, condition: Expr) -> None:
        """From here on, a condition holds."""
        if not mentioned((condition,)) & self._changing:
            self.assume(condition)
