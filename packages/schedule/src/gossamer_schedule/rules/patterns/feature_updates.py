"""The pattern of updates of whole rows of features, in any order and any number for each row."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.core.axis_kinds import indices_of, is_dense_root, is_varied, width_of
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import Axis, Expr, Function, If, Iteration, Load, Stmt, Store
from gossamer_ir.traversal.buffer_uses import buffers_read, buffers_written
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.rules.analysis.iterations import (
    axes_of,
    buffers_by_name,
    single_iteration_pattern,
)
from gossamer_schedule.rules.analysis.outputs import is_within
from gossamer_support.items_by_name import items_by_name


class FeatureUpdates(msgspec.Struct, frozen=True):
    """`out[..., k] = out[..., k] + ...` over any axes and a dense axis of features, without an init.

    Names of loops, the block and the output are those of the loop stage. `outer` are the loops before
    `feature`, whose extent is `features` (None: symbolic). `reduction` is the innermost of them if the
    element does not depend on it and it has several slots, else None.
    """

    block: str
    outer: tuple[str, ...]
    reduction: str | None
    feature: str
    features: int | None
    output: str
    dtype: str

    @property
    def text(self) -> str:
        """The pattern in words."""
        return (
            f"features {self.feature} of {self.output} are updated for each {', '.join(self.outer)}"
        )


@single_iteration_pattern
def feature_updates(function: Function, iteration: Iteration) -> FeatureUpdates | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program."""
    axes = axes_of(function, iteration)
    store = _find_update(iteration)
    if store is None or len(axes) < 2 or not is_dense_root(axes[-1]) or iteration.kinds[-1] != "S":
        return None
    if not _is_over_features(function, iteration, store, axes[-1]):
        return None
    (output,) = (buffer for buffer in function.buffers if buffer.name == store.buffer)
    *outer, feature = iteration.vars
    return FeatureUpdates(
        block=iteration.name,
        outer=tuple(outer),
        reduction=_reduction(function, iteration, store),
        feature=feature,
        features=integer_value(axes[-1].length),
        output=data_name(store.buffer),
        dtype=output.dtype,
    )


# Other statements: nothing is concluded from them.
def _find_update(iteration: Iteration) -> Store | None:
    """Return the one reduction of an iteration without an init, which may be under conditions that do not
    depend on the output."""
    if iteration.init:
        return None
    body: tuple[Stmt, ...] = iteration.body
    written = buffers_written(body)
    while len(body) == 1 and isinstance(body[0], If) and not body[0].else_body:
        if buffers_read(body[0].condition) & written or iteration.vars[-1] in free_vars(
            body[0].condition
        ):
            return None
        body = body[0].then_body
    if len(body) != 1 or not isinstance(body[0], Store) or body[0].predicate is not None:
        return None
    return body[0] if match_reduction(body[0]) is not None else None


def _is_over_features(
    function: Function, iteration: Iteration, store: Store, features: Axis
) -> bool:
    """Return whether features are contiguous in all accesses, and in bounds: they are the last index or none,
    along a dense axis of their number."""
    feature = iteration.vars[-1]
    axes = items_by_name(function.axes)
    buffers = buffers_by_name(function)

    def is_last(buffer_name: str, indices: Sequence[Expr], *, is_required: bool) -> bool:
        if any(feature in free_vars(index) for index in indices[:-1]) or buffer_name not in buffers:
            return False
        if not indices or feature not in free_vars(indices[-1]):
            return not is_required
        last = axes[buffers[buffer_name].axes[-1]]
        is_whole = is_dense_root(last) and last.length == features.length
        return is_whole and indices[-1] == index_var(feature)

    loads = collect(Load, store.value)
    return is_last(store.buffer, store.indices, is_required=True) and all(
        is_last(load.buffer, load.indices, is_required=False) for load in loads
    )


def _reduction(function: Function, iteration: Iteration, store: Store) -> str | None:
    """Return the innermost loop before the features if several of its slots update one element."""
    var, axis = iteration.vars[-2], axes_of(function, iteration)[-2]
    if var in free_vars(*store.indices) or axis.parent is None:
        return None
    # A sum in a cache continues from the element also where there are no slots.
    if not is_within(function, iteration, store):
        return None
    # Conditions on it are predicates of the block; a sum in a cache must run in any case.
    if not isinstance(iteration.body[0], Store) or indices_of(axis) is None:
        return None
    # A cache over loops that select no element, as tiles of columns, is not proved to be filled.
    if not {*iteration.vars[:-2]} & free_vars(*store.indices) >= _outer_reduction_vars(iteration):
        return None
    width = None if is_varied(axis) else integer_value(width_of(axis))
    return None if width is not None and width <= 1 else var


def _outer_reduction_vars(iteration: Iteration) -> set[str]:
    """Return the variables of the reductions before the innermost loop and the features."""
    pairs = zip(iteration.vars[:-2], iteration.kinds, strict=False)
    return {name for name, kind in pairs if kind == "R"}
