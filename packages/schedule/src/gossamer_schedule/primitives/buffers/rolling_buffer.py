"""`rolling_buffer`: keep elements that iterations share in a circular buffer."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import EnclosingContext, accesses
from gossamer_ir.analysis.invariants import changing_buffers
from gossamer_ir.core.build import add, index, index_var, sub
from gossamer_ir.core.conditions import conjunction, conjuncts
from gossamer_ir.dependence.init_conflicts import is_determined_by_element
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Block,
    Buffer,
    Compare,
    For,
    Function,
    Node,
    Range,
    Stmt,
    Store,
)
from gossamer_ir.traversal.access_types import ACCESSES, BUFFER_NODES, ELEMENT_ACCESSES
from gossamer_ir.traversal.buffer_definitions import without_allocations
from gossamer_ir.traversal.buffer_uses import (
    access_counts,
    buffers_accessed,
    buffers_named,
    outer_writes,
)
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.statement_queries import names_after
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts, function_with_replaced
from gossamer_schedule.cursor.find import find_block, find_buffer, find_loop
from gossamer_schedule.cursor.program_points import point_in_function
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_serial
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import quote, schedule_error, text_of
from gossamer_schedule.motion.move_block import updates_old_values
from gossamer_schedule.nests.init_checks import reinitializing_loops
from gossamer_schedule.nests.init_nest import init_nest, required_init_nest
from gossamer_schedule.regions.sliding_window import SlidingWindow, required_window


@primitive(stages=LOOP_STAGES)
def rolling_buffer(
    root: Cursor[Function], block: str, *, buffer: str, function: str | None = None
) -> Change:
    """Keep elements that consecutive iterations of a loop share, and compute only the new ones.

    The block must be in the body of the loop in which its buffer is allocated, as `compute_at` leaves it.
    In each iteration it computes a window of elements that slides along one dimension and overlaps the
    window of the previous iteration.

    The buffer becomes circular: it is allocated before the loop with the size of the window, and index `x`
    along the dimension becomes `x % width`. Only the first iteration computes the whole window; later
    iterations compute the elements that enter it, and depend on earlier iterations.

    An `init` becomes a block of its own, directly before the loops of the block, because each element of
    the circular buffer is reused and must be initialized repeatedly. The result's names are the buffer and,
    if there is an `init`, its block and loops as in `decompose_reduction`.

    Raises `ScheduleError` with a code `schedule.rolling_buffer.*`:

    * `.scope`: the buffer is not allocated in a loop, the block is not in loops of its own there, or the
      shape is not known before the loop
    * `.writers`: another statement writes the buffer, or the block writes another buffer
    * `.updates`: the block updates elements that already have a value
    * `.changed`: a buffer that the block reads is written in the loop
    * `.window`: no dimension has a window of constant width and step, or the block depends on the iteration
      in another way
    * `.overlap`: consecutive windows share no element
    * `.other_access`: the buffer is used before the block or by an init, or is searched, prefetched or
      guarded
    * `.not_proved`: an access may be outside the window or the buffer, or points may initialize one element
      with different values

    >>> from gossamer_testkit.examples import WINDOWS
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(WINDOWS))
    for i in T.serial(n):
        W = T.alloc_buffer((n + 2,), "float32")
        for j in T.serial(3):
            with T.block("twice"):
                vj = T.axis.spatial(n + 2, i + j)
                W[vj] = X[vj] * 2.0
        with T.block("sum"):
            vi = T.axis.spatial(n, i)
            Y[vi] = W[vi] + W[vi + 1] + W[vi + 2]
    >>> rolled = rolling_buffer(WINDOWS, "twice", buffer="W").module
    >>> print(body_text(rolled))
    W = T.alloc_buffer((3,), "float32")
    for i in T.serial(n):
        for j in T.serial(3):
            with T.block("twice"):
                vj = T.axis.spatial(n + 2, i + j)
                T.where(i == 0 or vj >= i + 2)
                W[vj % 3] = X[vj] * 2.0
        with T.block("sum"):
            vi = T.axis.spatial(n, i)
            Y[vi] = W[vi % 3] + W[(vi + 1) % 3] + W[(vi + 2) % 3]
    """
    cursor = find_block(root, block=block)
    old = find_buffer(root, buffer=buffer)

    window_loop = _required_loop(cursor, buffer)
    require_serial(window_loop)
    own_loops = _required_own_loops(cursor, window_loop)
    _require_repeatable(cursor, window_loop, own_loops, buffer_name=buffer)
    window = required_window(cursor, window_loop, own_loops, buffer_name=buffer)
    assert isinstance(old, Buffer)  # Only dense buffers are allocated by statements.
    _require_known_shape(old, window_loop)
    _require_loads_after(cursor, window_loop, buffer_name=buffer)
    _require_accesses_in_window(window_loop, window, old)

    shape = list(old.shape)
    shape[window.dimension] = index(window.width)
    rolled = replace(old, shape=tuple(shape))
    changed, names = _with_new_elements_only(cursor, window_loop, own_loops, window)
    inside = find_loop(root.with_function(changed), loop=window_loop.node.var)
    loop = replace(
        inside.node, body=_with_circular_indices(inside.node.body, window, buffer_name=buffer)
    )
    return Change(inside.replace_with((Allocate(rolled), loop)), (buffer, *names))


def _required_loop(cursor: Cursor[Block], buffer_name: str) -> Cursor[For]:
    """Return the cursor at the loop around the block in whose body the buffer is allocated."""
    for below in cursor.top.below():
        if buffer_name in names_after(below.node):
            loop = below.up(1)
            if isinstance(loop.node, For) and any(loop.node is above for above in cursor.parents):
                return loop
    raise schedule_error(
        "rolling_buffer.scope",
        f"Buffer '{buffer_name}' is not allocated in the body of a loop around block '{cursor.node.name}'.",
        hint="Apply compute_at first.",
    )


def _required_own_loops(cursor: Cursor[Block], window_loop: Cursor[For]) -> tuple[For, ...]:
    """Return the loops between the window's loop and the block, which must contain nothing else."""
    between = [step.parent for step in cursor.steps_from(window_loop)[1:]]
    if all(isinstance(parent, For) and len(parent.body) == 1 for parent in between):
        return tuple(between)
    raise schedule_error(
        "rolling_buffer.scope",
        f"Block '{cursor.node.name}' is not in loops of its own in the body of loop "
        f"'{window_loop.node.var}'.",
    )


