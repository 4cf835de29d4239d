"""A program over the parts of a decomposed tensor."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_formats.decomposition.part import Part
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import Module
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.transform.decomposition.program_in_parts import program_in_parts
from gossamer_ir.transform.decomposition.rows_of_parts import RowsOf
from gossamer_ir.verify.module_in_parts import require_valid_parts


def program_over_parts(
    module: Module, buffer_name: str, parts: Sequence[Part], *, rows: RowsOf
) -> Module:
    """Return a program at the coordinate stage, in which parts are stored instead of a buffer.

    `rows` says which parts initialize results. Raises `FormatError` (`format.program`) if a format cannot be
    used by the program, or if the program over the parts is not valid.

    >>> from gossamer_ir.transform.decomposition.rows_of_parts import none_initialize
    >>> program_over_parts(Module("loop", (), "f"), "A", (), rows=none_initialize)
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.FormatError: The program has 0 functions of the loop stage; expected one of the \
coordinate stage. [format.program]
    """
    formats = {part.name: part.tensor.description for part in parts}
    sizes = {part.name: part.fixed_sizes for part in parts}
    try:
        rewritten = program_in_parts(module, (buffer_name,), formats, fixed_sizes=sizes, rows=rows)
        require_valid_parts(rewritten, undivided=module)
    except DecompositionError as error:
        raise FormatError("format.program", str(error)) from None
    return rewritten
