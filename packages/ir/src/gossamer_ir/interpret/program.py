"""The entry point of the interpreter; functions are translated when they are first called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gossamer_ir.errors import ArgumentError
from gossamer_ir.interpret.arguments import bind_arguments
from gossamer_ir.interpret.buffers import open_buffers
from gossamer_ir.interpret.expressions.expression_translators import EXPR_TRANSLATIONS
from gossamer_ir.interpret.frame import Exec, Frame
from gossamer_ir.interpret.statements.statement_translators import STMT_TRANSLATIONS
from gossamer_ir.interpret.translator import Translator, call_in_order
from gossamer_ir.nodes import Function, Module
from gossamer_support.identity_cache import memoize_by_identity
from gossamer_support.items_by_name import items_by_name
from gossamer_support.typed_calls import typed


class InterpretedKernel:
    """A module on a machine with this `vscale`, translated once for many runs; parallel loops run in
    `chunks` parts."""

    exprs = EXPR_TRANSLATIONS
    stmts = STMT_TRANSLATIONS

    def __init__(self, module: Module, *, vscale: int, chunks: int) -> None:
        self.module = module
        self.vscale = vscale
        self.chunks = chunks
        self._functions = items_by_name(module.functions)
        self._translated: dict[str, tuple[Translator, Exec]] = {}

    def function(self, name: str) -> Function:
        """Return a function by name; raises `ArgumentError` if there is none."""
        if name not in self._functions:
            raise ArgumentError(
                "interpret.function",
                f"The module has no function '{name}'.",
                hint=f"It has {', '.join(self._functions)}.",
            )
        return self._functions[name]

    def run(self, arguments: Mapping[str, Any], function: str | None = None) -> None:
        """Run a function (the entry by default) with arguments by name; see `run`."""
        chosen = self.function(function if function is not None else self.module.entry)
        with np.errstate(all="ignore"):
            self.call(chosen.name, bind_arguments(chosen, arguments))

    def call(self, name: str, arguments: list[Any], *, is_kernel: bool = False) -> None:
        """Run a function; `arguments` has one value or array for each parameter. `is_kernel` if it was
        launched."""
        translator, body = self._translate(name)
        values: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        for param, argument in zip(translator.function.params, arguments, strict=True):
            (arrays if param.dtype == "handle" else values)[param.name] = argument
        frame = Frame(values, arrays)
        frame.grid.is_kernel = is_kernel
        open_buffers(frame, translator)
        body(frame)

    def _translate(self, name: str) -> tuple[Translator, Exec]:
        if name not in self._translated:
            translator = Translator(self, self.function(name))
            body = translator.body(translator.function.body)
            self._translated[name] = translator, call_in_order((*(translator.inits or ()), body))
        return self._translated[name]


@typed
def run(
    module: Module,
    arguments: Mapping[str, Any],
    function: str | None = None,
    *,
    vscale: int = 1,
    chunks: int = 1,
) -> None:
    """Run a function of a module of any stage (the entry by default) and modify arrays in place.

    `arguments` has an array for every handle parameter (flat, or shaped by the fixed dimensions;
    bfloat16 as uint16) and an int or float for every scalar one. `vscale` is the machine's, for
    scalable vectors. Parallel loops are cut into `chunks` parts, which run from the last to the first, so
    that a dependence between them gives a wrong result. Buffers that the function allocates are filled
    with garbage (NaN for floats), so that reading an uninitialized element gives a wrong result.

    Raises `ArgumentError` if the arguments do not match the parameters, or an array that the program stores
    to shares memory with an index array of an axis; `InterpreterError` if the program accesses memory out of
    bounds, and `GuardFailed` if a guard fails.

    >>> import numpy as np
    >>> from gossamer_ir.nodes import Buffer, Const, Function, Module, Param, Store
    >>> zero = Const("int64", "0")
    >>> x = Buffer("X", (Const("int64", "1"),), "float32", handle="x")
    >>> body = (Store("X", (zero,), Const("float32", "2.5")),)
    >>> main = Function("main", (Param("x", "handle"),), body, buffers=(x,))
    >>> array = np.zeros(1, np.float32)
    >>> run(Module("flat", (main,), "main"), {"x": array})
    >>> float(array[0])
    2.5
    """
    _require_positive("vscale", vscale)
    _require_positive("chunks", chunks)
    kernels = _kernels_of(module)
    if (vscale, chunks) not in kernels:
        kernels[vscale, chunks] = InterpretedKernel(module, vscale=vscale, chunks=chunks)
    kernels[vscale, chunks].run(arguments, function)


@memoize_by_identity
def _kernels_of(module: Module) -> dict[tuple[int, int], InterpretedKernel]:
    """Return the kernels of a module, by `vscale` and chunks. Most modules run several times, and translating
    one takes as long as a short run."""
    return {}


def _require_positive(name: str, value: int) -> None:
    if value < 1:
        raise ArgumentError("interpret.option", f"{name} is {value}; expected at least 1.")
