"""A compiler as data: its passes by name, so that a test can replace one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TypeAlias

import msgspec

from gossamer.targets.resolve_target import resolve_target
from gossamer_backend import Kernel
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Module
from gossamer_ir.traversal.walk import walk
from gossamer_lower import FLAT_PASSES, lower_buffers, lower_iterations, lower_math
from tests.integration.emulated_targets import EMULATED_LENGTHS, bits_of, targets_of

Pass: TypeAlias = Callable[[Module], Module]
Scheduler: TypeAlias = Callable[[Module], Module]
"""A step on the module of each stage, before the module is lowered."""


def unscheduled(module: Module) -> Module:
    return module


def without_instructions(module: Module, *, target: str = "generic-cpu") -> Module:
    """Replaces the math functions that have no instructions on a target by arithmetic."""
    backend, resolved = resolve_target(target)
    return lower_math(module, instructions=backend.instructions(resolved))


MAX_NODES = 200_000
"""The number of nodes of a module that is lowered further: look-ups below several fused axes or
dense axes of varied length repeat the offsets of those above, and passes may take minutes."""

TOO_LARGE = "fuzzing.size"
"""The code of the refusal of such a module."""


MIN_NODE_BYTES = 16
"""A node is encoded as no fewer bytes."""


def has_too_many_nodes(module: Module) -> bool:
    # Encoding takes a third of the time of a walk, and most modules are small.
    with suppress(RecursionError):
        if len(msgspec.json.encode(module)) <= MIN_NODE_BYTES * MAX_NODES:
            return False
    return next(islice(walk(module), MAX_NODES, None), None) is not None


BEFORE = {"coordinate": 0, "position": 1, "loop": 2}
"""The number of passes that a module of a stage skips."""
PASSES: dict[str, Pass] = {
    lowering_pass.__name__: lowering_pass
    for lowering_pass in (lower_iterations, lower_buffers, *FLAT_PASSES)
}
"""From the coordinate stage to the flat stage, in order."""


@dataclass(frozen=True)
class Compiler:
    """The passes by name and in order, those that run on a flat module before it becomes machine
    code, and the targets that its object code runs on. `split` is the last pass of a backend for devices:
    its kernels, with barriers and asynchronous copies, are interpreted, too."""

    passes: tuple[tuple[str, Pass], ...] = tuple(PASSES.items())
    math: Pass = without_instructions
    targets: tuple[str, ...] = ("generic-cpu",)
    split: Pass | None = None

    def pass_of(self, name: str) -> Pass:
        """The pass with that name."""
        return dict(self.passes)[name]

    def replaced(self, name: str, by: Pass) -> Compiler:
        """The compiler with the pass of that name replaced."""
        assert name in dict(self.passes), f"no pass {name} among {', '.join(dict(self.passes))}"
        run = tuple((key, by if key == name else run) for key, run in self.passes)
        return replace(self, passes=run)

    def stages(self, module: Module, schedule: Scheduler = unscheduled) -> Iterator[Module]:
        """The module at each stage, scheduled, as it is lowered: the last one is flat."""
        module = schedule(module)
        yield module
        for name, lower in self.passes[BEFORE[module.stage] :]:
            before, module = module, lower(module)
            # Counting takes as long as a quick pass, and most passes change nothing.
            if module is not before and has_too_many_nodes(module):
                raise UnsupportedError(TOO_LARGE, f"The module is too large after '{name}'.")
            is_last = name == self.passes[-1][0]
            if module.stage not in (before.stage, "flat"):
                module = schedule(module)
                yield module
            elif is_last:
                yield module

    def kernel(self, flat: Module) -> Kernel:
        """Machine code of a flat module for the first target."""
        return next(self.kernels(flat))

    def kernels(self, flat: Module) -> Iterator[Kernel]:
        """The kernel of a flat module on each target; it is compiled once, for the first one."""
        backend, target = resolve_target(self.targets[0])
        artifact = backend.compile(self.math(flat), target)
        for text in self.targets:
            yield backend.load(msgspec.structs.replace(artifact, target=text))

    def kernels_by_bits(self, flat: Module) -> Iterator[tuple[int, Kernel]]:
        """The length of vectors in bits of each target that is emulated, with the kernel on it."""
        yield from zip(map(bits_of, self.targets), self.kernels(flat), strict=True)


COMPILER = Compiler()
"""The compiler as it is shipped."""

COMPILERS = {
    backend: Compiler(
        math=partial(without_instructions, target=backend), targets=targets_of(backend)
    )
    for backend in EMULATED_LENGTHS
}
"""The compilers for scalable vectors by their backends; kernels are emulated at every vector length."""

EMULATED = COMPILERS["llvm-sve"]
VECTOR_LENGTHS = EMULATED_LENGTHS["llvm-sve"]
"""The lengths of the vectors of Arm SVE in bits."""
