"""The pipeline to the flat stage with passes of plugins, at the positions that it offers to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import msgspec

from gossamer_ir.nodes import Module, StageName
from gossamer_lower.constructs import has_construct
from gossamer_lower.lowering_pass import listed_records
from gossamer_lower.pipelines.flat_passes import FLAT_PASSES
from gossamer_lower.pipelines.flat_steps import FLAT_STEPS
from gossamer_lower.pipelines.pass_manager import PassManager
from gossamer_support.items_by_name import items_by_name


class ExtensionPoint(msgspec.Struct, frozen=True):
    """A position before or after a stable pass, at which passes of plugins may run."""

    name: str
    stage: StageName
    """The stage of modules there."""
    without: tuple[str, ...]
    """The `CONSTRUCTS` that earlier passes have removed, and no later pass will."""

    def require_constructs(self, module: Module) -> None:
        """Raise `ValueError` if a module has constructs that no later pass removes.

        >>> from gossamer_testkit.examples import SCALE
        >>> EXTENSION_POINTS["after lower_blocks"].require_constructs(SCALE)
        Traceback (most recent call last):
        ...
        ValueError: it returned a module with blocks, which no pass removes after lower_blocks
        """
        for construct in self.without:
            if has_construct(module, construct):
                raise ValueError(
                    f"it returned a module with {construct}, which no pass removes {self.name}"
                )


def _extension_points() -> Iterator[ExtensionPoint]:
    removed: tuple[str, ...] = ()
    for record in listed_records(FLAT_PASSES):
        later = (*removed, *record.removes)
        if record.is_stable and record.gives is not None:
            yield ExtensionPoint(f"before {record.name}", record.takes[0], removed)
            yield ExtensionPoint(f"after {record.name}", record.gives, later)
        removed = later


EXTENSION_POINTS = items_by_name(_extension_points())
"""The positions at which passes of plugins may run, by name, in their order."""


def lower_with_extensions(
    module: Module,
    extend: Callable[[ExtensionPoint, Module], Module],
    *,
    vscale: int | None = None,
    instructions: Collection[str] | None = None,
    verify_each: bool = False,
) -> Module:
    """Lower a module from the loop stage as `lower_to_flat` does, and replace it at each extension point by
    what `extend` returns, a valid module that fulfills `require_constructs` of the point.

    >>> from gossamer_testkit.examples import program
    >>> names = []
    >>> def keep(point, module):
    ...     names.append(point.name)
    ...     return module
    >>> flat = lower_with_extensions(program("for i in T.serial(n): Y[i] = X[i]"), keep)
    >>> flat.stage, names == [*EXTENSION_POINTS], names[:2]
    ('flat', True, ['before lower_blocks', 'after lower_blocks'])
    """

    def extend_at(position: str, module: Module) -> Module:
        point = EXTENSION_POINTS.get(position)
        return module if point is None else extend(point, module)

    arguments = {"vscale": vscale, "instructions": instructions}
    return PassManager(
        steps=FLAT_STEPS, arguments=arguments, is_verifying=verify_each, extend=extend_at
    ).run(module)
