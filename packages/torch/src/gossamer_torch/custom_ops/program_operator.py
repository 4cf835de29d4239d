"""Programs of the language as custom operators of torch, whose gradients are their adjoint programs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

import torch

import gossamer as gs
from gossamer_backend import Kernel
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Signature
from gossamer_ir.interchange.serialization import dumps
from gossamer_ir.nodes import Module
from gossamer_ir.transform.retype_module import retype_module
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_support.as_tuple import as_tuple
from gossamer_support.typed_calls import typed
from gossamer_torch.checks import (
    INDEX_TENSOR_DTYPES,
    require_dense,
    require_one_device,
    require_one_dtype,
    require_tensor_shape,
)
from gossamer_torch.custom_ops.registration import (
    GradientRule,
    GradientsByName,
    OperatorDefinition,
    register_operator,
)
from gossamer_torch.devices import DeviceTensor, call_context, required_target
from gossamer_torch.infer_sizes import infer_sizes, size_sources, symbolic_size
from gossamer_torch.numpy_views import shared_array, torch_dtype_name
from gossamer_torch.program_dtypes import PROGRAM_DTYPES, array_dtypes


@typed
def custom_op(
    program: Module | str | Callable[..., Any], *, specialize: Mapping[str, int] | None = None
) -> CustomOperator:
    """Return a custom operator of torch for a program of the coordinate stage, with gradients of any order.

    The program is a script's text, a decorated function or a module, such as that of
    `gossamer.einsum_program`; `specialize` fixes sizes, such as numbers of features. The operator's arguments
    are the arrays that the program only reads, in the order of its parameters, and its results those that it
    writes. Sizes follow from the shapes, or are passed by name. Arrays of floats may have any dtype of
    floats, the same for all; indices are int32 or int64. The gradients are computed by
    `gossamer.adjoint` of the program, as far as they are required.

    Raises the errors of `gossamer.compile`, and at a call `ArgumentError` (`operand.kind`, `operand.dtype`,
    `operand.device`, `operator.operands`;
    `kernel.size`: a size is not known), and at a gradient those of
    `gossamer.adjoint`.

    >>> scale = custom_op('''
    ... @T.prim_func
    ... def scale_rows(x: T.handle, s: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    ...     T.func_attr({"sparse_tir_level": 2})
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.dense_fixed(n)
    ...     X = T.sp.match_buffer(x, (I, J), "float32")
    ...     S = T.sp.match_buffer(s, (I,), "float32")
    ...     Y = T.sp.match_buffer(y, (I, J), "float32")
    ...     with T.sp.iteration([I, J], "SS", "scale") as [i, j]:
    ...         Y[i, j] = S[i] * X[i, j]
    ... ''')
    >>> s = torch.tensor([2.0, 3.0], requires_grad=True)
    >>> y = scale(torch.ones(2, 2), s)
    >>> y.sum().backward()
    >>> y.tolist(), s.grad
    ([[2.0, 2.0], [3.0, 3.0]], tensor([2., 2.]))
    """
    return CustomOperator(gs.schedule(program, specialize=specialize).module)


class CustomOperator:
    """A program as a function of tensors; `custom_op` makes it. `inputs`, `outputs` and `sizes` are names of
    the program's parameters."""

    def __init__(self, module: Module) -> None:
        self._operator = _operator(module, None)
        self.inputs, self.outputs = self._operator.inputs, self._operator.outputs
        self.sizes = self._operator.sizes
        params = [self._operator.params[name] for name in self.inputs]
        self._kinds = [
            (param.name, array_dtypes(param.dtype), len(param.shape)) for param in params
        ]
        self._size_sources = size_sources(params)
        # All at once, since torch registers no operator while it traces a call.
        self._variants = {
            (values, indices): _operator(
                retype_module(
                    module, dtype=torch_dtype_name(values), index_dtype=torch_dtype_name(indices)
                ),
                self._operator.signature,
            )
            for values in PROGRAM_DTYPES
            for indices in INDEX_TENSOR_DTYPES
        }

    def __call__(self, *arrays: torch.Tensor, **sizes: int) -> Any:
        """Return the results for the arrays that the program only reads; sizes that do not follow from their
        shapes are passed by name."""
        if len(arrays) != len(self.inputs):
            raise ArgumentError(
                "operator.operands",
                f"The operator has {len(arrays)} arguments; expected {len(self.inputs)}: "
                f"{', '.join(self.inputs)}.",
            )
        for array, (name, dtypes, dimensions) in zip(arrays, self._kinds, strict=True):
            require_dense(name, array, dtypes=dtypes)
            require_one_device(name, array, arrays[0].device, like=f"'{self.inputs[0]}'")
            require_tensor_shape(name, array, (None,) * dimensions)
        shapes = [array.shape for array in arrays]
        solved = infer_sizes(self._size_sources, shapes, sizes, names=self.sizes)
        kinds = [_one_dtype(arrays, allowed) for allowed in (PROGRAM_DTYPES, INDEX_TENSOR_DTYPES)]
        return self.operator_for(kinds[0], kinds[1]).call(*arrays, *solved)

    def operator_for(self, values: torch.dtype, indices: torch.dtype) -> ProgramOperator:
        """Return torch's operator for floats and indices of these dtypes."""
        return self._variants[values, indices]

    def gradient(self, wrt: Sequence[str]) -> ProgramOperator:
        """Return the operator of the adjoint program: the gradients of some inputs from those of all
        results."""
        return self._operator.gradient(wrt)


