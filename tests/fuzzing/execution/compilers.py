"""A compiler as data: its passes by name, so that a test can replace one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias

from gossamer.resolve_target import resolve_target
from gossamer_backend import Kernel
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Module
from gossamer_ir.traversal.walk import walk
from gossamer_lower import FLAT_PASSES, lower_buffers, lower_iterations, lower_math

Pass: TypeAlias = Callable[[Module], Module]
Scheduler: TypeAlias = Callable[[Module], Module]
"""A step on the module of each stage, before the module is lowered."""


def unscheduled(module: Module) -> Module:
    return module


def without_instructions(module: Module) -> Module:
    """Replaces all math functions by arithmetic, as for a target without instructions for them."""
    backend, target = resolve_target("generic-cpu")
    return lower_math(module, instructions=backend.instructions(target))


MAX_NODES = 200_000
"""The number of nodes of a module that is lowered further: look-ups in the indices of look-ups may multiply
them, and passes then take hours."""

TOO_LARGE = "fuzzing.size"
"""The code of the refusal of such a module."""


def has_too_many_nodes(module: Module) -> bool:
    return next(islice(walk(module), MAX_NODES, None), None) is not None


BEFORE = {"coordinate": 0, "position": 1, "loop": 2}
"""The number of passes that a module of a stage skips."""
PASSES: dict[str, Pass] = {
    found.__name__: found for found in (lower_iterations, lower_buffers, *FLAT_PASSES)
}
"""From the coordinate stage to the flat stage, in order."""


@dataclass(frozen=True)
class Compiler:
    """The passes by name and in order, those that run on a flat module before it becomes machine
    code, and the target of that."""

    passes: tuple[tuple[str, Pass], ...] = tuple(PASSES.items())
    math: Pass = without_instructions
    target: str = "generic-cpu"

    def pass_of(self, name: str) -> Pass:
        """The pass with that name."""
        return dict(self.passes)[name]

    def replaced(self, name: str, by: Pass) -> Compiler:
        """The compiler with the pass of that name replaced."""
        assert name in dict(self.passes), f"no pass {name} among {', '.join(dict(self.passes))}"
        found = tuple((key, by if key == name else found) for key, found in self.passes)
        return replace(self, passes=found)

    def stages(self, module: Module, schedule: Scheduler = unscheduled) -> Iterator[Module]:
        """The module at each stage, scheduled, as it is lowered: the last one is flat."""
        module = schedule(module)
        yield module
        for name, lower in self.passes[BEFORE[module.stage] :]:
            before, module = module.stage, lower(module)
            if has_too_many_nodes(module):
                raise UnsupportedError(TOO_LARGE, f"The module is too large after '{name}'.")
            is_last = name == self.passes[-1][0]
            if module.stage not in (before, "flat"):
                module = schedule(module)
                yield module
            elif is_last:
                yield module

    def kernel(self, flat: Module) -> Kernel:
        """Machine code of a flat module."""
        backend, target = resolve_target(self.target)
        return backend.load(backend.compile(self.math(flat), target))


COMPILER = Compiler()
"""The compiler as it is shipped."""
