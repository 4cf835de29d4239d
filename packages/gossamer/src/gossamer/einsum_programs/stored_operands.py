"""Stores the sparse operands of a sum of products in their formats."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gossamer.einsum_programs.dense_program import EinsumProgram, dense_program, operand_name
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import FormatDescription, Module
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.transform.decomposition.instantiated_format import NamedFormat
from gossamer_ir.transform.decomposition.program_in_parts import program_in_parts
from gossamer_ir.transform.decomposition.stored_lookup import with_lookup
from gossamer_ir.verify import verify

RESULT_VALUES = "out"
"""The handle of the result's values in the format of the iterated operand."""


def program_over_formats(
    program: EinsumProgram, formats: Mapping[int, FormatDescription], fixed: Mapping[str, int]
) -> Module:
    """Return the program with operands, by their numbers, in these formats.

    Raises `ArgumentError` (`einsum.format`) for a format that the program cannot use.
    """
    module = dense_program(program, fixed)
    try:
        for number, description in formats.items():
            if number != program.iterated:
                named = NamedFormat(operand_part(number), description)
                function = with_lookup(module.functions[0], operand_name(number), named)
                module = replace(module, functions=(function,))
        if program.iterated is not None:
            module = _over_iterated_operand(program, formats[program.iterated], module)
    except DecompositionError as error:
        raise ArgumentError("einsum.format", str(error)) from None
    return verify(module)


def _over_iterated_operand(
    program: EinsumProgram, description: FormatDescription, module: Module
) -> Module:
    assert program.iterated is not None
    buffers = [operand_name(program.iterated)]
    if program.has_pattern:
        buffers.append("Out")
        description = _with_result(description)
    part = operand_part(program.iterated)
    return program_in_parts(module, buffers, {part: description}, fixed_sizes={})


def _with_result(description: FormatDescription) -> FormatDescription:
    """Return the description with a second buffer over its axes."""
    result = replace(description.buffer, name="Out", handle=RESULT_VALUES)
    handle = replace(description.params[0], name=RESULT_VALUES, dtype="handle")
    return replace(description, params=(*description.params, handle), more_buffers=(result,))


def operand_part(number: int) -> str:
    """Return the suffix of the names of an operand's arrays and sizes.

    >>> operand_part(0)
    'x0'
    """
    return operand_name(number).lower()
