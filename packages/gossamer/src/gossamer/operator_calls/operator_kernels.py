"""Kernels of the operators, built once per process."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from gossamer.operator_calls.operator_program import (
    OperatorProgram,
    StoredFormat,
    Variant,
    module_of,
)
from gossamer.targets import DEFAULT_TARGET, parse_target
from gossamer_backend.internal_api import compiling
from gossamer_ir.interchange.records import Stats, Target
from gossamer_ir.support.bounded_dict import put_bounded

if TYPE_CHECKING:
    from gossamer.build_kernels import BuiltKernel
    from gossamer_backend import FactChecker

MAX_KERNELS = 1024
"""The number of kernels that are kept in memory; others are found again by `build_named`."""

_Key: TypeAlias = tuple[OperatorProgram, Variant, Stats | None, StoredFormat | None, str]
_built: dict[_Key, BuiltKernel] = {}


@cache
def default_check() -> FactChecker:
    """Return a checker of facts about arrays with kernels for the default target."""
    with compiling:
        from gossamer.build_kernels import fact_checker

        return fact_checker(DEFAULT_TARGET)


class KernelRequest(NamedTuple):
    """The program and the variant of a kernel, for a matrix in CSR or in another format. The rules choose its
    schedule by the class of the stats."""

    program: OperatorProgram
    variant: Variant
    stats: Stats | None = None
    format: StoredFormat | None = None


def kernel_for(request: KernelRequest, *, target: str | Target | None = None) -> BuiltKernel:
    """Return the kernel of a request, with the schedule that rules choose."""
    program, variant, stats, format = request
    wanted = DEFAULT_TARGET if target is None else target
    name = wanted if isinstance(wanted, str) else parse_target(wanted).text
    stats = None if stats is None else stats.rounded()
    key = (program, variant, stats, format, name)
    built = _built.get(key)
    if built is not None:
        return built
    with compiling:
        from gossamer.build_kernels import build_named

        if key not in _built:
            asked = msgspec.json.encode((program, variant, format))
            made = partial(module_of, program, variant, format)
            kernel = build_named(asked, made, target=wanted, stats=stats)
            put_bounded(_built, key, kernel, limit=MAX_KERNELS)
        return _built[key]
