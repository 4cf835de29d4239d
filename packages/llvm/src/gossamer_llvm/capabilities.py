"""The capabilities of every backend that compiles with the emitter, on all targets.

They are here and not beside the table of emitters: a backend states them when it is found, before anything is
compiled, and neither the emitter nor LLVM should be imported for that.
"""

from __future__ import annotations

from gossamer_ir.core.dtypes import NUMBERS
from gossamer_ir.core.math_functions import INSTRUCTIONS

_CONSTRUCTS = (
    "while", "guard", "parallel", "launch", "prefetch", "atomic", "vectors.fixed", "scope.local",
)  # fmt: skip

EMITTED_CAPABILITIES = frozenset(
    [
        *(f"dtype.{name}" for name in NUMBERS),
        *(f"call.{name}" for name in INSTRUCTIONS),
        *_CONSTRUCTS,
    ]
)
"""A backend adds those of its targets, such as `vectors.scalable`."""
