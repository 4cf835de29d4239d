"""`adjoint`: the program that computes the gradients of another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gossamer.api.compile import ProgramSource
from gossamer.api.explain import program_of
from gossamer_ir.nodes import Module
from gossamer_ir.transform.differentiation.adjoint_function import adjoint_module
from gossamer_ir.verify import verify


def adjoint(
    program: ProgramSource,
    *,
    wrt: Sequence[str] = (),
    outputs: Sequence[str] = (),
    specialize: Mapping[str, int] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> Module:
    """Return the program that computes the gradients of the buffers `wrt` from those of `outputs`.

    The program is the name of an operator, a script's text, a decorated function or a module of the
    coordinate stage; `specialize` and `dtypes` are those of `compile`. By default, `wrt` are all buffers of
    floats that the program only reads, and `outputs` all that it writes. The result is an ordinary program:
    it can be printed, compiled and scheduled. The gradient of a buffer `X` of handle `x` is the buffer
    `X_grad` of handle `x_grad`, of the same shape, pattern and dtype. Those of `wrt` must hold zeros before a
    call. docs/gradients.md says what is differentiated, and how.

    Raises `ArgumentError` (`adjoint.buffer`: a name is not that of such a buffer; `adjoint.stage`: the
    program is of a later stage) and `UnsupportedError` (`adjoint.*`: the program, or an operation in it, has
    no adjoint).

    >>> import numpy as np, gossamer as gs
    >>> program = gs.adjoint("spmv", wrt=["X"])
    >>> [param.name for param in program.functions[0].params]
    ['a', 'indptr', 'indices', 'y_grad', 'x_grad', 'm', 'n', 'nnz']
    >>> kernel = gs.compile(program)
    >>> values, rows, columns = np.float32([2, 3, 4]), np.int32([0, 1, 3]), np.int32([1, 0, 1])
    >>> y_grad, x_grad = np.float32([1, 10]), np.zeros(2, np.float32)
    >>> kernel(values, rows, columns, y_grad, x_grad)
    >>> x_grad
    array([30., 42.], dtype=float32)
    """
    module = program_of(program, specialize=specialize, dtypes=dtypes)
    return verify(adjoint_module(verify(module), wrt=wrt, outputs=outputs))
