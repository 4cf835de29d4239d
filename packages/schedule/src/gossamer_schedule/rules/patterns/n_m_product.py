"""The pattern of a matrix with the pattern 2:4, 1:2 or 4:8 in pairs, times a dense one."""

from __future__ import annotations

import msgspec

from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.arith.affine import Affine, affine_of
from gossamer_ir.core.axis_kinds import indices_of, is_dense_root, is_full, is_varied, width_of
from gossamer_ir.core.build import index, index_var, integer_value
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import Axis, Expr, Function, InRange, Iteration, Load, OverAxis
from gossamer_machine.intrinsics.n_m_operands import SPECIAL_OPERANDS
from gossamer_schedule.rules.analysis.iterations import axes_of, single_iteration_pattern
from gossamer_schedule.rules.analysis.outputs import may_reassociate, only_store
from gossamer_schedule.rules.analysis.product_factors import product_factors

_UNITS = {2: 4, 1: 2}
"""The units of a group, by the number of its slots. A unit is a column, or a pair of columns."""
_PAIR = 2


class NMProduct(msgspec.Struct, frozen=True):
    """The variables of `C[row, feature] += A[row, group, slot] * B[2 * slots * group + slot, feature]`, or of
    `C[row, feature] += A[row, group, slot, element] * B[(4 * group + slot) * 2 + element, feature]`.

    C and B may be transposed. `operands` is the dtype of A and B, or a precision in which instructions read
    them (`SPECIAL_OPERANDS`), `slots` the number of slots of a group, 2 or 1, and `rows` and `features` those
    of rows and features if they are constant."""

    block: str
    row: str
    group: str
    slot: str
    element: str | None
    """The variable of the elements of a pair; None if units are single columns."""
    feature: str
    operands: str
    slots: int
    sums: str
    rows: int | None
    features: int | None
    has_init: bool
    output: str
    """The buffer of the result at the loop stage."""
    is_row_major: bool
    """True if neither C nor B is transposed."""

    @property
    def pattern(self) -> str:
        """The pattern of the sparse matrix."""
        return f"{self.group_elements}:{2 * self.group_elements}"

    @property
    def group_elements(self) -> int:
        """The elements of a group that are stored."""
        return self.slots * (1 if self.element is None else _PAIR)

    @property
    def terms(self) -> tuple[str, ...]:
        """The variables of the terms of a sum, those of a group after that of groups."""
        pairs = () if self.element is None else (self.element,)
        return (self.group, self.slot, *pairs)

    @property
    def text(self) -> str:
        """The pattern in words."""
        return (
            f"products of a {self.pattern} matrix [{', '.join((self.row, *self.terms))}] and rows of a dense "
            f"one, over features {self.feature}"
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
    if not (_is_over_axes(iteration) and may_reassociate(iteration)):
        return None
    rows, groups, slots, *pairs, features = axes_of(function, iteration)
    slot_count = _slots_of_axes(rows, groups, slots, features)
    row, group, slot, *elements, feature = iteration.vars
    i, k = index_var(row), index_var(feature)
    factors = product_factors(reduction.value, dtype=dtype_of(store.value))
    if set(store.indices) != {i, k} or len(store.indices) != 2 or factors is None:
        return None
    if slot_count is None or not _are_pairs(pairs, slots):
        return None
    stored = tuple(map(index_var, iteration.vars[:-1]))
    row_of_b = _row_of_dense(slot_count, group, slot, elements)
    for a, b in factors.orders:
        if a.indices == stored and _is_in_row(b, row_of_b, k):
            return NMProduct(
                block=iteration.name,
                row=row,
                group=group,
                slot=slot,
                element=elements[0] if elements else None,
                feature=feature,
                operands=_operands(function, a, b, factors.operands),
                slots=slot_count,
                sums=dtype_of(store.value),
                rows=integer_value(rows.length),
                features=integer_value(features.length),
                has_init=bool(iteration.init),
                output=data_name(store.buffer),
                is_row_major=store.indices[1] == k == b.indices[1],
            )
    return None


def _is_over_axes(iteration: Iteration) -> bool:
    """Return whether an iteration is over rows, groups, slots and the elements of pairs, if there are any,
    which are reduced, and features."""
    is_known = iteration.kinds in ("SRRS", "SRRRS")
    return is_known and all(isinstance(axis, OverAxis) for axis in iteration.axes)


def _slots_of_axes(rows: Axis, groups: Axis, slots: Axis, features: Axis) -> int | None:
    """Return the slots of a group if axes are those of rows, of groups of four units with two slots or of
    two with one slot, all used and in the order of columns, and of features; else None."""
    indices = indices_of(slots)
    if indices is None or is_varied(slots) or not indices.is_searchable or indices.padded:
        return None
    count = integer_value(width_of(slots))
    is_tree = (groups.parent, slots.parent) == (rows.name, groups.name) and is_full(groups)
    if count is None or _UNITS.get(count) != integer_value(slots.length):
        return None
    return count if is_tree and is_dense_root(rows) and is_dense_root(features) else None


def _are_pairs(pairs: list[Axis], slots: Axis) -> bool:
    """Return whether the axes between slots and features are none, or that of the two elements of a slot."""
    return all(
        axis.parent == slots.name and is_full(axis) and integer_value(axis.length) == _PAIR
        for axis in pairs
    )


def _row_of_dense(slots: int, group: str, slot: str, elements: list[str]) -> Affine:
    """Return the row of the dense matrix that an element is multiplied with."""
    columns = _PAIR if elements else 1
    steps = {group: _UNITS[slots] * columns, slot: columns, **dict.fromkeys(elements, 1)}
    return Affine({index_var(name): step for name, step in steps.items()}, 0)


def _operands(function: Function, a: Load, b: Load, operands: str) -> str:
    """Return the precision in which instructions read elements of a dtype, if the function states that both
    buffers have only values of it; else the dtype."""
    for name, special in SPECIAL_OPERANDS.items():
        if special.stored_as == operands and special.limits is not None:
            least, most = special.limits
            facts = [InRange(load.buffer, index(least), index(most + 1)) for load in (a, b)]
            if all(fact in function.facts for fact in facts):
                return name
    return operands


def _is_in_row(dense: Load, row: Affine, feature: Expr) -> bool:
    """Return whether an element of a dense matrix, or of a transposed one, is in a row, at a feature."""
    forms = [affine_of(at) for at in dense.indices]
    return len(forms) == 2 and forms in ([row, affine_of(feature)], [affine_of(feature), row])
