"""Dependence distances: the number of loop iterations between accesses of one element."""

from __future__ import annotations

from collections.abc import Set

from gossamer_ir.analysis.accesses.linear_form import LinearForm
from gossamer_ir.arith.affine import ZERO_FORM, Affine
from gossamer_ir.core.build import integer_value
from gossamer_ir.dependence.access_forms import AccessForm
from gossamer_ir.nodes import For

_MAX_COEFFICIENT = 2**16
"""Larger coefficients may overflow, so that different sums give the same index."""


def dependence_distance(
    later: AccessForm, earlier: AccessForm, loop: For, *, varying: Set[str]
) -> int | None:
    """Return the dependence distance between two accesses of a buffer: the number of iterations, at least
    one, after which the later one accesses the same element.

    It is 0 if that never happens, and None if it is unknown. `varying` are the loop and those inside it.

    >>> from gossamer_ir.core.build import add, index, index_var, ZERO
    >>> from gossamer_ir.analysis.accesses.linear_form import form_of
    >>> i = For("i", ZERO, index(8), ())
    >>> at = {"X[i]": index_var("i"), "X[i + 2]": add(index_var("i"), index(2))}
    >>> found = {
    ...     text: AccessForm("X", (form_of(at, {}, loops={"i": i}),), is_store=True)
    ...     for text, at in at.items()
    ... }
    >>> dependence_distance(found["X[i]"], found["X[i + 2]"], i, varying={"i"})
    2
    >>> dependence_distance(found["X[i + 2]"], found["X[i]"], i, varying={"i"})
    0
    """
    distances = [
        _index_distance(first, second, loop, varying)
        for first, second in zip(later.indices, earlier.indices, strict=True)
    ]
    proved_distances = {distance for distance in distances if distance is not None} - {_ALWAYS_SAME}
    if _NEVER_SAME in proved_distances or len(proved_distances) > 1:
        return _NEVER_SAME
    return None if None in distances else (proved_distances or {1}).pop()


# Distances are at least 1, so these are free. 0 is also what `dependence_distance` returns for "never".
_NEVER_SAME, _ALWAYS_SAME = 0, -1


def _index_distance(
    later: LinearForm | None, earlier: LinearForm | None, loop: For, varying: Set[str]
) -> int | None:
    """Return the number of iterations after which an index has the value that another one had."""
    if later is None or earlier is None or (later.opaque | earlier.opaque) & varying:
        return None
    count, *others = [
        (form.terms.get(loop.var, ZERO_FORM), _other_terms(form, loop)) for form in (later, earlier)
    ]
    (coefficient, rest), step = count, count[0].constant
    offset = later.base - earlier.base
    is_comparable = (
        others == [count]
        and coefficient.is_constant
        and offset.is_constant
        and varying.isdisjoint(rest)
    )
    if (
        not is_comparable
        or abs(step) > _MAX_COEFFICIENT
        or abs(offset.constant) > _MAX_COEFFICIENT**2
    ):
        return None
    # The index ignores the loop: it repeats in each iteration, or never.
    if step == 0:
        return _NEVER_SAME if offset.constant else _ALWAYS_SAME
    distance, remainder = divmod(-offset.constant, step)
    extent = integer_value(loop.extent)
    # A negative distance is a dependence in the other direction, which the caller checks separately.
    is_reached = remainder == 0 and distance > 0 and (extent is None or distance < extent)
    return distance if is_reached else _NEVER_SAME


def _other_terms(form: LinearForm, loop: For) -> dict[str, Affine]:
    """Return the terms of a form without those in the variable of a loop."""
    return {name: by for name, by in form.terms.items() if name != loop.var}
