"""`fission`: distribute a loop over the statements of its body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import TypeAlias

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import reduction_loops
from gossamer_ir.analysis.bounds.loops_by_name import loops_within
from gossamer_ir.core.build import index_var
from gossamer_ir.dependence.access_forms import AccessForm, access_forms
from gossamer_ir.dependence.disjointness import disjointness, without_changing
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Block, For, Function, Stmt
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.buffer_uses import (
    buffers_accessed,
    buffers_named,
    buffers_written,
    outer_writes,
)
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.statement_queries import defines_only, vars_bound
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts, name_of
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_serial
from gossamer_schedule.cursor.used_buffers import conflicting_buffers
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import listing, schedule_error
from gossamer_schedule.legality.dependence_distance import dependence_distance
from gossamer_schedule.legality.loop_invariance import require_unchanged, require_unchanged_bounds
from gossamer_schedule.legality.races import are_iterations_apart, difference_text, is_unconditional
from gossamer_schedule.made_names import part_name
from gossamer_schedule.nests.init_checks import blocks_with_init, buffers_read_by_init
from gossamer_support.message_texts import amount

BodyPart: TypeAlias = tuple[Stmt, ...]


@primitive(stages=LOOP_STAGES)
def fission(
    root: Cursor[Function], loop: str, *, after: str | None = None, function: str | None = None
) -> Change:
    """Distribute a serial loop over the parts of its body, as loops `<loop>_0`, `<loop>_1`, ...

    The body is cut after its loop or block `after`; without `after`, it is cut after each statement. The
    new loops run one after the other, so all iterations of a part precede those of the parts after it.
    Therefore an iteration of a part must not depend on later iterations of earlier parts: they must not
    access the same element, unless both read it. The result's names are those of the loops.

    Raises `ScheduleError` with a code `schedule.fission.*`:

    * `.parts`: the body has no statement to cut after
    * `.scope`: a part uses a variable or buffer that an earlier one defines
    * `.dependence`: a later iteration of an earlier part accesses the same element
    * `.not_proved`: it may, an init may not run later, or the bounds of the loop may change

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
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    parts = _required_parts(cursor, after)
    _require_unchanged_domains(cursor)
    for cut in range(1, len(parts)):
        # All earlier parts together: each of them now runs completely before this one.
        before: BodyPart = sum(parts[:cut], ())
        _require_own_names(before, parts[cut], cursor)
        _require_independent(before, parts[cut], cursor)
        _require_late_inits(before, parts[cut], cursor)

    namer = namer_of(root.function)
    names = tuple(namer.fresh(part_name(loop, number)) for number in range(len(parts)))
    new_loops = tuple(
        _loop_over_part(cursor.node, *pair) for pair in zip(names, parts, strict=True)
    )

    return Change(cursor.replace_with(new_loops), names, {loop: names})


def _required_parts(cursor: Cursor[For], after: str | None) -> tuple[BodyPart, ...]:
    body: BodyPart = cursor.node.body
    names = [name_of(stmt) for stmt in body]
    cuts = [number + 1 for number, name in enumerate(names[:-1]) if after is None or name == after]
    # Without `after`, a let or an allocation stays with the statements that use it.
    cuts = [cut for cut in cuts if after or not defines_only(body[cut - 1])]
    if not cuts:
        what = "has only one part" if after is None else f"cannot be cut after '{after}'"
        raise schedule_error(
            "fission.parts",
            f"Loop '{cursor.node.var}' {what}.",
            hint=listing("loops and blocks before its last statement", filter(None, names[:-1])),
            place=cursor.place,
        )
    edges = (0, *cuts, len(body))
    return tuple(body[start:end] for start, end in pairwise(edges))


def _require_unchanged_domains(cursor: Cursor[For]) -> None:
    """Refuse a loop that may change its bounds, which each part evaluates again, or iterator domains.

    Domains are not among the accesses that `_require_independent` compares, so the loop must not write
    what they read.
    """
    loop = cursor.node
    require_unchanged_bounds((loop,), cursor=cursor)
    blocks = (stmt for stmt in addressable_stmts(loop.body) if isinstance(stmt, Block))
    domains = (iterator.domain for block in blocks for iterator in block.iters)
    require_unchanged(loop, domains, cursor=cursor, what="an iterator's domain")


