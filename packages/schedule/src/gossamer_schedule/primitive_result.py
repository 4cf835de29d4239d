"""The result of a primitive."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Module


class PrimitiveResult(msgspec.Struct, frozen=True):
    """The new module, the names that the primitive made or moved, and its step of the trace.

    `step` holds all arguments that differ from their defaults, so that `replay` repeats the step. `forwards`
    maps each name that is no longer used to the names that replace it. `values` are those that a sampling
    step has drawn.

    >>> from gossamer_schedule import split
    >>> from gossamer_testkit.examples import SCALE
    >>> found = split(SCALE, "i", factors=(None, 8))
    >>> found.names
    ('i_0', 'i_1')
    >>> found.forwards
    {'i': ('i_0', 'i_1')}
    >>> found.step
    Step(op='split', args={'loop': 'i', 'factors': (None, 8)})
    """

    module: Module
    names: tuple[str, ...]
    step: Step
    forwards: Mapping[str, tuple[str, ...]] = {}
    values: dict[str, int | str | None] = {}
