"""A compiler for sparse tensor programs: operators, build pipeline and command line.

Importing this package is cheap: modules are imported when a name is first used. `python -m tools.generate
operators exports` writes the imports of operators, `__all__` and `_HOMES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer.api.adjoint import adjoint
    from gossamer.api.compile import compile
    from gossamer.api.device_target import device_target
    from gossamer.api.einsum import einsum, einsum_program
    from gossamer.api.explain import explain
    from gossamer.api.export import export
    from gossamer.api.prepare import prepare
    from gossamer.api.schedule import schedule
    from gossamer.api.schedule_space import schedule_space
    from gossamer.operator_calls.operands.csr_arrays import CsrArrays
    from gossamer.operators.attention import attention
    from gossamer.operators.matmul_24 import matmul_24
    from gossamer.operators.sddmm import sddmm
    from gossamer.operators.spmm import spmm
    from gossamer.operators.spmv import spmv
    from gossamer.pictures.spy import spy
    from gossamer_backend import get_num_threads, set_num_threads
    from gossamer_formats import (
        Decomposition,
        SparseTensor,
        decompose,
        from_arrays,
        from_scipy,
        from_torch,
        prune,
        read,
        to_scipy,
        to_torch,
        write,
    )

__version__ = "0.1.0"

__all__ = [
    "CsrArrays",
    "Decomposition",
    "SparseTensor",
    "__version__",
    "adjoint",
    "attention",
    "compile",
    "decompose",
    "device_target",
    "einsum",
    "einsum_program",
    "explain",
    "export",
    "from_arrays",
    "from_scipy",
    "from_torch",
    "get_num_threads",
    "matmul_24",
    "prepare",
    "prune",
    "read",
    "schedule",
    "schedule_space",
    "sddmm",
    "set_num_threads",
    "spmm",
    "spmv",
    "spy",
    "to_scipy",
    "to_torch",
    "write",
]

_HOMES = {
    "CsrArrays": "gossamer.operator_calls.operands.csr_arrays",
    "Decomposition": "gossamer_formats",
    "SparseTensor": "gossamer_formats",
    "adjoint": "gossamer.api.adjoint",
    "attention": "gossamer.operators.attention",
    "compile": "gossamer.api.compile",
    "decompose": "gossamer_formats",
    "device_target": "gossamer.api.device_target",
    "einsum": "gossamer.api.einsum",
    "einsum_program": "gossamer.api.einsum",
    "explain": "gossamer.api.explain",
    "export": "gossamer.api.export",
    "from_arrays": "gossamer_formats",
    "from_scipy": "gossamer_formats",
    "from_torch": "gossamer_formats",
    "get_num_threads": "gossamer_backend",
    "matmul_24": "gossamer.operators.matmul_24",
    "prepare": "gossamer.api.prepare",
    "prune": "gossamer_formats",
    "read": "gossamer_formats",
    "schedule": "gossamer.api.schedule",
    "schedule_space": "gossamer.api.schedule_space",
    "sddmm": "gossamer.operators.sddmm",
    "set_num_threads": "gossamer_backend",
    "spmm": "gossamer.operators.spmm",
    "spmv": "gossamer.operators.spmv",
    "spy": "gossamer.pictures.spy",
    "to_scipy": "gossamer_formats",
    "to_torch": "gossamer_formats",
    "write": "gossamer_formats",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
