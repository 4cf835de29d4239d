"""`cache_write`: a block writes a buffer of its own, which is copied afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from msgspec.structs import replace

from gossamer_ir.build import conjoined, conjuncts, dtype_of, index_var, integer_value
from gossamer_ir.contracts import Step
from gossamer_ir.lasting import lasting_facts
from gossamer_ir.names import Namer
from gossamer_ir.nodes import (
    AnyBuffer,
    Block,
    BlockIter,
    Combine,
    Expr,
    For,
    Load,
    Module,
    Region,
    Scope,
    Stmt,
    Store,
)
from gossamer_ir.touches import reduction_loops
from gossamer_ir.walk import free_vars, resolve, rewrite, substitute, walk
from gossamer_schedule.accesses import mentioned, values_at, written
from gossamer_schedule.digits import is_covering
from gossamer_schedule.disjoint import loops_within, verdict, written_accesses
from gossamer_schedule.linear import form_of
from gossamer_schedule.predicates import (
    is_bound_of,
    without_reduction,
)
from gossamer_schedule.primitive import primitive
from gossamer_schedule.reassociation import reduction_of
from gossamer_schedule.refusals import listing, refusal, text_of
from gossamer_schedule.resolve import (
    LOOP_STAGES,
    find_block,
    find_buffer,
    find_function,
    namer_of,
    require_stage,
)
from gossamer_schedule.result import Result
from gossamer_schedule.sites import (
    Site,
    has_let,
    loops_of,
    replaced,
    statements,
    with_function,
)
from gossamer_schedule.steps import step

_NAME = "cache_write"


@primitive
def cache_write(
    module: Module, block: str, *, buffer: str, scope: str, function: str | None = None
) -> Result:
    """Lets a block write the new buffer `<buffer>_<scope>` of the same shape, and copies what it
    wrote in block `<block>_<buffer>_<scope>`, directly after the outermost loop around the block.

    The copy visits exactly the elements that the block visits, in one loop for each spatial
    iterator that selects an element: `k_c` for iterator `vk`. A reduction without `init` gets one
    that loads the old value. The result's names are the buffer, the copy block and its loops.

    Raises `ScheduleError`: `schedule.cache_write.scope` (unknown), `.stores` (the block does not
    store to the buffer in exactly one place), `.reads` (it reads other elements of it),
    `.element` (the element depends on a reduction iterator, or nothing initialises it),
    `.not_proved` (the loops may not visit the whole domain of an iterator), `.predicate` (a
    condition is not about the element), `.domain` (a domain depends on more than the element),
    `.other_access` (the nest uses the buffer elsewhere), `.no_buffer`, `.no_block`,
    `.no_function`, `.stage`.

    >>> from gossamer_schedule.examples import ROW_SUM
    >>> from gossamer_schedule.show import body_text
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
    require_stage(module, _NAME, stages=LOOP_STAGES)
    owner = find_function(module, _NAME, function=function)
    site = find_block(owner, _NAME, block=block)
    old = find_buffer(owner, _NAME, buffer=buffer)

    _require_scope(scope)
    store = _require_one_store(site, buffer=buffer)
    _require_own_element(site, store)
    _require_sole_user(site, buffer=buffer)
    iters = _require_element_iters(site, store)
    conditions = _require_element_conditions(site, iters, store=store)
    _require_covered(site, iters)
    is_loading = _require_initialised(site, store)

    namer = namer_of(owner)
    cache = _cache_of(old, scope, namer=namer)
    copy = _copy_nest(site, iters, conditions, store=store, cache=cache.name, namer=namer)
    caching = _redirected(site.node, buffer, to=cache.name)
    if is_loading:
        old_value = Load(buffer, store.indices, old.dtype)
        caching = replace(caching, init=(Store(cache.name, store.indices, old_value),))

    inner = find_block(replaced(site, (caching,)), _NAME, block=block)
    top = inner.up(len(inner.nest))
    changed = replaced(top, (top.node, copy))
    rewritten = with_function(module, owner, replace(changed, buffers=(*changed.buffers, cache)))

    taken = step(block=block, buffer=buffer, scope=scope, function=function)
    return Result(rewritten, (cache.name, *_names(copy)), Step(_NAME, taken))


def _require_scope(scope: str) -> None:
    if scope not in get_args(Scope):
        raise refusal(
            f"{_NAME}.scope",
            f"'{scope}' is not a scope.",
            hint=listing("scopes", get_args(Scope)),
        )


