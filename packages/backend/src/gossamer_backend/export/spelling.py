"""Parameters of a kernel for other languages: C types, and sizes and facts as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.core.dtypes import DType
from gossamer_ir.facts.fact_kinds import buffer_fields, subject_of
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature
from gossamer_ir.nodes import (
    EXPRS,
    BitCounts,
    Distinct,
    Expr,
    Fact,
    HasValue,
    InRange,
    Load,
    Monotone,
    Node,
    PaddedSlots,
    ProductSteps,
    Relation,
    SortedSegments,
)
from gossamer_ir.script import print_expr
from gossamer_ir.traversal.rewrite import map_children
from gossamer_support.items_by_name import items_by_name

Spellings: TypeAlias = Mapping[str, str]
"""The parameter to which each buffer is bound, by the name of the buffer."""

ExportedParameter: TypeAlias = BufferParam | ScalarParam

_C_TYPES = {"bool": "uint8_t", "float32": "float", "float64": "double"}


def element_type(dtype_name: str) -> str:
    """Return the C type of an array's elements; a bool is a byte, a half an integer of 16 bits.

    >>> element_type("int32"), element_type("float64"), element_type("bool")
    ('int32_t', 'double', 'uint8_t')
    """
    dtype = DType.parse(dtype_name)
    return _C_TYPES.get(dtype_name) or (
        f"{dtype_name}_t" if dtype.is_integer else f"uint{dtype.bits}_t"
    )


def scalar_type_of(dtype: str) -> str:
    """Return the C type of a scalar parameter: integers and bools of any width have 64 bits.

    >>> scalar_type_of("int32"), scalar_type_of("float32")
    ('int64_t', 'float')
    """
    return _C_TYPES[dtype] if dtype in ("float32", "float64") else "int64_t"


def exported_parameters(signature: Signature) -> tuple[ExportedParameter, ...]:
    """Return the parameters in the order of the call, without the workspace."""
    buffers = items_by_name(signature.buffers)
    scalars = items_by_name(signature.scalars)
    return tuple(buffers.get(name) or scalars[name] for name in signature.order)


def parameters_by_buffer(signature: Signature) -> dict[str, str]:
    """Return the parameter of every buffer that shapes or facts may name."""
    return {
        buffer: param.name
        for param in signature.buffers
        for buffer in (param.buffer, *(subject_of(fact) for fact in param.facts))
    }


def expr_text(expr: Expr, names: Spellings) -> str:
    """Return an expression over parameters as text."""

    def visit(node: Node) -> Any:
        inner = map_children(node, visit)
        if isinstance(inner, Load):
            return replace(inner, buffer=names.get(inner.buffer, inner.buffer))
        return inner

    return print_expr(visit(expr))


def extent_texts(param: BufferParam, names: Spellings) -> list[str]:
    """Return the extents of an array parameter as text."""
    return [expr_text(size, names) for size in param.shape]


def fact_in_words(fact: Fact, names: Spellings) -> str:
    """Return a fact that the kernel relies on, as the end of a sentence about its array.

    >>> from gossamer_ir.core.build import index, index_var
    >>> fact_in_words(InRange("J_indices", index(0), index_var("n")), {})
    'every value is at least 0 and less than n'
    """
    return FACT_SENTENCES[type(fact)](fact, names)


def fact_as_data(fact: Fact, names: Spellings) -> dict[str, str | bool | None]:
    """Return a fact as plain data: its kind, its fields as text, and the sentence.

    >>> fact_as_data(Monotone("J_indptr"), {})
    {'fact': 'Monotone', 'says': 'no value is less than the one before it'}
    """
    data: dict[str, str | bool | None] = {"fact": type(fact).__name__}
    for field in msgspec.structs.fields(fact):
        value: Any = getattr(fact, field.name)
        if isinstance(value, EXPRS):
            data[field.name] = expr_text(value, names)
        # The fact is listed with its array, so only further ones are named.
        elif field.name in buffer_fields(type(fact)):
            data |= {} if field.name == "buffer" else {field.name: names.get(value, value)}
        else:
            data[field.name] = value
    return {**data, "says": fact_in_words(fact, names)}


def _in_range(fact: InRange, names: Spellings) -> str:
    low, high = expr_text(fact.low, names), expr_text(fact.high, names)
    return f"every value is at least {low} and less than {high}"


def _monotone(_fact: Monotone, _names: Spellings) -> str:
    return "no value is less than the one before it"


def _known_value(fact: HasValue, names: Spellings) -> str:
    at, value = expr_text(fact.index, names), expr_text(fact.value, names)
    return f"the value at {at} is {value}"


def _product_steps(fact: ProductSteps, names: Spellings) -> str:
    left, right = (names.get(name, name) for name in (fact.left, fact.right))
    return f"each step is the product of those of {left} and {right}"


def _sorted_segments(fact: SortedSegments, names: Spellings) -> str:
    order = "greater than" if fact.unique else "at least"
    where = "row" if fact.indptr is None else f"segment of {names.get(fact.indptr, fact.indptr)}"
    return f"in each {where}, every value is {order} the one before it"


def _distinct(_fact: Distinct, _names: Spellings) -> str:
    return "no two values are the same"


def _bit_counts(fact: BitCounts, names: Spellings) -> str:
    length = expr_text(fact.length, names)
    indptr = names.get(fact.indptr, fact.indptr)
    return f"each value has as many bits set as the steps of {indptr} say, all below bit {length}"


def _padded_slots(fact: PaddedSlots, names: Spellings) -> str:
    return f"a value of {expr_text(fact.length, names)} is padding"


def _relation(fact: Relation, names: Spellings) -> str:
    left, right = (names.get(name, name) for name in (fact.left, fact.right))
    return f"{fact.kind}({left}, {right})"


FACT_SENTENCES: Mapping[type, Callable[[Any, Spellings], str]] = {
    InRange: _in_range,
    Monotone: _monotone,
    HasValue: _known_value,
    ProductSteps: _product_steps,
    SortedSegments: _sorted_segments,
    Distinct: _distinct,
    BitCounts: _bit_counts,
    PaddedSlots: _padded_slots,
    Relation: _relation,
}
"""One entry for each type of fact."""
