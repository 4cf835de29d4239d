"""`transform_layout`: change the layout of a buffer by an index map."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.build import ZERO, index_var, integer_value
from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import has_lanes
from gossamer_ir.core.limits import MAX_SIZE
from gossamer_ir.errors import ParseError
from gossamer_ir.facts.fact_kinds import buffers_of_fact
from gossamer_ir.nodes import (
    AnyBuffer,
    Block,
    BlockIter,
    Buffer,
    Const,
    Expr,
    For,
    Function,
    IndexMap,
    Range,
    Search,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.access_types import INDEXED_NODES
from gossamer_ir.traversal.buffer_definitions import is_allocation_of, with_allocation
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.allocations import require_allocated
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.cursor.find import find_buffer
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.counts import is_count
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.regions.iterator_map import BufferLayout, layout_of
from gossamer_schedule.safe_accesses.moved_accesses import body_with_moved_accesses
from gossamer_support.items_by_name import items_by_name
from gossamer_support.message_texts import amount


@primitive(stages=LOOP_STAGES)
def transform_layout(
    root: Cursor[Function],
    buffer: str,
    *,
    index_map: str,
    pad: str | None = None,
    function: str | None = None,
) -> Change:
    """Change the layout of a buffer by a map from old to new indices.

    `index_map` is a text such as "i, j -> j // 8, i, j % 8", which makes tiles of 8 columns. Its results
    are digits of the indices, `i`, `i // c`, `i % d` or `i // c % d`, or sums of digits with place values.
    The function must allocate the buffer.

    If an extent is not a multiple of a divisor, some slots of the new layout hold no element. Block
    `<buffer>_pad` stores the value `pad` to them before the buffer is first used. The result's names are
    those of this block and its loops.

    Raises `ScheduleError` with a code `schedule.transform_layout.*`:

    * `.parameter`: the buffer is a parameter
    * `.map`: the text is not a map of that number of indices
    * `.sparse`: an axis of the buffer is not dense
    * `.not_proved`: two elements may get the same slot, or vector accesses may be out of bounds
    * `.padding`: slots hold no element, and `pad` is missing or is not a constant of the buffer's dtype
    * `.other_access`: the buffer is searched, or facts are declared about its values
    * `.kind`: the map has digits, and a vectorized loop or a vector access uses the buffer

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_schedule.primitives.buffers.cache_write import cache_write
    >>> from gossamer_testkit.show import body_text
    >>> cached = cache_write(SCALE, "scale", buffer="Y", scope="local").module
    >>> moved = transform_layout(cached, "Y_local", index_map="i -> i % 4, i // 4", pad="0.0")
    >>> print(body_text(moved.module))
    for Y_local_pad_0 in T.serial(4):
        for Y_local_pad_1 in T.serial((n + 3) // 4):
            with T.block("Y_local_pad"):
                vY_local_pad_0, vY_local_pad_1 = T.axis.remap("SS", [Y_local_pad_0, Y_local_pad_1])
                T.where(not vY_local_pad_0 + vY_local_pad_1 * 4 < n)
                Y_local[vY_local_pad_0, vY_local_pad_1] = 0.0
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y_local[vi % 4, vi // 4] = X[vi] * 2.0
    for i_c in T.serial(n):
        with T.block("scale_Y_local"):
            vi_c = T.axis.spatial(n, i_c)
            Y[vi_c] = Y_local[vi_c % 4, vi_c // 4]
    """
    old = find_buffer(root, buffer=buffer)

    require_allocated(old, root)
    shape = _required_dense_shape(root.function, old)
    layout = _required_layout(index_map, old, shape, root.function)
    value = _required_padding_value(pad, old, layout)
    _require_only_elements(root.function, buffer)
    _require_no_vectors(root.function, buffer, layout)

    new = Buffer(buffer, layout.extents, old.dtype, scope=old.scope)
    nest, names = ((), ()) if value is None else _padding_nest(root.function, new, layout, value)
    # An index that was out of bounds may be in bounds of the new layout: its check is kept explicitly.
    lost = {dimension: shape[dimension] for dimension in layout.unsafe_dimensions}
    moved = body_with_moved_accesses(root, buffer, layout.at, lost=lost)
    return Change(root.with_function(_function_with_layout(root.function, moved, new, nest)), names)


def _required_dense_shape(function: Function, buffer: AnyBuffer) -> tuple[Expr, ...]:
    """Return the extents of the buffer, all of whose axes must be dense."""
    if isinstance(buffer, Buffer):
        return buffer.shape
    axes = items_by_name(function.axes)
    buffer_axes = [axes[name] for name in buffer.axes]
    lengths = tuple(axis.length for axis in buffer_axes if is_full(axis))
    if len(lengths) != len(buffer_axes) or buffer.extra_storage:
        raise schedule_error(
            "transform_layout.sparse",
            f"Buffer '{buffer.name}' has axes that are not dense, and its axes determine its layout.",
            hint="Apply transform_layout to a buffer whose axes are all dense.",
        )
    return lengths


def _required_layout(
    text: str, buffer: AnyBuffer, shape: tuple[Expr, ...], function: Function
) -> BufferLayout:
    """Return the layout that a map gives; refuse it if two elements may get one slot, where the second would
    overwrite the first.

    The extents of the layout are checked as well as the map, since they are computed from it.
    """
    parsed = _parsed_index_map(text, function)
    if parsed is None or len(parsed.vars) != len(shape) or len({*parsed.vars}) != len(shape):
        raise schedule_error(
            "transform_layout.map",
            f"'{text}' is not a map of the {amount(len(shape), 'index', 'indices')} of buffer "
            f"'{buffer.name}'.",
            hint='Expected a text such as "i, j -> j // 8, i, j % 8".',
        )
    _require_sizes(parsed, text)
    layout = layout_of(parsed, shape)
    if layout is not None:
        _require_sizes(IndexMap((), layout.extents), text)
    if layout is None:
        raise schedule_error(
            "transform_layout.not_proved",
            f"Cannot prove that '{text}' gives each element of '{buffer.name}' a slot of its own.",
            needs=f"different values of {', '.join(parsed.vars)} have different results, which contain all "
            "digits of each index",
        )
    return layout


def _require_sizes(index_map: IndexMap, text: str) -> None:
    """Refuse constants so large that computing a slot could overflow."""
    for part in collect(Const, *index_map.results):
        value = integer_value(part)
        if value is not None and not is_count(value, least=0):
            raise schedule_error(
                "transform_layout.map",
                f"The number {value}, in the map '{text}' or in an extent of the new layout, is not valid.",
                hint=f"Expected numbers from 0 to {MAX_SIZE}.",
            )


def _parsed_index_map(text: str, function: Function) -> IndexMap | None:
    from gossamer_ir.script import parse_expr  # Imported late: only texts need the parser.

    left, arrow, right = text.partition("->")
    names = tuple(name.strip() for name in left.split(","))
    dtypes = {param.name: param.dtype for param in function.params}
    try:
        results = tuple(
            parse_expr(part, dtypes | dict.fromkeys(names, "int64")) for part in right.split(",")
        )
    except ParseError:
        return None
    return IndexMap(names, results) if arrow else None


def _required_padding_value(
    pad: str | None, buffer: AnyBuffer, layout: BufferLayout
) -> Const | None:
    """Return the value for slots that hold no element, or None if there are none."""
    if not layout.padded:
        return None
    value = None if pad is None else _parsed_constant(pad, buffer.dtype)
    if value is None:
        raise schedule_error(
            "transform_layout.padding",
            f"The map leaves slots of '{buffer.name}' that hold no element, and "
            + ("pad is missing." if pad is None else f"pad '{pad}' is not of type {buffer.dtype}."),
            hint='Pass the value that they get, such as pad="0".',
        )
    return value


def _parsed_constant(text: str, dtype: str) -> Const | None:
    try:
        return constant(float(text) if DType.parse(dtype).is_float else int(text), dtype)
    except ValueError:
        return None


def _require_only_elements(function: Function, buffer_name: str) -> None:
    """Refuse a buffer with searches or facts, which refer to the order of its elements."""
    named = {name for fact in function.facts for name in buffers_of_fact(fact)}
    searched = {search.buffer for search in collect(Search, *function.body)}
    if buffer_name in named | searched:
        raise schedule_error(
            "transform_layout.other_access",
            f"Buffer '{buffer_name}' is searched, or facts are declared about its values, and both "
            "refer to its layout.",
        )


def _require_no_vectors(function: Function, buffer_name: str, layout: BufferLayout) -> None:
    """Refuse vectors of a buffer whose indices are divided into digits: digits of lanes are not supported."""
    # A permutation of the dimensions keeps vectors whole.
    if all(isinstance(result, Var) for result in layout.map.results):
        return
    for loop in addressable_stmts(function.body):
        if (
            isinstance(loop, For)
            and loop.kind == "vectorized"
            and buffer_name in buffers_accessed(loop)
        ):
            raise schedule_error(
                "transform_layout.kind",
                f"The map splits or combines indices of buffer '{buffer_name}', which the vectorized loop "
                f"'{loop.var}' uses.",
                hint=f"Apply transform_layout before '{loop.var}' is made vectorized.",
            )
    accesses = (
        node for node in collect(INDEXED_NODES, *function.body) if node.buffer == buffer_name
    )
    if any(has_lanes(at) for node in accesses for at in node.indices):
        raise schedule_error(
            "transform_layout.kind",
            f"The map splits or combines indices of buffer '{buffer_name}', which is accessed in vectors.",
        )


def _padding_nest(
    function: Function, new: Buffer, layout: BufferLayout, value: Const
) -> tuple[tuple[Stmt, ...], tuple[str, ...]]:
    """Return the nest that fills the slots that hold no element, and the names of its block and loops."""
    namer = namer_of(function)
    name = namer.fresh(f"{new.name}_pad")
    loops = [namer.fresh(f"{name}_{dimension}") for dimension in range(len(new.shape))]
    vars = [namer.fresh(f"v{loop}") for loop in loops]
    indices = tuple(index_var(var) for var in vars)
    iters = tuple(
        BlockIter(var, "S", Range(ZERO, extent), index_var(loop))
        for var, extent, loop in zip(vars, new.shape, loops, strict=True)
    )
    body = (Store(new.name, indices, value),)
    nest: Stmt = Block(name, iters, body, predicate=layout.unused_condition(indices))
    for loop, extent in zip(reversed(loops), reversed(new.shape), strict=True):
        nest = For(loop, ZERO, extent, (nest,))
    return (nest,), (name, *loops)


def _function_with_layout(
    function: Function, body: tuple[Stmt, ...], new: Buffer, nest: tuple[Stmt, ...]
) -> Function:
    """Return the function that declares the new buffer, and pads it before it is first used."""

    def rule(node: Any) -> tuple[Stmt, ...] | None:
        # Directly after the allocation: each allocation has its own slots to fill.
        return (with_allocation(node, new), *nest) if is_allocation_of(node, {new.name}) else None

    if all(buffer.name != new.name for buffer in function.buffers):
        return replace(function, body=rewrite_body(body, rule))
    buffers = tuple(new if buffer.name == new.name else buffer for buffer in function.buffers)
    first = next(
        (number for number, stmt in enumerate(body) if new.name in buffers_accessed(stmt)),
        len(body),
    )
    return replace(function, buffers=buffers, body=(*body[:first], *nest, *body[first:]))
