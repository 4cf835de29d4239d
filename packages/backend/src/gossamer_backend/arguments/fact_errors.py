"""Errors for facts about index arrays that do not hold."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from gossamer_backend.arguments.size_equations import Scalars, evaluate_size
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.facts.fact_index import FactIndex, stated_fact_index
from gossamer_ir.facts.fact_violations import (
    FactOperands,
    can_check_relation,
    first_violation,
    require_checks,
)
from gossamer_ir.nodes import Fact, Relation
from gossamer_support.arrays import Array

_CODES = {
    "range": "kernel.range",
    "monotone": "kernel.monotone",
    "value": "kernel.value",
    "product": "kernel.product",
    "distinct": "kernel.distinct",
    "bits": "kernel.bits",
    "sorted": "kernel.sorted",
    "unique": "kernel.unique",
    "subset": "kernel.subset",
    "disjoint": "kernel.disjoint",
}
"""The codes of errors by the property that an array lacks."""


def require_facts(
    facts: tuple[Fact, ...],
    scalars: Scalars,
    *,
    arrays: Mapping[str, Array],
    names: Mapping[str, str],
) -> None:
    """Raise `ArgumentError` for the first fact that does not hold.

    `arrays` are by buffer and have the shapes of the signature; `names` are the names of their parameters.
    Raises `UnsupportedError` for a relation that cannot be checked.
    """
    require_checks(facts)
    _require_checkable(stated_fact_index(facts))
    size = partial(evaluate_size, scalars=scalars, arrays=arrays)
    violation = first_violation(facts, FactOperands(arrays, names, size))
    if violation is not None:
        raise ArgumentError(_CODES[violation.property], violation.sentence, hint=violation.hint)


def _require_checkable(index: FactIndex) -> None:
    for fact in index.facts_of_type(Relation):
        if not can_check_relation(fact, index):
            raise UnsupportedError(
                "backend.relation",
                f"The declared relation {fact.kind}({fact.left}, {fact.right}) cannot be checked.",
                hint="Only subset and disjoint can be checked, and both axes must be sorted.",
            )
