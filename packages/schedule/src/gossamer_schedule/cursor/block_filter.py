"""The block filter of a function, which selects the blocks that look-ups return."""

from __future__ import annotations

from gossamer_ir.core.annotations import BLOCK_FILTER
from gossamer_ir.nodes import Block, Function


def filter_of(function: Function) -> str | None:
    """Return the annotation key that blocks must have, or None if the function has no filter."""
    key = dict(function.annotations).get(BLOCK_FILTER)
    return key if isinstance(key, str) else None


def is_selected(block: Block, function: Function) -> bool:
    """Return whether the filter of a function, if there is one, selects a block.

    >>> from gossamer_testkit.examples import SCALE
    >>> function = SCALE.functions[0]
    >>> is_selected(function.body[0].body[0], function)
    True
    """
    key = filter_of(function)
    return key is None or any(name == key for name, _ in block.annotations)
