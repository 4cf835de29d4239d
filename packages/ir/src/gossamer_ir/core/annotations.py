"""Annotations that control how a function is compiled."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.nodes import Block, Function, Iteration

PREPROCESS = "preprocess"
"""On an iteration or block: it depends only on index arrays and on operands that rarely change.
`extract_inspector` moves it to a separate kernel (the inspector), which runs once for many executions."""
COMPOSABLE = "composable"
"""On a function of the coordinate stage: its iterations are parts of one computation. Elements are
initialized before the first part only; each part accumulates into what the earlier ones left."""
CHECK_INDEX_ARRAYS = "check_index_arrays"
"""On the entry function: the kernel tests its index arrays itself, each block of rows before it is computed,
where the pass `check_index_arrays` can do so. Callers then need not check them."""


def is_preprocess(node: Block | Iteration) -> bool:
    """Return whether a block or iteration is annotated with `PREPROCESS`."""
    return bool(dict(node.annotations).get(PREPROCESS, False))


def is_composable(function: Function) -> bool:
    """Return whether a function is annotated with `COMPOSABLE`."""
    return bool(dict(function.annotations).get(COMPOSABLE, False))


def without_annotation(function: Function, key: str) -> Function:
    """Return the function without an annotation; the same object if it does not have this key.

    >>> without_annotation(Function("f", (), (), annotations=((COMPOSABLE, 1),)), COMPOSABLE).annotations
    ()
    """
    kept = tuple(item for item in function.annotations if item[0] != key)
    same = len(kept) == len(function.annotations)
    return function if same else replace(function, annotations=kept)
