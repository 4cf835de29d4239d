"""Slots that later elements take: their cache lines are fetched before anything is stored there.

The slots of consecutive elements in many fibers are rarely in lines of the nearest cache. A processor stores
in order, so that each line holds up all stores after it, unless it was fetched in time.
"""

from __future__ import annotations

from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import AxisSlot, LaterSlot
from gossamer_formats.conversion.by_kernels.kernels.statements import compare, load
from gossamer_ir.core.build import ZERO, add, index, index_var
from gossamer_ir.nodes import For, Let
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve, substitute
from gossamer_machine.machine import Machine

ELEMENTS_AHEAD = 24
"""The number of elements from one to that whose lines are fetched: 8 to 64 took about as long."""

ELEMENT_BYTES = 8
"""The bytes of an element: its index and its value in float32."""

MIN_CACHES = {"fast": 0, "moderate": 3, "slow": 3}
"""The least bytes of elements whose lines are fetched early, in private caches, by the speed of gathers.

Gathers tell kinds of CPUs apart, as they do in the models of `gossamer_tune`: they are fast on Intel's since
Sapphire Rapids, where looking ahead pays for any number. (Measured between CSR and CSC, times as long as
without: on Zen 4, 1.1 to 1.3 with 10,000 to 290,000 elements and 0.8 to 0.95 with 1.2 million; on Emerald
Rapids, 0.97 to 1.02 with 2,000, 0.8 to 1.0 with 10,000, 0.62 to 0.82 with 100,000, 0.52 to 0.61 with a
million.)"""


def later_slot(
    state: BuildState, next_slots: str, *, parent: AxisSlot, dtype: str
) -> LaterSlot | None:
    """Return the slot that an array of next slots has for a later element at this time: the elements until
    then move it on by a few slots.

    None for few elements, and unless the fiber of an element follows from its index in the loop over all
    elements.
    """
    if not are_fetched_early(state):
        return None
    loops = [stmt for stmt in state.loop.nest if isinstance(stmt, For)]
    element = index_var(loops[-1].var)
    whole = loops[0] if len(loops) == 1 else state.loop.whole.get(element.name)
    if whole is None or whole.start != ZERO:
        return None
    bindings = [stmt for stmt in (*state.loop.nest, *state.elements.stmts) if isinstance(stmt, Let)]
    values = {binding.var.name: binding.value for binding in bindings}
    fiber = resolve(parent.slot, values)
    if not free_vars(fiber).isdisjoint(loop.var for loop in loops[:-1]):
        return None
    later = add(element, index(ELEMENTS_AHEAD))
    slot = load(next_slots, substitute(fiber, {element.name: later}), dtype)
    return LaterSlot(compare("lt", later, whole.extent), slot)


def are_fetched_early(state: BuildState) -> bool:
    """Return whether there are so many elements that the lines of later ones are fetched."""
    # Not a condition in the kernel: comparing in each iteration takes 5 percent of the time for few elements.
    are_many: bool = state.recorder.decide(
        _are_many,
        state.source.value_count,
        min_elements(state.requirements.machine),
    )
    return are_many


def min_elements(machine: Machine) -> int:
    """Return the fewest elements for which lines are fetched early on a machine.

    >>> [min_elements(Machine(gathers=speed)) for speed in ("fast", "moderate")]
    [0, 393216]
    """
    return MIN_CACHES[machine.gathers] * machine.private_cache // ELEMENT_BYTES


def _are_many(elements: int, least: int) -> bool:
    return elements >= least
