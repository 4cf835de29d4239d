"""Capabilities: the words by which a backend declares what it compiles, and those that a module needs.

| word                | needed by                                             |
|---------------------|-------------------------------------------------------|
| `dtype.<scalar>`    | any value, buffer or parameter of that scalar type    |
| `scope.<scope>`     | a buffer in that scope                                |
| `call.<function>`   | a `Call` of that function                             |
| `vectors.fixed`     | vectors with a fixed number of lanes                  |
| `vectors.scalable`  | vectors whose lanes are a multiple of vscale          |
| `thread_binding`    | loops bound to the threads of a grid                  |
| `search`, `while`, `guard`, `parallel`, `launch`, `prefetch`, `barrier`, `shuffle` | the node of that name |
| `async_copy`        | an `AsyncCopy`                                        |
| `atomic`            | accumulations that several threads make into one element |

`bool`, `int64` and `handle` values and the scope `global` need no word. An intrinsic `Call` (a
function that is not in the language) needs `call.<its name>` as any other does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from gossamer_ir.analysis.statements.atomic_accumulation import is_atomic
from gossamer_ir.core.dtypes import DType
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
    Search,
    Shuffle,
    VScale,
    While,
)
from gossamer_ir.support.identity_cache import memoize_by_identity
from gossamer_ir.support.typed_calls import typed
from gossamer_ir.traversal.node_index import nodes_by_type

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
            words.update(needs.words)
            if "dtype" in kind.__struct_fields__:
                dtypes.update([node.dtype for node in nodes])
            if needs.words_of is not None:
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


def _for_capabilities(node: For) -> tuple[str, ...]:
    is_bound = node.kind == "thread_binding"
    words = (("thread_binding", is_bound), ("atomic", is_atomic(node)))
    return tuple(word for word, is_needed in words if is_needed)


class RequiredWords(msgspec.Struct, frozen=True):
    """The words that a type of node requires, besides those of its `dtype` and of the nodes in it."""

    words: tuple[str, ...] = ()
    """The words that every node of the type requires."""
    words_of: Callable[[Any], tuple[str, ...]] | None = None
    """The words that follow from the other fields of a node."""


_NONE = RequiredWords()

CAPABILITIES: dict[type[Node], RequiredWords] = {
    Call: RequiredWords(words_of=_call_words),
    Search: RequiredWords(("search",)),
    VScale: RequiredWords(("vectors.scalable",)),
    Lanes: RequiredWords(words_of=_lanes_words),
    Atomic: RequiredWords(("atomic",)),
    While: RequiredWords(("while",)),
    For: RequiredWords(words_of=_for_capabilities),
    Prefetch: RequiredWords(("prefetch",)),
    Guard: RequiredWords(("guard",)),
    Barrier: RequiredWords(("barrier",)),
    Shuffle: RequiredWords(("shuffle",)),
    AsyncCopy: RequiredWords(("async_copy",)),
    ParallelFor: RequiredWords(("parallel",)),
    Launch: RequiredWords(("launch",)),
    Buffer: RequiredWords(words_of=_buffer_words),
}
"""The types of nodes that not every backend compiles. Others require the words of their `dtype` only."""
