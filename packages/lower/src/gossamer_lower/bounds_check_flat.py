"""A flat module that a user wrote gets its guards, too."""

from __future__ import annotations

import msgspec

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Atomic, Module
from gossamer_ir.traversal.effects import CALLS
from gossamer_ir.traversal.walk import walk
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_lower.pipeline import lower_to_flat

_FLAT = (*CALLS, Atomic)
"""What a flat function has and a function of the loop stage has not."""


@lowering_pass(takes=("flat",), on_request=True)
def bounds_check_flat(module: Module) -> Module:
    """Guards the accesses of a flat module that are not proved in bounds, as far as it is a function
    that could stand at the loop stage.

    Raises `UnsupportedError` (`lower.flat_guards`) for one with calls, in which accesses follow from
    what stood around them, or with atomic accumulations.

    >>> from gossamer_ir.script import parse_module
    >>> from gossamer_lower.examples import body_text
    >>> before = parse_module('''
    ... @T.prim_func
    ... def f(x: T.handle, n: T.int64) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     X[n] = 1.0
    ... ''')
    >>> print(body_text(bounds_check_flat(before)))
    T.guard(n < n, X)
    X[n] = 1.0
    """
    found = next((node for node in walk(module) if isinstance(node, _FLAT)), None)
    if found is not None:
        raise UnsupportedError(
            "lower.flat_guards",
            f"A flat module with a {type(found).__name__} cannot be given guards, and its accesses "
            "are not proved in bounds.",
            hint="Compile the program of the loop stage that it comes from.",
        )
    return lower_to_flat(msgspec.structs.replace(module, stage="loop"))
