"""What may be relied on all through a function: what nothing in it changes."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.axis_facts import known_facts
from gossamer_ir.build import add, index_var
from gossamer_ir.magnitudes import magnitudes_of
from gossamer_ir.nodes import (
    BlockIter,
    Compare,
    Expr,
    For,
    Function,
    Stmt,
    Store,
)
from gossamer_ir.prove import Prover
from gossamer_ir.walk import statements
from gossamer_schedule.accesses import mentioned


def stored(body: Iterable[Stmt]) -> set[str]:
    """The buffers that statements store to, those that they allocate, too."""
    return {found.buffer for found in statements(body) if isinstance(found, Store)}


class Knowledge(Prover):
    """A prover that takes no notice of what reads a buffer that the function writes, nor of what may wrap
    around: proofs are about unbounded integers."""

    def __init__(self, function: Function) -> None:
        super().__init__(known_facts(function))
        self._changing = stored(function.body)
        self._magnitudes = magnitudes_of(function)

    def learn_range(self, var: str, start: Expr, extent: Expr) -> None:
        """From here on, start <= var < start + extent holds."""
        if self._is_told(add(start, extent)):
            self.assume_range(var, start, extent)

    def learn_loop(self, loop: For) -> None:
        """From here on, a loop runs."""
        self.learn_range(loop.var, loop.start, loop.extent)

    def learn_iterator(self, item: BlockIter) -> None:
        """From here on, an iterator of a block is in its domain and has its value."""
        self.learn_range(item.var, item.domain.start, item.domain.extent)
        self.learn(Compare("eq", index_var(item.var), item.value))

    def learn(self, condition: Expr) -> None:
        """From here on, a condition holds."""
        if self._is_told(condition):
            self.assume(condition)

    def _is_told(self, expr: Expr) -> bool:
        """Whether an expression keeps its value, which is that of unbounded integers."""
        return not mentioned((expr,)) & self._changing and self.is_exact(expr)

    def is_exact(self, expr: Expr) -> bool:
        """Whether the value of an expression is that of unbounded integers."""
        return self._magnitudes.is_exact(expr)

    def proves(self, condition: Expr) -> bool:
        """Whether a comparison of machine integers, or a combination of such, is proved."""
        return self.is_exact(condition) and super().proves(condition)

    def proves_in_range(self, expr: Expr, extent: Expr) -> bool:
        """Whether 0 <= expr < extent is proved; the index may wrap around on its way."""
        is_known = self._magnitudes.is_sound(expr) and self.is_exact(extent)
        return is_known and super().proves_in_range(expr, extent)
