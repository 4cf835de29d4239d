"""The lines of statements in the text of a module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gossamer_ir.errors import Place
from gossamer_ir.nodes import Module, Node
from gossamer_ir.script.print import print_with_places
from gossamer_ir.traversal.fields import body_fields


def stmt_lines(module: Module) -> Mapping[int, int]:
    """Return the first line of each function and statement in the text of `print_module`, counted from 1.

    The keys are the identities (`id`) of the nodes. A statement that is at several places has the first.

    >>> from gossamer_ir.script import parse_module, print_module
    >>> module = parse_module('''
    ... @T.prim_func
    ... def fill(x: T.handle, n: T.int64) -> None:
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     for i in T.serial(n):
    ...         X[i] = 1
    ... ''')
    >>> loop = module.functions[0].body[0]
    >>> print_module(module).splitlines()[stmt_lines(module)[id(loop)] - 1]
    '    for i in T.serial(n):'
    """
    spans = print_with_places(module).spans
    lines: dict[int, int] = {}
    for node, place in _functions_and_stmts(module):
        span = spans.get(place)
        if span is not None:
            lines.setdefault(id(node), span.line)
    return lines


def _functions_and_stmts(module: Module) -> Iterator[tuple[Node, Place]]:
    """Yield functions and their statements with their places, in the order of the text."""
    # Last one first: the stack returns them in order.
    stack: list[tuple[Node, Place]] = []
    for number, function in reversed(list(enumerate(module.functions))):
        stack.append((function, ("functions", number)))
    while stack:
        node, place = stack.pop()
        yield node, place
        below = [
            (stmt, (*place, name, number))
            for name in body_fields(type(node))
            for number, stmt in enumerate(getattr(node, name))
        ]
        stack += below[::-1]
