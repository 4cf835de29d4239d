"""The table of primitives: one line for each."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import CO_VARARGS, unwrap
from typing import Any, Concatenate, ParamSpec, TypeVar

from gossamer_ir.nodes import Module
from gossamer_schedule.primitives.cache_read import cache_read
from gossamer_schedule.primitives.cache_write import cache_write
from gossamer_schedule.primitives.decompose_reduction import decompose_reduction
from gossamer_schedule.primitives.parallel import parallel
from gossamer_schedule.primitives.prefetch import prefetch
from gossamer_schedule.primitives.reindex_cache_read import reindex_cache_read
from gossamer_schedule.primitives.reindex_cache_write import reindex_cache_write
from gossamer_schedule.primitives.reorder import reorder
from gossamer_schedule.primitives.reverse_compute_at import reverse_compute_at
from gossamer_schedule.primitives.sparse_fuse import sparse_fuse
from gossamer_schedule.primitives.sparse_reorder import sparse_reorder
from gossamer_schedule.primitives.sparse_unfuse import sparse_unfuse
from gossamer_schedule.primitives.split import split
from gossamer_schedule.primitives.unroll import unroll
from gossamer_schedule.primitives.vectorize import vectorize
from gossamer_schedule.result import Result

P = ParamSpec("P")
F = TypeVar("F", bound="Fluent")


def _fluent(primitive: Callable[Concatenate[Module, P], Result]) -> Callable[Concatenate[F, P], F]:
    """The method that applies a primitive: its arguments without the module."""

    @wraps(primitive)
    def method(self: F, /, *args: P.args, **keywords: P.kwargs) -> F:
        return self.applied(primitive, *args, **keywords)

    return method


class Fluent:
    """The primitives as methods, which take their arguments but for the module and return the object."""

    cache_read = _fluent(cache_read)
    cache_write = _fluent(cache_write)
    decompose_reduction = _fluent(decompose_reduction)
    parallel = _fluent(parallel)
    prefetch = _fluent(prefetch)
    reindex_cache_read = _fluent(reindex_cache_read)
    reindex_cache_write = _fluent(reindex_cache_write)
    reorder = _fluent(reorder)
    reverse_compute_at = _fluent(reverse_compute_at)
    sparse_fuse = _fluent(sparse_fuse)
    sparse_reorder = _fluent(sparse_reorder)
    sparse_unfuse = _fluent(sparse_unfuse)
    split = _fluent(split)
    unroll = _fluent(unroll)
    vectorize = _fluent(vectorize)

    def applied(self: F, primitive: Callable[..., Result], /, *args: Any, **keywords: Any) -> F:
        """The object after one more primitive."""
        raise NotImplementedError


PRIMITIVES: dict[str, Callable[..., Result]] = {
    name: method.__wrapped__
    for name, method in vars(Fluent).items()
    if hasattr(method, "__wrapped__")
}
"""Every primitive by the name that steps give it."""


def one_by_one(primitive: Callable[..., Result]) -> str:
    """The argument that a primitive takes one by one, which is a tuple in a step; or nothing.

    >>> one_by_one(reorder)
    'loops'
    """
    code = unwrap(primitive).__code__
    count = code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[count] if code.co_flags & CO_VARARGS else ""
