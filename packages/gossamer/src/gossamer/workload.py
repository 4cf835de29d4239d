"""An operator with operands and a place for its result, as the command line runs and times it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.kernels import kernel_for
from gossamer.operators import operator_named, spmm, spmv
from gossamer.operators.operands import sparse_operand
from gossamer.operators.operator import module_of
from gossamer_formats import Array, SparseTensor, to_scipy
from gossamer_ir.contracts import Schedule
from gossamer_ir.nodes import Module

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Workload:
    """`run` calls the front door and returns the result, `scipy` makes SciPy's."""

    def __init__(
        self, op: str, tensor: SparseTensor, *, dense: Array, features: int | None, target: str
    ) -> None:
        self.op, self.tensor, self.dense, self.features = op, tensor, dense, features
        self.out: Array = np.empty((tensor.shape[0], *dense.shape[1:]), dtype=tensor.dtype)
        self.compile_ms, self.is_cached = 0.0, False
        self._target = target
        self._scipy: csr_array = to_scipy(tensor)
        if self.out.size and tensor.nnz:
            variant = sparse_operand(tensor).variant(features)
            built = kernel_for(operator_named(op), variant, stats=tensor.stats, target=target)
            self.compile_ms, self.is_cached = built.compile_ms, built.cached

    def run(self) -> Array:
        """The operator, written to the workload's own array."""
        call: Any = spmm.spmm if self.op == "spmm" else spmv.spmv
        call(self.tensor, self.dense, out=self.out, target=self._target)
        return self.out

    def schedule(self) -> Schedule:
        """The schedule that the rules choose."""
        from gossamer.build import default_schedule, resolve

        return default_schedule(self._module(), resolve(self._target)[1], self.tensor.stats)

    def stages(self) -> Mapping[str, str]:
        """The texts of the kernel's stages."""
        from gossamer.build import stages

        return stages(self._module(), target=self._target, stats=self.tensor.stats)

    def _module(self) -> Module:
        variant = sparse_operand(self.tensor).variant(self.features)
        return module_of(operator_named(self.op), variant)

    def scipy(self) -> Array:
        """SciPy's product, in a new array."""
        return self._scipy @ self.dense


def prepare(
    op: str, tensor: SparseTensor, *, features: int, target: str = "generic-cpu"
) -> Workload:
    """A workload with normally distributed operands, the same for the same sizes; its kernel is
    built. The features of a vector are None."""
    is_vector = not operator_named(op).features
    shape = (tensor.shape[1],) if is_vector else (tensor.shape[1], features)
    random = np.random.default_rng(0)
    kind: Any = np.float32 if tensor.dtype == "float32" else np.float64
    dense = random.standard_normal(shape, dtype=kind)
    columns = None if is_vector else features
    return Workload(op, tensor, dense=dense, features=columns, target=target)
