"""`sample_compute_location`: draw a loop into which a block may move, and record the decision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Literal

from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Block, For, Function
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.cursor.find import find_block
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.definition.sampled_values import require_value_name
from gossamer_schedule.errors import listing, schedule_error
from gossamer_schedule.primitives.blocks.compute_at import compute_at
from gossamer_schedule.primitives.blocks.reverse_compute_at import reverse_compute_at

_MOVING_PRIMITIVES = {"compute_at": compute_at, "reverse_compute_at": reverse_compute_at}


@primitive(stages=LOOP_STAGES)
def sample_compute_location(
    root: Cursor[Function],
    block: str,
    *,
    name: str,
    move: Literal["compute_at", "reverse_compute_at"] = "compute_at",
    decision: str | None = None,
    seed: int = 0,
    function: str | None = None,
) -> Change:
    """Draw a loop into which a block may move, for the value `$name`, which later steps take as an argument.

    `move` is the primitive that may move the block: "compute_at" or "reverse_compute_at". `decision` is
    the name of the loop; without it, one is drawn from `seed` and `name`. The step records the decision,
    so that a replay repeats it. The module does not change. The result's name is `name`, and its `values`
    contain the loop.

    Raises `ScheduleError` with a code `schedule.sample_compute_location.*`:

    * `.name`: not an identifier
    * `.move`: neither primitive
    * `.no_candidate`: the block may move into no loop
    * `.decision`: the block may not move into that loop

    >>> from gossamer_schedule import ScheduleBuilder
    >>> from gossamer_testkit.examples import SPMM
    >>> cached = ScheduleBuilder(SPMM).cache_read("csrmm", buffer="B", scope="local")
    >>> found = sample_compute_location(cached.module, "csrmm_B_local", name="home", seed=2)
    >>> found.values, found.step.args["decision"], found.module is cached.module
    ({'home': 'i'}, 'i', True)
    >>> moved = cached.sample_compute_location("csrmm_B_local", name="home", seed=2)
    >>> moved.compute_at("csrmm_B_local", loop="$home").trace[-1].args
    {'block': 'csrmm_B_local', 'loop': '$home'}
    """
    cursor = find_block(root, block=block)

    require_value_name(name, root)
    possible = list(_possible_loops(root.function, cursor, move=move))
    if not possible:
        raise schedule_error(
            "sample_compute_location.no_candidate",
            f"There is no loop into which {move} may move block '{block}'.",
        )
    chosen = Random(f"{seed}/{name}").choice(possible) if decision is None else decision
    if chosen not in possible:
        raise schedule_error(
            "sample_compute_location.decision",
            f"{move} may not move block '{block}' into loop '{chosen}'.",
            hint=listing("loops", possible),
        )

    return Change(root, (name,), values={name: chosen}, recorded={"decision": chosen, "seed": 0})


def _possible_loops(owner: Function, cursor: Cursor[Block], *, move: str) -> Iterator[str]:
    """Yield the loops into which a block may move, in program order: those that the primitive accepts."""
    around = {loop.var for loop in cursor.nest}
    for stmt in addressable_stmts(owner.body):
        if isinstance(stmt, For) and stmt.var not in around:
            with suppress(ScheduleError):
                _MOVING_PRIMITIVES[move](
                    cursor.module, cursor.node.name, loop=stmt.var, function=owner.name
                )
                yield stmt.var
