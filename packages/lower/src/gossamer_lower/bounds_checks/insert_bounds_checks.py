"""Inserts a bounds check (`Guard`) for every access that is not proved in bounds.

A guard that fails stops the kernel with the name of the buffer. `with_bounds_checks` says what proofs use.
"""

from __future__ import annotations

from gossamer_ir.nodes import Module
from gossamer_lower.bounds_checks.access_checks import with_bounds_checks
from gossamer_lower.lowering_pass import lowering_pass, map_functions


@lowering_pass(
    takes=("loop",),
    without=("blocks",),
    is_stable=True,
    before={
        "peel_last_iteration": "an access is proved once, not in each copy of its loop",
        "vectorize_loops": "an access is proved with scalar indices",
        "unroll_loops": "an access is proved once, not in each copy",
    },
)
def insert_bounds_checks(module: Module) -> Module:
    """Insert a `Guard` before each statement with an access that is not proved in bounds.

    It runs before vectorization, where there is one index to check; an access that is already a vector is
    checked as a whole.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for i in T.serial(n):
    ...     Y[i] = X[P[i]]
    ... ''')
    >>> print(body_text(insert_bounds_checks(before)))
    for i in T.serial(n):
        T.guard(P[i] >= 0 and P[i] < n, X)
        Y[i] = X[P[i]]
    """
    return map_functions(module, with_bounds_checks)
