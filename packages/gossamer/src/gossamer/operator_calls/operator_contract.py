"""The contract of an operator: its script declares the parameters that calls pass by name."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer.operator_calls.operator_program import OperatorProgram
from gossamer_ir.core.axis_kinds import index_handles
from gossamer_ir.errors import InternalError
from gossamer_ir.nodes import Function, Module
from gossamer_support.items_by_name import items_by_name
from gossamer_support.message_texts import either


def require_operator_contract(program: OperatorProgram, module: Module | None = None) -> None:
    """Raise `InternalError` unless the script of a program, or its parsed `module`, declares the matrix, the
    buffers and the sizes that calls of its operator pass. The text lists all that is wrong.

    >>> from gossamer.operators.spmv import PROGRAM
    >>> from msgspec.structs import replace
    >>> require_operator_contract(PROGRAM)
    >>> require_operator_contract(replace(PROGRAM, script=PROGRAM.script.replace("nnz", "count")))
    ... # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ...
    gossamer_support.errors.InternalError: The script of the operator 'spmv' has no int64 parameter 'nnz'; no
    call passes 'count'.
    """
    if module is None:
        from gossamer_ir.script import parse_module  # not needed where a module is given

        module = parse_module(program.script)
    wrong = [
        *_wrong_parameters(program, module.functions[0]),
        *_wrong_buffers(program, module.functions[0]),
        *_wrong_axes(program, module.functions[0]),
    ]
    if wrong:
        raise InternalError(f"The script of the operator '{program.name}' {'; '.join(wrong)}.")


def _wrong_parameters(program: OperatorProgram, function: Function) -> Iterator[str]:
    """Yield what is wrong with parameters: those of the matrix and of features exist, and no other size."""
    dtypes = {param.name: param.dtype for param in function.params}
    features = () if program.features is None else (program.features,)
    sizes = (*program.matrix.structure.sizes, *features)
    for name in _passed_arrays(program):
        if dtypes.get(name) != "handle":
            yield f"has no handle '{name}'"
    for name in sizes:
        if dtypes.get(name) != "int64":
            yield f"has no int64 parameter '{name}'"
    for name, dtype in dtypes.items():
        if dtype != "handle" and name not in sizes:
            yield f"no call passes '{name}'"


def _wrong_buffers(program: OperatorProgram, function: Function) -> Iterator[str]:
    """Yield what is wrong with buffers: those with values exist, and calls pass them by their names."""
    buffers = items_by_name(function.buffers)
    for name in program.buffers:
        buffer = buffers.get(name)
        if buffer is None:
            yield f"has no buffer '{name}'"
        elif buffer.handle not in (None, name.lower()):
            yield f"names the handle of '{name}' '{buffer.handle}', not '{name.lower()}'"


def _wrong_axes(program: OperatorProgram, function: Function) -> Iterator[str]:
    """Yield what is wrong with axes: those of the matrix exist and read its index arrays."""
    axes, matrix = items_by_name(function.axes), program.matrix
    missing = [name for name in matrix.axis_names if name not in axes]
    yield from (f"has no axis '{name}'" for name in missing)
    if missing:
        return
    read = {handle for name in matrix.axis_names for handle in index_handles(axes[name])}
    for name in matrix.structure.arrays[1:]:
        if name not in read:
            yield f"does not read '{name}' by the axis {either(matrix.axis_names)}"


def _passed_arrays(program: OperatorProgram) -> tuple[str, ...]:
    """Return the arrays of the matrix that the kernel of a program takes."""
    values, *indices = program.matrix.structure.arrays
    return tuple(indices) if program.values is None else (values, *indices)
