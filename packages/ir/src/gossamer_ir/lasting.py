"""What a function leaves as it is: buffers that it does not write, and the facts about them."""

from __future__ import annotations

from gossamer_ir.nodes import Fact, Function, Store
from gossamer_ir.walk import walk


def written_by(function: Function) -> frozenset[str]:
    """The buffers that a function writes, under whatever name."""
    handles = {buffer.name: buffer.handle for buffer in function.buffers if buffer.handle}
    nodes = (node for stmt in function.body for node in walk(stmt))
    stored = {handles.get(node.buffer, node.buffer) for node in nodes if isinstance(node, Store)}
    return frozenset(stored) | {name for name, handle in handles.items() if handle in stored}


def lasting_facts(function: Function) -> tuple[Fact, ...]:
    """The facts about buffers that the function does not write, which hold everywhere in it."""
    written = written_by(function)
    return tuple(
        fact
        for fact in function.facts
        if written.isdisjoint((getattr(fact, "buffer", None), getattr(fact, "indptr", None)))
    )
