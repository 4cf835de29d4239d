"""Detects races while the interpreter runs: records every access, independently of the proofs of
schedules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from gossamer_ir.analysis.atomic_accumulation import is_atomic, shared_names
from gossamer_ir.interpret.arguments import bind_arguments
from gossamer_ir.interpret.expressions import EXPRESSIONS
from gossamer_ir.interpret.frame import Eval, Exec, Frame
from gossamer_ir.interpret.program import InterpretedProgram
from gossamer_ir.interpret.statements import STATEMENTS
from gossamer_ir.interpret.translator import Translator
from gossamer_ir.nodes import Block, For, Load, Module, Store
from gossamer_ir.traversal.walk import walk

AT_ONCE = ("parallel", "thread_binding", "vectorized")
"""The kinds of loops whose iterations may run at once."""


class Race(Exception):
    """Two parallel iterations access one element, and one of them writes it."""


def require_no_race(module: Module, arguments: Mapping[str, Any]) -> None:
    """Raise `Race` if a run of a module of the position or loop stage has one, and `InterpreterError` if the
    run stops."""
    if module.stage not in ("position", "loop"):
        return
    (function,) = module.functions
    if not any(_is_at_once(node) for node in walk(function)):
        return
    program = _Watched(module, vscale=1, chunks=1)
    with np.errstate(all="ignore"):
        program.call(function.name, bind_arguments(function, arguments))


def _is_at_once(node: Any) -> bool:
    """True for iterations that may share elements: threads or lanes that combine private sums, and iterations
    with atomic updates only."""
    if not isinstance(node, For) or node.kind not in AT_ONCE:
        return False
    if is_atomic(node) and shared_names(node) is None:
        return False
    blocks = (found for found in walk(node) if isinstance(found, Block))
    is_combined = any(key == "reassociates" for found in blocks for key, _ in found.annotations)
    return node.kind == "parallel" or not is_combined


class _Log:
    """The iteration that accessed an element first, and whether another one did. Arrays are kept alive, so
    that no other array reuses their memory."""

    def __init__(self, loop: For) -> None:
        self.loop, self.is_running = loop, False
        self._shared = shared_names(loop) or ()

    def begin(self) -> None:
        self.is_running = True
        self._written: dict[tuple[int, Any], int] = {}
        self._read: dict[tuple[int, Any], int] = {}
        self._kept: dict[int, Any] = {}

    def add(self, frame: Frame, name: str, indices: tuple[Any, ...], *, is_store: bool) -> None:
        if name in self._shared:
            return
        if any(isinstance(index, np.ndarray) for index in indices):
            for lane in zip(*np.broadcast_arrays(*indices), strict=True):
                self.add(frame, name, lane, is_store=is_store)
            return
        view, at = frame.views[name], int(frame.values[self.loop.var])
        place = view.locate(indices)
        if place is None:  # beyond a fiber: what is read there is the fill value
            return
        self._kept[id(view.array)] = view.array
        element = id(view.array), tuple(map(int, place))
        others = [self._written, self._read] if is_store else [self._written]
        for touched in others:
            if touched.get(element, at) != at:
                raise Race(
                    f"iterations {touched[element]} and {at} of loop '{self.loop.var}' touch "
                    f"{name}[{', '.join(map(str, indices))}]"
                )
        own = self._written if is_store else self._read
        own.setdefault(element, at)


def _for(node: For, translator: Translator) -> Exec:
    if not _is_at_once(node):
        return STATEMENTS[For](node, translator)
    log = _Log(node)
    translator.program.logs.append(log)
    run = STATEMENTS[For](node, translator)
    translator.program.logs.pop()

    def watched(frame: Frame) -> None:
        log.begin()
        run(frame)
        log.is_running = False
        frame.values.pop(node.var, None)

    return watched


def _load(node: Load, translator: Translator) -> Eval:
    return _logged(node, translator, EXPRESSIONS[Load](node, translator), is_store=False)


def _store(node: Store, translator: Translator) -> Exec:
    return _logged(node, translator, STATEMENTS[Store](node, translator), is_store=True)


def _logged(node: Load | Store, translator: Translator, run: Any, *, is_store: bool) -> Any:
    logs = tuple(translator.program.logs)
    if not logs:
        return run
    name, indices = node.buffer, translator.exprs(node.indices)
    predicate = translator.optional(node.predicate)

    def watched(frame: Frame) -> Any:
        # Not in an init that moves out of the loop: it gives an element one value.
        running = [log for log in logs if log.is_running and log.loop.var in frame.values]
        # Before it runs: a store may change the element from which its index was read.
        touched = None
        if running:
            touched = _touched(indices(frame), None if predicate is None else predicate(frame))
        result = run(frame)
        if touched is not None:
            for log in running:
                log.add(frame, name, touched, is_store=is_store)
        return result

    return watched


def _touched(indices: tuple[Any, ...], mask: Any) -> tuple[Any, ...] | None:
    """The indices of unmasked lanes; None if all are unmasked."""
    if mask is None:
        return indices
    if any(isinstance(index, np.ndarray) for index in indices):
        return tuple(index[mask] if isinstance(index, np.ndarray) else index for index in indices)
    return indices if mask else None


class _Watched(InterpretedProgram):
    """A view that records accesses; `logs` are those of the enclosing loops of the statement."""

    expressions: ClassVar = {**EXPRESSIONS, Load: _load}
    statements: ClassVar = {**STATEMENTS, For: _for, Store: _store}

    def __init__(self, module: Module, *, vscale: int, chunks: int) -> None:
        super().__init__(module, vscale=vscale, chunks=chunks)
        self.logs: list[_Log] = []
