"""Match the arguments of a call to the parameters of a signature, and check them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec
import numpy as np

from gossamer_backend.arguments.array_checks import (
    numpy_dtype,
    require_no_overlap,
    required_view,
    required_view_shape,
)
from gossamer_backend.arguments.array_view import ArrayView
from gossamer_backend.arguments.content_checks import ContentChecker
from gossamer_backend.arguments.memory import HOST_MEMORY, Memory
from gossamer_backend.arguments.scalar_checks import require_size, required_scalar, scalar_limits
from gossamer_backend.arguments.size_equations import LinearSize, evaluate_size, to_linear
from gossamer_ir.errors import ArgumentError, InternalError
from gossamer_ir.facts.index_arrays import FactChecker
from gossamer_ir.interchange.records import BufferParam, Signature
from gossamer_ir.nodes import Expr
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_support.arrays import Array
from gossamer_support.items_by_name import items_by_name
from gossamer_support.message_texts import amount


class Exporter(Protocol):
    """An array of any package on any device, which DLPack exports."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


ArgumentValue: TypeAlias = "Array | np.generic | Exporter | int | float | bool"
PlainNumber: TypeAlias = int | float | bool


class MatchedArguments(msgspec.Struct, frozen=True):
    """A value for each parameter, and the views of the arrays, which keep their memory alive. Arrays on the
    host are NumPy's, those of a device are the objects that were passed."""

    values: dict[str, Any]
    views: dict[str, ArrayView]


class _ExpectedArray(msgspec.Struct, frozen=True):
    param: BufferParam
    dtype: np.dtype[Any]
    shape: tuple[tuple[Expr, LinearSize | None], ...]


class _Elements(dict[str, "Array"]):
    """The arrays of a call by the names of their buffers, as arrays of NumPy. They are read when they are
    needed: those of a device are copied."""

    def __init__(self, views: Mapping[str, ArrayView], memory: Memory, stream: object) -> None:
        super().__init__()
        self._views, self._memory, self._stream = views, memory, stream

    def __missing__(self, buffer_name: str) -> Array:
        self._memory.wait(self._stream)
        self[buffer_name] = array = self._memory.to_host(self._views[buffer_name])
        return array


