"""`cache_inplace`: make a block update a copy of a buffer, which is copied in before and out after."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.nodes import AnyBuffer, Block, Combine, Function, Load, Scope, Stmt, Store
from gossamer_ir.traversal.access_types import BUFFER_NODES
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import collect, walk
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.legality.races import require_no_race_on_new
from gossamer_schedule.nests.block_nest import BlockNest, loop_nest
from gossamer_schedule.nests.copy_nest import copy_nest, names_of_nest
from gossamer_schedule.staging.cache import cache_of, required_block_and_buffer, with_cache
from gossamer_schedule.staging.cache_checks import require_allocated_outside, require_constant_size
from gossamer_schedule.staging.loads import loads_and_stores_of
from gossamer_schedule.staging.read_elements import (
    ReadElements,
    copy_stmts,
    elements_of,
    require_stored,
)
from gossamer_schedule.staging.redirected_accesses import with_redirected_accesses
from gossamer_schedule.staging.written_element import require_sole_user


@primitive(stages=LOOP_STAGES)
def cache_inplace(
    root: Cursor[Function], block: str, *, buffer: str, scope: Scope, function: str | None = None
) -> Change:
    """Make a block that both reads and writes a buffer work on a copy of it, `<buffer>_<scope>`.

    Block `<block>_<buffer>_<scope>_in` copies the elements that the block reads or writes to the new
    buffer, directly before the outermost loop around the block. Block `<block>_<buffer>_<scope>_out` copies
    the elements that the block writes back, directly after that loop.

    Each element that is copied back has been copied in, so elements that the block does not change keep
    their values. The copies visit the elements as in `cache_read`. The result's names are the buffer, then
    each copy block with its loops.

    Raises `ScheduleError` with a code `schedule.cache_inplace.*`:

    * `.scope`: unknown scope
    * `.inner`: the buffer is allocated in the nest
    * `.loads`: the body does not both load and store: use `cache_read` or `cache_write`
    * `.init`: the init of the block uses the buffer: use `cache_write`
    * `.other_access`: the nest uses the buffer elsewhere, or searches, prefetches or guards it
    * `.domain`, `.not_proved`: as for `cache_read`
    * `.race`: concurrent iterations would share elements of the cache, or elements that are copied back

    >>> from gossamer_testkit.examples import MATMUL
    >>> from gossamer_testkit.show import body_text
    >>> from gossamer_schedule import decompose_reduction
    >>> updates = decompose_reduction(MATMUL, "matmul", loop="i").module
    >>> print(body_text(updates).split("for i in")[1])
     T.serial(m):
        for j in T.serial(n):
            for l in T.serial(k):
                with T.block("matmul"):
                    vi, vj, vl = T.axis.remap("SRS", [i, j, l])
                    C[vi, vl] = C[vi, vl] + A[vi, vj] * B[vj, vl]
    >>> result = cache_inplace(updates, "matmul", buffer="C", scope="local")
    >>> print(body_text(result.module).split("C[vi_init, vl_init] = 0.0")[1])
    <BLANKLINE>
    for i_c in T.serial(m):
        for l_c in T.serial(k):
            with T.block("matmul_C_local_in"):
                vi_c, vl_c = T.axis.remap("SS", [i_c, l_c])
                C_local[vi_c, vl_c] = C[vi_c, vl_c]
    for i in T.serial(m):
        for j in T.serial(n):
            for l in T.serial(k):
                with T.block("matmul"):
                    vi, vj, vl = T.axis.remap("SRS", [i, j, l])
                    C_local[vi, vl] = C_local[vi, vl] + A[vi, vj] * B[vj, vl]
    for i_c_1 in T.serial(m):
        for l_c_1 in T.serial(k):
            with T.block("matmul_C_local_out"):
                vi_c_1, vl_c_1 = T.axis.remap("SS", [i_c_1, l_c_1])
                C[vi_c_1, vl_c_1] = C_local[vi_c_1, vl_c_1]
    """
    cursor, old = required_block_and_buffer(root, block_name=block, buffer_name=buffer)
    elements, stored = _required_elements(cursor, old)

    require_constant_size(old, cursor)
    require_stored(cursor, old, elements)

    cache = cache_of(old, scope, namer=namer_of(cursor.function))
    copies = _copy_nests(cursor, elements, stored, buffer_name=buffer, cache=cache)

    rewritten = with_cache(
        cache,
        nest=loop_nest(cursor),
        block=with_redirected_accesses(cursor.node, buffer, to=cache.name),
        before=copies[:1],
        after=copies[1:],
    )
    # The copy back is new, too: it also stores elements that an iteration has only copied in, over what a
    # concurrent one has stored to them.
    require_no_race_on_new(loop_nest(cursor).top, rewritten, buffers={buffer})

    names = (cache.name, *(name for copy in copies for name in names_of_nest(copy)))
    return Change(rewritten, names)


def _required_elements(cursor: Cursor[Block], old: AnyBuffer) -> tuple[ReadElements, ReadElements]:
    """Return the elements of a buffer that a block reads or writes, and those that it writes."""
    nest = loop_nest(cursor)
    require_allocated_outside(nest, old.name)
    _require_loads_and_stores(cursor, old.name)
    _require_uses_in_body_only(nest, old.name)
    used, stored = loads_and_stores_of(cursor, old.name, old.dtype)
    elements = elements_of(cursor, old.name, used)
    written = tuple(element for element in elements.reads if element.indices in stored)
    return elements, replace(elements, reads=written)


def _copy_nests(
    cursor: Cursor[Block],
    elements: ReadElements,
    stored: ReadElements,
    *,
    buffer_name: str,
    cache: AnyBuffer,
) -> tuple[Stmt, ...]:
    """Return the nests that copy elements in and out.

    The stored elements are copied in, too, so that no undefined value is copied back where the block does
    not store.
    """
    namer = namer_of(cursor.function)
    namer.fresh(cache.name)
    return tuple(
        copy_nest(
            f"{cursor.node.name}_{cache.name}_{way}",
            chosen.points,
            copy_stmts(
                chosen, source, to=target, cache_indices=[read.indices for read in chosen.reads]
            ),
            namer=namer,
        )
        for way, chosen, source, target in (
            ("in", elements, buffer_name, cache.name),
            ("out", stored, cache.name, buffer_name),
        )
    )


# Other statements: refused if they access the buffer.
def _require_loads_and_stores(cursor: Cursor[Block], buffer_name: str) -> None:
    """Refuse a block whose body does not both load from the buffer and store to it."""
    nodes = [node for node in walk(*cursor.node.body) if isinstance(node, (Load, Store, Combine))]
    is_read = any(isinstance(node, Load) and node.buffer == buffer_name for node in nodes)
    is_written = any(isinstance(node, Store) and node.buffer == buffer_name for node in nodes)
    # A declared reducer reads the elements that it combines with, although there is no load of them.
    is_combined = any(
        buffer_name in buffers_accessed(node) for node in nodes if isinstance(node, Combine)
    )
    if not (is_written and (is_read or is_combined)):
        raise schedule_error(
            "cache_inplace.loads",
            f"The body of block '{cursor.node.name}' does not both load from '{buffer_name}' and "
            "store to it.",
            hint=f"Apply {'cache_write' if is_written else 'cache_read'} instead.",
        )


def _require_uses_in_body_only(nest: BlockNest, buffer_name: str) -> None:
    """Refuse accesses of the buffer in the nest other than loads and stores in the body of the block."""
    block = nest.block.node
    if buffer_name in buffers_accessed(*block.init):
        raise schedule_error(
            "cache_inplace.init",
            f"The init of block '{block.name}' uses '{buffer_name}', so no element needs to be copied in.",
            hint="Apply cache_write instead, or decompose_reduction first.",
        )
    require_sole_user(nest.block, nest.top, buffer_name)
    header = replace(block, body=(), init=(), reads=None, writes=None)
    inside = (node for node in collect(BUFFER_NODES, *block.body) if node.buffer == buffer_name)
    if buffer_name in buffers_accessed(header) or any(
        type(node) not in (Load, Store) for node in inside
    ):
        raise schedule_error(
            "cache_inplace.other_access",
            f"Block '{block.name}' accesses '{buffer_name}' in other ways than by loads and stores "
            "in its body.",
        )
