"""Scalable vectors in a module: those whose number of lanes is a multiple of vscale."""

from __future__ import annotations

from gossamer_ir.nodes import Function, Lanes, Module, VScale
from gossamer_ir.traversal.node_index import nodes_of_type


def has_scalable_vectors(module: Module) -> bool:
    """Return whether vscale occurs in a module, as a value or as a factor of lanes.

    >>> from gossamer_ir.nodes import Param, Store
    >>> from gossamer_ir.core.build import ZERO
    >>> function = Function("f", (Param("x", "handle"),), (Store("X", (ZERO,), VScale()),))
    >>> has_scalable_vectors(Module("flat", (function,), "f"))
    True
    """
    return any(map(uses_vscale, module.functions))


def uses_vscale(function: Function) -> bool:
    """Return whether vscale occurs in a function, as a value or as a factor of lanes."""
    # Every scalable value is computed from a ramp or a broadcast, so dtypes need no look.
    return any(
        isinstance(node, VScale) or node.scalable for node in nodes_of_type(function, VScale, Lanes)
    )
