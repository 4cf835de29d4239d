"""Expressions that never decrease along a loop."""

from __future__ import annotations

from gossamer_ir.axis_facts import known_facts
from gossamer_ir.build import integer_value
from gossamer_ir.magnitudes import extents_passed
from gossamer_ir.nodes import Binary, Cast, Expr, Load, Monotone, Search, Var
from gossamer_ir.walk import free_vars
from gossamer_schedule.sites import Site


def is_monotone(expr: Expr, site: Site) -> bool:
    """Whether an expression never decreases as the loop's variable grows."""
    match expr:
        case _ if site.node.var not in free_vars(expr):
            return True
        case Var():
            return True
        case Cast(dtype="int64"):
            return is_monotone(expr.value, site)
        case Binary(op="add"):
            return is_monotone(expr.lhs, site) and is_monotone(expr.rhs, site)
        case Binary(op="sub") if site.node.var not in free_vars(expr.rhs):
            return is_monotone(expr.lhs, site)
        case Binary(op="mul"):
            return _is_scaled(expr.lhs, expr.rhs, site=site) or _is_scaled(
                expr.rhs, expr.lhs, site=site
            )
        case Load():
            return _is_monotone_load(expr, site)
        case Search(kind="lower" | "upper"):
            fixed = (*expr.prefix, expr.begin, expr.end)
            is_fixed = all(site.node.var not in free_vars(part) for part in fixed)
            return is_fixed and is_monotone(expr.value, site)
    return False


def _is_scaled(factor: Expr, expr: Expr, *, site: Site) -> bool:
    value = integer_value(factor)
    is_natural = value >= 0 if value is not None else factor in extents_passed(site.function)
    return is_natural and is_monotone(expr, site)


def _is_monotone_load(load: Load, site: Site) -> bool:
    facts = known_facts(site.function)
    is_fact = any(isinstance(f, Monotone) and f.buffer == load.buffer for f in facts)
    is_fixed = all(site.node.var not in free_vars(at) for at in load.indices[:-1])
    return is_fact and is_fixed and is_monotone(load.indices[-1], site)
