"""`einsum`: sums of products in Einstein's notation."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gossamer.compilation.build_kernels import KERNELS
from gossamer.einsum_programs.dense_program import UPDATES, ReducerName, operand_name, size_name
from gossamer.einsum_programs.einsum_operands import EinsumOperands, read_operands
from gossamer.einsum_programs.stored_operands import (
    RESULT_VALUES,
    operand_part,
    program_over_formats,
)
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer_backend import Kernel
from gossamer_formats import Part, SparseTensor
from gossamer_formats.internal_api import replace_values
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module
from gossamer_ir.transform.decomposition.part_parameter import part_parameter
from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed

_NO_PERMUTATION = np.empty(0, np.int64)


@typed
def einsum(
    subscripts: str,
    *operands: Any,
    reducer: ReducerName = "sum",
    epilogue: str | None = None,
    target: str | Target = DEFAULT_TARGET,
) -> Any:
    """Return a sum of products of sparse and dense operands.

    `subscripts` are those of `numpy.einsum`, without `...`, such as "ij,jk->ik". Operands are `SparseTensor`s
    in any format, tensors in parts (`Decomposition`), which are computed in CSR, SciPy matrices and arrays,
    of float32 or float64. The stored elements of one sparse operand are iterated, and elements of the other
    operands are read by their coordinates. `reducer` is "sum", "max" or "min" of the products; the latter two
    are those of stored elements only. `epilogue` is an expression of the script in `out`, applied to each
    element of the result, such as "T.max(out, 0.0)".

    The result is an array; if its subscripts are those of the iterated operand, it is a `SparseTensor` with
    the pattern and the format of that. A dimension without terms has 0, -inf or inf.

    Raises `ArgumentError` (`einsum.subscripts`, `einsum.shape`, `einsum.dtype`, `einsum.reducer`;
    `einsum.format`: elements of a format, such as blocks, cannot be looked up; `operand.kind`: a tensor of
    torch requires a gradient), `ParseError` for an epilogue
    that cannot be read, and `UnsupportedError`: `einsum.co_iteration` if no sparse operand has all letters of
    the sparse ones, `einsum.diagonal` if it has a letter twice.

    >>> import gossamer as gs, numpy as np, scipy.sparse
    >>> A = scipy.sparse.csr_array(np.array([[0.0, 2.0], [3.0, 4.0]]))
    >>> gs.einsum("ij,jk->ik", A, np.array([[1.0], [-10.0]]), epilogue="T.max(out, 0.0)")
    array([[0.],
           [0.]])
    >>> gs.einsum("ij,i,j->ij", A, np.array([1.0, 10.0]), np.ones(2)).toarray()
    array([[ 0.,  2.],
           [30., 40.]])
    """
    checked = read_operands(subscripts, operands, reducer=reducer, epilogue=epilogue)
    kernel = _kernel(checked, target)
    result = _new_result(checked)
    kernel(**_arguments(checked, result))
    if checked.program.has_pattern:
        return _with_values(checked, result)
    return result.reshape([checked.sizes[letter] for letter in checked.program.subscripts.result])[
        ()
    ]


@typed
def einsum_program(
    subscripts: str, *operands: Any, reducer: ReducerName = "sum", epilogue: str | None = None
) -> Module:
    """Return the program of a sum of products, a module of the coordinate stage, to print, change, schedule
    and compile. Arguments and errors are those of `einsum`.

    >>> import gossamer as gs, numpy as np, scipy.sparse
    >>> from gossamer_testkit.show import body_text
    >>> A = scipy.sparse.csr_array(np.eye(2))
    >>> print(body_text(gs.einsum_program("ij,jk->ik", A, np.ones((2, 3)))))
    with T.sp.iteration([I_x0, J_x0, K], "SRS", "einsum_x0") as [i_x0, j_x0, k_1]:
        with T.init():
            Out[i_x0, k_1] = 0.0
        Out[i_x0, k_1] = Out[i_x0, k_1] + X0_x0[i_x0, j_x0] * X1[j_x0, k_1]
    """
    return _program(read_operands(subscripts, operands, reducer=reducer, epilogue=epilogue))


def _kernel(operands: EinsumOperands, target: str | Target) -> Kernel:
    """Return the kernel, which is written and compiled once for equal formats and fixed sizes."""
    formats = tuple((number, tensor.description) for number, tensor in operands.sparse.items())
    name = (operands.program, formats, tuple(_fixed_sizes(operands).items()))
    return KERNELS.build_program(name, partial(_program, operands), target=target).kernel


def _program(operands: EinsumOperands) -> Module:
    formats = {number: tensor.description for number, tensor in operands.sparse.items()}
    return program_over_formats(operands.program, formats, _fixed_sizes(operands))


def _fixed_sizes(operands: EinsumOperands) -> dict[str, int]:
    """Return the sizes that kernels are compiled for: those of dimensions that no sparse operand has, such as
    features. Those of matrices change from call to call."""
    sparse_letters = {
        *"".join(operands.program.subscripts.operands[number] for number in operands.sparse)
    }
    return {letter: size for letter, size in operands.sizes.items() if letter not in sparse_letters}


def _new_result(operands: EinsumOperands) -> Array:
    program = operands.program
    _, initial = UPDATES[program.reducer]
    if program.iterated is not None and program.has_pattern:
        return np.zeros(operands.sparse[program.iterated].storage.values.size, program.dtype)
    # A column without elements is not visited.
    return np.full(
        [operands.sizes[letter] for letter in program.subscripts.result] or [1],
        initial,
        program.dtype,
    )


def _arguments(operands: EinsumOperands, result: Array) -> dict[str, Any]:
    program = operands.program
    arguments: dict[str, Any] = {
        operand_name(number).lower(): array for number, array in operands.dense.items()
    }
    for number, tensor in operands.sparse.items():
        name = operand_part(number)
        sizes = Part(name, tensor, _NO_PERMUTATION).symbolic_sizes
        arguments |= {
            part_parameter(key, name): value for key, value in {**tensor.arrays, **sizes}.items()
        }
    handle = RESULT_VALUES
    if program.iterated is not None and program.has_pattern:
        handle = part_parameter(RESULT_VALUES, operand_part(program.iterated))
    fixed = _fixed_sizes(operands)
    sizes = {
        size_name(letter): size for letter, size in operands.sizes.items() if letter not in fixed
    }
    return {**arguments, **sizes, handle: result}


def _with_values(operands: EinsumOperands, values: Array) -> SparseTensor:
    """Return the result with the pattern of the iterated operand."""
    assert operands.program.iterated is not None
    return replace_values(operands.sparse[operands.program.iterated], values)