def _require_repeatable(
    cursor: Cursor[Block], window_loop: Cursor[For], own_loops: tuple[For, ...], *, buffer_name: str
) -> None:
    """Refuse a block unless computing an element of the buffer again would give the same value.

    Only the block may write the buffer, and it may only read values that do not change in the loop.
    """
    block = cursor.node
    stores = access_counts(*window_loop.node.body, kinds=Store)[buffer_name]
    is_only_writer = stores == access_counts(block, kinds=Store)[buffer_name]
    if outer_writes((block,)) != {buffer_name} or not is_only_writer:
        raise schedule_error(
            "rolling_buffer.writers",
            f"Block '{block.name}' is not the only writer of '{buffer_name}', or also writes another buffer.",
        )
    if updates_old_values(block):
        raise schedule_error(
            "rolling_buffer.updates",
            f"Block '{block.name}' updates elements that already have a value.",
            hint="rolling_buffer keeps elements that a block computes from scratch, by an assignment or by a "
            "reduction with an init.",
        )
    nest = resolve(own_loops[0] if own_loops else block, values_at(cursor))
    # The new predicate of the block reads the start of the loop in each iteration.
    reads = nest, window_loop.node.start
    changed = changing_buffers(window_loop.node.body, *reads, function=window_loop.function) - {
        buffer_name
    }
    if changed:
        raise schedule_error(
            "rolling_buffer.changed",
            f"Block '{block.name}' or its loop reads {quote(changed)}, which is written in loop "
            f"'{window_loop.node.var}'.",
        )


def _require_known_shape(buffer: Buffer, window_loop: Cursor[For]) -> None:
    """Refuse a buffer whose shape is not known before the loop, where it will be allocated."""
    available = {param.name for param in window_loop.function.params}
    available |= {outer_loop.var for outer_loop in window_loop.loops}
    if free_vars(*buffer.shape) - available or buffers_accessed(*buffer.shape):
        raise schedule_error(
            "rolling_buffer.scope",
            f"The shape of '{buffer.name}' is not known before loop '{window_loop.node.var}'.",
        )


def _require_loads_after(
    cursor: Cursor[Block], window_loop: Cursor[Block | For], *, buffer_name: str
) -> None:
    """Refuse uses of the buffer other than loads after the block."""
    at = cursor.steps_from(window_loop)[0].index
    body = window_loop.node.body
    used = buffers_named(*body[:at])
    for stmt in addressable_stmts(body):
        if isinstance(stmt, Block) and stmt is not cursor.node:
            used |= buffers_named(*stmt.init)
    used |= {node.buffer for node in collect(BUFFER_NODES, *body) if not isinstance(node, ACCESSES)}
    if buffer_name in used:
        raise schedule_error(
            "rolling_buffer.other_access",
            f"Buffer '{buffer_name}' has other uses than loads after block '{cursor.node.name}'.",
        )


