"""The pipeline: the passes from the loop stage to the flat stage, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from gossamer_ir.nodes import Module, StageName
from gossamer_ir.support.items_by_name import items_by_name
from gossamer_lower.lowering_pass import (
    CONTENTS,
    PassRecord,
    has_content,
    listed_records,
    lowering_pass,
)
from gossamer_lower.pipelines.flat_passes import FLAT_PASSES
from gossamer_lower.pipelines.run_passes import run_pass, run_pipeline, run_verified

_TO_FLAT = listed_records(FLAT_PASSES)


class ExtensionPoint(msgspec.Struct, frozen=True):
    """A position before or after a stable pass, at which passes of plugins may run."""

    name: str
    stage: StageName
    """The stage of modules there."""
    without: tuple[str, ...]
    """The `CONTENTS` that earlier passes have removed, and no later pass will."""

    def require_contents(self, module: Module) -> None:
        """Raise `ValueError` if a module has contents that no later pass removes.

        >>> from gossamer_testkit.examples import SCALE
        >>> EXTENSION_POINTS["after lower_blocks"].require_contents(SCALE)
        Traceback (most recent call last):
        ...
        ValueError: it returned a module with blocks, which no pass removes after lower_blocks
        """
        for content in self.without:
            if has_content(module, content):
                raise ValueError(
                    f"it returned a module with {content}, which no pass removes {self.name}"
                )


def _extension_points() -> Iterator[ExtensionPoint]:
    removed: tuple[str, ...] = ()
    for record in _TO_FLAT:
        later = (*removed, *record.removes)
        if record.is_stable and record.gives is not None:
            yield ExtensionPoint(f"before {record.name}", record.takes[0], removed)
            yield ExtensionPoint(f"after {record.name}", record.gives, later)
        removed = later


EXTENSION_POINTS = items_by_name(_extension_points())
"""The positions at which passes of plugins may run, by name, in their order."""


@lowering_pass(takes=("loop",), gives="flat", removes=tuple(CONTENTS), pipeline=None)
def lower_to_flat(module: Module, *, verify_each: bool = False) -> Module:
    """Lower a module from the loop stage to the flat stage, which backends compile.

    Raises the errors of the passes. With `verify_each`, raises `InternalError` after the first pass whose
    result is invalid or still has contents that the pass removes.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> flat = lower_to_flat(program("for i in T.serial(n): Y[i] = X[P[i]]"))
    >>> flat.stage
    'flat'
    >>> print(body_text(flat))
    for i in T.serial(n):
        T.guard(P[i] >= 0 and P[i] < n, X)
        Y[i] = X[P[i]]
    """
    return run_pipeline(module, _TO_FLAT, around=run_verified if verify_each else run_pass)


def lower_with_extensions(
    module: Module, extend: Callable[[ExtensionPoint, Module], Module]
) -> Module:
    """Lower a module from the loop stage as `lower_to_flat` does, and replace it at each extension point by
    what `extend` returns, a valid module that fulfills `require_contents` of the point.

    >>> from gossamer_testkit.examples import program
    >>> names = []
    >>> def keep(point, module):
    ...     names.append(point.name)
    ...     return module
    >>> flat = lower_with_extensions(program("for i in T.serial(n): Y[i] = X[i]"), keep)
    >>> flat.stage, names == [*EXTENSION_POINTS], names[:2]
    ('flat', True, ['before lower_blocks', 'after lower_blocks'])
    """

    def run_extended(record: PassRecord, module: Module) -> Module:
        module = _extend(module, f"before {record.name}", extend)
        module = record.function(module)
        return _extend(module, f"after {record.name}", extend)

    return run_pipeline(module, _TO_FLAT, around=run_extended)


def _extend(
    module: Module, name: str, extend: Callable[[ExtensionPoint, Module], Module]
) -> Module:
    point = EXTENSION_POINTS.get(name)
    return module if point is None else extend(point, module)