def _one_dtype(arrays: Sequence[torch.Tensor], allowed: tuple[torch.dtype, ...]) -> torch.dtype:
    """Return the dtype of the arrays that have one of those allowed; the first of these if there are none."""
    chosen = [array for array in arrays if array.dtype in allowed]
    for array in chosen:
        require_one_dtype("an array", array, chosen[0].dtype, like="another one")
    return chosen[0].dtype if chosen else allowed[0]


_operators: dict[str, ProgramOperator] = {}
"""The operators by the digests of their programs: torch registers a name once."""

_registration = Lock()
"""Held while an operator is registered, such as by the first gradients in several threads."""


def _operator(module: Module, signature: Signature | None) -> ProgramOperator:
    digest = hashlib.sha256(dumps(module)).hexdigest()[:16]
    with _registration:
        if digest not in _operators:
            _operators[digest] = ProgramOperator(module, digest, signature)
        return _operators[digest]


class ProgramOperator:
    """A program as a custom operator of torch, for arrays of its dtypes. `signature` is that of its kernel,
    also of one for other dtypes; None: it is compiled to know it."""

    def __init__(self, module: Module, digest: str, signature: Signature | None) -> None:
        self._module = module
        self._kernels: dict[str | None, Kernel] = {}
        self.signature = self.kernel().signature if signature is None else signature
        (function,) = module.functions
        self._buffers = {buffer.handle: buffer for buffer in function.buffers}
        self.params = {param.name: param for param in self.signature.buffers}
        arrays = [name for name in self.signature.order if name in self.params]
        self.inputs = [name for name in arrays if not self.params[name].is_written]
        self.outputs = [name for name in arrays if self.params[name].is_written]
        self.sizes = [name for name in self.signature.order if name not in self.params]
        self._gradients: dict[tuple[str, ...], ProgramOperator] = {}
        self._dependent: dict[tuple[str, ...], list[str]] = {}
        self.name = f"{module.entry}_{digest}"
        self.call = self._register()

    def kernel(self, target: str | None = None) -> Kernel:
        """Return the kernel for a target, by default this CPU, which is compiled at its first use."""
        if target not in self._kernels:
            self._kernels[target] = (
                gs.compile(self._module)
                if target is None
                else gs.compile(self._module, target=target)
            )
        return self._kernels[target]

    def _register(self) -> Any:
        tensors = [f"Tensor {handle}" for handle in self.inputs]
        numbers = [f"SymInt {size}" for size in self.sizes]
        results = ", ".join("Tensor" for _ in self.outputs)
        result = results if len(self.outputs) == 1 else f"({results})"
        return register_operator(
            OperatorDefinition(
                self.name,
                f"({', '.join([*tensors, *numbers])}) -> {result}",
                [*self.inputs, *self.sizes],
                self.outputs,
                self._run,
                self._run_on_device,
                self._new_results,
                GradientRule([*self.inputs, *self.sizes, *self.outputs], self._computed_gradients),
            )
        )

    def _run(self, *arguments: Any) -> Any:
        results = self._new_results(*arguments)
        self.kernel()(**self._kernel_arguments(arguments, results, shared_array))
        return results

    def _run_on_device(self, *arguments: Any) -> Any:
        """Return the results on the GPU of the inputs, by a kernel on torch's current stream. The kernel
        checks the index arrays, for which it waits."""
        results = self._new_results(*arguments)
        first = arguments[0]
        kernel = self.kernel(required_target(self.inputs[0], first))
        passed = self._kernel_arguments(arguments, results, DeviceTensor)
        kernel(**passed, context=call_context(first))
        return results

    def _kernel_arguments(
        self, arguments: Sequence[Any], results: Any, to_array: Callable[[torch.Tensor], Any]
    ) -> dict[str, Any]:
        """Return the arguments of a kernel, with zeros in the results: for elements that the program does not
        visit."""
        values = [*arguments, *(result.zero_() for result in as_tuple(results))]
        names = [*self.inputs, *self.sizes, *self.outputs]
        return {
            name: to_array(value) if isinstance(value, torch.Tensor) else value
            for name, value in zip(names, values, strict=True)
        }

    def _new_results(self, *arguments: Any) -> Any:
        """Return new tensors for the results, whose contents are not defined."""
        sizes = dict(zip(self.sizes, arguments[len(self.inputs) :], strict=True))
        made = tuple(
            arguments[0].new_empty(
                [symbolic_size(size, sizes) for size in self.params[name].shape],
                dtype=getattr(torch, self._buffers[name].dtype),
            )
            for name in self.outputs
        )
        return made[0] if len(made) == 1 else made

    def _computed_gradients(self, *arguments: Any, **read: Any) -> GradientsByName:
        """Return the gradients that are needed, by one adjoint program."""
        *gradients, needed = arguments
        wrt = self._dependences([name for name in self.inputs if name in needed])
        if not wrt:
            return {}
        adjoint = self.gradient(wrt)
        # Handles of gradients come after those of the program, in the order of its results.
        new = [name for name in adjoint.inputs if name not in read]
        values = read | dict(zip(new, gradients, strict=True))
        results = adjoint.call(*(values[name] for name in (*adjoint.inputs, *adjoint.sizes)))
        return dict(zip(wrt, as_tuple(results), strict=True))

    def gradient(self, wrt: Sequence[str]) -> ProgramOperator:
        """Return the operator of the adjoint program for some inputs."""
        key = tuple(wrt)
        if key not in self._gradients:
            self._gradients[key] = _operator(self._adjoint(key), None)
        return self._gradients[key]

    def _adjoint(self, wrt: Sequence[str]) -> Module:
        wanted, results = (
            [self._buffers[name].name for name in names] for names in (wrt, self.outputs)
        )
        return gs.adjoint(self._module, wrt=wanted, outputs=results)

    def _dependences(self, wrt: Sequence[str]) -> list[str]:
        """Return the inputs whose gradients the adjoint program computes. The others are zero, such as that
        of a maximum which the adjoint of its reduction compares with products."""
        key = tuple(wrt)
        if key and key not in self._dependent:
            (function,) = self._adjoint(key).functions
            written = buffers_written(function.body)
            buffers = {buffer.handle: buffer.name for buffer in function.buffers}
            handles = [param.name for param in function.params if param.name in buffers]
            # The gradients of inputs are the last arrays, in the order of these.
            pairs = zip(key, handles[-len(key) :], strict=True)
            self._dependent[key] = [name for name, handle in pairs if buffers[handle] in written]
        return self._dependent[key] if key else []
