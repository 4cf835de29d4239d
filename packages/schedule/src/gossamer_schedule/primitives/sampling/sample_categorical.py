"""`sample_categorical`: draw one of several numbers, and record the decision."""

from __future__ import annotations

from random import Random

from gossamer_ir.nodes import STAGES, Function
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.requirements import require_between
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.counts import is_count
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.definition.sampled_values import require_value_name
from gossamer_schedule.errors import schedule_error


@primitive(stages=STAGES)
def sample_categorical(
    root: Cursor[Function],
    name: str,
    *,
    candidates: tuple[int, ...],
    weights: tuple[int, ...] | None = None,
    decision: int | None = None,
    seed: int = 0,
    function: str | None = None,
) -> Change:
    """Draw one of `candidates` for the value `$name`, which later steps may take as an argument.

    `weights` are integers, one for each candidate; by default all candidates are equally likely.
    `decision` is the index of the candidate; without it, the index is drawn from `seed` and `name`. The
    step records the decision, so that a replay repeats it. The module does not change. The result's name
    is `name`, and its `values` contain the candidate.

    Raises `ScheduleError` with a code `schedule.sample_categorical.*`:

    * `.name`: not an identifier
    * `.candidates`: none, or weights of another number, negative or all zero
    * `.decision`: not the index of a candidate

    >>> from gossamer_testkit.examples import SCALE
    >>> found = sample_categorical(SCALE, "tile", candidates=(4, 8, 16), decision=1)
    >>> found.values
    {'tile': 8}
    >>> found.step.args["decision"], found.module is SCALE
    (1, True)
    >>> from gossamer_schedule import ScheduleBuilder
    >>> builder = ScheduleBuilder(SCALE).sample_categorical("tile", candidates=(4, 8), seed=3)
    >>> builder.split("i", factors=(None, "$tile")).trace[-1].args
    {'loop': 'i', 'factors': (None, '$tile')}
    """
    require_value_name(name, root)
    chances = weights or (1,) * len(candidates)
    _require_weights(candidates, chances)
    chosen = _drawn_index(chances, f"{seed}/{name}") if decision is None else decision
    # A trace for other candidates may have a larger index; a negative one would count from the end.
    require_between(root, "decision", chosen, 0, len(candidates) - 1)

    return Change(
        root, (name,), values={name: candidates[chosen]}, recorded={"decision": chosen, "seed": 0}
    )


def _drawn_index(chances: tuple[int, ...], seed: str) -> int:
    return Random(seed).choices(range(len(chances)), chances)[0]


def _require_weights(candidates: tuple[int, ...], chances: tuple[int, ...]) -> None:
    """Refuse weights from which nothing can be drawn: each candidate needs one, and one must be positive."""
    is_valid = (
        len(chances) == len(candidates)
        and any(chances)
        and all(is_count(chance, least=0) for chance in chances)
    )
    if not is_valid:
        raise schedule_error(
            "sample_categorical.candidates",
            f"No candidate can be drawn from {candidates} with the weights {chances}.",
            hint="Expected one or more candidates, and as many weights, none negative and not all 0.",
        )
