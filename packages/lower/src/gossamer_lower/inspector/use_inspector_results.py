"""A kernel without its searches, whose results it reads from arrays."""

from __future__ import annotations

import msgspec

from gossamer_ir.nodes import Function, Module
from gossamer_lower.inspector.marked_blocks import part_marked
from gossamer_lower.inspector.search_results import take_searches
from gossamer_lower.lowering_pass import lowering_pass


@lowering_pass(takes=("position", "loop"), on_request=True)
def use_inspector_results(module: Module, *, dtype: str = "int64") -> Module:
    """The entry of a position- or loop-stage module with what `extract_inspector` writes in the
    place of searches: new parameters, last, in the order in which that has them.

    Where blocks are marked `preprocess`, those are left out instead. Searches that depend on more stay
    where they are. Raises what `take_searches` and `part_marked` do. What is proved of the results
    becomes facts about the arrays.

    >>> from gossamer_lower.examples import body_text, program
    >>> before = program('''
    ... for i in T.serial(n):
    ...     Y[i] = X[T.search("upper", P, begin=1, end=n, value=i) - 1]
    ... ''')
    >>> print(body_text(use_inspector_results(before)))
    for i in T.serial(n):
        Y[i] = X[P_found_data[i]]
    """
    parted = part_marked(module)
    if parted is not None:
        made = msgspec.structs.replace(parted.function, body=parted.rest)
    else:
        made = _without_searches(module, dtype)
    functions = tuple(made if found.name == made.name else found for found in module.functions)
    return msgspec.structs.replace(module, functions=functions)


def _without_searches(module: Module, dtype: str) -> Function:
    taken = take_searches(module, dtype)
    old = taken.function
    return msgspec.structs.replace(
        old,
        params=(*old.params, *taken.params()),
        buffers=(*old.buffers, *taken.buffers()),
        facts=(*old.facts, *(fact for found in taken.found for fact in found.facts)),
    )
