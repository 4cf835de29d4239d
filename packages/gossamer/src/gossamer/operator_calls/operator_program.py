"""Programs of operators: scripts over a sparse matrix, which are specialized before they are compiled."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from gossamer_ir.core.annotations import CHECK_INDEX_ARRAYS
from gossamer_ir.core.axis_kinds import with_index_dtypes
from gossamer_ir.core.dtypes import SUM_DTYPES
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import FormatDescription, Function, Module


class StructureParameters(NamedTuple):
    """The parameters of kernels for the arrays of a matrix, and those for its sizes."""

    arrays: tuple[str, ...]
    sizes: tuple[str, ...]


class MatrixParameters(msgspec.Struct, frozen=True):
    """The parameters for the matrix of an operator in scripts, that of the values first, and the names of its
    axes. Calls pass its arrays and sizes by name."""

    structure: StructureParameters
    axis_names: tuple[str, ...]


CSR_PARAMETERS = MatrixParameters(
    StructureParameters(("a", "indptr", "indices"), ("m", "n", "nnz")), ("I", "J")
)
"""Those of a matrix in CSR."""


class OperatorProgram(msgspec.Struct, frozen=True):
    """The program of an operator: its script, and what rewrites add to it. `require_operator_contract` checks
    that the script declares what calls pass."""

    name: str
    script: str
    buffers: tuple[str, ...]
    """The buffers that hold values, whose handles have their names in lower case. The last one is the result
    of a program with narrow operands."""
    matrix: MatrixParameters = CSR_PARAMETERS
    """The parameters of the script for the matrix."""
    features: str | None = None
    """The parameter for the number of columns of the dense operands; None if they are vectors."""
    values: str | None = "a"
    """The parameter for the values of the matrix; None if only its structure is read."""
    sums_rows: bool = False
    """True if the output has the sums of products over rows."""
    scales: bool = False
    """True if each value of the matrix is multiplied by the parameter `alpha`."""
    adds: bool = False
    """True if the sums are added to the contents of the output (see `scaled_products`)."""
    separates_init: bool = False
    """True if the output is initialized before the first sum is added."""
    parsed: str | None = None
    """The name of the Python module that has the parsed script; None if the script is parsed at
    the first call. The script of a new operator, which has no such module yet, is parsed and checked when the
    operator is defined."""
    special: tuple[tuple[str, OperatorProgram], ...] | None = None
    """Programs for operands that are multiplied in another precision than they are stored in
    (`SPECIAL_OPERANDS`), by its name."""

    @property
    def dense_dimensions(self) -> int:
        """The number of dimensions of its dense operands."""
        return 1 if self.features is None else 2


class Variant(msgspec.Struct, frozen=True):
    """The options of a program: dtypes, and sizes that are fixed. Operands have the dtype `dtype`, and
    results that in which products of it are added (`SUM_DTYPES`)."""

    dtype: str = "float32"
    indptr_dtype: str | None = None
    indices_dtype: str | None = None
    """The dtype of the index arrays; None if it is that of the script."""
    features: int | None = None
    """The number of features; None if it is symbolic."""
    sizes: tuple[tuple[str, int], ...] = ()
    """The values of other parameters that are fixed."""
    checks: bool = False
    """True if the kernel checks its index arrays itself, where it can (`insert_index_array_checks`)."""


def program_for(program: OperatorProgram, operands: str) -> OperatorProgram:
    """Return the program for operands of a dtype or precision: that of the operator, if it has no special
    one."""
    return dict(program.special or ()).get(operands, program)


PART_SUFFIX = "part"
"""The end of the names of a part's arrays and sizes, as parameters of its kernel."""


class StoredFormat(msgspec.Struct, frozen=True):
    """The format of a matrix that is not in CSR, and the sizes for which its kernel is compiled. If it
    `is_whole`, its kernel also initializes rows that have no element; otherwise it is a part of a matrix. If
    it `has_whole_blocks`, no block extends beyond the matrix."""

    description: FormatDescription
    sizes: tuple[tuple[str, int], ...]
    is_whole: bool = False
    has_whole_blocks: bool = False


FACTOR = "alpha"
"""The parameter of a program that scales."""

NUMBER_PARAMETERS = (FACTOR, "scale")
"""Parameters for numbers that kernels read from arrays of one element."""


