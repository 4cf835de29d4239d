"""`AvailableValues`: values that all paths to the instruction being emitted have computed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec

from gossamer_ir.arith.affine import Affine
from gossamer_ir.nodes import Load
from gossamer_llvm.emitter.operands import Value


class AvailableValues(msgspec.Struct):
    """The values that dominate the instruction being emitted, in a table for each enclosing scope."""

    loads: list[dict[Load, Value]] = msgspec.field(default_factory=lambda: [{}])
    """Those of loads from memory that nothing writes."""
    positions: list[dict[Affine, Value]] = msgspec.field(default_factory=lambda: [{}])
    """The positions at which loops over groups of vectors ended, by their forms."""

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Open a scope: loads inside do not dominate the code after it, so they are not available there."""
        self.loads.append({})
        self.positions.append({})
        yield
        self.loads.pop()
        self.positions.pop()

    def load(self, node: Load) -> Value | None:
        """Return the value of an equal load that dominates this point; None if there is none."""
        for scope in self.loads:
            value = scope.get(node)
            if value is not None:
                return value
        return None

    def add_load(self, node: Load, value: Value) -> None:
        """Record the value of a load from memory that nothing writes."""
        self.loads[-1][node] = value

    def position(self, form: Affine) -> Value | None:
        """Return the value of a position where a loop ended that dominates this point; None if there is
        none."""
        for scope in self.positions:
            if form in scope:
                return scope[form]
        return None

    def add_position(self, form: Affine, value: Value) -> None:
        """Record the value of a position where a loop ended."""
        self.positions[-1][form] = value
