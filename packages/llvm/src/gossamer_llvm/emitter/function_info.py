"""`FunctionInfo`: properties of a function that are known before it is emitted."""

from __future__ import annotations

import msgspec

from gossamer_ir.analysis.bounds.overflow import OverflowAnalysis
from gossamer_ir.facts.fact_index import FactIndex
from gossamer_ir.nodes import Expr, Load, Store
from gossamer_ir.traversal.walk import collect


class FunctionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of a function of the module; those that emitters add have none."""

    symbol: str | None = None
    """Its name in LLVM; None if nothing asks for it."""
    subprogram: str | None = None
    """Its metadata, if instructions name lines."""
    is_entry: bool = False
    overflow: OverflowAnalysis | None = None
    """Bounds of its integers."""
    facts: FactIndex = FactIndex(())
    """The facts about the elements of its buffers."""
    shared: frozenset[str] = frozenset()
    """The buffers that are passed to functions, which may change their elements at any time."""
    unchanging: frozenset[str] = frozenset()
    """The buffers that nothing writes while the function runs."""
    filled: frozenset[str] = frozenset()
    """The buffers whose elements are all stored before one is read."""
    unmasked: frozenset[Store] = frozenset()
    """The stores of selects between a new value and the old one that may store the new one in all lanes."""
    replaced: frozenset[tuple[str, tuple[Expr, ...]]] = frozenset()
    """The elements, by buffer and indices, that the function binds to variables and stores anew."""

    def is_unchanging(self, load: Load) -> bool:
        """Return whether nothing writes the memory that a load reads."""
        # Also the indices: an index array that is written may select another element next time.
        return load.buffer in self.unchanging and all(
            node.buffer in self.unchanging and node.predicate is None
            for node in collect(Load, load)
        )
