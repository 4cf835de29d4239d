"""Capabilities: the words by which a backend declares what it compiles, and those that a module needs.

`CAPABILITIES` has the types of nodes that need words, and the words that each may need. Besides, every value,
buffer and parameter needs `dtype.<scalar>` for its scalar type, and a `Call` of any function, also of one
that is not in the language, `call.<function>`. `bool`, `int64` and `handle` values and the scope `global`
need no word. `is_capability` knows all words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, get_args

import msgspec

from gossamer_ir.analysis.statements.atomic_accumulation import is_atomic
from gossamer_ir.core.dtypes import SCALARS, DType
from gossamer_ir.nodes import (
    AsyncCopy,
    Atomic,
    Barrier,
    Buffer,
    Call,
    For,
    Guard,
    Lanes,
    Launch,
    Module,
    Node,
    ParallelFor,
    Prefetch,
    Scope,
    Search,
    Shuffle,
    VScale,
    While,
)
from gossamer_ir.traversal.node_index import nodes_by_type
from gossamer_support.identity_cache import memoize_by_identity
from gossamer_support.typed_calls import typed

_FREE = frozenset({"dtype.bool", "dtype.int64", "dtype.handle", "scope.global"})


@typed
@memoize_by_identity
def required_capabilities(module: Module) -> frozenset[str]:
    """Return the words for everything that occurs in a module.

    >>> from gossamer_ir.nodes import Function, Param
    >>> entry = Function("f", (Param("x", "handle"), Param("a", "float32")), ())
    >>> sorted(required_capabilities(Module("flat", (entry,), "f")))
    ['dtype.float32']
    """
    words: set[str] = set()
    for function in module.functions:
        dtypes: set[str] = set()
        for kind, nodes in nodes_by_type(function).items():
            needs = CAPABILITIES.get(kind, _NONE)
            if "dtype" in kind.__struct_fields__:
                dtypes.update([node.dtype for node in nodes])
            if needs.words_of is None:
                words.update(needs.words)
            else:
                words.update([word for node in nodes for word in needs.words_of(node)])
        words.update([word for dtype in dtypes for word in _dtype_words(dtype)])
    return frozenset(words - _FREE)


def _dtype_words(text: str) -> Iterator[str]:
    dtype = DType.parse(text)
    yield f"dtype.{dtype.scalar}"
    if dtype.is_vector:
        yield _vectors(scalable=dtype.scalable)


def _vectors(*, scalable: bool) -> str:
    return "vectors.scalable" if scalable else "vectors.fixed"


def _call_words(node: Call) -> tuple[str, ...]:
    return (f"call.{node.function}",)


def _buffer_words(node: Buffer) -> tuple[str, ...]:
    return (f"scope.{node.scope}",)


def _lanes_words(node: Lanes) -> tuple[str, ...]:
    return (_vectors(scalable=node.scalable),)


def _for_words(node: For) -> tuple[str, ...]:
    is_bound = node.kind == "thread_binding"
    words = (("thread_binding", is_bound), ("atomic", is_atomic(node)))
    return tuple(word for word, is_needed in words if is_needed)


class RequiredWords(msgspec.Struct, frozen=True):
    """The words that a type of node may require, besides those of its `dtype` and of the nodes in it."""

    words: tuple[str, ...] = ()
    """All words that nodes of the type may require. Those of a `Call` are not listed: any function may be
    one."""
    words_of: Callable[[Any], tuple[str, ...]] | None = None
    """Returns those that one node requires; None if every node requires all."""


_NONE = RequiredWords()

CAPABILITIES: dict[type[Node], RequiredWords] = {
    Call: RequiredWords(words_of=_call_words),
    Search: RequiredWords(("search",)),
    VScale: RequiredWords(("vectors.scalable",)),
    Lanes: RequiredWords(("vectors.fixed", "vectors.scalable"), _lanes_words),
    Atomic: RequiredWords(("atomic",)),
    While: RequiredWords(("while",)),
    For: RequiredWords(("thread_binding", "atomic"), _for_words),
    Prefetch: RequiredWords(("prefetch",)),
    Guard: RequiredWords(("guard",)),
    Barrier: RequiredWords(("barrier",)),
    Shuffle: RequiredWords(("shuffle",)),
    AsyncCopy: RequiredWords(("async_copy",)),
    ParallelFor: RequiredWords(("parallel",)),
    Launch: RequiredWords(("launch",)),
    Buffer: RequiredWords(tuple(f"scope.{scope}" for scope in get_args(Scope)), _buffer_words),
}
"""The types of nodes that not every backend compiles. Others require the words of their `dtype` only."""

_WORDS = frozenset(word for needs in CAPABILITIES.values() for word in needs.words) | {
    f"dtype.{scalar}" for scalar in SCALARS
}
_CALL = re.compile(r"call\.[A-Za-z_]\w*")


@typed
def is_capability(word: str) -> bool:
    """Return whether a backend may declare a word: a misspelled one would have no effect.

    >>> [is_capability(word) for word in ("async_copy", "scope.shared", "call.exp", "barriers")]
    [True, True, True, False]
    """
    return word in _WORDS or _CALL.fullmatch(word) is not None