def _require_one_store(site: Site, *, buffer: str) -> Store:
    found = [
        item
        for item in statements(site.node.body)
        if isinstance(item, Store) and item.buffer == buffer
    ]
    if len(found) != 1:
        raise refusal(
            f"{_NAME}.stores",
            f"Block '{site.node.name}' stores to '{buffer}' in {len(found)} places, not in one.",
        )
    return found[0]


def _require_own_element(site: Site, store: Store) -> None:
    """Every access in the block must be to the element of the store."""

    def visit(node: Any) -> None:
        is_access = isinstance(node, (Load, Store)) and node.buffer == store.buffer
        if is_access and node.indices != store.indices:
            raise refusal(
                f"{_NAME}.reads",
                f"Block '{site.node.name}' uses other elements of '{store.buffer}' than the one it "
                "writes.",
            )

    rewrite(replace(site.node, reads=None, writes=None), visit)


def _require_sole_user(site: Site, *, buffer: str) -> None:
    """Nothing else in the outermost loop around the block may use the buffer."""
    inside = {id(found) for found in statements((site.node,))}
    for found in statements((site.up(len(site.nest)).node,)):
        is_other = isinstance(found, (Block, Store)) and id(found) not in inside
        if is_other and buffer in mentioned((found,)):
            name = f"Block '{found.name}'" if isinstance(found, Block) else "A store"
            raise refusal(
                f"{_NAME}.other_access",
                f"{name} uses '{buffer}' in the same nest as block '{site.node.name}'.",
            )


def _require_element_iters(site: Site, store: Store) -> tuple[BlockIter, ...]:
    """The iterators that select the element, and those that their domains depend on."""
    by_name = {found.var: found for found in site.node.iters}
    needed = {name for index in store.indices for name in free_vars(index)}
    for found in reversed(site.node.iters):
        if found.var in needed:
            needed |= free_vars(found.domain)
    chosen = tuple(found for found in site.node.iters if found.var in needed)
    for found in chosen:
        if found.kind == "R":
            raise refusal(
                f"{_NAME}.element",
                f"The element of '{store.buffer}' that block '{site.node.name}' writes depends on "
                f"reduction iterator '{found.var}'.",
            )
    sizes = {param.name for param in site.function.params}
    used = mentioned((*store.indices, *(found.domain for found in chosen)))
    if (
        needed - by_name.keys() - sizes
        or used & written((site.up(len(site.nest)).node,))
        or any(integer_value(found.domain.start) != 0 for found in chosen)
    ):
        raise refusal(
            f"{_NAME}.domain",
            f"The elements of block '{site.node.name}' depend on more than its iterators, the "
            "parameters, and buffers that its nest does not write.",
        )
    return chosen


def _require_element_conditions(
    site: Site, iters: Sequence[BlockIter], *, store: Store
) -> tuple[Expr, ...]:
    """What must hold of an element that the block visits."""
    kept = [
        part
        for part in without_reduction(site.node, values_at(site))
        if not any(is_bound_of(part, found) for found in site.node.iters)
    ]
    allowed = {found.var for found in iters} | {param.name for param in site.function.params}
    is_dropping = len(tuple(conjuncts(site.node.predicate))) > len(
        without_reduction(site.node, values_at(site))
    )
    is_assigned = _is_assigned(site.node, store.buffer)
    if any(free_vars(part) - allowed for part in kept) or (is_dropping and is_assigned):
        raise refusal(
            f"{_NAME}.predicate",
            f"A condition of block '{site.node.name}' is not one of the element it writes.",
            hint="Apply cache_write before the loops are split again.",
        )
    return tuple(kept)


def _is_assigned(block: Block, buffer: str) -> bool:
    """Whether a block gives elements a value whatever they held before."""
    nodes = [node for stmt in block.body for node in walk(stmt)]
    is_read = any(isinstance(node, Load) and node.buffer == buffer for node in nodes)
    is_combined = any(isinstance(node, Combine) and buffer in mentioned((node,)) for node in nodes)
    return not block.init and not is_read and not is_combined