class ArgumentChecker:
    """The argument checks of one signature, prepared once, for a kernel that takes arrays in a memory."""

    def __init__(self, signature: Signature, *, memory: Memory = HOST_MEMORY) -> None:
        self._order = signature.order
        self._memory = memory
        self._buffers = signature.buffers
        self._expected_arrays = [
            _ExpectedArray(
                param, numpy_dtype(param), tuple((size, to_linear(size)) for size in param.shape)
            )
            for param in signature.buffers
        ]
        self._scalars = items_by_name(signature.scalars)
        self._contents = ContentChecker(signature, memory)
        self._sizes = frozenset(
            name for param in signature.buffers for size in param.shape for name in free_vars(size)
        )
        if unknown := self._sizes - self._scalars.keys():
            raise InternalError(f"Shapes of a signature use {unknown}, which are not parameters.")
        self._limits = {
            param.name: scalar_limits(param, is_size=param.name in self._sizes)
            for param in signature.scalars
        }

    def set_fact_checker(self, check: FactChecker) -> None:
        """Try a fast check of contents, before they are checked by NumPy."""
        self._contents.fact_checker = check

    def check(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        verified: Collection[str] = (),
        stream: object = None,
    ) -> MatchedArguments:
        """Return a value for each parameter; raise `ArgumentError` if one is invalid. Arrays are for use on
        the stream of a device, None for its default one."""
        arguments = self._arguments_by_name(args, kwargs)
        if verified:
            self._require_known(verified)
        device = self._memory.device
        views = {
            array.param.buffer: required_view(
                array.param,
                array.dtype,
                value=self._required_argument(array.param.name, arguments),
                device=device,
                stream=stream,
            )
            for array in self._expected_arrays
        }
        self._wait_for_contents(views.values(), stream)
        scalars = self._numbers(arguments, views)
        shaped = self._with_parameter_shapes(scalars, views, _Elements(views, self._memory, stream))
        require_no_overlap(self._buffers, list(views.values()))
        self._contents.require_facts(scalars, shaped, verified=verified, stream=stream)
        by_name = {param.name: views[param.buffer] for param in self._buffers}
        values = {name: view.array for name, view in by_name.items()}
        return MatchedArguments({**scalars, **values}, by_name)

    def _wait_for_contents(self, views: Iterable[ArrayView], stream: object) -> None:
        """Wait for the streams that write arrays, unless they are the one of the call."""
        for view in views:
            if view.stream is not None and view.stream != stream:
                self._memory.wait(view.stream)

    def _arguments_by_name(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        if len(args) > len(self._order):
            raise ArgumentError(
                "kernel.arguments",
                f"The number of positional arguments is {len(args)}; expected at most {len(self._order)}: "
                f"{', '.join(self._order)}.",
            )
        arguments = dict(zip(self._order, args, strict=False))
        if not args:
            self._require_known(kwargs)
            return dict(kwargs)
        for name in kwargs:
            if name in arguments:
                raise ArgumentError(
                    "kernel.arguments", f"The argument '{name}' is given by position and by name."
                )
        self._require_known(kwargs)
        arguments.update(kwargs)
        return arguments

    def _require_known(self, names: Collection[str]) -> None:
        for name in names:
            if name not in self._order:
                raise ArgumentError(
                    "kernel.arguments",
                    f"'{name}' is not a parameter of the kernel.",
                    hint=f"Its parameters are {', '.join(self._order)}.",
                )

    def _required_argument(self, name: str, arguments: Mapping[str, Any]) -> Any:
        if name not in arguments:
            raise ArgumentError(
                "kernel.arguments",
                f"The argument '{name}' is missing.",
                hint=f"The kernel's parameters are {', '.join(self._order)}.",
            )
        return arguments[name]

    def _numbers(
        self, arguments: Mapping[str, Any], views: Mapping[str, ArrayView]
    ) -> dict[str, PlainNumber]:
        numbers: dict[str, PlainNumber] = {
            name: self._number(name, arguments[name])
            for name in self._scalars
            if arguments.get(name) is not None
        }
        # Sizes that were not given are solved from the shapes;
        # given ones are compared with the shapes below.
        if len(numbers) < len(self._scalars):
            self._solve_sizes(numbers, views)
            for name in self._scalars:
                if name not in numbers:
                    self._require_ndim(name, views)
                self._required_argument(name, numbers)
        return numbers

    def _require_ndim(self, name: str, views: Mapping[str, ArrayView]) -> None:
        """Refuse an array of fewer or more dimensions than its parameter if they would give a size."""
        for array in self._expected_arrays:
            view = views[array.param.buffer]
            is_given_by = any(
                linear is not None and linear.name == name for _, linear in array.shape
            )
            if is_given_by and len(view.shape) != len(array.shape):
                raise ArgumentError(
                    "kernel.arguments",
                    f"The size '{name}' is missing, and the array '{array.param.name}' of shape "
                    f"{view.shape} does not give it.",
                    hint=f"Pass an array with {amount(len(array.shape), 'dimension')}, or the size.",
                )

    def _solve_sizes(self, numbers: dict[str, PlainNumber], views: Mapping[str, ArrayView]) -> None:
        for array in self._expected_arrays:
            view = views[array.param.buffer]
            # A flat array has the right number of elements at most,
            # but gives no size of several dimensions.
            sizes = view.shape if len(view.shape) == len(array.shape) else (view.size,)
            for (_, linear), size in zip(array.shape, sizes, strict=False):
                if linear is None or linear.name is None or linear.name in numbers:
                    continue
                if len(sizes) != len(array.shape):
                    continue
                solution = linear.solve(size)
                # A shape that fits no size is reported when the shapes are compared.
                if solution is not None and solution >= 0:
                    numbers[linear.name] = self._number(linear.name, solution)

    def _number(self, name: str, value: Any) -> PlainNumber:
        low, high = self._limits.get(name, (0, 0))
        # The usual case first: most sizes are plain integers.
        if type(value) is int and low <= value < high:
            return value
        number = required_scalar(self._scalars[name], value)
        if name in self._sizes:
            require_size(self._scalars[name], number)
        return number

    def _with_parameter_shapes(
        self,
        scalars: Mapping[str, PlainNumber],
        views: Mapping[str, ArrayView],
        elements: Mapping[str, Array],
    ) -> dict[str, ArrayView]:
        """Return the views in the shapes of their parameters, which they must have unless they are flat."""
        shaped = {}
        for array in self._expected_arrays:
            shape = tuple(
                evaluate_size(size, scalars, arrays=elements)
                if linear is None
                else linear.value(scalars)
                for size, linear in array.shape
            )
            view = views[array.param.buffer]
            if view.shape != shape:
                view = required_view_shape(array.param, view, shape=shape)
            shaped[array.param.buffer] = view
        return shaped
