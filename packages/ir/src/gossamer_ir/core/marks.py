"""Attributes of published programs that say how a function is to be compiled."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.nodes import Block, Function, Iteration

PREPROCESS = "preprocess"
"""On an iteration or block: it depends on index arrays and operands that rarely change, so that
`extract_inspector` makes a kernel of its own of it."""
COMPOSABLE = "composable"
"""On a function of the coordinate stage: its iterations are parts of one computation. Elements are
initialised before the first of them; what each part adds is kept."""


def is_preprocess(node: Block | Iteration) -> bool:
    """Whether a block or iteration is marked as preparing data."""
    return bool(dict(node.annotations).get(PREPROCESS, False))


def is_composable(function: Function) -> bool:
    """Whether the iterations of a function are parts of one computation."""
    return bool(dict(function.annotations).get(COMPOSABLE, False))


def without_mark(function: Function, key: str) -> Function:
    """The function without an annotation; the same one where it has none of this key.

    >>> without_mark(Function("f", (), (), annotations=((COMPOSABLE, 1),)), COMPOSABLE).annotations
    ()
    """
    kept = tuple(item for item in function.annotations if item[0] != key)
    same = len(kept) == len(function.annotations)
    return function if same else replace(function, annotations=kept)
