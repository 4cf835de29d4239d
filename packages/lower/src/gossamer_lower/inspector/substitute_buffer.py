"""Substitutes an expression for the elements of an array, or constants for its shape."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gossamer_ir.arith.simplify import simplify_unguarded
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.statement_kinds import WRITES
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Buffer, Cast, Expr, Function, Load, Module, Var
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import verify
from gossamer_lower.inspector.remove_unused_args import remove_unused_args
from gossamer_lower.lowering_pass import lowering_pass, map_functions


@lowering_pass(
    takes=("loop",),
    pipeline=None,
    before={"expand_reducers": "every pass of the pipeline can use the constants"},
)
def substitute_buffer(
    module: Module,
    *,
    buffer: str,
    indices: tuple[str, ...] = (),
    value: str | None = None,
    shape: tuple[int, ...] = (),
) -> Module:
    """Replace each load from a buffer of the entry by an expression, or fix its shape.

    `value` is an expression of the indices, by the names in `indices`, and of scalar parameters. It is not
    checked that the array has these values (an index array of a banded matrix, all ones). The parameter is
    removed. Raises `UnsupportedError`: `lower.substitute_buffer.unknown` (no such buffer is passed),
    `.written`, `.search` (the buffer is searched), `.dimensions`, `.dtype`, `.shape` (an extent is not a
    single parameter, or another constant); `VerifyError` if `value` is not an expression of the language;
    `ParseError` for a name in it that is not a scalar parameter.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program("for i in T.serial(n): Y[i] = X[P[i]]")
    >>> after = substitute_buffer(before, buffer="P", indices=("j",), value="n - 1 - j")
    >>> print(body_text(after))
    for i in T.serial(n):
        Y[i] = X[n - 1 - i]
    >>> print(body_text(substitute_buffer(before, buffer="X", shape=(8,))))
    for i in T.serial(8):
        Y[i] = X[P[i]]
    """
    if shape:
        module = _with_shape(module, buffer, shape)
    if value is None:
        return module
    replaced = map_functions(
        module,
        lambda load: (
            _with_values(load, buffer, indices, value) if load.name == module.entry else load
        ),
    )
    return verify(remove_unused_args(replaced))


def _passed_buffer(function: Function, name: str) -> Buffer:
    for buffer in function.buffers:
        if buffer.name == name and isinstance(buffer, Buffer) and buffer.handle is not None:
            return buffer
    names = [f"'{buffer.name}'" for buffer in function.buffers if buffer.handle is not None]
    raise UnsupportedError(
        "lower.substitute_buffer.unknown",
        f"No buffer '{name}' is passed to '{function.name}'.",
        hint=f"Buffer parameters: {', '.join(names) or 'none'}.",
    )


def _with_shape(module: Module, name: str, shape: tuple[int, ...]) -> Module:
    (entry,) = (function for function in module.functions if function.name == module.entry)
    extents = _passed_buffer(entry, name).shape
    _require_ndim(name, len(extents), len(shape))
    values: dict[str, bool | int | float] = {}
    for extent, size in zip(extents, shape, strict=True):
        if size >= 0 and isinstance(extent, Var) and values.setdefault(extent.name, size) == size:
            continue
        if integer_value(extent) != size:
            raise UnsupportedError(
                "lower.substitute_buffer.shape",
                f"An extent of '{name}' cannot be {size}: the extent is another constant or not a single "
                "parameter, or the size is negative.",
            )
    return specialize(module, values)


def _require_ndim(name: str, ndim: int, index_count: int) -> None:
    if index_count != ndim:
        raise UnsupportedError(
            "lower.substitute_buffer.dimensions",
            f"'{name}' has {ndim} {'dimension' if ndim == 1 else 'dimensions'}, but {index_count} "
            f"{'is' if index_count == 1 else 'are'} given.",
        )


# Other expressions: their operands are visited.
def _with_values(function: Function, name: str, indices: tuple[str, ...], value: str) -> Function:
    from gossamer_ir.script import parse_expr  # Imported late: no other pass needs the parser.

    buffer = _passed_buffer(function, name)
    _require_ndim(name, len(buffer.shape), len(indices))
    _require_only_loaded(function, name)
    scalars = {param.name: param.dtype for param in function.params if param.dtype != "handle"}
    expr = parse_expr(value, scalars | dict.fromkeys(indices, "int64"))
    dtype = dtype_of(expr)
    if dtype not in ("int64", buffer.dtype):
        raise UnsupportedError(
            "lower.substitute_buffer.dtype",
            f"'{name}' holds {buffer.dtype}, but '{value}' is of dtype {dtype}.",
        )

    def at(load: Load) -> Expr:
        result: Expr = substitute(expr, dict(zip(indices, load.indices, strict=True)))
        return result

    def visit(node: Any) -> Any:
        # An int32 array is widened where it is used: its int64 value is not cast to int32 and back.
        is_widened = isinstance(node, Cast) and node.dtype == dtype
        if is_widened and isinstance(node.value, Load) and node.value.buffer == name:
            return visit(at(node.value))
        if isinstance(node, Load) and node.buffer == name:
            # Visited again: an index of the load may contain a load from the same array.
            new = visit(at(node))
            return new if dtype == buffer.dtype else Cast(buffer.dtype, new)
        return map_children(node, visit)

    # Bounds checks are inserted later, so every other read stays.
    body = simplify_unguarded(tuple(visit(stmt) for stmt in function.body))
    return replace(function, body=body)


def _require_only_loaded(function: Function, name: str) -> None:
    for stmt in function.body:
        for node in walk(stmt):
            if isinstance(node, WRITES) and node.buffer == name:
                raise UnsupportedError(
                    "lower.substitute_buffer.written",
                    f"The buffer '{name}' is written, so it cannot be replaced by an expression.",
                )
            if isinstance(node, READS) and not isinstance(node, Load) and node.buffer == name:
                raise UnsupportedError(
                    "lower.substitute_buffer.search",
                    f"'{name}' is searched, which needs an array.",
                    hint="Remove the searches with use_inspector_results first.",
                )
