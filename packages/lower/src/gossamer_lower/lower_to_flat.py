"""The pipeline: the passes from the loop stage to the flat stage, one after the other."""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.nodes import Module
from gossamer_lower.lowering_pass import CONTENTS, PassRecord, lowering_pass, record_of
from gossamer_lower.passes import ORDERED_PASSES

LISTED: tuple[PassRecord, ...] = tuple(
    record for record in map(record_of, ORDERED_PASSES) if record is not None
)
"""The records of `ORDERED_PASSES`, in this order."""

_TO_FLAT = tuple(
    record for record in LISTED if not record.on_request and set(record.takes) <= {"loop", "flat"}
)

FLAT_PASSES: tuple[Callable[[Module], Module], ...] = tuple(record.function for record in _TO_FLAT)
"""The passes that `lower_to_flat` runs, in this order."""


@lowering_pass(takes=("loop",), gives="flat", removes=tuple(CONTENTS), on_request=True)
def lower_to_flat(module: Module, *, verify_each: bool = False) -> Module:
    """Lower a module from the loop stage to the flat stage, which backends compile.

    Raises the errors of the passes. With `verify_each`, raises `InternalError` after the first pass whose
    result is invalid or still has contents that the pass removes.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> flat = lower_to_flat(program("for i in T.serial(n): Y[i] = X[P[i]]"))
    >>> flat.stage
    'flat'
    >>> print(body_text(flat))
    for i in T.serial(n):
        T.guard(P[i] >= 0 and P[i] < n, X)
        Y[i] = X[P[i]]
    """
    for record in _TO_FLAT:
        module = record.function(module)
        if verify_each:
            record.require_kept_promise(module)
    return module
