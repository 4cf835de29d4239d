"""The kernel ABI as ctypes sees it: status codes, the workspace, the types of parameters.

A kernel is an exported C function `gossamer_kernel(parameters..., struct gossamer_workspace *)`
that returns a status. A handle is a pointer, an integer or bool scalar an int64_t, a float is passed
as it is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeAlias

from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interchange.records import Signature

ABI_VERSION = 1
"""Part of every cache key."""

SYMBOL = "gossamer_kernel"

OK = 0
OUT_OF_BOUNDS = 1
OUT_OF_MEMORY = 2

NOT_GUARDED = -1
"""What `failed_buffer` holds before a guard fails."""


class Workspace(ctypes.Structure):
    """`struct gossamer_workspace`: threads, a function like GOMP_parallel (null: run everything in
    the calling thread), and the index of the buffer whose guard failed."""

    _fields_ = (
        ("threads", ctypes.c_int64),
        ("parallel", ctypes.c_void_p),
        ("failed_buffer", ctypes.c_int64),
    )


Parallelism: TypeAlias = tuple[int, int | None]
"""Number of threads, and the address of a function with GOMP_parallel's signature (None: none)."""

ParallelismSource: TypeAlias = Callable[[], Parallelism]
"""Asked before each call, so that changed thread counts and forks are seen."""


def one_thread() -> Parallelism:
    """Everything in the calling thread.

    >>> one_thread()
    (1, None)
    """
    return 1, None


def scalar_type(dtype: str) -> type[Any]:
    """The ctypes type of a scalar parameter."""
    kind = DType.parse(dtype)
    if dtype in ("float32", "float64"):
        return ctypes.c_float if dtype == "float32" else ctypes.c_double
    if kind.is_vector or not (kind.is_integer or kind.kind == "bool"):
        raise UnsupportedError("backend.scalar_dtype", f"A scalar parameter cannot be {dtype}.")
    return ctypes.c_int64


def parameter_types(signature: Signature) -> tuple[type[Any], ...]:
    """The ctypes types of the parameters in order, without the workspace.

    >>> from gossamer_ir.interchange.records import ScalarParam
    >>> [kind.__name__ for kind in
    ...  parameter_types(Signature("f", (), (ScalarParam("m", "int64"),), ("m",)))]
    ['c_long']
    """
    scalars = {scalar.name: scalar_type(scalar.dtype) for scalar in signature.scalars}
    return tuple(scalars.get(name, ctypes.c_void_p) for name in signature.order)


def prototype(signature: Signature) -> type[Any]:
    """The ctypes function type of the entry; a Python function can be wrapped in it, too."""
    parameters = (*parameter_types(signature), ctypes.POINTER(Workspace))
    return ctypes.CFUNCTYPE(ctypes.c_int64, *parameters)
