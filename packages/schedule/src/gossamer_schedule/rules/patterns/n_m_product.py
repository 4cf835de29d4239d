"""The pattern of a 2:4 matrix, or of one with the pattern 1:2, times a dense one."""

from __future__ import annotations

import msgspec

from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.arith.affine import Affine, affine_of
from gossamer_ir.core.axis_kinds import indices_of, is_dense_root, is_full, is_varied, width_of
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import (
    Axis,
    Expr,
    Function,
    Iteration,
    Load,
    OverAxis,
)
from gossamer_schedule.rules.analysis.iterations import axes_of, single_iteration_pattern
from gossamer_schedule.rules.analysis.outputs import may_reassociate, only_store
from gossamer_schedule.rules.analysis.product_factors import product_factors

GROUP_SIZES = {2: 4, 1: 2}
"""The columns of a group, by the number of its slots."""


class NMProduct(msgspec.Struct, frozen=True):
    """The variables of `C[row, feature] += A[row, group, slot] * B[2 * slots * group + slot, feature]`.

    C and B may be transposed. `operands` is the dtype of A and B, or a precision to which they are rounded
    (`ROUNDED_OPERANDS`), `slots` the number of slots of a group, 2 or 1, and `features` that of features
    if it is constant."""

    block: str
    row: str
    group: str
    slot: str
    feature: str
    operands: str
    slots: int
    sums: str
    features: int | None
    has_init: bool
    output: str
    """The buffer of the result at the loop stage."""
    is_row_major: bool
    """Whether neither C nor B is transposed."""

    @property
    def text(self) -> str:
        """The pattern in words."""
        return (
            f"products of a {self.slots}:{GROUP_SIZES[self.slots]} matrix [{self.row}, {self.group}, "
            f"{self.slot}] and rows of a dense one, over features {self.feature}"
        )


@single_iteration_pattern
def n_m_product(function: Function, iteration: Iteration) -> NMProduct | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program.

    >>> from gossamer_ir.script import parse_module
    >>> found = n_m_product(parse_module('''
    ... @T.prim_func
    ... def product(a: T.handle, e: T.handle, b: T.handle, c: T.handle, m: T.int64, g: T.int64) -> None:
    ...     T.func_attr({"sparse_tir_level": 2})
    ...     I = T.sp.dense_fixed(m)
    ...     G = T.sp.dense_fixed(g, parent=I)
    ...     J = T.sp.compressed_fixed(G, (4, 2), e, "uint8", padded=False)
    ...     N = T.sp.dense_fixed(g * 4)
    ...     K = T.sp.dense_fixed(8)
    ...     A = T.sp.match_buffer(a, (I, G, J), "float16")
    ...     B = T.sp.match_buffer(b, (N, K), "float16")
    ...     C = T.sp.match_buffer(c, (I, K), "float32")
    ...     with T.sp.iteration([I, G, J, K], "SRRS", "product") as [i, q, s, k]:
    ...         with T.init():
    ...             C[i, k] = 0.0
    ...         C[i, k] = C[i, k] + T.float32(A[i, q, s]) * T.float32(B[q * 4 + s, k])
    ... '''))
    >>> found.row, found.operands, found.features
    ('i', 'float16', 8)
    """
    store = only_store(iteration)
    reduction = None if store is None else match_reduction(store)
    if store is None or reduction is None or reduction.op != "add":
        return None
    axes = axes_of(function, iteration)
    if not (_is_over_axes(iteration) and may_reassociate(iteration)):
        return None
    slots = _slots_of_axes(*axes)
    row, group, slot, feature = iteration.vars
    i, q, s, k = map(index_var, iteration.vars)
    factors = product_factors(reduction.value, dtype=dtype_of(store.value))
    if set(store.indices) != {i, k} or len(store.indices) != 2 or factors is None or slots is None:
        return None
    row_of_b = Affine({q: GROUP_SIZES[slots], s: 1}, 0)
    for a, b in factors.orders:
        if a.indices == (i, q, s) and _is_in_row(b, row_of_b, k):
            return NMProduct(
                block=iteration.name,
                row=row,
                group=group,
                slot=slot,
                feature=feature,
                operands=factors.operands,
                slots=slots,
                sums=dtype_of(store.value),
                features=integer_value(axes[3].length),
                has_init=bool(iteration.init),
                output=data_name(store.buffer),
                is_row_major=store.indices[1] == k == b.indices[1],
            )
    return None


def _is_over_axes(iteration: Iteration) -> bool:
    """Return whether an iteration is over rows, groups and slots, which are reduced, and features."""
    return iteration.kinds == "SRRS" and all(isinstance(axis, OverAxis) for axis in iteration.axes)


def _slots_of_axes(rows: Axis, groups: Axis, slots: Axis, features: Axis) -> int | None:
    """Return the slots of a group if axes are those of rows, of groups of four columns with two slots or of
    two with one slot, all used and in the order of columns, and of features; else None."""
    indices = indices_of(slots)
    if indices is None or is_varied(slots) or not indices.is_searchable or indices.padded:
        return None
    count = integer_value(width_of(slots))
    is_tree = (groups.parent, slots.parent) == (rows.name, groups.name) and is_full(groups)
    if count is None or GROUP_SIZES.get(count) != integer_value(slots.length):
        return None
    return count if is_tree and is_dense_root(rows) and is_dense_root(features) else None


def _is_in_row(dense: Load, row: Affine, feature: Expr) -> bool:
    """Return whether an element of a dense matrix, or of a transposed one, is in a row, at a feature."""
    forms = [affine_of(at) for at in dense.indices]
    return len(forms) == 2 and forms in ([row, affine_of(feature)], [affine_of(feature), row])