def _require_own_names(before: BodyPart, part: BodyPart, cursor: Cursor[For]) -> None:
    """Refuse a part that uses a variable or buffer which an earlier part defines."""
    stmts = tuple(addressable_stmts(before))
    buffers = {buffer.name for buffer in allocations(stmts)}
    vars = {name for stmt in stmts for name in vars_bound(stmt)}
    shared = vars & free_vars(*part) | buffers & buffers_named(*part)
    if shared:
        raise schedule_error(
            "fission.scope",
            f"'{min(shared)}' is bound in one part of loop '{cursor.node.var}' and used in a later one.",
            hint="Cut the loop before it, or allocate the buffer outside of the loop.",
            place=cursor.place,
        )


def _require_independent(before: BodyPart, part: BodyPart, cursor: Cursor[For]) -> None:
    """Refuse a part that accesses an element in an iteration, and an earlier part in a later one, if one of
    them writes it: the earlier part now runs all its iterations first."""
    loop, varying = cursor.node.var, loops_within((cursor.node,))
    for buffer in sorted(conflicting_buffers(before, part)):
        for later, earlier in _access_pairs(before, part, buffer, cursor):
            pair = (later, earlier)
            # The cheap proof first; a distance of 0 says that the later iteration never meets
            # the element again.
            if disjointness(loop, pair, varying=varying, function=cursor.function) == "disjoint":
                continue
            distance = dependence_distance(later, earlier, cursor.node, varying=varying)
            if distance == 0:
                continue
            # All accesses of the buffer are ordered, so its other pairs need no proof of their own.
            if distance is None and are_iterations_apart(cursor, buffer):
                break
            raise _dependence_error(cursor, pair, distance)


def _access_pairs(
    before: BodyPart, part: BodyPart, buffer_name: str, cursor: Cursor[Block | For]
) -> Iterator[tuple[AccessForm, AccessForm]]:
    """Yield the pairs of an access in earlier parts and one in this part that include a store."""
    changing, values = buffers_written(cursor.node.body), values_at(cursor)
    first, second = (
        [
            without_changing(access, changing)
            for access in access_forms(body, {buffer_name}, values=values, function=cursor.function)
        ]
        for body in (before, part)
    )
    return ((a, b) for a, b in product(first, second) if a.is_store or b.is_store)


def _dependence_error(
    cursor: Cursor[For], pair: tuple[AccessForm, AccessForm], distance: int | None
) -> ScheduleError:
    """Return the error for a pair of accesses; the distance is that of their iterations if it is known."""
    loop, buffer = cursor.node.var, pair[0].buffer
    if distance is not None and is_unconditional(cursor.node.body):
        return schedule_error(
            "fission.dependence",
            f"An iteration of loop '{loop}' accesses an element of '{buffer}' that an earlier part of the "
            f"loop accesses {amount(distance, 'iteration')} later, and one writes it.",
            hint="Cut the loop elsewhere.",
            place=cursor.place,
        )
    varying = loops_within((cursor.node,))
    return schedule_error(
        "fission.not_proved",
        f"Cannot prove that the parts of loop '{loop}' access different elements of '{buffer}' in "
        "different iterations.",
        needs=difference_text(
            loop, sorted(pair, key=lambda access: access.is_store), varying=varying
        ),
        place=cursor.place,
    )


def _require_late_inits(before: BodyPart, part: BodyPart, cursor: Cursor[For]) -> None:
    """Refuse an init that ran before the loop, and would run after earlier parts that use its elements."""
    for block in blocks_with_init(cursor):
        reducing = reduction_loops(block.node, values_at(block))
        # Blocks of earlier parts keep their position relative to their init.
        is_own = block.steps_from(cursor)[0].index >= len(before)
        if (
            not is_own
            or cursor.node.var not in reducing
            or any(o.var in reducing for o in cursor.loops_in_block)
        ):
            continue
        writes = outer_writes(block.node.init)
        clash = writes & buffers_accessed(*before) | buffers_read_by_init(block) & outer_writes(
            before
        )
        if clash:
            raise schedule_error(
                "fission.not_proved",
                f"The init of block '{block.node.name}' would run after the first part of loop "
                f"'{cursor.node.var}', and not before.",
                needs=f"that part uses other elements of {', '.join(sorted(clash))}",
                hint="Apply decompose_reduction before.",
                place=block.place,
            )


def _loop_over_part(loop: For, name: str, part: Sequence[Stmt]) -> For:
    return replace(loop, var=name, body=substitute_body(tuple(part), {loop.var: index_var(name)}))
