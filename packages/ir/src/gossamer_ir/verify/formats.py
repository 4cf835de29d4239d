"""Checks of format descriptions."""

from __future__ import annotations

from gossamer_ir.errors import Diagnostic
from gossamer_ir.facts.fact_index import stated_fact_index
from gossamer_ir.nodes import Distinct, FormatDescription, IndexMap, InRange
from gossamer_ir.traversal.names import is_identifier
from gossamer_ir.verify.context import ROOT_PLACE, NodePlace, VerifyContext
from gossamer_ir.verify.declarations.axes import check_axes
from gossamer_ir.verify.declarations.params_and_buffers import check_params
from gossamer_ir.verify.expressions.check_expr import check_size
from gossamer_ir.verify.functions import check_buffers
from gossamer_ir.verify.stages.node_checks import RULES_BY_STAGE
from gossamer_support.message_texts import amount


def diagnostics_of_format(description: FormatDescription) -> tuple[Diagnostic, ...]:
    """Return all diagnostics of a format description; empty if it is valid.

    Places are paths into the description, in which `buffers` are the value buffers and then the index
    arrays.

    >>> from gossamer_ir.nodes import Const, DenseFixed, SparseBuffer
    >>> axis = DenseFixed("I", Const("int64", "4"))
    >>> vector = FormatDescription("vector", (), (axis,), SparseBuffer("A", ("J",), "float32"))
    >>> [diagnostic.code for diagnostic in diagnostics_of_format(vector)]
    ['verify.buffer.axis']
    """
    context = VerifyContext(RULES_BY_STAGE["position"], {}, [])
    if not is_identifier(description.name):
        context.report(
            "verify.name.identifier", f"'{description.name}' is not an identifier.", ROOT_PLACE
        )
    check_params(context, description.params, ROOT_PLACE)
    check_axes(context, description.axes, ROOT_PLACE)
    values = (description.buffer, *description.more_buffers)
    check_buffers(context, (*values, *description.index_arrays), ROOT_PLACE)
    if description.map is not None:
        _check_map(context, description.map, len(description.buffer.axes), ROOT_PLACE.down("map"))
    _check_facts(context, description)
    _check_shape(context, description)
    return tuple(context.diagnostics)


def _check_map(context: VerifyContext, index_map: IndexMap, ndim: int, place: NodePlace) -> None:
    if len(index_map.vars) != ndim:
        context.report(
            "verify.format.map",
            f"The map has {amount(len(index_map.vars), 'variable')}, but the buffer has "
            f"{amount(ndim, 'axis', 'axes')}.",
            place,
        )
    with context.scope():
        for number, name in enumerate(index_map.vars):
            context.define(name, "int64", place.down("vars", number))
        for number, result in enumerate(index_map.results):
            check_size(context, result, place.down("results", number))


def _check_facts(context: VerifyContext, description: FormatDescription) -> None:
    index = stated_fact_index(description.facts)
    allowed = [
        fact
        for array in description.index_arrays
        for kind in (Distinct, InRange)
        for fact in index.about(array.name, kind)
    ]
    for number, fact in enumerate(description.facts):
        if fact not in allowed:
            context.report(
                "verify.format.fact",
                "A fact of a format says something else than that the values of an index array are distinct, "
                "or in a range.",
                ROOT_PLACE.down("facts", number),
                hint="Expected T.assume(distinct(X)) or T.assume(in_range(X, low, high)); the axes say the "
                "rest.",
            )


def _check_shape(context: VerifyContext, description: FormatDescription) -> None:
    if description.shape is None:
        return
    # Without a map, the lengths of the axes are the shape, and the script cannot write another.
    ndim = len(description.map.results) if description.map is not None else 0
    if len(description.shape) != ndim:
        context.report(
            "verify.format.shape",
            f"The shape has {amount(len(description.shape), 'size')}, but the tensor has "
            f"{amount(ndim, 'dimension')}.",
            ROOT_PLACE.down("map"),
        )
    for number, size in enumerate(description.shape):
        check_size(context, size, ROOT_PLACE.down("shape", number))
