"""`cache_write`: make a block write a new buffer, which is copied to the old one afterward."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import reduction_loops
from gossamer_ir.analysis.bounds.loops_by_name import loops_within
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.statement_kinds import WRITES
from gossamer_ir.dependence.disjointness import disjointness, written_accesses
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Block, For, Function, Load, Scope, Store
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.cursor.find import find_block
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.made_names import copy_block_name
from gossamer_schedule.nests.block_nest import (
    BlockNest,
    enclosing_loops_and_conditions,
    reduction_nest,
)
from gossamer_schedule.nests.copy_nest import copy_nest, names_of_nest
from gossamer_schedule.nests.init_checks import reinitializing_loops
from gossamer_schedule.staging.cache import cache_of, required_block_and_buffer, with_cache
from gossamer_schedule.staging.cache_checks import require_constant_size
from gossamer_schedule.staging.redirected_accesses import with_redirected_accesses
from gossamer_schedule.staging.written_element import (
    WrittenElement,
    is_assigning,
    is_initializing,
    require_element_exists,
    require_sole_user,
    required_element,
)


@primitive(stages=LOOP_STAGES)
def cache_write(
    root: Cursor[Function], block: str, *, buffer: str, scope: Scope, function: str | None = None
) -> Change:
    """Make a block write a new buffer `<buffer>_<scope>`, and copy the elements to the old one afterward.

    The new buffer has the same shape. Block `<block>_<buffer>_<scope>` copies its elements back, directly
    after the outermost loop around the block. It visits exactly the elements that the block visits, in one
    loop for each spatial iterator that selects an element: `k_c` for iterator `vk`.

    A block that updates old values and has no `init` gets one that loads them. The loops of a reduction may
    have conditions between them. For an outer block made by `blockize`, the block inside writes the cache,
    too. The result's names are the buffer, the copy block and its loops.

    Raises `ScheduleError` with a code `schedule.cache_write.*`:

    * `.scope`: unknown scope
    * `.inner`: the buffer is allocated in the nest
    * `.stores`: the block does not store to the buffer in exactly one statement
    * `.reads`: it reads other elements of the buffer
    * `.element`: the element depends on a reduction iterator, or no statement initializes it
    * `.predicate`: a condition depends on more than the element
    * `.domain`: a domain depends on more than the element, or a condition on a buffer that the nest writes
    * `.other_access`: the nest uses the buffer elsewhere, or iterations around it update one element
    * `.race`: as for `cache_read`
    * `.not_proved`: as for `cache_read`; or the loops may not visit a whole domain, or an old value may not
      exist

    >>> from gossamer_testkit.examples import ROW_SUM
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(ROW_SUM))
    for i in T.serial(m):
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + A[indptr_data[vi] + vj]
    >>> print(body_text(cache_write(ROW_SUM, "row_sum", buffer="Y", scope="local").module))
    for i in T.serial(m):
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y_local[vi] = 0.0
                Y_local[vi] = Y_local[vi] + A[indptr_data[vi] + vj]
    for i_c in T.serial(m):
        with T.block("row_sum_Y_local"):
            vi_c = T.axis.spatial(m, i_c)
            Y[vi_c] = Y_local[vi_c]
    """
    cursor, old = required_block_and_buffer(root, block_name=block, buffer_name=buffer)
    writer = cursor
    if _is_written_by_inner(cursor, buffer):
        # Imported late: few blocks have others inside.
        from gossamer_schedule.tensorization.unblockize import without_outer_blocks

        writer = without_outer_blocks(cursor)
    element = required_element(writer, buffer)
    is_loading = _is_old_value_needed(writer, element)
    if is_loading and writer is not cursor:
        raise _initialization_error(writer, buffer)

    require_constant_size(old, cursor)
    loading = _copy_stmt(element, buffer, to=buffer)
    initialized = _with_init_stmt(writer, loading) if is_loading else writer
    _require_no_use_between_iterations(initialized, buffer)

    namer = namer_of(cursor.function)
    cache = cache_of(old, scope, namer=namer)
    caching = with_redirected_accesses(cursor.node, buffer, to=cache.name)
    if is_loading:
        caching = replace(caching, init=(*caching.init, _copy_stmt(element, buffer, to=cache.name)))
    copied_back = (_copy_stmt(element, cache.name, to=buffer),)
    copy = copy_nest(copy_block_name(block, cache.name), element.points, copied_back, namer=namer)

    nest = _nest_around_outer(cursor, reduction_nest(writer))
    rewritten = with_cache(cache, nest=nest, block=caching, after=(copy,))
    return Change(rewritten, (cache.name, *names_of_nest(copy)))


def _copy_stmt(element: WrittenElement, buffer_name: str, *, to: str) -> Store:
    """Return the statement that copies an element from one buffer to another."""
    indices = element.store.indices
    return Store(to, indices, Load(buffer_name, indices, dtype_of(element.store.value)))


def _is_written_by_inner(cursor: Cursor[Block], buffer_name: str) -> bool:
    """Return whether an inner block selects the element of the buffer that a block writes."""
    inside = [inner for inner in addressable_stmts(cursor.node.body) if isinstance(inner, Block)]
    names = {iterator.var for inner in inside for iterator in inner.iters}
    writes = (stmt for stmt in addressable_stmts(cursor.node.body) if isinstance(stmt, WRITES))
    return any(free_vars(*write.indices) & names for write in writes if write.buffer == buffer_name)


def _nest_around_outer(cursor: Cursor[Block], nest: BlockNest) -> BlockNest:
    """Return the nest of a block that starts at the same loop as that of its inner block, once unblocked."""
    enclosing = enclosing_loops_and_conditions(cursor)
    count = len(cursor.path) - len(nest.top.path)
    return BlockNest(cursor, enclosing[len(enclosing) - count :])


def _initialization_error(cursor: Cursor[Block], buffer_name: str) -> ScheduleError:
    return schedule_error(
        "cache_write.element",
        f"No statement that always runs initializes the element of '{buffer_name}' that block "
        f"'{cursor.node.name}' writes.",
        hint="Give the block an init, or apply reindex_cache_write, whose cache of a sum starts at 0.",
    )


def _is_old_value_needed(cursor: Cursor[Block], element: WrittenElement) -> bool:
    """Return whether the cache must first load the old value, or refuse a block for which it cannot."""
    block = cursor.node
    store = element.store
    has_reduction = any(iterator.kind == "R" for iterator in block.iters)
    is_given = not has_reduction and is_assigning(block, store.buffer)
    # The block computes the element from scratch.
    if is_given or is_initializing(block, store.buffer):
        return False
    is_changed = store.buffer in buffers_accessed(*block.init)
    # An init of another kind already uses the buffer,
    # or the old value would be loaded again after an update.
    if is_changed or not _is_loaded_once(cursor, store):
        raise _initialization_error(cursor, store.buffer)
    require_element_exists(cursor, element)
    return True


def _with_init_stmt(cursor: Cursor[Block], store: Store) -> Cursor[Block]:
    """Return the cursor at the block after a statement is added to its init."""
    block = cursor.node
    changed = cursor.replace_with((replace(block, init=(*block.init, store)),))
    return find_block(changed, block=block.name)


def _require_no_use_between_iterations(cursor: Cursor[Block], buffer_name: str) -> None:
    """Refuse other uses of the buffer in loops around the nest whose iterations may share an element.

    The init of the cache runs once for all of these iterations, so a change of the element in between would
    be lost, and a use would not see the value that the cache holds.
    """
    reinitializing = reinitializing_loops(
        cursor, {loop.var for loop in reduction_nest(cursor).top.loops_in_block}
    )
    outside_first = (cursor.up(count) for count in range(len(cursor.path), 0, -1))
    for top in outside_first:
        if isinstance(top.node, For) and top.node.var in reinitializing:
            require_sole_user(cursor, top, buffer_name)


def _is_loaded_once(cursor: Cursor[Block], store: Store) -> bool:
    """Return whether old values are loaded once: each loop outside the reduction selects elements."""
    values = values_at(cursor)
    fed = reduction_loops(cursor.node, values)
    nest, outside = reduction_nest(cursor), []
    for loop in nest.loops:
        if loop.var in fed:
            break
        outside.append(loop.var)
    varying = {loop.var for loop in nest.loops} | loops_within(cursor.node.body)
    accesses = written_accesses((cursor.node,), values=values, function=cursor.function)
    return not nest.has_let and all(
        disjointness(loop, accesses[store.buffer], varying=varying, function=cursor.function)
        == "disjoint"
        for loop in outside
    )
