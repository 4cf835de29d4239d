"""`sparse_compute_at`: move an iteration into a later one that uses its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.core.build import index_var
from gossamer_ir.core.iteration_axes import attachment_of
from gossamer_ir.core.statement_kinds import WRITES
from gossamer_ir.nodes import Axis, Block, Expr, Function, Iteration, OverAxis, Stmt, Var
from gossamer_ir.traversal.access_types import ACCESSES, ELEMENT_ACCESSES
from gossamer_ir.traversal.buffer_uses import buffers_accessed, outer_writes
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.cursor.find import find_iteration
from gossamer_schedule.cursor.used_buffers import conflicting_buffers
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import listing, schedule_error
from gossamer_support.items_by_name import items_by_name


@primitive(stages=("coordinate",))
def sparse_compute_at(
    root: Cursor[Function], iteration: str, *, into: str, var: str, function: str | None = None
) -> Change:
    """Move an iteration into a later one, so that they share the loops over their leading axes.

    The shared axes are those of `into`, the later iteration, up to the axis of its variable `var`. A new
    iteration `<into>_<var>` over these axes contains both iterations, each over its remaining axes. If
    `into` has no other axes, the first iteration moves to the beginning of its body instead. The result's
    name is that of the iteration that contains both.

    Raises `ScheduleError` with a code `schedule.sparse_compute_at.*`:

    * `.variable`: `into` has no such variable
    * `.axes`: the iterations do not begin with the same spatial axes, unfused and without duplicate
      coordinates
    * `.scope`: they are not in one body, in this order
    * `.other_access`: a statement between them uses the same buffers
    * `.init`: an init writes an element that these axes do not select
    * `.dependence`: an iteration uses elements that the other one writes at other points of these axes

    >>> from gossamer_ir.script import parse_module
    >>> from gossamer_testkit.show import body_text
    >>> module = parse_module('''
    ... @T.prim_func
    ... def shares(p: T.handle, q: T.handle, a: T.handle, m: T.int64, n: T.int64, nnz: T.int64):
    ...     T.func_attr({"sparse_tir_level": 2})
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    ...     A = T.sp.match_buffer(a, (I, J), "float32")
    ...     S = T.sp.alloc_buffer((I,), "float32")
    ...     with T.sp.iteration([I, J], "SR", "sum") as [i, j]:
    ...         with T.init():
    ...             S[i] = 0.0
    ...         S[i] = S[i] + A[i, j]
    ...     with T.sp.iteration([I, J], "SS", "share") as [i, j]:
    ...         A[i, j] = A[i, j] / S[i]
    ... ''')
    >>> print(body_text(sparse_compute_at(module, "sum", into="share", var="i_1").module))
    with T.sp.iteration([I], "S", "share_i_1") as [i_1]:
        with T.sp.iteration([J], "R", "sum") as [j]:
            with T.init():
                S[i_1] = 0.0
            S[i_1] = S[i_1] + A[i_1, j]
        with T.sp.iteration([J], "S", "share") as [j_1]:
            A[i_1, j_1] = A[i_1, j_1] / S[i_1]
    """
    cursor = find_iteration(root, iteration=iteration)
    target = find_iteration(root, iteration=into)

    shared = _required_shared_vars(cursor, target, var_name=var)
    _require_before(cursor, target)
    _require_no_conflict_between(cursor, target)
    _require_own_inits(cursor, shared)
    _require_own_inits(target, shared)
    _require_independent(cursor.node, target.node, shared)

    outer = _joined_iteration(
        cursor.node, target.node, shared, name=f"{into}_{var}", function=root.function
    )
    # The target is found again by its name: removing the iteration before it moves it.
    bare = cursor.replace_with(())
    return Change(find_iteration(bare, iteration=into).replace_with((outer,)), (outer.name,))


def _required_shared_vars(
    cursor: Cursor[Iteration], target: Cursor[Iteration], *, var_name: str
) -> tuple[str, ...]:
    """Return the target's variables of the shared axes; refuse axes that the iterations cannot share.

    Duplicate coordinates are refused, since a coordinate would then be visited by several iterations of
    the shared axes, in which the later iteration may see the first one only partly done.
    """
    into = target.node
    if var_name not in into.vars:
        raise schedule_error(
            "sparse_compute_at.variable",
            f"Iteration '{into.name}' has no variable '{var_name}'.",
            hint=listing("variables", into.vars),
        )
    count = into.vars.index(var_name) + 1
    axes = items_by_name(cursor.function.axes)
    is_shared = (
        cursor.node.axes[:count] == into.axes[:count]
        and cursor.node.kinds[:count] == into.kinds[:count] == "S" * count
        and len(into.axes) >= count
        and all(_has_unique_coordinates(item, axes) for item in into.axes[:count])
    )
    selecting = {attachment_of(item) for item in (*cursor.node.axes[count:], *into.axes[count:])}
    shared = {item.axis for item in into.axes[:count] if isinstance(item, OverAxis)}
    if not is_shared or selecting & shared:
        raise schedule_error(
            "sparse_compute_at.axes",
            f"Iterations '{cursor.node.name}' and '{into.name}' do not begin with the same spatial axes, up "
            f"to variable '{var_name}'.",
            hint="Expected axes that are not fused, and whose coordinates are unique.",
        )
    return into.vars[:count]


def _has_unique_coordinates(item: object, by_name: Mapping[str, Axis]) -> bool:
    """Return whether an entry is a single axis with unique coordinates."""
    if not isinstance(item, OverAxis):
        return False
    indices = indices_of(by_name[item.axis])
    return indices is None or indices.unique


def _require_before(cursor: Cursor[Block | Iteration], target: Cursor[Block | Iteration]) -> None:
    """Refuse iterations that are not in one body, in this order.

    In another order, the later iteration would use results before they are computed. In another body, one may
    run more often than the other.
    """
    if not cursor.precedes(target):
        raise schedule_error(
            "sparse_compute_at.scope",
            f"Iteration '{cursor.node.name}' does not precede iteration '{target.node.name}' in the same "
            "body.",
            place=cursor.place,
        )


def _require_no_conflict_between(cursor: Cursor[Block | Iteration], target: Cursor[object]) -> None:
    """Refuse statements between the iterations that use what the first one writes, or write what it reads."""
    conflicts = conflicting_buffers((cursor.node,), cursor.siblings_until(target))
    if conflicts:
        raise schedule_error(
            "sparse_compute_at.other_access",
            f"Iteration '{cursor.node.name}' cannot move past other uses of "
            f"'{', '.join(sorted(conflicts))}'.",
        )


def _require_own_inits(cursor: Cursor[Iteration], shared: Sequence[str]) -> None:
    """Refuse inits that may store to one element at several elements of the shared axes.

    If the iteration has no other axes, its init becomes an assignment. Its element must then also differ
    between the elements of the iterations around.
    """
    node = cursor.node
    selecting = node.vars[: len(shared)]
    if selecting == node.vars:
        selecting = (
            *(v for above in cursor.parents if isinstance(above, Iteration) for v in above.vars),
            *selecting,
        )
    inits = [
        node.init,
        *(stmt.init for stmt in addressable_stmts(node.body) if isinstance(stmt, Iteration)),
    ]
    for init in inits:
        for store in (stmt for stmt in addressable_stmts(init) if isinstance(stmt, WRITES)):
            if not all(index_var(name) in store.indices for name in selecting):
                raise schedule_error(
                    "sparse_compute_at.init",
                    f"The element of '{store.buffer}' that an init in iteration '{node.name}' writes is "
                    f"not selected by '{', '.join(selecting)}'.",
                )


def _require_independent(first: Iteration, second: Iteration, shared: Sequence[str]) -> None:
    """Refuse a buffer that both use, and one writes, unless each shared axis selects one of its dimensions.

    An element is then used at one point of the shared axes only.
    """
    used = buffers_accessed(first) & buffers_accessed(second)
    for buffer in sorted(used & (outer_writes((first,)) | outer_writes((second,)))):
        for level in range(len(shared)):
            first_var, second_var = first.vars[level], second.vars[level]
            if not _dimensions_at(first, buffer, first_var) & _dimensions_at(
                second, buffer, second_var
            ):
                raise schedule_error(
                    "sparse_compute_at.dependence",
                    f"Iterations '{first.name}' and '{second.name}' use elements of '{buffer}' that are "
                    f"not selected by '{first_var}' and '{second_var}'.",
                )


def _dimensions_at(node: Iteration, buffer_name: str, var_name: str) -> set[int]:
    """Return the dimensions in which all accesses of a buffer have a variable as index."""
    dimensions: set[int] | None = None
    for access in collect(ACCESSES, node):
        if access.buffer != buffer_name:
            continue
        if not isinstance(access, ELEMENT_ACCESSES):
            return set()
        # Only the plain variable counts: `i + 1` selects an element that another iteration uses, too.
        own_dimensions = {
            dimension for dimension, at in enumerate(access.indices) if at == Var(var_name, "int64")
        }
        dimensions = own_dimensions if dimensions is None else dimensions & own_dimensions
    return dimensions or set()


def _joined_iteration(
    first: Iteration, second: Iteration, shared: tuple[str, ...], *, name: str, function: Function
) -> Iteration:
    """Return the iteration over the shared axes that contains both iterations."""
    count = len(shared)
    vars: dict[str, Expr] = {
        old: index_var(new) for old, new in zip(first.vars, shared, strict=False)
    }
    moved = substitute_body(_without_axes(first, count), vars)
    body = (*moved, *_without_axes(second, count))
    # A target without further axes becomes the outer iteration itself and keeps its name, by which later
    # steps address it. Its init is among the statements.
    if count == len(second.vars):
        return replace(second, init=(), body=body)
    fresh = namer_of(function).fresh(name)
    return Iteration(fresh, second.axes[:count], "S" * count, shared, body)


def _without_axes(node: Iteration, count: int) -> tuple[Stmt, ...]:
    """Return an iteration without its first `count` axes, or its statements if it has no others."""
    if count == len(node.vars):
        return (*node.init, *node.body)
    inner = replace(node, axes=node.axes[count:], kinds=node.kinds[count:], vars=node.vars[count:])
    return (inner,)
