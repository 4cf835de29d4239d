"""Kernels that find out what an axis needs to know about all elements: the attribute queries of PLDI 2020."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import run_kernel
from gossamer_formats.conversion.by_kernels.kernels.loop_nest import Tail
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_ir.nodes import Stmt


def run_query(
    state: BuildState,
    stmts: Sequence[Stmt],
    arguments: Mapping[str, Any],
    *,
    before: Sequence[Stmt] = (),
    after: Sequence[Stmt] = (),
    tail: Tail | None = None,
) -> None:
    """Run a kernel with statements for each element, others before and after the loops, and one after some
    inner loops.

    Raises `NotDirectError` if there may be only one kernel.
    """
    # Each kernel would compare all values with zero again: elements that are left out are collected first.
    if state.requirements.needs_one_kernel:
        raise NotDirectError("a query needs a kernel of its own")
    loops = state.loop.around([*state.elements.stmts, *stmts], tail)
    body = [*state.elements.starts, *before, *loops, *after]
    run_kernel(state.recorder, body, {**state.arguments.by_name, **arguments})
