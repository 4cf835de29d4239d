"""Check facts about large index arrays with a compiled kernel.

The kernel is only a fast path. If it does not find that all facts hold, `fact_errors.require_facts` decides
and reports the first violation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import msgspec

from gossamer_backend.arguments.array_view import ArrayView
from gossamer_backend.arguments.size_equations import Scalars, evaluate_size
from gossamer_backend.compiled_checks.checked_facts import CheckedFact
from gossamer_ir.errors import ArgumentError, PluginError, UnsupportedError
from gossamer_ir.facts.fact_kinds import subject_of
from gossamer_ir.facts.index_arrays import first_wrong_product, has_value
from gossamer_ir.nodes import Fact, HasValue, Load, Module, ProductSteps
from gossamer_ir.traversal.walk import walk
from gossamer_support.arrays import Array

if TYPE_CHECKING:
    from gossamer_backend.call.kernel import Kernel
    from gossamer_backend.compiled_checks.argument_values import CheckedArray
    from gossamer_backend.compiled_checks.array_test import ArrayTest

MAX_NUMPY_ELEMENTS = 65_536
"""The total number of elements up to which NumPy is faster than preparing a kernel."""

CompileNamed: TypeAlias = "Callable[[bytes, Callable[[], Module]], Kernel]"

_Tests: TypeAlias = "tuple[ArrayTest, ...]"
_CHECKED: tuple[type[Any], ...] = get_args(CheckedFact)
"""The types of facts that are checked here. Any other is left to `require_facts`: the result must not be True
because a fact was ignored."""


class GeneratedCheck:
    """A `FactChecker` with a kernel for each combination of dtypes and tests. `compile` makes the kernels
    from a name of the combination and a function that returns the module.

    Returns False for arrays of NumPy of at most `max_numpy_elements` elements together, and if the kernel
    cannot be compiled for the target. Arrays of a device are checked on the device, whatever their size.

    >>> import numpy as np
    >>> from gossamer_ir.core.build import index
    >>> from gossamer_ir.nodes import InRange
    >>> def compile(name, program):
    ...     raise PluginError("plugin.failed", "There is nothing to compile with.")
    >>> check = GeneratedCheck(compile)
    >>> check((InRange("X", index(0), index(9)),), {}, {"X": np.arange(5)})  # left to NumPy
    False
    """

    def __init__(
        self, compile: CompileNamed, *, max_numpy_elements: int = MAX_NUMPY_ELEMENTS
    ) -> None:
        self._compile = compile
        self._max_numpy_elements = max_numpy_elements
        self._kernels: dict[_Tests, Kernel | None] = {}

    def __call__(self, facts: Sequence[Fact], scalars: Scalars, arrays: Mapping[str, Any]) -> bool:
        if not all(isinstance(fact, _CHECKED) for fact in facts):
            return False
        read = {name: arrays[name] for name in map(subject_of, facts)}
        if any(isinstance(array, ArrayView) for array in read.values()):
            # No element can be read here that is a bound.
            is_known = not any(isinstance(node, Load) for node in walk(*facts))
            return is_known and self._all_pass(tuple(facts), scalars, arrays)
        if sum(array.size for array in read.values()) <= self._max_numpy_elements:
            return False
        several: tuple[Any, ...] = tuple(fact for fact in facts if type(fact) not in _SINGLE)
        single = (fact for fact in facts if type(fact) in _SINGLE)
        if not all(_SINGLE[type(fact)](fact, scalars, arrays) for fact in single):
            return False
        if not several:
            return True
        # The kernel is given bare addresses, so it cannot handle strides.
        return all(map(_is_plain, read.values())) and self._all_pass(several, scalars, arrays)

    def _all_pass(
        self, facts: tuple[Any, ...], scalars: Scalars, arrays: Mapping[str, CheckedArray]
    ) -> bool:
        """Run the kernel for these facts; False also if there is none."""
        # Imported late: the arrays of most first calls are left to NumPy.
        from gossamer_backend.compiled_checks.argument_values import argument_values, with_marks
        from gossamer_backend.compiled_checks.buffer_checks import buffer_checks

        read = {name: arrays[name] for name in map(subject_of, facts)}
        is_elsewhere = any(isinstance(array, ArrayView) for array in read.values())
        checks = buffer_checks(
            facts,
            tuple((name, array.dtype, array.ndim) for name, array in read.items()),
            is_elsewhere=is_elsewhere,
        )
        if checks is None:
            return False
        checks = tuple(with_marks(check, scalars, arrays) for check in checks)
        kernel = self._kernel(tuple(check.test for check in checks))
        values = [argument_values(check, scalars, arrays) for check in checks]
        if kernel is None or None in values:
            return False
        return _kernel_accepts(kernel, [value for group in values if group for value in group])

    def _kernel(self, tests: _Tests) -> Kernel | None:
        # None is kept as well: a target that cannot compile the test is not asked again.
        if tests not in self._kernels:
            self._kernels[tests] = compile_tests(self._compile, tests)
        return self._kernels[tests]


def compile_tests(compile: CompileNamed, tests: tuple[ArrayTest, ...]) -> Kernel | None:
    """Return the kernel of the tests; None if it cannot be compiled for the target."""
    from gossamer_backend.compiled_checks.check_program import program_of_checks

    name = msgspec.json.encode(("check_module", tests))
    try:
        return compile(name, partial(program_of_checks, tests))
    except (UnsupportedError, PluginError):
        return None


def _is_plain(array: Array) -> bool:
    return array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative


def _are_product_steps(fact: ProductSteps, _scalars: Scalars, arrays: Mapping[str, Array]) -> bool:
    operands = (arrays[name] for name in (fact.buffer, fact.left, fact.right))
    return first_wrong_product(*operands) is None


def _has_value(fact: HasValue, scalars: Scalars, arrays: Mapping[str, Array]) -> bool:
    at, value = (evaluate_size(size, scalars, arrays=arrays) for size in (fact.index, fact.value))
    return has_value(arrays[fact.buffer], at=at, value=value)


_SINGLE: Mapping[type[Any], Callable[[Any, Scalars, Mapping[str, Array]], bool]] = {
    HasValue: _has_value,
    ProductSteps: _are_product_steps,
}
"""Checks of facts that NumPy checks as fast as a kernel."""


def _kernel_accepts(kernel: Kernel, values: Sequence[CheckedArray | int]) -> bool:
    arguments = [value.array if isinstance(value, ArrayView) else value for value in values]
    try:
        kernel.run_trusted(*arguments)
    except (ArgumentError, MemoryError):  # a test failed, or there is no memory for its counts
        return False
    return True
