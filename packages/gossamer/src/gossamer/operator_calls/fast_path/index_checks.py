"""The kernel that checks the index arrays of a SciPy matrix in CSR."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from gossamer.compilation.build_kernels import program_kernel
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer_backend import Kernel
from gossamer_backend.internal_api import ArrayTest, compile_tests
from gossamer_ir.nodes import Module

PARSED_CHECKS = {
    "int32": "gossamer.operator_calls.parsed_programs.index_check_int32",
    "int64": "gossamer.operator_calls.parsed_programs.index_check_int64",
}
"""The modules that have the parsed program, by the dtype of both index arrays: SciPy gives them the same."""


def index_tests(indptr: str, indices: str) -> tuple[ArrayTest, ...]:
    """Return the tests of offsets and columns of these dtypes: the offsets never decrease, and the columns
    are within the matrix.

    >>> [test.order for test in index_tests("int32", "int32")]
    ['sorted', None]
    """
    return ArrayTest(indptr, order="sorted"), ArrayTest(indices, is_in_range=True)


def compile_index_check(indptr: str, indices: str) -> Kernel | None:
    """Return the kernel of `index_tests`; None if it cannot be compiled for the default target."""

    def compile(program: bytes, make_module: Callable[[], Module]) -> Kernel:
        parsed = PARSED_CHECKS.get(indptr) if indptr == indices else None

        def make() -> Module:
            return make_module() if parsed is None else parsed_module(parsed)

        return program_kernel(program, make, target=DEFAULT_TARGET)

    return compile_tests(compile, index_tests(indptr, indices))


def parsed_module(home: str) -> Module:
    """Return the module in a file of `parsed_programs`. To import the parser takes a fifth of the second call
    of an operator, which compiles the check."""
    module: Module = import_module(home).PARSED
    return module
