"""The kind of each block iterator: spatial, or a reduction."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gossamer_ir.core.axis_kinds import indices_of, is_full
from gossamer_ir.core.build import ONE, index_var
from gossamer_ir.facts.fact_index import FactIndex
from gossamer_ir.nodes import (
    Binary,
    BlockIter,
    Cast,
    Distinct,
    Expr,
    IfThenElse,
    Let,
    Load,
    Search,
    SparseBuffer,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import collect
from gossamer_lower.axes.index_buffers import IndexBuffers
from gossamer_lower.iterations.nests.coordinate_lookup import CoordinateTranslator
from gossamer_lower.iterations.nests.loop_nest import LoopNest, is_unit


class IteratorKinds:
    """Decides which iterators of the blocks of one function are reductions."""

    def __init__(
        self,
        buffers: Mapping[str, SparseBuffer],
        index_buffers: IndexBuffers,
        translator: CoordinateTranslator,
        *,
        facts: FactIndex,
    ) -> None:
        self._buffers = buffers
        self._facts = facts
        self._index_buffers = index_buffers
        self._translator = translator

    # Other statements: none selects an element of an init, which only stores.
    def with_kind(
        self, iterator: BlockIter, init: tuple[Stmt, ...], *, nest: LoopNest
    ) -> BlockIter:
        """Return the iterator, as a reduction if several of its values may initialize the same element.

        It is spatial if it always has the same value, if the position of the element along some dimension
        is the iterator itself, or counts in blocks by it, or is one of distinct values at the iterator, or
        if the positions along fused axes are all those of the fused iterator.
        """
        lets: dict[Expr, Expr] = {let.var: let.value for let in collect(Let, *init)}
        is_element = self._has_one_value(iterator, nest) or all(
            self._is_determined_by(_with_searches(store, lets), iterator.var, nest=nest)
            for store in collect(Store, *init)
        )
        return iterator if is_element else replace(iterator, kind="R")

    def _has_one_value(self, block_iter: BlockIter, nest: LoopNest) -> bool:
        """Return whether the iterator is over a dense axis with one element. The domain is compared, too:
        that of an attached axis may be empty."""
        return block_iter.domain.extent == ONE and any(
            is_unit(iterator.axis) and iterator.position == index_var(block_iter.var)
            for iterator in nest.in_block.values()
        )

    def _is_determined_by(self, store: Store, var_name: str, *, nest: LoopNest) -> bool:
        """Return whether the element of a store is a different one for each value of an iterator."""
        if var_name not in nest.fused:
            return self._is_indexed_by(store, index_var(var_name), nest=nest)
        # One iterator over fused axes has a position along each of them: all together determine it.
        buffer = self._buffers.get(store.buffer)
        by_axis = {} if buffer is None else dict(zip(buffer.axes, store.indices, strict=True))
        return all(
            by_axis.get(iterator.axis.name) == iterator.position
            for iterator in nest.in_block.values()
            if var_name in free_vars(iterator.position)
        )

    def _is_indexed_by(self, store: Store, position: Expr, *, nest: LoopNest) -> bool:
        """Return whether the store's element determines the iterator, directly or through unique
        coordinates."""
        (iterator,) = (
            candidate for candidate in nest.in_block.values() if candidate.position == position
        )
        axis = iterator.axis
        if any(
            _is_place_of(index, position) or _is_digit_of(index, position, nest)
            for index in store.indices
        ):
            return True
        if any(self._is_own_value(index, position) for index in store.indices):
            return True
        # Coordinates are unique in a fiber only; below several parents they repeat.
        indices = indices_of(axis)
        if indices is None or not indices.is_searchable:
            return False
        is_only = all(is_unit(ancestor) for ancestor in self._index_buffers.tree.chain(axis)[:-1])
        is_coordinate = self._translator.coordinate(iterator) in store.indices
        return is_only and is_coordinate and not indices.padded

    def _is_own_value(self, index: Expr, position: Expr) -> bool:
        """Return whether an index is an element, at the position, of an array whose values are distinct."""
        load = index.value if isinstance(index, Cast) else index
        return (
            isinstance(load, Load)
            and position in load.indices
            and self._facts.holds(load.buffer, Distinct)
        )


def _with_searches(store: Store, lets: Mapping[Expr, Expr]) -> Store:
    """Return a store whose indices are the searches that lets bind. A store follows the guard that the
    searches found its element, so the condition of such a let holds."""
    values = (lets.get(index, index) for index in store.indices)
    indices = tuple(
        value.if_true
        if isinstance(value, IfThenElse) and isinstance(value.if_true, Search)
        else value
        for value in values
    )
    return replace(store, indices=indices)


def _is_place_of(index: Expr, position: Expr) -> bool:
    """Return whether an index is the position, or a search for it as a coordinate."""
    return index == position or (isinstance(index, Search) and index.value == position)


# Other operations: nothing is concluded from them.
def _is_digit_of(index: Expr, position: Expr, nest: LoopNest) -> bool:
    """Return whether an index counts over blocks of one size, such as `io * 4 + ii`, and the position is the
    number of the block or the place in it: the index determines both."""
    match index:
        case Binary(
            op="add", lhs=Binary(op="mul", lhs=Var() as block, rhs=size), rhs=Var() as place
        ):
            places = [
                in_block.axis for in_block in nest.in_block.values() if in_block.position == place
            ]
            is_below_size = any(is_full(axis) and axis.length == size for axis in places)
            return is_below_size and block != place and position in (block, place)
    return False
