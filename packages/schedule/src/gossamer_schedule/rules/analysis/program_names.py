"""The names of a program when the steps of its schedule apply, at the loop stage.

A rule addresses loops, blocks and buffers before they exist, by the names that primitives and lowering will
give them. A name that is taken gets a number. `TraceBuilder` numbers those of primitives in the same way, but
those of lowering it cannot: a program that takes one of these, and whose schedule addresses it, gets none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from gossamer_ir.core.lowered_names import data_name, indices_name, indptr_name, words_name
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Function, Module, SparseBuffer
from gossamer_ir.traversal.names import names_in
from gossamer_support.as_tuple import as_tuple
from gossamer_support.identity_cache import memoize_by_identity

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@memoize_by_identity
def loop_stage_names(module: Module) -> frozenset[str]:
    """Return the names of a coordinate module that are still taken at the loop stage: all but those of axes
    and sparse buffers."""
    return frozenset(
        name
        for function in module.functions
        for name in names_in(replace(function, axes=(), buffers=_ordinary_buffers(function)))
    )


def addresses_taken_names(steps: Iterable[Step], module: Module) -> bool:
    """Return whether steps address a buffer by a name of lowering that the program takes."""
    taken = {name for function in module.functions for name in names_in(function)}
    taken &= {name for function in module.functions for name in _lowered_names(function)}
    return bool(taken) and any(not taken.isdisjoint(_identifiers_of(step)) for step in steps)


def _ordinary_buffers(function: Function) -> tuple[object, ...]:
    return tuple(buffer for buffer in function.buffers if not isinstance(buffer, SparseBuffer))


def _lowered_names(function: Function) -> Iterator[str]:
    """Yield the names that lowering gives to the arrays of axes and sparse buffers."""
    for axis in function.axes:
        yield from (indptr_name(axis.name), indices_name(axis.name), words_name(axis.name))
    for buffer in function.buffers:
        yield data_name(buffer.name)


def _identifiers_of(step: Step) -> set[str]:
    """Return the identifiers in the arguments of a step, also those in expressions."""
    values = map(as_tuple, step.args.values())
    texts = (text for value in values for text in value if isinstance(text, str))
    return {name for text in texts for name in _IDENTIFIER.findall(text)}
