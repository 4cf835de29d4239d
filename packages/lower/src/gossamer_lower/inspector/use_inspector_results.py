"""Replaces the searches of a kernel by loads of the results of its inspector."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.nodes import Function, Module
from gossamer_lower.lowering_pass import lowering_pass


@lowering_pass(
    takes=("position", "loop"),
    pipeline=None,
    checks_stage=False,
    after={
        "extract_inspector": "it replaces the marked blocks by reads of what the inspector computes"
    },
)
def use_inspector_results(module: Module, *, dtype: str = "int64") -> Module:
    """Replace searches by loads from the arrays that the kernel of `extract_inspector` writes.

    The arrays are new parameters at the end, in the same order as there; the proved ranges of results become
    facts about them. If blocks are marked `preprocess`, these are removed instead. Searches that depend on
    more than index arrays stay. Raises the errors of `extract_searches` and `split_marked`.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for i in T.serial(n):
    ...     Y[i] = X[T.search("upper", P, begin=1, end=n, value=i) - 1]
    ... ''')
    >>> print(body_text(use_inspector_results(before)))
    for i in T.serial(n):
        Y[i] = X[P_found_data[i]]
    """
    # Imported late: few programs have an inspector.
    from gossamer_lower.inspector.results.marked_blocks import split_marked

    parted = split_marked(module)
    if parted is not None:
        made = replace(parted.function, body=parted.rest)
    else:
        made = _without_searches(module, dtype)
    functions = tuple(
        made if function.name == made.name else function for function in module.functions
    )
    return replace(module, functions=functions)


def _without_searches(module: Module, dtype: str) -> Function:
    from gossamer_lower.inspector.results.search_results import extract_searches

    extracted = extract_searches(module, dtype)
    old = extracted.function
    return replace(
        old,
        params=(*old.params, *extracted.params()),
        buffers=(*old.buffers, *extracted.buffers()),
        facts=(*old.facts, *(fact for search in extracted.searches for fact in search.facts)),
    )
