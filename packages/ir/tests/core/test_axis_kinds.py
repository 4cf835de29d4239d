"""The table of axes covers every type, and its entries agree with the fields of the nodes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer_ir.analysis.axes.axis_facts import known_facts
from gossamer_ir.core.axis_kinds import (
    AXIS_KINDS,
    AxisKind,
    index_handles,
    indices_of,
    indptr_of,
    is_full,
    is_padded,
    is_varied,
    width_of,
    with_declared_order,
    with_index_dtypes,
)
from gossamer_ir.core.build import ONE, index, index_var
from gossamer_ir.nodes import (
    AXES,
    BitCounts,
    BitmaskVaried,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Expr,
    Function,
    InRange,
    Module,
    Name,
    Node,
    Param,
    SortedSegments,
    SparseBuffer,
)
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.verify import diagnostics

N, WIDTH, NNZ = map(index_var, ("n", "width", "nnz"))
SAMPLES = {
    DenseFixed: DenseFixed("J", N, "I"),
    DenseVaried: DenseVaried("J", "I", N, NNZ, "indptr"),
    CompressedFixed: CompressedFixed("J", "I", N, WIDTH, "indices", padded=False),
    CompressedVaried: CompressedVaried("J", "I", N, NNZ, "indptr", "indices"),
    BitmaskVaried: BitmaskVaried("J", "I", N, NNZ, "indptr", "words"),
}
"""One axis of each type."""
OFFSETS = {"indptr", "indptr_dtype", "nnz"}
COORDINATES = {"indices", "indices_dtype", "sorted", "unique", "padded"}
WORDS = {"words", "words_dtype"}


class Singleton(Node, frozen=True):
    """A type of axis that the language lacks: one coordinate for each element of the parent, as along the
    columns of a matrix in COO."""

    name: Name
    parent: Name
    length: Expr
    indices: Name
    indices_dtype: str = "int32"
    sorted: bool = True
    unique: bool = True
    padded: bool = False


def module_with(axis):
    """A module with a buffer over the axis, and ordinary buffers over its index arrays."""
    bound = [Param(name, "handle") for name in ("x", *index_handles(axis))]
    sizes = [Param(name, "int64") for name in ("n", "width", "nnz")]
    buffers = [SparseBuffer("X", ("I", "J"), "float32", "x")]
    indices = indices_of(axis)
    if indices is not None and indices.is_mask:
        buffers.append(SparseBuffer("J_words", ("I",), "uint64", "words"))
    elif indices is not None:
        buffers.append(SparseBuffer("J_indices", ("I", "J"), "int32", "indices"))
    axes = (DenseFixed("I", N), axis)
    function = Function("f", (*bound, *sizes), (), axes=axes, buffers=tuple(buffers))
    return Module("position", (function,), "f")


def test_every_kind_of_axis_has_an_entry():
    assert set(AXIS_KINDS) == set(AXES) == set(SAMPLES)


@pytest.mark.parametrize("kind", AXES, ids=lambda kind: kind.__name__)
def test_an_entry_agrees_with_the_fields(kind):
    fields, axis = set(kind.__struct_fields__), SAMPLES[kind]
    assert fields & OFFSETS == (OFFSETS if is_varied(axis) else set())
    assert fields & COORDINATES == (COORDINATES if AXIS_KINDS[kind].has_indices else set())
    assert fields & WORDS == (WORDS if AXIS_KINDS[kind].has_words else set())
    assert is_full(axis) == (not index_handles(axis))


@pytest.mark.parametrize("kind", AXES, ids=lambda kind: kind.__name__)
def test_an_axis_is_either_fixed_or_has_offsets(kind):
    axis = SAMPLES[kind]
    assert (indptr_of(axis) is not None) == is_varied(axis)
    if is_varied(axis):
        assert (indptr_of(axis).parent, indptr_of(axis).nnz) == ("I", NNZ)
        with pytest.raises(AssertionError):
            width_of(axis)
    else:
        assert width_of(axis) in (N, WIDTH)


@pytest.mark.parametrize("kind", AXES, ids=lambda kind: kind.__name__)
def test_an_axis_is_parsed_as_it_is_printed(kind):
    module = module_with(SAMPLES[kind])
    assert parse_module(print_module(module)) == module
    assert list(diagnostics(module)) == []


@pytest.mark.parametrize("kind", AXES, ids=lambda kind: kind.__name__)
def test_other_dtypes_are_those_of_the_arrays_that_an_axis_has(kind):
    axis = with_index_dtypes(SAMPLES[kind], indptr="int64", indices="uint8")
    dtypes = [
        None if array is None else array.dtype for array in (indptr_of(axis), indices_of(axis))
    ]
    words = "uint64" if AXIS_KINDS[kind].has_words else None
    assert dtypes == [
        "int64" if is_varied(axis) else None, "uint8" if AXIS_KINDS[kind].has_indices else words,
    ]  # fmt: skip


def test_slots_of_a_padded_axis_may_be_unused():
    padded = replace(SAMPLES[CompressedFixed], padded=True)
    assert is_padded(padded)
    assert not any(map(is_padded, SAMPLES.values()))


def test_a_bitmask_has_a_word_for_each_fiber():
    module = module_with(SAMPLES[BitmaskVaried])
    assert indices_of(SAMPLES[BitmaskVaried]).is_searchable
    offsets = SparseBuffer("J_indptr", ("I",), "int32", "indptr", extra_storage=1)
    function = module.functions[0]
    function = replace(function, buffers=(*function.buffers, offsets))
    facts = known_facts(function)
    assert BitCounts("J_words", "J_indptr", N) in facts
    damaged = module_with(replace(SAMPLES[BitmaskVaried], words_dtype="int64"))
    assert "verify.axis.dtype" in [diagnostic.code for diagnostic in diagnostics(damaged)]


def test_the_order_of_a_bitmask_is_not_declared():
    for kind, axis in SAMPLES.items():
        changed = with_declared_order(axis, sorted=False, unique=False)
        assert (changed != axis) == AXIS_KINDS[kind].has_indices


def test_a_new_kind_of_axis_is_handled_by_its_entry(monkeypatch):
    monkeypatch.setitem(AXIS_KINDS, Singleton, AxisKind(lambda axis: ONE, has_indices=True))
    assert set(AXIS_KINDS) != set(AXES)
    axis = Singleton("J", "I", N, "indices")
    module = module_with(axis)
    assert list(diagnostics(module)) == []
    assert (width_of(axis), index_handles(axis), is_full(axis)) == (ONE, ("indices",), False)
    assert known_facts(module.functions[0]) == (
        InRange("J_indices", index(0), N),
        SortedSegments("J_indices", None, unique=True),
    )
    changed = specialize(module, {}, dtypes={"J": "int64"}).functions[0]
    assert changed.axes[1].indices_dtype == changed.buffers[1].dtype == "int64"
    damaged = module_with(replace(axis, indices_dtype="float32"))
    assert "verify.axis.dtype" in [diagnostic.code for diagnostic in diagnostics(damaged)]
