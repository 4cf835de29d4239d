"""Statements of the threads of a device, on a target without instructions for them."""

from __future__ import annotations

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import AsyncCopy, Barrier, CommitGroup, Shuffle, WaitGroup
from gossamer_llvm.emitter.function_emitter import FunctionEmitter


def refuse_host_barrier(_emitter: FunctionEmitter, _node: Barrier) -> None:
    """Raise `UnsupportedError` (`llvm.barrier`) for a barrier."""
    raise _waiting_error("barrier")


def refuse_host_shuffle(_emitter: FunctionEmitter, _node: Shuffle) -> None:
    """Raise `UnsupportedError` (`llvm.barrier`) for a shuffle."""
    raise _waiting_error("shuffle")


def _waiting_error(word: str) -> UnsupportedError:
    return UnsupportedError(
        "llvm.barrier",
        f"A {word} cannot be lowered for a host, which runs the threads of a block one after the other.",
        hint="Compile the module for a GPU, or end the loop over threads where they wait.",
    )


def emit_host_copy(emitter: FunctionEmitter, node: AsyncCopy) -> None:
    """Emit an asynchronous copy as the store that it contains."""
    emitter.body(node.body)


def emit_host_group(_emitter: FunctionEmitter, _node: CommitGroup | WaitGroup) -> None:
    """Emit nothing: copies are complete when they have been emitted."""
