"""The kernel ABI (`gossamer_ir.interchange.kernel_abi`) for ctypes: workspace and types of parameters.

Handles are pointers; integer and bool scalars are passed as int64_t, floats as they are.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeAlias

from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interchange.kernel_abi import NOT_GUARDED, WORKSPACE_FIELDS
from gossamer_ir.interchange.records import Signature


class Workspace(ctypes.Structure):
    """`struct gossamer_workspace`: the number of threads, a function with the signature of GOMP_parallel
    (null: everything runs in the calling thread), the index of the buffer whose bounds check failed, and a
    function that long loops ask whether to stop (null: never).

    >>> Workspace(1, None, NOT_GUARDED).threads, ctypes.sizeof(Workspace)
    (1, 32)
    """

    _fields_ = tuple(
        (field.name, ctypes.c_void_p if field.is_pointer else ctypes.c_int64)
        for field in WORKSPACE_FIELDS
    )


Parallelism: TypeAlias = tuple[int, int | None, int | None]
"""Number of threads, the address of a function with GOMP_parallel's signature (None: none), and that of a
function which long loops ask whether to stop (None: none)."""

ParallelismSource: TypeAlias = Callable[[], Parallelism]
"""Called before each run of a kernel, so that changes of the number of threads and forks take effect."""


def one_thread() -> Parallelism:
    """Return the parallelism of kernels that run in the calling thread.

    >>> one_thread()
    (1, None, None)
    """
    return 1, None, None


def workspace_of(parallelism: Parallelism) -> Workspace:
    """Return the workspace of a call."""
    threads, parallel, is_interrupted = parallelism
    return Workspace(threads, parallel, NOT_GUARDED, is_interrupted)


def scalar_type(dtype_name: str) -> type[Any]:
    """Return the ctypes type of a scalar parameter."""
    dtype = DType.parse(dtype_name)
    if dtype_name in ("float32", "float64"):
        return ctypes.c_float if dtype_name == "float32" else ctypes.c_double
    if dtype.is_vector or not (dtype.is_integer or dtype.kind == "bool"):
        raise UnsupportedError(
            "backend.scalar_dtype", f"A scalar parameter cannot be {dtype_name}."
        )
    return ctypes.c_int64


def parameter_types(signature: Signature) -> tuple[type[Any], ...]:
    """Return the ctypes types of the parameters in order, without the workspace.

    >>> from gossamer_ir.interchange.records import ScalarParam
    >>> [kind.__name__ for kind in
    ...  parameter_types(Signature("f", (), (ScalarParam("m", "int64"),), ("m",)))]
    ['c_long']
    """
    scalars = {scalar.name: scalar_type(scalar.dtype) for scalar in signature.scalars}
    return tuple(scalars.get(name, ctypes.c_void_p) for name in signature.order)


def prototype(signature: Signature) -> type[Any]:
    """Return the ctypes function type of the entry, which can wrap a Python function, too."""
    parameters = (*parameter_types(signature), ctypes.POINTER(Workspace))
    return ctypes.CFUNCTYPE(ctypes.c_int64, *parameters)
