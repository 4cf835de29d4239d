"""Renders diagnostics on the printed module, or on the source that a module was read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gossamer_ir.errors import Diagnostic, Place
from gossamer_ir.nodes import Module, Node
from gossamer_ir.script.parser.modules import ParsedModule
from gossamer_ir.script.print import print_with_places
from gossamer_ir.script.source import Source, Span
from gossamer_support.typed_calls import typed


@typed
def render(module: Module | ParsedModule, diagnostics: Iterable[Diagnostic]) -> str:
    """Return the message of each diagnostic, followed by the line of its place with carets.

    The lines are those of the printed module or, for a `ParsedModule`, of the user's source. A place without
    text of its own is shown at the nearest enclosing place with text.

    >>> from gossamer_ir.script import parse_module
    >>> from gossamer_ir.verify import diagnostics
    >>> module = parse_module('''
    ... @T.prim_func
    ... def fill(x: T.handle, n: T.int64) -> None:
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     for i in T.serial(n):
    ...         X[i, i] = 1.0
    ... ''')
    >>> print(render(module, diagnostics(module)))
    'X' has 1 dimension, but 2 indices are given. [verify.index.count]
    fill:9:
                X[i, i] = 1.0
                ^^^^^^^^^^^^^
    """
    spans: Mapping[Place, Span]
    if isinstance(module, ParsedModule):
        source, spans = module.source, _source_spans(module)
    else:
        printed = print_with_places(module)
        source, spans = Source(printed.text, name=module.entry), printed.spans
    return "\n".join(_render_one(source, spans, diagnostic) for diagnostic in diagnostics)


def _render_one(source: Source, spans: Mapping[Place, Span], diagnostic: Diagnostic) -> str:
    hint = f" {diagnostic.hint}" if diagnostic.hint else ""
    head = f"{diagnostic.message}{hint} [{diagnostic.code}]"
    span = nearest_span(spans, diagnostic.place)
    return head if span is None else f"{head}\n{source.carets(span)}"


def nearest_span(spans: Mapping[Place, Span], place: Place) -> Span | None:
    """Return the span of a place, or of the nearest enclosing place that has one; None if there is none."""
    for length in range(len(place), 0, -1):
        span = spans.get(place[:length])
        if span is not None:
            return span
    return None


def _source_spans(parsed: ParsedModule) -> Mapping[Place, Span]:
    spans: dict[Place, Span] = {}
    stack: list[tuple[Node, Place]] = [(parsed.module, ())]
    while stack:
        node, place = stack.pop()
        origin = parsed.origins.get(id(node))
        if origin is not None:
            spans[place] = parsed.source.span_of(origin[1])
        stack.extend(_places_below(node, place))
    return spans


def _places_below(node: Node, place: Place) -> Iterable[tuple[Node, Place]]:
    for name in node.__struct_fields__:
        value: Any = getattr(node, name)
        if isinstance(value, Node):
            yield value, (*place, name)
        elif type(value) is tuple:
            for number, item in enumerate(value):
                if isinstance(item, Node):
                    yield item, (*place, name, number)
