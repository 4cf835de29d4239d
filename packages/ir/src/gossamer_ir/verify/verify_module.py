"""The verification of a module, by the rules of its stage."""

from __future__ import annotations

from gossamer_ir.errors import Diagnostic, VerifyError
from gossamer_ir.nodes import Function, Module
from gossamer_ir.verify.context import ROOT_PLACE, VerifyContext
from gossamer_ir.verify.functions import check_function
from gossamer_ir.verify.stages.flat import check_calls
from gossamer_ir.verify.stages.node_checks import RULES_BY_STAGE
from gossamer_support.identity_cache import memoize_by_identity
from gossamer_support.typed_calls import typed


@typed
@memoize_by_identity
def diagnostics(module: Module) -> tuple[Diagnostic, ...]:
    """Return all diagnostics of a module, in order; empty if the module is valid.

    >>> [diagnostic.code for diagnostic in diagnostics(Module("flat", (), "main"))]
    ['verify.module.entry']
    """
    reported: list[Diagnostic] = []
    stage = RULES_BY_STAGE.get(module.stage)
    if stage is None:
        message = f"'{module.stage}' is not a stage; expected one of {', '.join(RULES_BY_STAGE)}."
        return (Diagnostic("verify.module.stage", message, ("stage",)),)
    functions: dict[str, Function] = {}
    contexts: dict[str, VerifyContext] = {}
    names = VerifyContext(stage, functions, reported)
    for number, function in enumerate(module.functions):
        names.define_name(function.name, ROOT_PLACE.down("functions", number).down("name"))
        functions.setdefault(function.name, function)
    if module.entry not in functions:
        message = f"There is no function '{module.entry}' to use as entry."
        reported.append(Diagnostic("verify.module.entry", message, ("entry",)))
    for number, function in enumerate(module.functions):
        context = VerifyContext(stage, functions, reported)
        check_function(context, function, ROOT_PLACE.down("functions", number))
        contexts.setdefault(function.name, context)
    if stage.name == "flat":
        check_calls(contexts, module)
    return tuple(reported)


@typed
def verify(module: Module) -> Module:
    """Return the module itself, if it is valid.

    Raises `VerifyError` otherwise, with all diagnostics and the printed module with carets.

    >>> from gossamer_ir.script import parse_module
    >>> module = parse_module('''
    ... @T.prim_func
    ... def fill(x: T.handle, n: T.int64) -> None:
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     for i in T.serial(n):
    ...         X[i, i] = 1.0
    ... ''')
    >>> verify(module)
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.VerifyError: 'X' has 1 dimension, but 2 indices are given. [verify.index.count]
    fill:9:
                X[i, i] = 1.0
                ^^^^^^^^^^^^^
    """
    reported = diagnostics(module)
    if not reported:
        return module
    # Imported late: only an error needs the printer.
    from gossamer_ir.verify.diagnostic_places import show_places

    raise VerifyError.from_diagnostics(reported, show_places(module, reported))
