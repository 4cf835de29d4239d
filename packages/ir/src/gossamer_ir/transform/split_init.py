"""Splits an iteration into its init and its updates.

The init runs in an iteration of its own where the updates do not visit all elements that it initializes, as
below fused axes, or where several iterations add to elements that are initialized once: the parts of a
decomposed tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.build import index_var
from gossamer_ir.core.iteration_axes import attachment_of, iterated_axes
from gossamer_ir.nodes import AttachAxis, Axis, FuseAxes, Iteration, OverAxis
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.substitute import substitute_body


def split_init(
    node: Iteration, by_name: Mapping[str, Axis], namer: Namer
) -> tuple[Iteration, Iteration]:
    """Return the init of an iteration, as one over the elements that it visits, and the updates.

    Both have the annotations of the iteration. `by_name` are those of the function.

    >>> from gossamer_ir.script import parse_module
    >>> from gossamer_support.items_by_name import items_by_name
    >>> from gossamer_ir.traversal.names import namer_of
    >>> module = parse_module('''
    ... @T.prim_func
    ... def row_sums(a: T.handle, y: T.handle, m: T.int64) -> None:
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.dense_fixed(4)
    ...     A = T.sp.match_buffer(a, (I, J), "float32")
    ...     Y = T.sp.match_buffer(y, (I,), "float32")
    ...     with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
    ...         with T.init():
    ...             Y[i] = 0.0
    ...         Y[i] = Y[i] + A[i, j]
    ... ''')
    >>> (function,) = module.functions
    >>> axes = items_by_name(function.axes)
    >>> init, updates = split_init(function.body[0], axes, namer_of(function))
    >>> init.name, init.vars, updates.vars, updates.init
    ('sums_init', ('i_init',), ('i', 'j'), ())
    """
    kept = axes_of_init(node, by_name)
    names = {var: index_var(namer.fresh(f"{var}_init")) for _, var in kept}
    init = Iteration(
        namer.fresh(f"{node.name}_init"),
        tuple(item for item, _ in kept),
        "S" * len(kept),
        tuple(names[var].name for _, var in kept),
        substitute_body(node.init, names),
        annotations=node.annotations,
    )
    return init, replace(node, init=())


def init_visits_others(node: Iteration, by_name: Mapping[str, Axis]) -> bool:
    """Return whether the domain of the init differs from that of the loop nest.

    It is larger below fused axes: an empty row has no element there, but is initialized. It is smaller
    than a loop of fixed extent whose parent, on which the loop does not depend, has no elements.
    """
    kept = axes_of_init(node, by_name)
    names = {var for _, var in kept}
    indexed = {item.axis for item, var in kept if var in vars_of_init(node)}
    return any(
        not names.issuperset(item.vars)
        for item in iterated_axes(node)
        if isinstance(item.axis, FuseAxes)
    ) or any(_is_loose(by_name[item.axis], indexed) for item, _ in kept)


def _is_loose(axis: Axis, indexed: set[str]) -> bool:
    return is_full(axis) and axis.parent not in (None, *indexed)


def axes_of_init(
    node: Iteration, by_name: Mapping[str, Axis]
) -> list[tuple[OverAxis | AttachAxis, str]]:
    """Return the axes that the init uses and their ancestors, unfused, with their variables."""
    used = vars_of_init(node)
    kept: list[tuple[OverAxis | AttachAxis, str]] = []
    parents: set[str | None] = set()
    for item, var in reversed(list(_unfuse_axes(node))):
        if var in used or item.axis in parents:
            kept.insert(0, (item, var))
            parents.add(attachment_of(item) or by_name[item.axis].parent)
    return kept


def vars_of_init(node: Iteration) -> set[str]:
    """Return the free variables of the init."""
    return {name for stmt in node.init for name in free_vars(stmt)}


def _unfuse_axes(node: Iteration) -> Iterator[tuple[OverAxis | AttachAxis, str]]:
    for item in iterated_axes(node):
        entry = item.axis
        unfused = (
            [OverAxis(name) for name in entry.axes] if isinstance(entry, FuseAxes) else [entry]
        )
        yield from zip(unfused, item.vars, strict=True)
