"""`sample_perfect_tile`: factors of a loop's extent are drawn, and the choice recorded."""

from __future__ import annotations

from math import prod
from random import Random

from gossamer_ir.arith.affine import affine_of, factored
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Expr, Module
from gossamer_schedule.bounds.sizes import is_count
from gossamer_schedule.cursor.resolve import LOOP_STAGES, find_function, find_loop, require_stage
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step
from gossamer_schedule.step.samples import require_value_name

Tile = tuple[int | None, ...]


MOST_PARTS, MOST = 16, 2**16
"""Factors are found by trying all of them."""


@primitive
def sample_perfect_tile(
    module: Module,
    loop: str,
    *,
    name: str,
    parts: int,
    largest: int = 64,
    decision: tuple[int | None, ...] | None = None,
    seed: int = 0,
    function: str | None = None,
) -> Result:
    """Draws factors of a loop's extent for the values `$name_0`, `$name_1`, ..., outermost first, as
    `split` takes them. None but the first is larger than `largest`.

    The product of the factors is a constant extent. Where the extent is not constant, the first is
    None, which `split` takes for what is left; the others divide its constant factor (that of
    `16 * T.vscale()` is 16) or, where that is 1, are powers of two. `decision` are the factors; without
    one they are drawn from `seed` and the name. The step holds them; in a replay on a loop that they do
    not fit, the first becomes None.

    Raises `ScheduleError`: `schedule.sample_perfect_tile.name` (no identifier), `.parts` (fewer than
    two), `.largest` (less than 1), `.decision` (not as many positive numbers, the first maybe None),
    `.no_loop`, `.no_function`, `.stage`.

    >>> from gossamer_testkit.examples import SCALE, STAGED
    >>> sample_perfect_tile(STAGED, "k", name="t", parts=2, decision=(2, 4)).values
    {'t_0': 2, 't_1': 4}
    >>> found = sample_perfect_tile(SCALE, "i", name="t", parts=3, largest=8, seed=1)
    >>> found.values == dict(zip(("t_0", "t_1", "t_2"), found.step.args["decision"]))
    True
    >>> found.values["t_0"] is None and max(found.values["t_1"], found.values["t_2"]) <= 8
    True
    """
    require_stage(module, "sample_perfect_tile", stages=LOOP_STAGES)
    root = find_function(module, "sample_perfect_tile", function=function)
    cursor = find_loop(root, loop=loop)

    require_value_name(name, "sample_perfect_tile")
    _require_parts(parts, largest)
    extent = cursor.node.extent
    if decision is None:
        chosen = _drawn(extent, parts, largest=largest, random=Random(f"{seed}/{name}"))
    else:
        _require_decision(decision, parts)
        chosen = _fitting(decision, extent)

    values: dict[str, int | str | None] = {
        f"{name}_{position}": factor for position, factor in enumerate(chosen)
    }
    taken = step(
        loop=loop,
        name=name,
        parts=parts,
        largest=None if largest == 64 else largest,
        decision=chosen,
        function=function,
    )
    return Result(module, tuple(values), Step("sample_perfect_tile", taken), values=values)


def _require_parts(parts: int, largest: int) -> None:
    if not 2 <= parts <= MOST_PARTS:
        raise schedule_error(
            "sample_perfect_tile.parts",
            f"A loop cannot be split into {parts} parts.",
            hint=f"Expected from 2 to {MOST_PARTS}.",
        )
    if not 1 <= largest <= MOST:
        raise schedule_error(
            "sample_perfect_tile.largest",
            f"The largest factor is {largest}.",
            hint=f"Expected from 1 to {MOST}.",
        )


def _require_decision(decision: Tile, parts: int) -> None:
    first, *inner = decision or (0,)
    numbers = [*([] if first is None else [first]), *inner]
    if len(decision) != parts or any(number is None or not is_count(number) for number in numbers):
        raise schedule_error(
            "sample_perfect_tile.decision",
            f"The decision {decision} is no list of {parts} factors.",
            hint="Expected positive numbers, the first may be None.",
        )


def _fitting(decision: Tile, extent: Expr) -> Tile:
    """The factors, the first open where their product is not the extent."""
    first, *inner = decision
    count, atoms = factored(affine_of(extent))
    known = [factor for factor in decision if factor is not None]
    is_perfect = first is not None and not atoms and prod(known) == count
    return decision if is_perfect else (None, *inner)


def _drawn(extent: Expr, parts: int, *, largest: int, random: Random) -> Tile:
    count, atoms = factored(affine_of(extent))
    if atoms and count == 1:
        powers = [1 << shift for shift in range(largest.bit_length())]
        return (None, *(random.choice(powers) for _ in range(parts - 1)))
    left, inner = max(count, 1), []
    for _ in range(parts - 1):
        factor = random.choice([d for d in range(1, min(left, largest) + 1) if left % d == 0])
        inner.append(factor)
        left //= factor
    is_perfect = not atoms and count >= 1
    return (left if is_perfect else None, *reversed(inner))