@lru_cache(maxsize=64)
def module_of(
    program: OperatorProgram, variant: Variant, stored_format: StoredFormat | None = None
) -> Module:
    """Return a variant of a program at the coordinate stage, for a matrix in CSR or in another format."""
    from gossamer_ir.transform.specialize import specialize

    sizes = dict(variant.sizes)
    if program.features is not None and variant.features is not None:
        sizes[program.features] = variant.features
    sums = SUM_DTYPES[variant.dtype]
    dtypes = dict.fromkeys(program.buffers, sums)
    module = specialize(_parse_script(program), sizes, dtypes=dtypes)
    # Rewrites are imported where they are needed: a first call of most programs needs none.
    if sums != variant.dtype:
        from gossamer_ir.transform.narrow_operands import narrow_operands

        module = narrow_operands(module, program.buffers[:-1], dtype=variant.dtype)
    module = _rewrite(module, program)
    functions = tuple(_with_options(function, variant) for function in module.functions)
    module = replace(module, functions=functions)
    return module if stored_format is None else _over_format(module, stored_format)


def _rewrite(module: Module, program: OperatorProgram) -> Module:
    """Return the module with the factor of a program that scales, and with the inits that it needs."""
    if program.scales:
        from gossamer_ir.transform.scale_values import scale_values

        assert program.values is not None, "only a program that reads values scales them"
        module = scale_values(module, handle=program.values, factor=FACTOR)
    # The contents of the output take the place of the initial value, so that none is left to separate.
    if program.adds:
        from gossamer_ir.transform.remove_inits import remove_inits

        module = remove_inits(module)
    elif program.separates_init:
        from gossamer_ir.transform.separate_inits import separate_inits

        module = separate_inits(module)
    return module


def _over_format(module: Module, stored_format: StoredFormat) -> Module:
    """Return the module with this format instead of the buffers that have the axes of the matrix. If it
    initializes its result, then only the elements that are visited, unless it is the whole matrix."""
    from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
    from gossamer_ir.transform.decomposition.program_in_parts import program_in_parts
    from gossamer_ir.transform.decomposition.rows_of_parts import RowsOfParts
    from gossamer_ir.transform.separate_inits import separate_inits
    from gossamer_ir.transform.whole_blocks import block_counts, without_partial_blocks
    from gossamer_ir.traversal.buffer_definitions import sparse_buffers

    buffers = tuple(
        buffer.name
        for buffer in sparse_buffers(module.functions[0].buffers)
        if buffer.axes == CSR_PARAMETERS.axis_names
    )
    sizes = {PART_SUFFIX: dict(stored_format.sizes)}
    may_extend = not stored_format.has_whole_blocks and block_counts(stored_format.description)
    if may_extend and not stored_format.description.index_arrays:
        # Rows of blocks that extend beyond the matrix would be initialized under a condition.
        module = separate_inits(module)
    rows = RowsOfParts() if stored_format.is_whole else RowsOfParts((PART_SUFFIX,), are_all=True)
    try:
        rewritten = program_in_parts(
            module,
            buffers,
            {PART_SUFFIX: stored_format.description},
            fixed_sizes=sizes,
            rows=lambda _dimension: rows,
        )
    except DecompositionError as error:
        raise FormatError("format.program", str(error)) from None
    return without_partial_blocks(rewritten) if stored_format.has_whole_blocks else rewritten


def _parse_script(program: OperatorProgram) -> Module:
    """Return the module of the script of a program. Without the parser, if there is a parsed one: importing
    the parser takes 5 percent of a first call."""
    if program.parsed is None:
        return _parse(program.script)
    parsed: Module = import_module(program.parsed).PARSED
    return parsed


@lru_cache(maxsize=16)
def _parse(script: str) -> Module:
    from gossamer_ir.script import parse_module  # not needed if the kernel is in the cache

    return parse_module(script)


def _with_options(function: Function, variant: Variant) -> Function:
    axes = tuple(
        with_index_dtypes(axis, indptr=variant.indptr_dtype, indices=variant.indices_dtype)
        for axis in function.axes
    )
    added = ((CHECK_INDEX_ARRAYS, True),) if variant.checks else ()
    annotations = (*function.annotations, *added)
    return replace(function, axes=axes, annotations=annotations)
