"""Checks that facts and relations refer to axes and buffers that exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gossamer_ir.facts.fact_kinds import buffers_of_fact
from gossamer_ir.nodes import RELATION_KINDS, AnyBuffer, Fact, Relation
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.fields import FIELDS
from gossamer_ir.verify.context import NodePlace, VerifyContext
from gossamer_ir.verify.expressions.check_expr import check_size


def check_relations(
    context: VerifyContext, relations: tuple[Relation, ...], place: NodePlace
) -> None:
    """Check relations, which are between axes or, once these are lowered, between index buffers."""
    for number, relation in enumerate(relations):
        _check_relation(context, relation, place.down("relations", number))


def _check_relation(context: VerifyContext, relation: Relation, place: NodePlace) -> None:
    if relation.kind not in RELATION_KINDS:
        context.report(
            "verify.relation.kind",
            f"'{relation.kind}' is not a relation; expected one of {', '.join(RELATION_KINDS)}.",
            place,
        )
    for name in (relation.left, relation.right):
        if name not in context.axes and name not in context.buffers:
            context.report(
                "verify.relation.name",
                f"'{name}' in '{relation.kind}' is neither an axis nor an index buffer.",
                place,
            )


def check_facts(
    context: VerifyContext,
    facts: tuple[Fact, ...],
    buffers: tuple[AnyBuffer, ...],
    place: NodePlace,
) -> None:
    """Check that facts are about buffers that the caller passes, and mark these as read-only.

    Facts are checked when a kernel is called, which is not possible for buffers that it allocates.
    """
    passed = {buffer.name for buffer in buffers if buffer.handle is not None}
    for number, fact in enumerate(facts):
        inner = place.down("facts", number)
        CHECKS.get(type(fact), _check_fields)(context, fact, inner)
        named = buffers_read(fact).union(buffers_of_fact(fact))
        for name in sorted(named & context.buffers.keys() - passed):
            context.report(
                "verify.fact.unchecked",
                f"A fact is about '{name}', which the function allocates, so it cannot be checked at "
                "the call.",
                inner,
                hint="Remove it; values that are read from the buffer are checked where they are used.",
            )


def _check_fields(context: VerifyContext, fact: Fact, place: NodePlace) -> None:
    for name in buffers_of_fact(fact):
        _check_buffer(context, name, place)
    # All expressions of facts are bounds, indices or values of index arrays.
    for field in FIELDS[type(fact)]:
        check_size(context, getattr(fact, field), place.down(field))


def _check_buffer(context: VerifyContext, name: str, place: NodePlace) -> None:
    if name in context.buffers:
        context.trusted.add(name)
    else:
        context.report(
            "verify.fact.buffer", f"A fact is about '{name}', which is not a buffer.", place
        )


CHECKS: Mapping[type, Callable[[VerifyContext, Any, NodePlace], None]] = {Relation: _check_relation}
"""The checks of types whose names may be other things than buffers. All other types are checked by their
fields."""
