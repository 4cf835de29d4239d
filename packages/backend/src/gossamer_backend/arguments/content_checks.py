"""Checks of the contents of arrays: the facts that a kernel relies on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from gossamer_backend.arguments.array_view import ArrayView
from gossamer_backend.arguments.device import HOST
from gossamer_backend.arguments.memory import Memory
from gossamer_backend.arguments.size_equations import Scalars
from gossamer_ir.facts.fact_index import stated_fact_index
from gossamer_ir.facts.fact_kinds import buffers_of_fact, subject_of
from gossamer_ir.facts.index_arrays import FactChecker
from gossamer_ir.interchange.records import Signature
from gossamer_ir.nodes import Fact, Load, Relation
from gossamer_ir.traversal.walk import walk


class ContentChecker:
    """Checks the facts of one signature, for arrays in a memory.

    `fact_checker` runs where the arrays are. If it is None or finds that something may be wrong, NumPy checks
    the arrays on the host, and the error names the element.
    """

    fact_checker: FactChecker | None = None

    def __init__(self, signature: Signature, memory: Memory) -> None:
        self._buffers, self._memory = signature.buffers, memory
        # Several buffers of the entry may be bound to one pointer.
        aliases = {
            name: param
            for param in signature.buffers
            for name in (param.buffer, *(subject_of(fact) for fact in param.facts))
        }
        facts = tuple(fact for param in signature.buffers for fact in param.facts)
        # Only these are read, since those of a device may have to be copied.
        read = {name for fact in facts for name in buffers_of_fact(fact)}
        read |= {node.buffer for node in walk(*facts) if isinstance(node, Load)}
        self._read = {name: param.buffer for name, param in aliases.items() if name in read}
        self._names = {name: param.name for name, param in aliases.items()}
        self._is_related = bool(stated_fact_index(facts).facts_of_type(Relation))

    def require_facts(
        self,
        scalars: Scalars,
        views: Mapping[str, ArrayView],
        *,
        verified: Collection[str],
        stream: object,
    ) -> None:
        """Raise `ArgumentError` if a fact does not hold after all work on a stream; `views` are by buffer, in
        the shapes of their parameters. The contents of the parameters in `verified` are known."""
        facts = self._facts_of(verified)
        if not facts:
            return
        self._memory.wait(stream)
        read = {name: views[buffer_name] for name, buffer_name in self._read.items()}
        if self.fact_checker is not None and self.fact_checker(
            facts, scalars, self._fast_check_arrays(read)
        ):
            return
        # Imported late: large arrays are checked by kernels.
        from gossamer_backend.arguments.fact_errors import require_facts

        arrays = {name: self._memory.to_host(view) for name, view in read.items()}
        require_facts(facts, scalars, arrays=arrays, names=self._names)

    def _fast_check_arrays(self, views: Mapping[str, ArrayView]) -> Mapping[str, Any]:
        """Return the arrays for the fast check: views of them if they are not NumPy's."""
        is_host = self._memory.device == HOST
        return {name: view.array for name, view in views.items()} if is_host else views

    def _facts_of(self, verified: Collection[str]) -> tuple[Fact, ...]:
        return tuple(
            fact
            for param in self._buffers
            # A relation is checked with all arrays that it names, whichever of them was verified.
            if param.facts and (self._is_related or param.name not in verified)
            for fact in param.facts
        )
