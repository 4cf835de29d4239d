"""Match the arguments of a call to the parameters of a signature, and check them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gossamer_backend.arguments.array_checks import (
    address,
    numpy_dtype,
    require_no_overlap,
    required_array,
    required_array_shape,
)
from gossamer_backend.arguments.fact_errors import require_facts
from gossamer_backend.arguments.scalar_checks import require_size, required_scalar, scalar_limits
from gossamer_backend.arguments.size_equations import LinearSize, evaluate_size, to_linear
from gossamer_ir.errors import ArgumentError, InternalError
from gossamer_ir.facts.fact_index import stated_fact_index
from gossamer_ir.facts.fact_kinds import subject_of
from gossamer_ir.facts.index_arrays import FactChecker
from gossamer_ir.interchange.records import BufferParam, Signature
from gossamer_ir.nodes import Expr, Relation
from gossamer_ir.support.arrays import Array
from gossamer_ir.support.counted import counted
from gossamer_ir.support.items_by_name import items_by_name
from gossamer_ir.traversal.references import free_vars

ArgumentValue: TypeAlias = "np.ndarray[Any, Any] | np.generic | int | float | bool"
PlainNumber: TypeAlias = int | float | bool


class MatchedArguments(NamedTuple):
    """A value for each parameter, and the addresses of the arrays."""

    values: dict[str, Array | PlainNumber]
    addresses: dict[str, int]


class _BufferMatch(NamedTuple):
    param: BufferParam
    dtype: np.dtype[Any]
    shape: tuple[tuple[Expr, LinearSize | None], ...]


class ArgumentChecker:
    """The argument checks of one signature, prepared once.

    If `fact_checker` is set, it is tried before the contents of arrays are checked by NumPy.
    """

    fact_checker: FactChecker | None = None

    def __init__(self, signature: Signature) -> None:
        self._order = signature.order
        self._buffers = signature.buffers
        self._rows = [
            _BufferMatch(
                param, numpy_dtype(param), tuple((size, to_linear(size)) for size in param.shape)
            )
            for param in signature.buffers
        ]
        self._scalars = items_by_name(signature.scalars)
        # Several buffers of the entry may be bound to one pointer.
        self._aliases = {
            name: param
            for param in signature.buffers
            for name in (param.buffer, *(subject_of(fact) for fact in param.facts))
        }
        self._names = {name: param.name for name, param in self._aliases.items()}
        facts = tuple(fact for param in signature.buffers for fact in param.facts)
        self._is_related = bool(stated_fact_index(facts).of_type(Relation))
        self._sizes = frozenset(
            name for param in signature.buffers for size in param.shape for name in free_vars(size)
        )
        if unknown := self._sizes - self._scalars.keys():
            raise InternalError(f"Shapes of a signature use {unknown}, which are not parameters.")
        self._limits = {
            param.name: scalar_limits(param, is_size=param.name in self._sizes)
            for param in signature.scalars
        }

    def check(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        verified: Collection[str] = (),
    ) -> MatchedArguments:
        """Return a value for each parameter; raise `ArgumentError` if one is invalid."""
        given = self._arguments_by_name(args, kwargs)
        if verified:
            self._require_known(verified)
        arrays = {
            row.param.buffer: required_array(
                row.param, row.dtype, value=self._required_argument(row.param.name, given)
            )
            for row in self._rows
        }
        scalars = self._numbers(given, arrays)
        shaped = self._reshaped_arrays(scalars, arrays)
        plain = list(arrays.values())
        # Of the arrays as given: reshaping keeps the address.
        addresses = list(map(address, plain))
        require_no_overlap(self._buffers, plain, addresses=addresses)
        self._require_facts(scalars, shaped, verified=verified)
        names = [param.name for param in self._buffers]
        return MatchedArguments(
            {**scalars, **dict(zip(names, plain, strict=True))},
            dict(zip(names, addresses, strict=True)),
        )

    def _arguments_by_name(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        if len(args) > len(self._order):
            raise ArgumentError(
                "kernel.arguments",
                f"The number of positional arguments is {len(args)}; expected at most {len(self._order)}: "
                f"{', '.join(self._order)}.",
            )
        given = dict(zip(self._order, args, strict=False))
        if not args:
            self._require_known(kwargs)
            return dict(kwargs)
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
                    f"'{name}' is not a parameter of the kernel.",
                    hint=f"Its parameters are {', '.join(self._order)}.",
                )

    def _required_argument(self, name: str, given: Mapping[str, Any]) -> Any:
        if name not in given:
            raise ArgumentError(
                "kernel.arguments",
                f"The argument '{name}' is missing.",
                hint=f"The kernel's parameters are {', '.join(self._order)}.",
            )
        return given[name]

    def _numbers(
        self, given: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> dict[str, PlainNumber]:
        numbers: dict[str, PlainNumber] = {
            name: self._number(name, given[name])
            for name in self._scalars
            if given.get(name) is not None
        }
        # Sizes that were not given are solved from the shapes; given ones are compared with the shapes
        # below.
        if len(numbers) < len(self._scalars):
            self._solve_sizes(numbers, arrays)
            for name in self._scalars:
                if name not in numbers:
                    self._require_ranks(name, arrays)
                self._required_argument(name, numbers)
        return numbers

    def _require_ranks(self, name: str, arrays: Mapping[str, Array]) -> None:
        """Refuse an array of fewer or more dimensions than its parameter if they would give a size."""
        for row in self._rows:
            array = arrays[row.param.buffer]
            is_given_by = any(linear is not None and linear.name == name for _, linear in row.shape)
            if is_given_by and array.ndim != len(row.shape):
                raise ArgumentError(
                    "kernel.arguments",
                    f"The size '{name}' is missing, and the array '{row.param.name}' of shape "
                    f"{array.shape} does not give it.",
                    hint=f"Pass an array with {counted(len(row.shape), 'dimension')}, or the size.",
                )

    def _solve_sizes(self, numbers: dict[str, PlainNumber], arrays: Mapping[str, Array]) -> None:
        for row in self._rows:
            array = arrays[row.param.buffer]
            # A flat array has the right number of elements at most, but gives no size of several
            # dimensions.
            sizes = array.shape if array.ndim == len(row.shape) else (array.size,)
            for (_, linear), size in zip(row.shape, sizes, strict=False):
                if linear is None or linear.name is None or linear.name in numbers:
                    continue
                if len(sizes) != len(row.shape):
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

    def _reshaped_arrays(
        self, scalars: Mapping[str, PlainNumber], arrays: Mapping[str, Array]
    ) -> dict[str, Array]:
        shaped = {}
        for row in self._rows:
            shape = tuple(
                evaluate_size(size, scalars, arrays=arrays)
                if linear is None
                else linear.value(scalars)
                for size, linear in row.shape
            )
            array = arrays[row.param.buffer]
            if array.shape != shape:
                array = required_array_shape(row.param, array, shape=shape)
            shaped[row.param.buffer] = array
        return shaped

    def _require_facts(
        self,
        scalars: Mapping[str, PlainNumber],
        arrays: Mapping[str, Array],
        *,
        verified: Collection[str],
    ) -> None:
        facts = tuple(
            fact
            for param in self._buffers
            # A relation is checked with all arrays that it names, whichever of them was verified.
            if param.facts and (self._is_related or param.name not in verified)
            for fact in param.facts
        )
        if not facts:
            return
        by_alias = {name: arrays[param.buffer] for name, param in self._aliases.items()}
        # The fast check says only that something is wrong; the slow one finds where.
        if self.fact_checker is None or not self.fact_checker(facts, scalars, by_alias):
            require_facts(facts, scalars, arrays=by_alias, names=self._names)
