"""`pipeline`: what later iterations of a loop copy is copied while earlier ones compute."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.contracts import Step
from gossamer_ir.nodes import For, Module
from gossamer_schedule.accesses import mentioned, written
from gossamer_schedule.primitive import primitive
from gossamer_schedule.refusals import refusal
from gossamer_schedule.resolve import (
    LOOP_STAGES,
    all_buffers,
    find_function,
    find_loop,
    require_serial,
    require_stage,
)
from gossamer_schedule.result import Result
from gossamer_schedule.sites import Site, replaced, with_function
from gossamer_schedule.steps import step

MOST_STAGES = 8


@primitive
def pipeline(module: Module, loop: str, *, stages: int = 2, function: str | None = None) -> Result:
    """Records that so many iterations of a serial loop are under way at once: the first statements of
    its body, which fill buffers of the function from what the loop does not write, may run up to
    `stages - 1` iterations ahead of the others. A backend without asynchronous copies ignores it.

    Raises `ScheduleError`: `schedule.pipeline.stages` (not from 2 to 8), `.no_producer` (the body does
    not begin with such a copy), `.kind`, `.no_loop`, `.no_function`, `.stage`.

    >>> from gossamer_schedule.examples import STAGED
    >>> from gossamer_schedule.show import body_text
    >>> print(body_text(STAGED))
    for i in T.serial(m):
        for j in T.serial(8):
            with T.block("fetch"):
                vi, vj = T.axis.remap("SS", [i, j])
                X_shared[vi, vj] = X[vi, vj]
        for k in T.serial(8):
            with T.block("scale"):
                wi, wk = T.axis.remap("SS", [i, k])
                Y[wi, wk] = X_shared[wi, wk] * 2.0
    >>> print(body_text(pipeline(STAGED, "i", stages=3).module).splitlines()[0])
    for i in T.serial(m, annotations={"pipeline": 3}):
    """
    require_stage(module, "pipeline", stages=LOOP_STAGES)
    owner = find_function(module, "pipeline", function=function)
    site = find_loop(owner, "pipeline", loop=loop)

    require_serial(site, "pipeline")
    if not 2 <= stages <= MOST_STAGES:
        raise refusal(
            "pipeline.stages",
            f"A pipeline has from 2 to {MOST_STAGES} stages, and {stages} are asked for.",
        )
    _require_producer(site, module)

    others = tuple(item for item in site.node.annotations if item[0] != "pipeline")
    marked = replace(site.node, annotations=(*others, ("pipeline", stages)))

    rewritten = with_function(module, owner, replaced(site, (marked,)))

    taken = step(loop=loop, stages=None if stages == 2 else stages, function=function)
    return Result(rewritten, (loop,), Step("pipeline", taken))


def _require_producer(site: Site, module: Module) -> None:
    loop: For = site.node
    first, *others = loop.body
    own = {found.name for found in all_buffers(site.function) if found.handle is None}
    filled, changed = written((first,)), written(loop.body)
    reads = mentioned((first,)) - filled
    is_copy = bool(filled) and filled <= own and not reads & changed
    if not (is_copy and filled & mentioned(others)) or filled & written(tuple(others)):
        raise refusal(
            "pipeline.no_producer",
            f"The body of loop '{loop.var}' does not begin with a copy that may run ahead.",
            hint="Expected a statement that fills a buffer of the function, which the others read, "
            "from what the loop does not write; cache_read makes one.",
            place=site.place(module),
        )
