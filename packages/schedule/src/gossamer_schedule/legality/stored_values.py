"""Dependences of the values that a block stores to its elements."""

from __future__ import annotations

from collections.abc import Set

from gossamer_ir.core.build import ZERO
from gossamer_ir.nodes import Block, Expr, Store
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import substitute_subexprs


def is_own_value(block: Block, store: Store, *, determined: Set[str]) -> bool:
    """Return whether a stored element keeps the value that a point of the block gives it.

    `determined` holds the iterators that the element determines. Other points must store to other elements,
    or the same value to the same element.
    """
    if all(iterator.var in determined for iterator in block.iters if iterator.kind == "S"):
        return True
    return not block.init and block.predicate is None and is_function_of_element(block, store)


def is_function_of_element(block: Block, store: Store) -> bool:
    """Return whether the stored value depends on the iterators only through the indices of its element."""
    iterator_vars = {iterator.var for iterator in block.iters}
    return store in block.body and free_vars(value_by_element(store)).isdisjoint(iterator_vars)


def value_by_element(store: Store) -> Expr:
    """Return the stored value with constants instead of the indices of its element: two iterations that store
    to the same element differ in the value only where variables remain."""
    return substitute_subexprs(store.value, dict.fromkeys(store.indices, ZERO))
