"""`cache_index`: compute lookups in index expressions before a block, and keep them in a buffer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, cast

from msgspec.structs import replace

from gossamer_ir.core.build import integer_value
from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.nodes import Block, Buffer, Expr, Function, Load, Node, Ramp, Scope, Stmt, Store
from gossamer_ir.traversal.access_types import ELEMENT_ACCESSES, READS
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import bound_vars, namer_of
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.walk import children, collect, contains, walk
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.cursor.find import find_block, find_buffer
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import quote, schedule_error, text_of
from gossamer_schedule.nests.block_nest import loop_nest
from gossamer_schedule.nests.copy_nest import IterationDomain, copy_nest, names_of_nest
from gossamer_schedule.nests.existence_conditions import existence_conditions
from gossamer_schedule.predicates.block_predicates import is_bound_of
from gossamer_schedule.regions.iterator_dimensions import required_dimensions
from gossamer_schedule.safe_accesses.safe_loads import are_loads_safe
from gossamer_schedule.staging.cache import with_cache
from gossamer_schedule.staging.cache_checks import require_invariant_selectors, selecting_iters
from gossamer_schedule.staging.loads import HEADERS, evaluation_condition


@primitive(stages=LOOP_STAGES)
def cache_index(
    root: Cursor[Function],
    block: str,
    *,
    scope: Scope,
    buffer: str | None = None,
    function: str | None = None,
) -> Change:
    """Compute lookups in the indices of a block once, before its outermost loop, and keep them in a buffer.

    A lookup is a part of an index, at which the block accesses a buffer (or the given `buffer`), that loads
    from an index array or searches one. It is cached if it does not depend on all iterators, so that
    several iterations use the same value; the largest such parts are chosen.

    Each is stored in a new buffer `<block>_index`, with one dimension for each iterator on which it depends,
    as in `reindex_cache_read`. Block `<block>_index_fill` fills it. Expressions in the headers of loops and
    blocks are not changed. The result's names are, for each lookup, the buffer, the block and its loops.

    Facts about index arrays do not apply to the new buffer, so an access at an index that is read from it
    is bounds-checked when the program runs.

    Raises `ScheduleError` with a code `schedule.cache_index.*`:

    * `.scope`: unknown scope
    * `.no_reuse`: there is no such lookup
    * `.domain`: a lookup or its condition depends on more than iterators, or on a buffer that the nest writes
    * `.not_proved`: the elements that a lookup reads may not exist for all values of these iterators
    * `.shape`, `.race`: as for `reindex_cache_read`

    >>> from gossamer_testkit.examples import SPMM
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(SPMM).splitlines()[-1].strip())
    C[vi, vk] = C[vi, vk] + A[T.int64(J_indptr[vi]) + vj] * B[T.int64(J_indices[T.int64(J_indptr[vi]) + vj]), vk]
    >>> result = cache_index(SPMM, "csrmm", scope="local", buffer="B")
    >>> result.names
    ('csrmm_index', 'csrmm_index_fill', 'i_c', 'j_c')
    >>> print(body_text(result.module))
    for i_c in T.serial(m):
        for j_c in T.serial(T.int64(J_indptr[i_c + 1]) - T.int64(J_indptr[i_c])):
            with T.block("csrmm_index_fill"):
                vi_c, vj_c = T.axis.remap("SS", [i_c, j_c])
                csrmm_index[T.int64(J_indptr[vi_c]) + vj_c] = T.int64(J_indices[T.int64(J_indptr[vi_c]) + vj_c])
    for i in T.serial(m):
        for j in T.serial(T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])):
            for k in T.serial(K):
                with T.block("csrmm"):
                    vi, vj, vk = T.axis.remap("SRS", [i, j, k])
                    with T.init():
                        C[vi, vk] = 0.0
                    C[vi, vk] = C[vi, vk] + A[T.int64(J_indptr[vi]) + vj] * B[csrmm_index[T.int64(J_indptr[vi]) + vj], vk]
    """  # noqa: E501  (the script has no line breaks inside an expression)
    cursor = find_block(root, block=block)
    if buffer is not None:
        find_buffer(root, buffer=buffer)

    names: list[str] = []
    # One after the other: each is looked for in the block as the caches before have left it.
    for lookup in _required_lookups(cursor, buffer):
        root, new = _with_cached_lookup(root, block, lookup, scope=scope)
        names += new

    return Change(root, tuple(names))


def _required_lookups(cursor: Cursor[Block], buffer_name: str | None) -> list[Expr]:
    """Return the lookups to cache, larger ones first, since these may contain others."""
    block = cursor.node
    varying = {
        iterator.var for iterator in block.iters if integer_value(iterator.domain.extent) != 1
    }
    lookups: dict[Expr, None] = {}
    for index in _access_indices(block.body, buffer_name):
        lookups |= dict.fromkeys(_largest_lookups(index, block, varying))
    if not lookups:
        where = "" if buffer_name is None else f" of '{buffer_name}'"
        raise schedule_error(
            "cache_index.no_reuse",
            f"No index{where} in block '{block.name}' contains a load or search that has the same value in "
            "several iterations.",
        )
    return sorted(lookups, key=lambda lookup: -sum(1 for _ in walk(lookup)))


def _access_indices(body: tuple[Stmt, ...], buffer_name: str | None) -> Iterator[Expr]:
    """Yield the indices of all accesses in statements, except in the headers of loops and blocks."""
    for stmt in addressable_stmts(body):
        if isinstance(stmt, HEADERS):
            continue
        stmt_access = (stmt,) if isinstance(stmt, ELEMENT_ACCESSES) else ()
        for access in (*stmt_access, *collect(ELEMENT_ACCESSES, *effects_of(stmt).evaluates)):
            if buffer_name in (None, access.buffer):
                yield from access.indices


def _largest_lookups(expr: Expr, block: Block, varying: set[str]) -> Iterator[Expr]:
    """Yield the largest parts of an index that load or search and depend on only some `varying` iterators."""
    if not contains(READS, expr):
        return
    iters = {iterator.var for iterator in selecting_iters(block, (expr,))}
    is_scalar_index = dtype_of(expr) == "int64" and not isinstance(expr, Ramp)
    is_outer = free_vars(expr).isdisjoint(_bound_vars(block))
    if is_scalar_index and is_outer and not varying <= iters:
        # The operands below it are computed with it.
        yield expr
        return
    for child in children(expr):
        yield from _largest_lookups(cast(Expr, child), block, varying)


def _bound_vars(block: Block) -> set[str]:
    """Return the variables that the body of a block binds."""
    blocks = (inner for inner in addressable_stmts(block.body) if isinstance(inner, Block))
    return bound_vars(block.body) | {iterator.var for inner in blocks for iterator in inner.iters}


def _with_cached_lookup(
    root: Cursor[Function], block_name: str, lookup: Expr, *, scope: str
) -> tuple[Cursor[Function], tuple[str, ...]]:
    """Return the cursor at the function with a lookup kept in a buffer, and the names of the buffer, its
    block and loops."""
    cursor = find_block(root, block=block_name)
    nest = loop_nest(cursor)
    points = _required_domain(cursor, lookup)
    dimensions = required_dimensions(cursor, points.iters, (), elements=())

    namer = namer_of(root.function)
    shape = tuple(dimension.extent for dimension in dimensions)
    cache = Buffer(namer.fresh(f"{block_name}_index"), shape, "int64", scope=cast(Scope, scope))
    indices = tuple(dimension.index for dimension in dimensions)
    fill = copy_nest(
        f"{cache.name}_fill",
        points,
        (Store(cache.name, indices, lookup),),
        namer=namer,
    )
    body = _with_lookup_replaced(cursor.node.body, lookup, Load(cache.name, indices, "int64"))
    # Declared regions would lack the new buffer; without them they follow from the body.
    reading = replace(cursor.node, body=body, reads=None, writes=None)

    rewritten = with_cache(cache, nest=nest, block=reading, before=(fill,))
    return rewritten, (cache.name, *names_of_nest(fill))


def _required_domain(cursor: Cursor[Block], lookup: Expr) -> IterationDomain:
    """Return the points at which a lookup is computed.

    Raises `.domain` and `.not_proved`.
    """
    nest, block = loop_nest(cursor), cursor.node
    iters = selecting_iters(block, (lookup,))
    available = {iterator.var for iterator in iters} | nest.known_above
    evaluated = evaluation_condition(cursor, lookup)
    # The bounds of the iterators follow from the domain of the copy, and need no condition.
    conditions = tuple(
        condition
        for condition in conjuncts(block.predicate)
        if free_vars(condition) <= available
        and not any(is_bound_of(condition, iterator) for iterator in iters)
    )
    if evaluated is not None and free_vars(evaluated) <= available:
        conditions = (*conditions, evaluated)
    existence = existence_conditions(nest, iters)
    require_invariant_selectors(nest, iters, (lookup, *conditions, *chain(*existence.values())))
    if not are_loads_safe(cursor.function, (lookup,), iters=iters, conditions=conditions):
        raise schedule_error(
            "cache_index.not_proved",
            f"Cannot prove that an index in block '{block.name}' may be computed before its loops.",
            needs=f"the elements that {text_of(lookup)} reads exist for all values of "
            f"{quote(iterator.var for iterator in iters) or 'the parameters'}",
        )
    return IterationDomain(iters, conditions, existence=existence)


def _with_lookup_replaced(body: tuple[Stmt, ...], lookup: Expr, by: Expr) -> tuple[Stmt, ...]:
    """Return statements with an expression replaced, except in the headers of loops and blocks."""

    def visit(node: Node) -> Any:
        if node == lookup:
            return by
        if isinstance(node, HEADERS):
            bodies = {name: getattr(node, name, ()) for name in ("init", "body")}
            new = {name: tuple(map(visit, body)) for name, body in bodies.items() if body}
            return replace(node, **new) if new else node
        return map_children(node, visit)

    return tuple(map(visit, body))
