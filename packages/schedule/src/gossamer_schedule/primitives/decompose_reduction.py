"""`decompose_reduction`: the `init` of a block becomes a block of its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from msgspec.structs import replace

from gossamer_ir.contracts import Step
from gossamer_ir.lasting import lasting_facts
from gossamer_ir.nodes import Block, For, Module, Store
from gossamer_ir.touches import reduction_loops
from gossamer_schedule.accesses import Access, accesses, mentioned, values_at, written
from gossamer_schedule.disjoint import loops_within, verdict
from gossamer_schedule.init_places import blocks_with_init, read_by_init
from gossamer_schedule.inits import init_nest, require_init_loops
from gossamer_schedule.primitive import primitive
from gossamer_schedule.refusals import refusal
from gossamer_schedule.resolve import (
    LOOP_STAGES,
    find_block,
    find_function,
    find_loop,
    namer_of,
    require_stage,
)
from gossamer_schedule.result import Result
from gossamer_schedule.sites import Site, loops_of, replaced, statements, with_function
from gossamer_schedule.steps import step

_NAME = "decompose_reduction"


@primitive
def decompose_reduction(
    module: Module, block: str, *, loop: str, function: str | None = None
) -> Result:
    """Moves the `init` of a block into block `<block>_init`, directly before a loop around it.

    The new block stands in loops `<loop>_init`, one for each loop from `loop` down to the block
    that feeds no reduction iterator, or one that the init mentions to select an element, in which points
    of the reduction may meet. The result's names are the block and those loops.

    Raises `ScheduleError`: `schedule.decompose_reduction.no_init`, `.not_enclosing` (the loop is not
    one directly around the block), `.too_deep` (a reduction loop is outside of it), `.mixed` (a loop
    feeds a spatial and a reduction iterator), `.dependence` (the init, or an extent or a domain of
    the new loops, depends on a reduction), `.not_proved` (the element may be initialised twice, or is used
    elsewhere under the loop, or what the init reads is written there), `.no_block`, `.no_loop`,
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
    >>> print(body_text(decompose_reduction(ROW_SUM, "row_sum", loop="j").module))
    for i in T.serial(m):
        with T.block("row_sum_init"):
            vi_init = T.axis.spatial(m, i)
            Y[vi_init] = 0.0
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                Y[vi] = Y[vi] + A[indptr_data[vi] + vj]
    """
    require_stage(module, _NAME, stages=LOOP_STAGES)
    owner = find_function(module, _NAME, function=function)
    site = find_block(owner, _NAME, block=block)
    top = find_loop(owner, _NAME, loop=loop)

    _require_init(site, module)
    nest = _require_enclosing(site, top, module=module)
    fed = reduction_loops(site.node, values_at(site))
    _require_outside_reduction(site, fed, loop=loop)
    kept = require_init_loops(site, nest, primitive=_NAME)
    _require_one_init(site, top, fed=fed)

    inits, names = init_nest(site, kept, namer=namer_of(owner))
    update = replace(site.node, init=())

    without = find_loop(replaced(site, (update,)), _NAME, loop=loop)
    changed = replaced(without, (*inits, without.node))
    rewritten = with_function(module, owner, changed)

    taken = step(block=block, loop=loop, function=function)
    return Result(rewritten, names, Step(_NAME, taken))


def _require_init(site: Site, module: Module) -> None:
    if not site.node.init:
        raise refusal(
            f"{_NAME}.no_init",
            f"Block '{site.node.name}' has no init.",
            place=site.place(module),
        )


def _require_enclosing(site: Site, top: Site, *, module: Module) -> tuple[For, ...]:
    """The loops from `top` down to the block."""
    nest = site.nest
    if all(found is not top.node for found in nest):
        names = ", ".join(found.var for found in nest)
        raise refusal(
            f"{_NAME}.not_enclosing",
            f"Loop '{top.node.var}' is not a loop around block '{site.node.name}'.",
            hint=f"The loops directly around it are {names}." if nest else "There is none.",
            place=site.place(module),
        )
    return nest[next(at for at, found in enumerate(nest) if found is top.node) :]


def _require_outside_reduction(site: Site, fed: set[str], *, loop: str) -> None:
    for found in site.nest:
        if found.var == loop:
            return
        if found.var in fed:
            raise refusal(
                f"{_NAME}.too_deep",
                f"Loop '{loop}' is inside reduction loop '{found.var}' of block "
                f"'{site.node.name}'.",
                hint=f"Decompose at '{found.var}' or a loop around it.",
            )


def _require_one_init(site: Site, top: Site, *, fed: set[str]) -> None:
    """Above the outermost reduction loop, each iteration must initialise elements of its own that
    nothing else under the loop uses, from what nothing there writes."""
    loops = loops_of(site.function)
    nest = site.nest
    start = next(at for at, found in enumerate(nest) if found is top.node)
    between = [found.var for found in takewhile(lambda found: found.var not in fed, nest[start:])]
    if not between:
        _require_first(site, top)
        return
    buffers = written(site.node.init)
    values = values_at(site) | {item.var: item.value for item in site.node.iters}
    stores = list(accesses(site.node.init, buffers, values=values, loops=loops))
    varying, facts = loops_within((top.node,)), lasting_facts(site.function)
    is_once = all(
        verdict(name, _of(stores, buffer), loops=loops, varying=varying, facts=facts) == "disjoint"
        for name in between
        for buffer in buffers
    )
    is_given = read_by_init(site).isdisjoint(written((top.node,)))
    if not is_once or not is_given or buffers & _used_elsewhere(site, top):
        raise refusal(
            f"{_NAME}.not_proved",
            f"It is not proved that the init of block '{site.node.name}' may run before loop "
            f"'{top.node.var}'.",
            needs=f"each element of {', '.join(sorted(buffers))} belongs to one iteration of the loops "
            f"from '{top.node.var}' on, nothing else there uses it, and nothing there writes what the init "
            "reads",
            hint="Decompose at the outermost reduction loop.",
        )


def _require_first(site: Site, top: Site) -> None:
    """The inits of blocks above, which run before the same loop, may not be seen by this one."""
    own = written(site.node.init)
    for other in takewhile(lambda found: found.node is not site.node, blocks_with_init(top)):
        shared = written(other.node.init) & (own | read_by_init(site)) | own & read_by_init(other)
        if shared and top.node.var in reduction_loops(other.node, values_at(other)):
            raise refusal(
                f"{_NAME}.not_proved",
                f"It is not proved that the init of block '{site.node.name}' may run before that of block "
                f"'{other.node.name}'.",
                needs=f"they use different elements of {', '.join(sorted(shared))}",
                hint=f"Decompose block '{other.node.name}' before.",
            )


def _of(found: Sequence[Access], buffer: str) -> list[Access]:
    return [access for access in found if access.buffer == buffer]


def _used_elsewhere(site: Site, top: Site) -> set[str]:
    others = [
        found
        for found in statements((top.node,))
        if isinstance(found, (Block, Store)) and found is not site.node
    ]
    own = list(statements(site.node.body))
    return mentioned(found for found in others if all(found is not item for item in own))
