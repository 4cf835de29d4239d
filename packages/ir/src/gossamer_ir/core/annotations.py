"""Annotations: the one table of the keys that mean something to primitives, passes or backends.

A program may have other keys too, which are kept for readers and block filters, and change nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from gossamer_ir.nodes import Block, For, Function, Iteration

N = TypeVar("N", Block, For, Function, Iteration)

ATOMIC = "atomic"
BLOCK_FILTER = "block_filter"
CHECK_INDEX_ARRAYS = "check_index_arrays"
COMPOSABLE = "composable"
EQUAL_INDICES = "equal_indices"
HORIZONTAL_FUSE = "horizontal_fuse"
INTRINSIC = "intrinsic"
PEEL = "peel"
PENDING = "pending"
PIPELINE = "pipeline"
PREPROCESS = "preprocess"
REASSOCIATES = "reassociates"
REMAINDER = "remainder"
UNSAFE = "unsafe"
WINDOW = "window"

AnnotatedNode: TypeAlias = Literal["function", "iteration", "block", "loop"]


class AnnotationKind(msgspec.Struct, frozen=True):
    """The meaning of the annotation with a key."""

    says: str
    on: tuple[AnnotatedNode, ...]
    """The nodes on which it has an effect."""
    value: str
    """The type of its value."""
    writers: str | None
    """The primitives that write it; None if users do, in programs or by `annotate`."""
    readers: str
    """The passes and primitives that act on it."""
    elsewhere: str | None = None
    """The hint of the error for a node on which it has no effect; None if it is kept there."""
    records: str | None = None
    """The fact that it records about a node `{name}`; without it, later steps would be wrong."""


ANNOTATIONS: Mapping[str, AnnotationKind] = {
    ATOMIC: AnnotationKind(
        "The iterations accumulate into shared elements: stores to the buffers that it names (true: all from "
        "outside the loop) become atomic.",
        on=("loop",),
        value="names of buffers, separated by commas, or true",
        writers="parallel",
        readers="lower_buffers, lower_atomics",
        records="The iterations of loop '{name}' share elements, which they accumulate atomically.",
    ),
    BLOCK_FILTER: AnnotationKind(
        "Look-ups find only blocks that have an annotation with this key.",
        on=("function",),
        value="a key",
        writers="set_block_filter",
        readers="get_blocks, get_child_blocks, get_producers, get_consumers",
    ),
    CHECK_INDEX_ARRAYS: AnnotationKind(
        "The kernel tests its index arrays itself, each block of rows before it is computed; callers need "
        "not check them.",
        on=("function",),
        value="bool",
        writers=None,
        readers="insert_index_array_checks",
    ),
    COMPOSABLE: AnnotationKind(
        "The iterations of the function are parts of one computation at the coordinate stage: elements are "
        "initialized before the first part only.",
        on=("function",),
        value="bool",
        writers=None,
        readers="lower_iterations",
        elsewhere="Use it on a function of the coordinate stage, where lower_iterations handles it.",
    ),
    EQUAL_INDICES: AnnotationKind(
        "The copies of an unrolled loop inside often gather by equal indices: a gather takes the elements of "
        "the one before, if all its indices are equal.",
        on=("loop",),
        value="bool",
        writers=None,
        readers="share_gathers",
    ),
    HORIZONTAL_FUSE: AnnotationKind(
        "Of published programs; it has no effect.",
        on=(),
        value="any",
        writers=None,
        readers="none",
        elsewhere="Write the parts as loops of one function, and make each parallel.",
    ),
    INTRINSIC: AnnotationKind(
        "An intrinsic computes the block.",
        on=("block",),
        value="the name and the digest of the intrinsic",
        writers="tensorize",
        readers="none: a record",
    ),
    PEEL: AnnotationKind(
        "The last iteration runs apart from the others.",
        on=("loop",),
        value='"last"',
        writers=None,
        readers="peel_last_iteration",
    ),
    PENDING: AnnotationKind(
        "So many earlier iterations may still read the stages of the loop: copies are that many iterations "
        "less ahead.",
        on=("loop",),
        value="a number",
        writers="none: code generation for warpgroups",
        readers="pipeline_loops",
    ),
    PIPELINE: AnnotationKind(
        "The copies at the beginning of an iteration may run ahead of the rest of its body, up to this "
        "number minus one iterations.",
        on=("loop",),
        value="the number of stages",
        writers="pipeline",
        readers="lower_blocks",
    ),
    PREPROCESS: AnnotationKind(
        "It depends only on index arrays and on operands that rarely change, so that a kernel of its own, "
        "the inspector, can compute it once for many executions.",
        on=("iteration", "block"),
        value="bool",
        writers=None,
        readers="extract_inspector, use_inspector_results",
        elsewhere="Use it on an iteration or block, which extract_inspector moves to another kernel.",
    ),
    REASSOCIATES: AnnotationKind(
        "A schedule combines the terms in an order other than the program's.",
        on=("iteration", "block"),
        value="true",
        writers="reorder or vectorize",
        readers="none: a record",
        records="The terms of block '{name}' are combined in another order than in the program.",
    ),
    REMAINDER: AnnotationKind(
        "How the remainder of a vectorized loop runs.",
        on=("loop",),
        value="the argument `remainder` of `vectorize`",
        writers="vectorize",
        readers="vectorize_loops",
    ),
    UNSAFE: AnnotationKind(
        "Steps were applied whose preconditions were not proved.",
        on=("function",),
        value="these steps",
        writers="unsafe_parallel, unsafe_reorder or unsafe_vectorize",
        readers="none: a record",
    ),
    WINDOW: AnnotationKind(
        "The lanes of an iteration read elements near each other: a window of this many elements is loaded "
        "once, before the loop, if it contains all of them.",
        on=("loop",),
        value="elements that fill whole cache lines",
        writers=None,
        readers="load_windows",
    ),
}
"""The annotations by key."""


def keys_on(node: AnnotatedNode) -> frozenset[str]:
    """Return the keys that have an effect on a function, an iteration, a block or a loop.

    >>> sorted(keys_on("iteration"))
    ['preprocess', 'reassociates']
    """
    return frozenset(key for key, kind in ANNOTATIONS.items() if node in kind.on)


def is_preprocess(node: Block | Iteration) -> bool:
    """Return whether a block or iteration is annotated with `PREPROCESS`."""
    return bool(dict(node.annotations).get(PREPROCESS, False))


def is_composable(function: Function) -> bool:
    """Return whether a function is annotated with `COMPOSABLE`."""
    return bool(dict(function.annotations).get(COMPOSABLE, False))


def without_annotation(node: N, key: str) -> N:
    """Return a node without an annotation; the same object if it does not have this key.

    >>> without_annotation(Function("f", (), (), annotations=((COMPOSABLE, 1),)), COMPOSABLE).annotations
    ()
    """
    kept = tuple(item for item in node.annotations if item[0] != key)
    return node if len(kept) == len(node.annotations) else replace(node, annotations=kept)
