"""Lowers math functions without an instruction on the target to arithmetic, of scalars and vectors."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from gossamer_ir.nodes import Binary, Call, Module
from gossamer_ir.traversal.node_index import nodes_in_body
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_lower.math.calls.lowered_calls import is_lowered


@lowering_pass(
    takes=("flat",),
    after={"unswitch_on_alignment": "it copies loops, and a call is shorter than its arithmetic"},
)
def lower_math(module: Module, *, instructions: Collection[str]) -> Module:
    """Lower calls of math functions, `find_nth_bit`, and `//` and `%` of floats to arithmetic.

    `instructions` are the functions that the target has. The arithmetic is in lets before the statement. Half
    precision is computed in float32. Raises `UnsupportedError` (`lower.lower_math.unsupported_call`) for a
    call in the weight of a parallel loop, and for `fma` of float64 on a target without it.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> from gossamer_lower import lower_to_flat
    >>> flat = lower_to_flat(program('''
    ... for i in T.serial(n):
    ...     Y[i] = T.rsqrt(X[i]) + T.abs(X[i])
    ... '''))
    >>> print(body_text(lower_math(flat, instructions={"sqrt", "abs"})))
    for i in T.serial(n):
        t: T.float32 = X[i]
        t_2: T.float32 = 1.0 / T.sqrt(t)
        Y[i] = t_2 + T.abs(X[i])
    """
    nodes = (
        node for function in module.functions for node in nodes_in_body(function, Binary, Call)
    )
    if not any(is_lowered(node, instructions) for node in nodes):
        return module
    # Imported late: most modules have no such call.
    from gossamer_lower.math.calls.statement_lowering import lower_calls_in

    functions = tuple(lower_calls_in(function, instructions) for function in module.functions)
    return replace(module, functions=functions)
