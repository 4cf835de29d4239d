"""The input of a generator: a module, the names that a step may use, and a source of choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, TypeAlias, TypeVar

from gossamer_ir.core.build import integer_value
from gossamer_ir.interchange.records import Trace
from gossamer_ir.nodes import AnyBuffer, Block, For, Function, Iteration, Load, Module, Node, Store
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_ir.traversal.buffer_uses import outer_writes
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import walk
from gossamer_schedule import PRIMITIVES
from gossamer_schedule.cursor.cursor_at import Cursor, cursor_at
from gossamer_schedule.definition.arguments import choices_of

T = TypeVar("T")
Drawn: TypeAlias = dict[str, Any] | None
"""The arguments of a step; None if the module has nothing that the step applies to."""


@dataclass(frozen=True)
class Scene:
    """A module after the steps of a trace. `for_threads`: draw steps for devices with threads, too, which no
    CPU runs. `is_scalable`: prefer multiples of vscale."""

    rng: Random
    module: Module
    trace: Trace = ()
    for_threads: bool = False
    is_scalable: bool = False

    @cached_property
    def function(self) -> Function:
        (function,) = self.module.functions
        return function

    @cached_property
    def sites(self) -> tuple[Cursor[Any], ...]:
        return tuple(cursor_at(self.module, self.function).below())

    def of(self, kind: type[Node]) -> list[Cursor[Any]]:
        """The statements of a kind."""
        return [site for site in self.sites if isinstance(site.node, kind)]

    @cached_property
    def loops(self) -> list[Cursor[Any]]:
        return self.of(For)

    @cached_property
    def serial(self) -> list[Cursor[Any]]:
        """The serial loops."""
        return [site for site in self.loops if site.node.kind == "serial"]

    @cached_property
    def blocks(self) -> list[Cursor[Any]]:
        return self.of(Block)

    @cached_property
    def iterations(self) -> list[Cursor[Any]]:
        return self.of(Iteration)

    @cached_property
    def buffers(self) -> dict[str, AnyBuffer]:
        return {buffer.name: buffer for buffer in all_buffers(self.function)}

    @cached_property
    def allocated(self) -> list[str]:
        """The buffers that are not parameters."""
        return [name for name, buffer in self.buffers.items() if buffer.handle is None]

    @cached_property
    def makers(self) -> list[Cursor[Any]]:
        """The blocks that write an allocated buffer."""
        return [site for site in self.blocks if outer_writes((site.node,)) & {*self.allocated}]

    @cached_property
    def users(self) -> list[Cursor[Any]]:
        """The blocks that read an allocated buffer."""
        return [site for site in self.blocks if loaded(site.node) & {*self.allocated}]

    def choose(self, options: Sequence[T]) -> T | None:
        """One of the items; None if there are none."""
        return self.rng.choice(options) if options else None

    def choice_of(self, op: str, argument: str) -> str:
        """One of the words that an argument of a primitive may be."""
        return self.rng.choice(choices_of(PRIMITIVES[op], argument))

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def loop_around(self, sites: Sequence[Cursor[Any]]) -> str | None:
        """A loop around one of some statements."""
        names = [loop.var for site in sites for loop in site.loops]
        return self.choose(names)

    def feeding(self, site: Cursor[Any], kind: str) -> list[str]:
        """The loops directly around a block on which an iterator of a kind depends."""
        used = {
            name
            for iterator in site.node.iters
            if iterator.kind == kind
            for name in free_vars(iterator.value)
        }
        return [loop.var for loop in site.nest if loop.var in used]

    def others(self, site: Cursor[Any]) -> list[Cursor[Any]]:
        """The consumers or producers of the buffers of a block."""
        touched = outer_writes((site.node,)) | loaded(site.node)
        return [
            block
            for block in self.blocks
            if block is not site and (outer_writes((block.node,)) | loaded(block.node)) & touched
        ]

    def count(self, op: str) -> int:
        """The number of times that a step was applied."""
        return sum(step.op == op for step in self.trace)


def loaded(node: Node) -> set[str]:
    """The buffers that a statement loads from."""
    return {node.buffer for node in walk(node) if isinstance(node, Load)}


def stored(block: Block) -> list[str]:
    """The buffers that the body of a block stores to itself."""
    return [stmt.buffer for stmt in block.body if isinstance(stmt, Store)]


def constant_extent(site: Cursor[Any]) -> int | None:
    return integer_value(site.node.extent)


ArgumentGenerator: TypeAlias = Callable[[Scene], Drawn]
