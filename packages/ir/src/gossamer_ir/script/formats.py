"""Reads and writes format descriptions, which in script text are functions without a body."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gossamer_ir.errors import ParseError
from gossamer_ir.nodes import Buffer, FormatDescription
from gossamer_ir.script.limits import parse_syntax
from gossamer_ir.script.parse import CapturedNames, source_of
from gossamer_ir.script.parser.functions import parse_parts
from gossamer_ir.script.parser.modules import top_level
from gossamer_ir.script.parser.state.context import Captured, ParserContext
from gossamer_ir.script.print import write_signature
from gossamer_ir.script.printer.declarations import write_axis, write_buffer, write_each, write_fact
from gossamer_ir.script.printer.index_maps import write_map, write_shape
from gossamer_ir.script.printer.writer import Writer
from gossamer_ir.script.source import Source
from gossamer_ir.traversal.buffer_definitions import sparse_buffers
from gossamer_ir.traversal.names import to_identifier
from gossamer_support.typed_calls import typed


def parse_format(function: Callable[..., Any] | str) -> FormatDescription:
    """Return the format description in a text or a decorated function.

    A description declares axes, a sparse buffer (or several, for tensors that share the axes), index
    arrays (and which of them have distinct values), and optionally a map with the logical shape, which
    belongs to the first buffer. The published syntax is accepted, too: `@T.prim_func` with `pass` and
    `inv_idx_map`. Raises `ParseError`.

    >>> parse_format('''
    ... @T.format
    ... def bsr(a: T.handle, indptr: T.handle, indices: T.handle, m: T.int64, n: T.int64) -> None:
    ...     IO = T.sp.dense_fixed(m)
    ...     JO = T.sp.compressed_varied(IO, n, (indptr, indices), "int32")
    ...     II = T.sp.dense_fixed(4)
    ...     JI = T.sp.dense_fixed(4)
    ...     A = T.sp.match_buffer(a, (IO, JO, II, JI), "float32")
    ...     T.sp.map(lambda io, jo, ii, ji: (io * 4 + ii, jo * 4 + ji), shape=(4 * m, 4 * n))
    ... ''').buffer.axes
    ('IO', 'JO', 'II', 'JI')
    """
    if isinstance(function, str):
        return _parse(Source(function), {})
    return _parse(source_of(function), CapturedNames(function))


@typed
def print_format(description: FormatDescription) -> str:
    """Return the text of a description; `parse_format` gives an equal description of it.

    >>> ell = parse_format('''
    ... @T.format
    ... def ell(a: T.handle, indices: T.handle, m: T.int64, n: T.int64, width: T.int64) -> None:
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.compressed_fixed(I, (n, width), indices, "int32")
    ...     A = T.sp.match_buffer(a, (I, J), "float32")
    ... ''')
    >>> print(print_format(ell))
    @T.format
    def ell(
        a: T.handle,
        indices: T.handle,
        m: T.int64,
        n: T.int64,
        width: T.int64,
    ) -> None:
        I = T.sp.dense_fixed(m)
        J = T.sp.compressed_fixed(I, (n, width), indices, "int32")
        A = T.sp.match_buffer(a, (I, J), "float32")
    <BLANKLINE>
    """
    w = Writer()
    w.end_line("@T.format")
    write_signature(w, description.name, description.params)
    with w.indent():
        _write_declarations(w, description)
    return w.text


def _write_declarations(w: Writer, description: FormatDescription) -> None:
    """Write axes, buffers and facts, one per line, and the map."""
    write_each(w, "axes", description.axes, write_axis)
    with w.at("buffer"):
        write_buffer(w, description.buffer)
    w.end_line()
    write_each(w, "more_buffers", description.more_buffers, write_buffer)
    write_each(w, "index_arrays", description.index_arrays, write_buffer)
    write_each(w, "facts", description.facts, write_fact)
    if description.map is not None:
        w.put("T.sp.map(")
        with w.at("map"):
            write_map(w, description.map)
        if description.shape is not None:
            w.put(", shape=")
            write_shape(w, description.shape)
        w.end_line(")")


def _parse(source: Source, captured: Captured) -> FormatDescription:
    nodes, constants = top_level(source, parse_syntax(source.text), captured)
    if len(nodes) != 1:
        raise ParseError("parse.format", f"Expected one description, found {len(nodes)}.")
    context, body = parse_parts(source, nodes[0], constants)
    return _description(context, nodes[0], has_body=bool(body))


def _description(
    context: ParserContext, node: ast.FunctionDef, *, has_body: bool
) -> FormatDescription:
    parts = context.function
    sparse = sparse_buffers(parts.buffers)
    if has_body or parts.relations or not sparse:
        message = f"'{node.name}' is not a format description."
        hint = "Expected axes, sparse buffers, index arrays and optionally T.sp.map."
        raise context.error("format", message, node, hint=hint)
    return FormatDescription(
        to_identifier(node.name),
        tuple(parts.params),
        tuple(parts.axes),
        sparse[0],
        tuple([buffer for buffer in parts.buffers if isinstance(buffer, Buffer)]),
        parts.map,
        tuple(sparse[1:]),
        parts.shape,
        tuple(parts.facts),
    )
