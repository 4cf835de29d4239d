"""The interpreter with a limit of steps, because the output of a broken compiler may not terminate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from gossamer_ir.interpret.expressions.expression_translators import EXPR_TRANSLATIONS
from gossamer_ir.interpret.frame import Eval, Exec, Frame
from gossamer_ir.interpret.memory.values import garbage_array
from gossamer_ir.interpret.memory.views import View, ViewIndices
from gossamer_ir.interpret.program import InterpretedKernel
from gossamer_ir.interpret.statements.statement_translators import STMT_TRANSLATIONS
from gossamer_ir.interpret.translator import Translator
from gossamer_ir.nodes import Allocate, Module, Search
from tests.fuzzing.oracle.coordinate_tables import Undecided

MAX_STMTS = 200_000


class TooManySteps(Exception):
    """The run exceeded the limit of steps."""


def run_limited(
    module: Module, arguments: Mapping[str, Any], *, most: int = MAX_STMTS, chunks: int = 1,
    is_strict: bool = False,
) -> None:  # fmt: skip
    """As `gossamer_ir.interpret.run`; raises `TooManySteps`, and where it `is_strict`, `Undecided` for an
    element that nothing was stored to."""
    program = (_Strict if is_strict else _Limited)(module, vscale=1, chunks=chunks)
    program.left = most
    program.run(arguments)


def _counted(make: Callable[[Any, Translator], Exec]) -> Callable[[Any, Translator], Exec]:
    def translate(node: Any, translator: Translator) -> Exec:
        run, program = make(node, translator), translator.program

        def counted(frame: Frame) -> None:
            program.left -= 1  # type: ignore[attr-defined]  # of _Limited
            if program.left < 0:  # type: ignore[attr-defined]  # of _Limited
                raise TooManySteps
            run(frame)

        return counted

    return translate


class _Limited(InterpretedKernel):
    left: int
    stmts: ClassVar = {kind: _counted(make) for kind, make in STMT_TRANSLATIONS.items()}


class _Known(View):
    """A view that records which elements were stored to."""

    __slots__ = ("known",)

    def read(self, indices: ViewIndices) -> Any:
        if not self.known[self.locate(indices)]:
            raise Undecided("an element that nothing was stored to")
        return super().read(indices)

    def write(self, indices: ViewIndices, value: Any) -> None:
        super().write(indices, value)
        self.known[self.locate(indices)] = True

    def window(self, prefix: ViewIndices, begin: int, end: int) -> Any:
        window = super().window(prefix, begin, end)
        if begin < end and not self.known[prefix][begin:end].all():
            raise Undecided("a search among what nothing was stored to")
        return window


def _allocate(node: Allocate, translator: Translator) -> Exec:
    buffer, shape = node.buffer, translator.exprs(node.buffer.shape)

    def run(frame: Frame) -> None:
        sizes = tuple(max(0, int(size)) for size in shape(frame))
        view = _Known(buffer.name, garbage_array(sizes, buffer.dtype), dtype=buffer.dtype)
        view.known = np.zeros(sizes, bool)
        frame.views[buffer.name] = view

    return run


def _search(node: Search, translator: Translator) -> Eval:
    search, prefix = EXPR_TRANSLATIONS[Search](node, translator), translator.exprs(node.prefix)
    begin, end = translator.expr(node.begin), translator.expr(node.end)

    def run(frame: Frame) -> Any:
        first, last = int(begin(frame)), int(end(frame))
        window = frame.views[node.buffer].window(prefix(frame), first, last).tolist()
        if window != sorted(window):
            raise Undecided("a search among what is not sorted")
        return search(frame)

    return run


class _Strict(_Limited):
    exprs: ClassVar = {**EXPR_TRANSLATIONS, Search: _search}
    stmts: ClassVar = {**_Limited.stmts, Allocate: _allocate}
