"""Detects races while the interpreter runs: records every access, independently of the proofs of
schedules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from gossamer_ir.analysis.statements.atomic_accumulation import is_atomic, shared_names
from gossamer_ir.interpret.expressions.expression_translators import EXPR_TRANSLATIONS
from gossamer_ir.interpret.frame import Eval, Exec, Frame
from gossamer_ir.interpret.program import InterpretedKernel
from gossamer_ir.interpret.statements.statement_translators import STMT_TRANSLATIONS
from gossamer_ir.interpret.translator import Translator
from gossamer_ir.nodes import Block, Expr, For, Load, Module, Store
from gossamer_ir.traversal.walk import walk

AT_ONCE = ("parallel", "thread_binding", "vectorized")
"""The kinds of loops whose iterations may run at once."""


class Race(Exception):
    """Two parallel iterations access one element, and one of them writes it."""


def require_no_race(module: Module, arguments: Mapping[str, Any], *, vscale: int = 1) -> None:
    """Raise `Race` if a run of a module of the position or loop stage has one, and `InterpreterError` if the
    run stops."""
    if module.stage not in ("position", "loop"):
        return
    (function,) = module.functions
    if not any(_is_at_once(node) for node in walk(function)):
        return
    _Watched(module, vscale=vscale, chunks=1).run(arguments)


def _is_at_once(node: Any) -> bool:
    """True for iterations that may share elements: threads or lanes that combine private sums, and iterations
    with atomic updates only."""
    if not isinstance(node, For) or node.kind not in AT_ONCE:
        return False
    if is_atomic(node) and shared_names(node) is None:
        return False
    blocks = (inner for inner in walk(node) if isinstance(inner, Block))
    is_combined = any(key == "reassociates" for block in blocks for key, _ in block.annotations)
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
        accessed = self._written if is_store else self._read
        accessed.setdefault(element, at)


def _for(node: For, translator: Translator) -> Exec:
    if not _is_at_once(node):
        return STMT_TRANSLATIONS[For](node, translator)
    log = _Log(node)
    translator.program.logs.append(log)
    run = STMT_TRANSLATIONS[For](node, translator)
    translator.program.logs.pop()

    def watched(frame: Frame) -> None:
        log.begin()
        run(frame)
        log.is_running = False
        frame.values.pop(node.var, None)

    return watched


def _load(node: Load, translator: Translator) -> Eval:
    return _logged(node, translator, EXPR_TRANSLATIONS[Load], is_store=False)


def _store(node: Store, translator: Translator) -> Exec:
    return _logged(node, translator, STMT_TRANSLATIONS[Store], is_store=True)


class _Operands:
    """The indices and the predicate of an access, with the values that they had when it last ran."""

    def __init__(self, node: Load | Store, translator: Translator) -> None:
        self._indices, self._predicate = node.indices, node.predicate
        self._values: dict[int, Any] = {}
        predicates = () if node.predicate is None else (node.predicate,)
        self.recording = {
            id(operand): self._recorded(operand, translator.expr(operand))
            for operand in (*node.indices, *predicates)
        }

    def _recorded(self, operand: Expr, run: Eval) -> Eval:
        def recorded(frame: Frame) -> Any:
            value = self._values[id(operand)] = run(frame)
            return value

        return recorded

    def begin(self) -> None:
        self._values.clear()

    def touched(self) -> tuple[Any, ...] | None:
        """The indices of the elements that were accessed; None if there were none."""
        if any(id(index) not in self._values for index in self._indices):
            return None
        mask = None if self._predicate is None else self._values.get(id(self._predicate))
        return _touched(tuple(self._values[id(index)] for index in self._indices), mask)


def _logged(node: Load | Store, translator: Translator, translate: Any, *, is_store: bool) -> Any:
    program = translator.program
    logs, name = tuple(program.logs), node.buffer
    if not logs:
        return translate(node, translator)
    # The access records its operands as it evaluates them. To evaluate them again, for the log only, would
    # double the work at each level of nested loads.
    operands = _Operands(node, translator)
    outer, program.recording = program.recording, {**program.recording, **operands.recording}
    run = translate(node, translator)
    program.recording = outer

    def watched(frame: Frame) -> Any:
        # Not in an init that moves out of the loop: it gives an element one value.
        running = [log for log in logs if log.is_running and log.loop.var in frame.values]
        operands.begin()
        result = run(frame)
        touched = operands.touched() if running else None
        if touched is not None:
            for log in running:
                log.add(frame, name, touched, is_store=is_store)
        return result

    return watched


def _reusing_recorded(translate: Any) -> Any:
    """Translate expressions, except the operands of accesses that are being translated."""

    def translated(node: Expr, translator: Translator) -> Eval:
        recorded = translator.program.recording.get(id(node))
        return translate(node, translator) if recorded is None else recorded

    return translated


def _touched(indices: tuple[Any, ...], mask: Any) -> tuple[Any, ...] | None:
    """The indices of unmasked lanes; None if all are unmasked."""
    if mask is None:
        return indices
    if any(isinstance(index, np.ndarray) for index in indices):
        return tuple(index[mask] if isinstance(index, np.ndarray) else index for index in indices)
    return indices if mask else None


class _Watched(InterpretedKernel):
    """A view that records accesses; `logs` are those of the enclosing loops of the statement, and `recording`
    the operands of the accesses that contain the expression."""

    exprs: ClassVar = {
        kind: _reusing_recorded(translate)
        for kind, translate in {**EXPR_TRANSLATIONS, Load: _load}.items()
    }
    stmts: ClassVar = {**STMT_TRANSLATIONS, For: _for, Store: _store}

    def __init__(self, module: Module, *, vscale: int, chunks: int) -> None:
        super().__init__(module, vscale=vscale, chunks=chunks)
        self.logs: list[_Log] = []
        self.recording: dict[int, Eval] = {}
