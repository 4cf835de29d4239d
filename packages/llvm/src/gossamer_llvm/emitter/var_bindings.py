"""`VarBindings`: what the variables of the function being emitted are bound to."""

from __future__ import annotations

import msgspec

from gossamer_ir.nodes import Compare, Expr
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_llvm.emitter.operands import Value


class VarBindings(msgspec.Struct):
    """The variables of a function, by their names."""

    values: dict[str, Value] = {}
    """Their operands."""
    loaded: set[str] = msgspec.field(default_factory=set)
    """The variables of lets that are read from memory."""
    masks: dict[Compare, Value] = {}
    """The masks of the loops around that run as long as their mask has an active lane."""
    depths: dict[str, int] = {}
    """The number of loops in which a variable varies."""

    def bind(self, name: str, value: Value, *, depth: int) -> None:
        """Bind a variable that varies in this number of loops to a value."""
        self.values[name] = value
        self.depths[name] = depth

    def depth_of(self, *nodes: Expr) -> int:
        """Return the number of loops around the innermost variable of expressions."""
        return max((self.depths.get(name, 0) for name in free_vars(*nodes)), default=0)
