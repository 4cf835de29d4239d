"""Vector loads as one scalar load for each lane."""

from __future__ import annotations

from typing import Any

from gossamer_ir.analysis.lane_projection import lane_of, lanes_of
from gossamer_ir.core.build import index
from gossamer_ir.nodes import Binary, Broadcast, Cast, Load, Ramp, Reinterpret, Unary
from gossamer_ir.traversal.walk import children

_CHEAP = frozenset({Cast, Reinterpret, Unary, Binary, Load})
"""Expressions that cost no more for each lane separately than for all lanes at once."""


def loads_of_lanes(load: Load, lanes: int) -> list[Load] | None:
    """Return the scalar loads of an unmasked vector load; None if their indices are not cheap to compute
    one by one.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.nodes import Lanes
    >>> ramp = Ramp(index_var("i"), index(2), Lanes(4))
    >>> loads_of_lanes(Load("X", (ramp,), "float32x4"), 4)[3]
    Load(buffer='X', indices=(Binary(op='add', lhs=Var(name='i', dtype='int64'), rhs=Const(dtype='int64', \
text='6')),), dtype='float32', predicate=None, passthrough=None)
    """
    if not _is_cheap(load):
        return None
    lane_loads = [lane_of(load, index(lane)) for lane in range(lanes)]
    return [one for one in lane_loads if isinstance(one, Load)]


def _is_cheap(expr: Any) -> bool:
    if isinstance(expr, (Ramp, Broadcast)) or lanes_of(expr) is None:
        return True
    is_masked = isinstance(expr, Load) and expr.predicate is not None
    return type(expr) in _CHEAP and not is_masked and all(map(_is_cheap, children(expr)))
