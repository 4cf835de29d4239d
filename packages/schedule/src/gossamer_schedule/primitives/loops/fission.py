"""`fission`: a loop around several statements becomes several loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import TypeAlias

from msgspec.structs import replace

from gossamer_ir.analysis.init_nests import reduction_loops
from gossamer_ir.analysis.loops import loops_within
from gossamer_ir.core.build import index_var
from gossamer_ir.dependence.access_forms import AccessForm, access_forms
from gossamer_ir.dependence.disjointness import verdict, without_changing
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Allocate, Block, For, Let, Module, Stmt
from gossamer_ir.traversal.effects import buffers_written, effects_of, outer_writes
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import free_vars, substitute_body
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_function,
    find_loop,
    require_serial,
    require_stage,
)
from gossamer_schedule.cursor.site import Site, name_of, replaced, statements, with_function
from gossamer_schedule.dependence.access import mentioned, named, values_at
from gossamer_schedule.dependence.iteration_distance import meeting_distance
from gossamer_schedule.dependence.races import difference, is_ordered, is_unconditional
from gossamer_schedule.dependence.unchanged import require_unchanged, require_unchanged_bounds
from gossamer_schedule.errors import listing, refusal
from gossamer_schedule.nests.init_places import blocks_with_init, read_by_init
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

_NAME = "fission"
Part: TypeAlias = tuple[Stmt, ...]


@primitive
def fission(
    module: Module, loop: str, *, after: str | None = None, function: str | None = None
) -> Result:
    """Distributes a serial loop over the statements that it holds: loops `<loop>_0`, `<loop>_1`, ..., each
    with a part of them, which run one after the other. The loop is cut after the loop or block `after` in
    it, else after each statement.

    That takes what a part touches in an iteration to be out of reach of later iterations of the parts
    before it, which now run first.

    Raises `ScheduleError`: `schedule.fission.parts` (there is nothing to cut there), `.scope` (a part uses
    a variable or buffer of a part before), `.dependence` (a later iteration of a part before touches the
    same element), `.not_proved` (it may, or an init may not run later, or the bounds of the loop may
    change), `.kind`, `.no_loop`, `.no_function`, `.stage`.

    >>> from gossamer_testkit.examples import STAGED
    >>> from gossamer_testkit.show import body_text
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
    >>> print(body_text(fission(STAGED, "i").module))
    for i_0 in T.serial(m):
        for j in T.serial(8):
            with T.block("fetch"):
                vi, vj = T.axis.remap("SS", [i_0, j])
                X_shared[vi, vj] = X[vi, vj]
    for i_1 in T.serial(m):
        for k in T.serial(8):
            with T.block("scale"):
                wi, wk = T.axis.remap("SS", [i_1, k])
                Y[wi, wk] = X_shared[wi, wk] * 2.0
    """
    require_stage(module, _NAME, stages=LOOP_STAGES)
    owner = find_function(module, _NAME, function=function)
    site = find_loop(owner, _NAME, loop=loop)

    require_serial(site, _NAME)
    parts = _require_parts(site, after, module=module)
    _require_unchanged(site)
    for at in range(1, len(parts)):
        before: Part = sum(parts[:at], ())
        _require_own_names(before, parts[at], site, module=module)
        _require_independent(before, parts[at], site, module=module)
        _require_late_inits(before, parts[at], site, module=module)

    namer = namer_of(owner)
    names = tuple(namer.fresh(f"{loop}_{at}") for at in range(len(parts)))
    made = tuple(_loop_of(site.node, *pair) for pair in zip(names, parts, strict=True))

    rewritten = with_function(module, owner, replaced(site, made))

    taken = step(loop=loop, after=after, function=function)
    return Result(rewritten, names, Step(_NAME, taken), {loop: names})


def _require_parts(site: Site, after: str | None, *, module: Module) -> tuple[Part, ...]:
    body: Part = site.node.body
    names = [name_of(found) for found in body]
    cuts = [at + 1 for at, name in enumerate(names[:-1]) if after is None or name == after]
    # What is bound belongs to the statements after it.
    cuts = [at for at in cuts if after or not isinstance(body[at - 1], (Let, Allocate))]
    if not cuts:
        what = "holds one statement" if after is None else f"is not cut after '{after}'"
        raise refusal(
            f"{_NAME}.parts",
            f"Loop '{site.node.var}' {what}.",
            hint=listing("loops and blocks before its last statement", filter(None, names[:-1])),
            place=site.place(module),
        )
    edges = (0, *cuts, len(body))
    return tuple(body[start:end] for start, end in pairwise(edges))


def _require_unchanged(site: Site) -> None:
    """Each part evaluates the bounds of the loop again. The domains of iterators are not accesses, so what
    they read must not be written at all."""
    loop, function = site.node, site.function
    require_unchanged_bounds((loop,), function=function, primitive=_NAME)
    blocks = (found for found in statements(loop.body) if isinstance(found, Block))
    domains = (item.domain for block in blocks for item in block.iters)
    what = "an iterator's domain"
    require_unchanged(loop, domains, function=function, primitive=_NAME, what=what)


def _require_own_names(before: Part, part: Part, site: Site, *, module: Module) -> None:
    effects = [effects_of(found) for found in statements(before)]
    buffers = {found.allocates.name for found in effects if found.allocates is not None}
    variables = {name for found in effects for name in found.binds}
    shared = variables & free_vars(*part) | buffers & named(part)
    if shared:
        raise refusal(
            f"{_NAME}.scope",
            f"'{min(shared)}' is bound in one part of loop '{site.node.var}' and used in a later one.",
            hint="Cut the loop before it, or allocate the buffer outside of the loop.",
            place=site.place(module),
        )


def _require_independent(before: Part, part: Part, site: Site, *, module: Module) -> None:
    """What a part touches in an iteration is not touched in later ones by the parts before it, if one of
    them writes it."""
    loop, varying = site.node.var, loops_within((site.node,))
    shared = (outer_writes(before) & mentioned(part)) | (mentioned(before) & outer_writes(part))
    for buffer in sorted(shared):
        for later, found in _pairs(before, part, buffer, site):
            pair = (later, found)
            if verdict(loop, pair, varying=varying, function=site.function) == "disjoint":
                continue
            distance = meeting_distance(later, found, site.node, varying=varying)
            if distance == 0:
                continue
            if distance is None and is_ordered(site, buffer):
                break
            _refuse(site, pair, distance, module=module)


def _pairs(
    before: Part, part: Part, buffer: str, site: Site
) -> Iterator[tuple[AccessForm, AccessForm]]:
    """An access of the parts before and one of this part, of which one is a store."""
    changing, values = buffers_written(site.node.body), values_at(site)
    first, second = (
        [
            without_changing(found, changing)
            for found in access_forms(body, {buffer}, values=values, function=site.function)
        ]
        for body in (before, part)
    )
    return ((a, b) for a, b in product(first, second) if a.is_store or b.is_store)


def _refuse(
    site: Site, pair: tuple[AccessForm, AccessForm], distance: int | None, *, module: Module
) -> None:
    loop, buffer = site.node.var, pair[0].buffer
    if distance is not None and is_unconditional(site.node.body):
        raise refusal(
            f"{_NAME}.dependence",
            f"An iteration of loop '{loop}' touches an element of '{buffer}' that an earlier part of the "
            f"loop touches {distance} iteration{'' if distance == 1 else 's'} later, and one writes it.",
            hint="Cut the loop elsewhere.",
            place=site.place(module),
        )
    varying = loops_within((site.node,))
    raise refusal(
        f"{_NAME}.not_proved",
        f"It is not proved that the parts of loop '{loop}' touch different elements of '{buffer}' in "
        "different iterations.",
        needs=difference(loop, sorted(pair, key=lambda found: found.is_store), varying=varying),
        place=site.place(module),
    )


def _require_late_inits(before: Part, part: Part, site: Site, *, module: Module) -> None:
    """An init that runs before the loop comes to run after the parts before its own."""
    for block in blocks_with_init(site):
        reducing = reduction_loops(block.node, values_at(block))
        is_own = block.path[len(site.path)][2] >= len(before)
        if (
            not is_own
            or site.node.var not in reducing
            or any(o.var in reducing for o in site.scope)
        ):
            continue
        writes = outer_writes(block.node.init)
        clash = writes & mentioned(before) | read_by_init(block) & outer_writes(before)
        if clash:
            raise refusal(
                f"{_NAME}.not_proved",
                f"The init of block '{block.node.name}' would run after the first part of loop "
                f"'{site.node.var}', and not before.",
                needs=f"that part uses other elements of {', '.join(sorted(clash))}",
                hint="Apply decompose_reduction before.",
                place=block.place(module),
            )


def _loop_of(loop: For, name: str, part: Sequence[Stmt]) -> For:
    return replace(loop, var=name, body=substitute_body(tuple(part), {loop.var: index_var(name)}))
