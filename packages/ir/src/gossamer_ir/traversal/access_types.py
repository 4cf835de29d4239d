"""The types of nodes that name a buffer: those that access its elements, and those that only name it."""

from __future__ import annotations

from typing import Any

from gossamer_ir.core.statement_kinds import CHECKING_STMTS, WRITES
from gossamer_ir.nodes import EXPRS, STMTS, Load, Search
from gossamer_ir.traversal.fields import name_fields


def _buffer_nodes() -> tuple[type[Any], ...]:
    """Return the types of nodes with a field `buffer` that holds a name, ordered by their names."""
    kinds = (kind for kind in (*EXPRS, *STMTS) if "buffer" in name_fields(kind))
    return tuple(sorted(kinds, key=lambda kind: kind.__name__))


BUFFER_NODES: Any = _buffer_nodes()
"""The types of nodes that name a buffer, to access, guard or prefetch it."""

INDEXED_NODES: Any = tuple(kind for kind in BUFFER_NODES if kind not in CHECKING_STMTS)
"""Those of them that address elements: a check names a buffer only for its error message."""

# Other expressions: those that read memory fail the test of `READS`.
READS: tuple[type[Load], type[Search]] = (Load, Search)
"""The types of expressions that read memory."""

ACCESSES: Any = (*READS, *WRITES)
"""The types of nodes that access elements of a buffer, and stop the program if these are out of bounds."""

HINTS: Any = tuple(kind for kind in INDEXED_NODES if kind not in ACCESSES)
"""The types that address elements without an access to them: these may be out of bounds."""

ELEMENT_NODES: Any = tuple(kind for kind in INDEXED_NODES if "indices" in kind.__struct_fields__)
"""The types that address one element, or one vector, by a field `indices`. A `Search` has a range instead."""

ELEMENT_ACCESSES: Any = tuple(kind for kind in ACCESSES if kind in ELEMENT_NODES)
"""The types that access one element, or one vector."""
