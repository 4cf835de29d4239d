"""Accesses of memory that threads share, with the loops and the conditions around them."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from gossamer_ir.nodes import Atomic, Expr, For, Load, Search, Store

AccessNode: TypeAlias = Load | Search | Store | Atomic


class AccessSite(msgspec.Struct, frozen=True):
    """An access, the loops around it, from an outermost loop over threads or blocks on, and the conditions
    under which it happens. `is_copy` if an asynchronous copy writes it, some time before the wait for its
    group, which `is_committed` from then on."""

    node: AccessNode
    loops: tuple[For, ...] = ()
    conditions: tuple[Expr, ...] = ()
    is_copy: bool = False
    is_committed: bool = False

    @property
    def indices(self) -> tuple[Expr, ...]:
        """The indices of the element; none for a search, which reads any of a range."""
        return () if isinstance(self.node, Search) else self.node.indices


class SiteContext(msgspec.Struct, frozen=True):
    """The loops around a statement, from an outermost loop over threads or blocks on, the conditions under
    which it runs, and whether it is in an asynchronous copy."""

    loops: tuple[For, ...] = ()
    conditions: tuple[Expr, ...] = ()
    is_copy: bool = False
