"""Costs that were measured on several kinds of CPUs."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from gossamer_machine.machine import Machine

_Cost = TypeVar("_Cost")


class PerCpu(NamedTuple, Generic[_Cost]):
    """A cost on Intel's Emerald Rapids and on AMD's Zen 4.

    Those of Zen 4 were fitted, all together, to 30 matrices in 2 to 9 formats, times a vector and times 32,
    128 and 512 columns in float32, on one thread and on two, and so that the fastest format has the least
    costs. Single costs are therefore less certain than on the other kind, for which they were fitted in
    parts. Gathers tell the kinds apart: they are fast on the first one only. AMD's Zen 3, which has
    vectors of 256 bits, has the costs of Zen 4 but for those that its own times of the same cases show to
    differ: these were fitted, so that choices miss a goal in 10 of 234 cases instead of 41. Most of them,
    fitted to half of the matrices, reduced the misses of the other half by half; two serve one case each.

    >>> cost = PerCpu(1.0, 2.0, 3.0)
    >>> machines = Machine(gathers="fast"), Machine(), Machine(min_vector_bits=256)
    >>> [cost.on(machine) for machine in machines]
    [1.0, 2.0, 3.0]
    """

    emerald_rapids: _Cost
    zen_4: _Cost
    zen_3: _Cost | None = None

    def on(self, machine: Machine) -> _Cost:
        """Return the cost on a machine: that of the kind that is more like it."""
        if self.zen_3 is not None and not machine.has_mask_registers:
            return self.zen_3
        return self.emerald_rapids if machine.gathers == "fast" else self.zen_4
