"""Kernels of the operators and of `einsum`, built once per process."""

from __future__ import annotations

from collections.abc import Callable, Hashable
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
from gossamer_ir.interchange.records import Stats, Target
from gossamer_ir.support.bounded_dict import put_bounded
from gossamer_ir.support.fork import compiling

if TYPE_CHECKING:
    from gossamer.build_kernels import BuiltKernel
    from gossamer_backend import FactChecker
    from gossamer_ir.nodes import Module

MAX_KERNELS = 1024
"""The number of kernels that are kept in memory; others are found again by `build_by_identity`."""

_Key: TypeAlias = tuple[Hashable, Stats | None, str]
_built: dict[_Key, BuiltKernel] = {}
"""The kernels by the identity of their program, the stats and the target."""


@cache
def default_check() -> FactChecker:
    """Return a checker of facts about arrays with kernels for the default target."""
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
    make_module = partial(module_of, program, variant, format)
    return memoized_kernel((program, variant, format), make_module, target=target, stats=stats)


def memoized_kernel(
    identity: Hashable,
    make_module: Callable[[], Module],
    *,
    target: str | Target | None = None,
    stats: Stats | None = None,
) -> BuiltKernel:
    """Return the kernel of the program with an identity, with the schedule that rules choose for the class
    of the stats. The identity is a tuple of records. By it the cache on disk finds the kernel, too."""
    wanted = DEFAULT_TARGET if target is None else target
    text = wanted if isinstance(wanted, str) else parse_target(wanted).text
    stats = None if stats is None else stats.representative()
    key = (identity, stats, text)
    built = _built.get(key)
    if built is not None:
        return built
    with compiling:
        from gossamer.build_kernels import build_by_identity

        if key not in _built:
            kernel = build_by_identity(
                msgspec.json.encode(identity), make_module, target=wanted, stats=stats
            )
            put_bounded(_built, key, kernel, limit=MAX_KERNELS)
        return _built[key]
