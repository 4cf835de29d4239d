"""The iterations of a block that compute an accessed element."""

from __future__ import annotations

from collections.abc import Mapping, Set

from gossamer_ir.analysis.accesses.buffer_accesses import Access
from gossamer_ir.nodes import Block, Expr, Range, Store
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.regions.match_indices import match_all


def computing_iters(
    block: Block, access: Access, *, free: Set[str], values: Mapping[str, Expr]
) -> dict[str, Expr] | None:
    """Return the values of the `free` iterators at which a block stores an accessed element.

    The other variables of its indices have the given values. The result is None if the indices do not match,
    or if several stores have different indices: then the element does not tell which of them has written it.
    """
    stores = [store for store in collect(Store, block) if store.buffer == access.buffer]
    if len({store.indices for store in stores}) != 1:
        return None
    patterns = tuple(resolve(at, values) for at in stores[0].indices)
    points = tuple(at for at in access.indices if not isinstance(at, Range))
    return match_all(patterns, points, free=free)
