"""The axes of threads: those of the blocks of a launch, and those of the threads of a block."""

from __future__ import annotations

from typing import TypeGuard

from gossamer_ir.nodes import ThreadTag


def is_block_axis(tag: str | None) -> TypeGuard[ThreadTag]:
    """Return whether a loop is bound to an axis of blocks; None is the tag of a loop that is not bound.

    >>> is_block_axis("blockIdx.y"), is_block_axis("threadIdx.x"), is_block_axis(None)
    (True, False, False)
    """
    return tag is not None and tag.startswith("blockIdx.")


def is_thread_axis(tag: str | None) -> TypeGuard[ThreadTag]:
    """Return whether a loop is bound to an axis of the threads of a block.

    >>> is_thread_axis("threadIdx.x"), is_thread_axis("blockIdx.x"), is_thread_axis(None)
    (True, False, False)
    """
    return tag is not None and tag.startswith("threadIdx.")
