"""Proves, by any of the available tests, that different iterations of a loop access different elements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from gossamer_ir.analysis.accesses.buffer_accesses import Access
from gossamer_ir.analysis.bounds.loops_by_name import loops_within
from gossamer_ir.dependence.access_forms import forms_of_accesses
from gossamer_ir.dependence.disjointness import disjointness, without_changing
from gossamer_ir.nodes import For, Function


def are_unshared(
    listed: Sequence[Access],
    loop: For,
    *,
    outer: Iterable[For] = (),
    changing: Set[str],
    function: Function,
) -> bool:
    """Return whether different iterations of a loop are proved to access different elements of a buffer, for
    all iterations of inner loops. `outer` are the enclosing loops, `changing` the buffers that the loop
    writes.

    Index forms are tried first (`disjointness`), then the order of whole iterations (`are_apart`).

    >>> from gossamer_ir.core.build import ONE, ZERO, index, index_var, mul
    >>> from gossamer_ir.nodes import Store
    >>> from gossamer_ir.analysis.accesses.buffer_accesses import accesses
    >>> body = (Store("X", (mul(index_var("i"), index(2**62)),), ONE),)
    >>> for extent in (3, 5):  # the fifth index is 2**64, which wraps to 0
    ...     loop = For("i", ZERO, index(extent), body)
    ...     function = Function("f", (), (loop,))
    ...     are_unshared(list(accesses(body)), loop, changing={"X"}, function=function)
    True
    False
    """
    forms = [without_changing(access, changing) for access in forms_of_accesses(listed, function)]
    varying = loops_within((loop,))
    if disjointness(loop.var, forms, varying=varying, function=function) == "disjoint":
        return True
    # Imported late: most loops need only the forms.
    from gossamer_ir.dependence.ordered_accesses import are_apart

    return are_apart(listed, loop, outer=outer, changing=changing, function=function)
