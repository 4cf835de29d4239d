"""`VarBindings`: the values to which variables of the function being emitted are bound."""

from __future__ import annotations

import msgspec

from gossamer_ir.nodes import Compare, Expr, Load
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import collect
from gossamer_llvm.emitter.operands import Value


class VarBindings(msgspec.Struct):
    """The variables of a function, by their names."""

    values: dict[str, Value] = {}
    """Their operands."""
    loaded: set[str] = msgspec.field(default_factory=set)
    """The variables of lets that are read from memory."""
    dependent: set[str] = msgspec.field(default_factory=set)
    """The variables of lets that are computed from what is read from memory, those of `loaded` included."""
    masks: dict[Compare, Value] = {}
    """The masks of the loops around that run as long as their mask has an active lane."""
    depths: dict[str, int] = {}
    """The number of loops in which a variable varies."""

    def bind(self, name: str, value: Value, *, depth: int) -> None:
        """Bind a variable that varies in this number of loops to a value."""
        self.values[name] = value
        self.depths[name] = depth

    def depends_on_memory(self, *nodes: Expr) -> bool:
        """Return whether expressions load, or are computed from variables that depend on memory."""
        return bool(collect(Load, *nodes)) or not self.dependent.isdisjoint(free_vars(*nodes))

    def depth_of(self, *nodes: Expr) -> int:
        """Return the number of loops around the innermost variable of expressions."""
        return max((self.depths.get(name, 0) for name in free_vars(*nodes)), default=0)
