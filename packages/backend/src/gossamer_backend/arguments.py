"""What a caller passes, made into one value for each parameter of a signature, or refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import numpy as np

from gossamer_backend.arrays import (
    numpy_dtype,
    require_array,
    require_no_overlap,
    require_shape,
)
from gossamer_backend.facts import check_facts
from gossamer_backend.scalars import require_scalar, require_size
from gossamer_backend.sizes import Array, evaluate, solve
from gossamer_ir.contracts import BufferParam, Signature
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Expr
from gossamer_ir.walk import free_vars

Value: TypeAlias = "np.ndarray[Any, Any] | np.generic | int | float | bool"
Number: TypeAlias = int | float | bool


class Arguments:
    """The checks of one signature, prepared once."""

    def __init__(self, signature: Signature) -> None:
        self._order = signature.order
        self._buffers = signature.buffers
        self._dtypes = [numpy_dtype(param) for param in signature.buffers]
        self._scalars = {param.name: param for param in signature.scalars}
        self._names = {param.buffer: param.name for param in signature.buffers}
        self._sizes = frozenset(
            name for param in signature.buffers for size in param.shape for name in free_vars(size)
        ) & frozenset(self._scalars)

    def check(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        verified: Collection[str] = (),
    ) -> dict[str, Array | Number]:
        """One value for each parameter; `ArgumentError` says what is wrong with one."""
        given = self._by_name(args, kwargs)
        self._require_known(verified)
        arrays = {
            param.buffer: require_array(param, dtype, value=self._required(param.name, given))
            for param, dtype in zip(self._buffers, self._dtypes, strict=True)
        }
        scalars = self._numbers(given, arrays)
        shaped = self._shaped(scalars, arrays)
        require_no_overlap(self._buffers, list(arrays.values()))
        self._require_facts(scalars, shaped, verified=verified)
        values: dict[str, Array | Number] = dict(scalars)
        values.update((param.name, arrays[param.buffer]) for param in self._buffers)
        return values

    def _by_name(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if len(args) > len(self._order):
            raise ArgumentError(
                "kernel.arguments",
                f"{len(args)} arguments were given, expected at most {len(self._order)}: "
                f"{', '.join(self._order)}.",
            )
        given = dict(zip(self._order, args, strict=False))
        for name in kwargs:
            if name in given:
                raise ArgumentError(
                    "kernel.arguments", f"The argument '{name}' is given by position and by name."
                )
        self._require_known(kwargs)
        given.update(kwargs)
        return given

    def _require_known(self, names: Collection[str]) -> None:
        for name in names:
            if name not in self._order:
                raise ArgumentError(
                    "kernel.arguments",
                    f"'{name}' is no parameter of the kernel.",
                    hint=f"Its parameters are {', '.join(self._order)}.",
                )

    def _required(self, name: str, given: Mapping[str, Any]) -> Any:
        if name not in given:
            raise ArgumentError(
                "kernel.arguments",
                f"The argument '{name}' is missing.",
                hint=f"The kernel's parameters are {', '.join(self._order)}.",
            )
        return given[name]

    def _numbers(self, given: Mapping[str, Any], arrays: Mapping[str, Array]) -> dict[str, Number]:
        numbers: dict[str, Number] = {
            name: require_scalar(param, given[name])
            for name, param in self._scalars.items()
            if given.get(name) is not None
        }
        if len(numbers) < len(self._scalars):
            self._solve_sizes(numbers, arrays)
        for name, param in self._scalars.items():
            self._required(name, numbers)
            if name in self._sizes:
                require_size(param, numbers[name])
        return numbers

    def _solve_sizes(self, numbers: dict[str, Number], arrays: Mapping[str, Array]) -> None:
        for param in self._buffers:
            for expr, size in _dimensions(param, arrays[param.buffer]):
                solution = solve(expr, size, known=numbers)
                if solution is not None and solution[0] in self._scalars:
                    name, number = solution
                    numbers[name] = require_scalar(self._scalars[name], number)

    def _shaped(
        self, scalars: Mapping[str, Number], arrays: Mapping[str, Array]
    ) -> dict[str, Array]:
        shaped = {}
        for param in self._buffers:
            shape = tuple(evaluate(size, scalars, arrays=arrays) for size in param.shape)
            shaped[param.buffer] = require_shape(param, arrays[param.buffer], shape=shape)
        return shaped

    def _require_facts(
        self,
        scalars: Mapping[str, Number],
        arrays: Mapping[str, Array],
        *,
        verified: Collection[str],
    ) -> None:
        facts = tuple(
            fact
            for param in self._buffers
            if param.facts and param.name not in verified
            for fact in param.facts
        )
        if facts:
            check_facts(facts, scalars, arrays=arrays, names=self._names)


def _dimensions(param: BufferParam, array: Array) -> list[tuple[Expr, int]]:
    if array.ndim == len(param.shape):
        return list(zip(param.shape, array.shape, strict=True))
    return [(param.shape[0], array.size)] if len(param.shape) == 1 else []
