"""`sample_perfect_tile`: draw factors of a loop's extent, and record the decision."""

from __future__ import annotations

from math import prod
from random import Random
from typing import TypeAlias

from gossamer_ir.arith.affine import affine_of, factor_affine
from gossamer_ir.nodes import Expr, Function
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_between
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.counts import is_count
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.definition.sampled_values import require_value_name
from gossamer_schedule.errors import schedule_error

TileFactors: TypeAlias = tuple[int | None, ...]

MAX_FACTORS = 16
"""The largest number of factors, each of which becomes a loop: more than nests have, not a measured limit."""
MAX_FACTOR = 2**16
"""The largest factor to draw: divisors of the extent are found by trying all numbers up to it."""


@primitive(stages=LOOP_STAGES)
def sample_perfect_tile(
    root: Cursor[Function],
    loop: str,
    *,
    name: str,
    parts: int,
    largest: int = 64,
    decision: tuple[int | None, ...] | None = None,
    seed: int = 0,
    function: str | None = None,
) -> Change:
    """Draw factors of a loop's extent for the values `$name_0`, `$name_1`, ..., which `split` takes.

    There are `parts` factors, outermost first; all but the first are at most `largest`. The product of the
    factors is the extent if that is constant. Otherwise the first factor is None, from which `split` infers
    the outermost extent, and the others divide the constant factor of the extent (16 for
    `16 * T.vscale()`); if that is 1, they are powers of two.

    `decision` contains the factors; without it, they are drawn from `seed` and `name`. The step records
    them; in a replay on a loop whose extent is not their product, the first becomes None. The module does
    not change. The result's names are those of the values.

    Raises `ScheduleError` with a code `schedule.sample_perfect_tile.*`:

    * `.name`: not an identifier
    * `.parts`: not from 2 to 16
    * `.largest`: not from 1 to 65536
    * `.decision`: not `parts` positive integers, of which the first may be None

    >>> from gossamer_testkit.examples import SCALE, STAGED
    >>> sample_perfect_tile(STAGED, "k", name="t", parts=2, decision=(2, 4)).values
    {'t_0': 2, 't_1': 4}
    >>> found = sample_perfect_tile(SCALE, "i", name="t", parts=3, largest=8, seed=1)
    >>> found.values == dict(zip(("t_0", "t_1", "t_2"), found.step.args["decision"]))
    True
    >>> found.values["t_0"] is None and max(found.values["t_1"], found.values["t_2"]) <= 8
    True
    """
    cursor = find_loop(root, loop=loop)

    require_value_name(name, root)
    require_between(cursor, "parts", parts, 2, MAX_FACTORS)  # one part is the whole extent
    require_between(cursor, "largest", largest, 1, MAX_FACTOR)
    extent = cursor.node.extent
    if decision is None:
        chosen = _drawn_factors(extent, parts, largest=largest, random=Random(f"{seed}/{name}"))
    else:
        _require_decision(decision, parts)
        chosen = _fitting_factors(decision, extent)

    values: dict[str, int | str | None] = {
        f"{name}_{number}": factor for number, factor in enumerate(chosen)
    }
    return Change(root, tuple(values), values=values, recorded={"decision": chosen, "seed": 0})


def _require_decision(decision: TileFactors, parts: int) -> None:
    """Refuse a decision that `split` cannot take: it infers at most one factor, here the first."""
    first, *inner = decision or (0,)
    numbers = [*([] if first is None else [first]), *inner]
    if len(decision) != parts or any(number is None or not is_count(number) for number in numbers):
        raise schedule_error(
            "sample_perfect_tile.decision",
            f"The decision {decision} is not a tuple of {parts} factors.",
            hint="Expected positive integers, of which the first may be None.",
        )


def _fitting_factors(decision: TileFactors, extent: Expr) -> TileFactors:
    """Return the factors, with None as the first one if their product is not the extent."""
    first, *inner = decision
    count, atoms = factor_affine(affine_of(extent))
    factors = [factor for factor in decision if factor is not None]
    is_perfect = first is not None and not atoms and prod(factors) == count
    return decision if is_perfect else (None, *inner)


def _drawn_factors(extent: Expr, parts: int, *, largest: int, random: Random) -> TileFactors:
    count, atoms = factor_affine(affine_of(extent))
    if atoms and count == 1:
        powers = [1 << shift for shift in range(largest.bit_length())]
        return (None, *(random.choice(powers) for _ in range(parts - 1)))
    remaining, inner = max(count, 1), []
    for _ in range(parts - 1):
        factor = random.choice(
            [d for d in range(1, min(remaining, largest) + 1) if remaining % d == 0]
        )
        inner.append(factor)
        remaining //= factor
    is_perfect = not atoms and count >= 1
    return (remaining if is_perfect else None, *reversed(inner))
