"""The pattern of a 2:4 matrix times a dense one."""

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
    Binary,
    Cast,
    Expr,
    Function,
    Iteration,
    Load,
    OverAxis,
)
from gossamer_schedule.rules.analysis.iterations import axes_of, of_one_iteration
from gossamer_schedule.rules.analysis.outputs import may_reassociate, only_store

GROUP, SLOTS = 4, 2


class NMProduct(msgspec.Struct, frozen=True):
    """The variables of `C[row, feature] += A[row, group, slot] * B[4 * group + slot, feature]`.

    C and B may be transposed. `operands` is the dtype of A and B, `features` the number of features if it is
    constant."""

    block: str
    row: str
    group: str
    slot: str
    feature: str
    operands: str
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
            f"products of a 2:4 matrix [{self.row}, {self.group}, {self.slot}] and rows of a dense one, over "
            f"features {self.feature}"
        )


@of_one_iteration
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
    if not (_is_over_axes(iteration) and may_reassociate(iteration) and _has_n_m_axes(*axes)):
        return None
    row, group, slot, feature = iteration.vars
    i, q, s, k = map(index_var, iteration.vars)
    factors = _factors(reduction.value)
    if set(store.indices) != {i, k} or len(store.indices) != 2 or factors is None:
        return None
    for a, b in (factors, factors[::-1]):
        if a.indices == (i, q, s) and a.dtype == b.dtype and _is_row_of_group(b, q, s, k):
            return NMProduct(
                block=iteration.name,
                row=row,
                group=group,
                slot=slot,
                feature=feature,
                operands=a.dtype,
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


def _has_n_m_axes(rows: Axis, groups: Axis, slots: Axis, features: Axis) -> bool:
    """Return whether axes are those of rows, of groups of four columns with two slots that are all used, in
    the order of columns, and of features."""
    indices = indices_of(slots)
    if indices is None or is_varied(slots) or not indices.is_searchable or indices.padded:
        return False
    sizes = (integer_value(slots.length), integer_value(width_of(slots)))
    is_tree = (groups.parent, slots.parent) == (rows.name, groups.name) and is_full(groups)
    return is_tree and sizes == (GROUP, SLOTS) and is_dense_root(rows) and is_dense_root(features)


def _factors(term: Expr) -> tuple[Load, Load] | None:
    """Return the two elements whose product a term is, without conversions."""
    match term:
        case Binary(op="mul", lhs=lhs, rhs=rhs):
            left, right = (
                operand.value if isinstance(operand, Cast) else operand for operand in (lhs, rhs)
            )
            if isinstance(left, Load) and isinstance(right, Load):
                return left, right
    return None


def _is_row_of_group(dense: Load, group: Expr, slot: Expr, feature: Expr) -> bool:
    """Return whether an element of a dense matrix, or of a transposed one, is in the row of a slot."""
    row = Affine({group: GROUP, slot: 1}, 0)
    forms = [affine_of(at) for at in dense.indices]
    return len(forms) == 2 and forms in ([row, affine_of(feature)], [affine_of(feature), row])