def _require_accesses_in_window(
    window_loop: Cursor[For], window: SlidingWindow, buffer: Buffer
) -> None:
    """Refuse accesses that may be outside the window of the iteration, or outside the old buffer.

    `x % width` maps every index into the window, so an access out of bounds would silently use another
    element.
    """
    context = EnclosingContext((*window_loop.loops, window_loop.node))
    values = values_at(window_loop)
    for access in accesses(
        window_loop.node.body, values=values, context=context, buffers={buffer.name}
    ):
        at = access.indices[window.dimension]
        point = point_in_function(window_loop.function)
        point.assume_context(access.context)
        if (
            isinstance(at, Range)
            or not point.is_in_range(sub(at, window.base), index(window.width))
            or not point.is_in_range(at, buffer.shape[window.dimension])
        ):
            shown = "a range" if isinstance(at, Range) else text_of(at)
            raise schedule_error(
                "rolling_buffer.not_proved",
                f"Cannot prove that all accesses of '{buffer.name}' in loop '{window_loop.node.var}' are "
                "within the window that the iteration computes, and within the buffer.",
                needs=f"{text_of(window.base)} <= {shown} < {text_of(window.base)} + {window.width}, and "
                f"0 <= {shown} < {text_of(buffer.shape[window.dimension])}",
            )


def _with_new_elements_only(
    cursor: Cursor[Block],
    window_loop: Cursor[For],
    own_loops: tuple[For, ...],
    window: SlidingWindow,
) -> tuple[Function, tuple[str, ...]]:
    """Return the function whose block computes only the elements that enter the window, and new names.

    An init becomes a block of its own; the names are those of this block and its loops.
    """
    loop, block = window_loop.node, cursor.node
    kept = add(window.base, index(window.width - window.step))
    # The first iteration fills the whole window, the others only the elements that enter it.
    is_new = Binary(
        "or",
        Compare("eq", index_var(loop.var), loop.start),
        Compare("ge", index_var(window.var), kept),
    )
    predicate = conjunction(*conjuncts(block.predicate), is_new)
    restricted = replace(block, predicate=predicate, reads=None, writes=None)
    changed = cursor.replace_with((restricted,))
    if not block.init:
        return changed.function, ()
    _require_same_init(cursor, own_loops)
    inner = find_block(changed, block=block.name)
    nest = required_init_nest(inner, inner.nest[-len(own_loops) :])
    # In a nest of its own, so that it runs for new elements only and before any of them is updated.
    inits, names = init_nest(inner, nest, namer=namer_of(changed.function))
    updates = find_block(inner.replace_with((replace(restricted, init=()),)), block=block.name)
    top = updates.up(len(own_loops))
    return function_with_replaced(top, (*inits, top.node)), names


def _require_same_init(cursor: Cursor[Block], own_loops: tuple[For, ...]) -> None:
    """Refuse points that may initialize one element with different values.

    The init of the block stores the value of the first point; the new block would store that of the last.
    """
    block = cursor.node
    reinitializing = reinitializing_loops(cursor, {inner_loop.var for inner_loop in own_loops})
    if reinitializing and not is_determined_by_element(block, own_loops):
        loop = min(reinitializing)
        raise schedule_error(
            "rolling_buffer.not_proved",
            f"Cannot prove that iterations of loop '{loop}' initialize different elements, or one element "
            f"with the same value; the init of block '{block.name}' must run once per element.",
            needs=f"a different element in each iteration of '{loop}'",
        )


def _with_circular_indices(
    body: tuple[Stmt, ...], window: SlidingWindow, *, buffer_name: str
) -> tuple[Stmt, ...]:
    """Return the body of the loop, with indices of the circular buffer and without its allocation."""

    def rule(node: Node) -> Any | None:
        if isinstance(node, ELEMENT_ACCESSES) and node.buffer == buffer_name:
            indices = list(node.indices)
            at = indices[window.dimension]
            indices[window.dimension] = Binary("floormod", at, index(window.width))
            return replace(node, indices=tuple(indices))
        # Declared regions name elements of the old buffer.
        if isinstance(node, Block) and (node.reads is not None or node.writes is not None):
            return replace(node, reads=None, writes=None)
        return None

    return rewrite_body(without_allocations(body, {buffer_name}), rule)
