"""Capabilities: the words by which a backend declares what it compiles, and those that a module needs.

| word                | needed by                                             |
|---------------------|-------------------------------------------------------|
| `dtype.<scalar>`    | any value, buffer or parameter of that scalar type    |
| `scope.<scope>`     | a buffer in that scope                                |
| `call.<function>`   | a `Call` of that function                             |
| `vectors.fixed`     | vectors with a fixed number of lanes                  |
| `vectors.scalable`  | vectors whose lanes are a multiple of vscale          |
| `thread_binding`    | loops bound to the threads of a grid                  |
| `search`, `while`, `guard`, `parallel`, `launch`, `prefetch` | the node of that name |
| `atomic`            | accumulations that several threads make into one element |

`bool`, `int64` and `handle` values and the scope `global` need no word. An intrinsic `Call` (a
function that is not in the language) needs `call.<its name>` as any other does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gossamer_ir.analysis.atomics import is_atomic
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.typed_calls import typed
from gossamer_ir.nodes import (
    Atomic,
    Buffer,
    Call,
    Cast,
    Const,
    For,
    Guard,
    Lanes,
    Launch,
    Load,
    Module,
    Node,
    ParallelFor,
    Param,
    Prefetch,
    Reinterpret,
    Search,
    Var,
    VScale,
    While,
)
from gossamer_ir.traversal.identity_cache import memoize_by_identity
from gossamer_ir.traversal.node_index import nodes_by_kind

_FREE = frozenset({"dtype.bool", "dtype.int64", "dtype.handle", "scope.global"})

_PLAIN: dict[type[Node], str] = {
    Search: "search",
    While: "while",
    Guard: "guard",
    ParallelFor: "parallel",
    Launch: "launch",
    Prefetch: "prefetch",
    Atomic: "atomic",
    VScale: "vectors.scalable",
}
_TYPED: frozenset[type[Node]] = frozenset(
    {Const, Var, Cast, Reinterpret, Call, Load, Buffer, Param}
)


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
        known = nodes_by_kind(function)
        words.update(word for kind, word in _PLAIN.items() if kind in known)
        typed = (node for kind in _TYPED & known.keys() for node in known[kind])
        for dtype in {node.dtype for node in typed}:
            words.update(_of_dtype(dtype))
        for kind in _SPECIAL.keys() & known.keys():
            words.update(word for node in known[kind] for word in _SPECIAL[kind](node))
    return frozenset(words - _FREE)


def _of_dtype(text: str) -> Iterator[str]:
    dtype = DType.parse(text)
    yield f"dtype.{dtype.scalar}"
    if dtype.is_vector:
        yield _vectors(scalable=dtype.scalable)


def _vectors(*, scalable: bool) -> str:
    return "vectors.scalable" if scalable else "vectors.fixed"


def _of_call(node: Call) -> tuple[str, ...]:
    return (f"call.{node.function}",)


def _of_buffer(node: Buffer) -> tuple[str, ...]:
    return (f"scope.{node.scope}",)


def _of_lanes(node: Lanes) -> tuple[str, ...]:
    return (_vectors(scalable=node.scalable),)


def _of_for(node: For) -> tuple[str, ...]:
    is_bound = node.kind == "thread_binding"
    words = (("thread_binding", is_bound), ("atomic", is_atomic(node)))
    return tuple(word for word, is_needed in words if is_needed)


_SPECIAL: dict[type[Node], Callable[..., tuple[str, ...]]] = {
    Call: _of_call,
    Buffer: _of_buffer,
    Lanes: _of_lanes,
    For: _of_for,
}