def _require_covered(site: Site, iters: Sequence[BlockIter]) -> None:
    loops, outer = loops_of(site.function), values_at(site)
    values = outer | {found.var: found.value for found in site.node.iters}
    idle = {found.var for found in site.nest if (integer_value(found.extent) or 0) < 1}
    idle -= reduction_loops(site.node, outer)
    nest = {found.var for found in site.nest}
    for found in iters:
        form = form_of(found.value, outer, loops=loops)
        idle -= form.terms.keys()
        is_whole = is_covering(form, resolve(found.domain.extent, values), loops=loops)
        if not is_whole or form.terms.keys() - nest:
            raise refusal(
                f"{_NAME}.not_proved",
                f"It is not proved that the loops around block '{site.node.name}' visit the whole "
                f"domain of '{found.var}'.",
                needs=f"{text_of(resolve(found.value, outer))} takes each value from 0 to before "
                f"{text_of(resolve(found.domain.extent, values))}",
            )
    if idle:
        raise refusal(
            f"{_NAME}.not_proved",
            f"It is not proved that loop '{min(idle)}' around block '{site.node.name}', which selects no "
            "element, has an iteration.",
            needs=f"{text_of(loops[min(idle)].extent)} >= 1",
        )


def _require_initialised(site: Site, store: Store) -> bool:
    """Whether the cache must first load the old value."""
    block: Block = site.node
    has_reduction = any(found.kind == "R" for found in block.iters)
    if block.init or (not has_reduction and _is_assigned(block, store.buffer)):
        return False
    if reduction_of(block) is None or not _is_loaded_once(site, store):
        raise refusal(
            f"{_NAME}.element",
            f"Nothing initialises the element of '{store.buffer}' that block '{block.name}' "
            "writes.",
            hint="Give the block an init.",
        )
    return True


def _is_loaded_once(site: Site, store: Store) -> bool:
    """Whether the old value is loaded once: each loop outside of the reduction selects elements."""
    loops, values = loops_of(site.function), values_at(site)
    fed = reduction_loops(site.node, values)
    outside = []
    for found in site.nest:
        if found.var in fed:
            break
        outside.append(found.var)
    varying = {found.var for found in site.nest} | loops_within(site.node.body)
    touched = written_accesses((site.node,), values=values, loops=loops)[store.buffer]
    facts = lasting_facts(site.function)
    return not has_let(site, len(site.nest)) and all(
        verdict(name, touched, loops=loops, varying=varying, facts=facts) == "disjoint"
        for name in outside
    )


def _cache_of(old: AnyBuffer, scope: str, *, namer: Namer) -> AnyBuffer:
    name = namer.fresh(f"{old.name}_{scope}")
    return replace(old, name=name, handle=None, scope=scope)


def _copy_nest(
    site: Site,
    iters: Sequence[BlockIter],
    conditions: Sequence[Expr],
    *,
    store: Store,
    cache: str,
    namer: Namer,
) -> Stmt:
    fresh = {found.var: namer.fresh(f"{found.var}_c") for found in iters}
    loops = {found.var: namer.fresh(f"{_stem(found.var)}_c") for found in iters}
    in_block: dict[str, Expr] = {old: index_var(new) for old, new in fresh.items()}
    in_loops: dict[str, Expr] = {old: index_var(new) for old, new in loops.items()}
    copied = tuple(
        BlockIter(fresh[item.var], "S", substitute(item.domain, in_block), in_loops[item.var])
        for item in iters
    )
    predicate = conjoined(substitute(part, in_block) for part in conditions)
    load = Load(cache, store.indices, dtype_of(store.value))
    body = (substitute(Store(store.buffer, store.indices, load), in_block),)
    nest: Stmt = Block(namer.fresh(f"{site.node.name}_{cache}"), copied, body, predicate=predicate)
    for item in reversed(iters):
        extent = substitute(item.domain.extent, in_loops)
        nest = For(loops[item.var], item.domain.start, extent, (nest,))
    return nest


def _stem(var: str) -> str:
    return var[1:] if len(var) > 1 and var.startswith("v") else var


def _redirected(block: Block, buffer: str, *, to: str) -> Block:
    def rule(node: Any) -> Any | None:
        if isinstance(node, (Load, Store, Region)) and node.buffer == buffer:
            return replace(node, buffer=to)
        return None

    redirected: Block = rewrite(block, rule)
    return redirected


def _names(copy: Stmt) -> tuple[str, ...]:
    """The block of a nest and its loops."""
    loops = []
    while isinstance(copy, For):
        loops.append(copy.var)
        (copy,) = copy.body
    return (copy.name, *loops) if isinstance(copy, Block) else ()
