"""The signature of a flat module, and the buffers that it reads and writes through its calls."""

from pathlib import Path

import pytest

from gossamer_ir.core.build import ZERO, handle, index, index_var
from gossamer_ir.errors import ParseError, VerifyError
from gossamer_ir.interchange import serialization
from gossamer_ir.interchange.records import Signature
from gossamer_ir.interchange.signature import signature_of
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Buffer,
    Const,
    Function,
    InRange,
    Launch,
    Load,
    Module,
    Monotone,
    ParallelFor,
    Param,
    Store,
)

FOLDER = Path(__file__).parents[1] / "samples"
N = index_var("n")
ONE = Const("float32", "1.0")


def spmm():
    return serialization.loads((FOLDER / "0.1-spmm-flat.json").read_bytes())


def test_spmm_reads_the_matrix_and_writes_the_result():
    signature = signature_of(spmm())
    assert signature.entry == "csrmm"
    assert signature.order == ("a", "b", "c", "indptr", "indices", "m", "n", "k", "nnz")
    assert [(p.name, p.buffer, p.dtype, p.is_read, p.is_written) for p in signature.buffers] == [
        ("a", "A_data", "float32", True, False),
        ("b", "B_data", "float32", True, False),
        ("c", "C_data", "float32", False, True),
        ("indptr", "J_indptr_data", "int32", True, False),
        ("indices", "J_indices_data", "int32", True, False),
    ]
    assert [(s.name, s.dtype) for s in signature.scalars] == [
        (x, "int64") for x in ("m", "n", "k", "nnz")
    ]
    assert signature.buffers[1].shape == (index_var("n"), index_var("k"))


def test_facts_go_to_the_buffer_they_are_about():
    indptr, indices = signature_of(spmm()).buffers[3:]
    assert [type(fact).__name__ for fact in indptr.facts] == ["InRange", "Monotone"]
    assert [type(fact).__name__ for fact in indices.facts] == ["InRange", "SortedSegments"]


def function(name, params, buffers, *body, facts=()):
    pointers = tuple(Param(param, "handle") for param in params)
    bound = tuple(Buffer(buffer, (N,), "float32", param) for buffer, param in buffers.items())
    return Function(name, (*pointers, Param("n", "int64")), body, buffers=bound, facts=facts)


def test_use_is_found_through_two_calls_that_permute_their_arguments():
    copy = function(
        "copy", ("p", "q"), {"P": "p", "Q": "q"}, Store("P", (ZERO,), Load("Q", (ZERO,), "float32"))
    )
    middle = function(
        "middle", ("u", "v"), {"U": "u", "V": "v"}, Launch("copy", (handle("v"), handle("u"), N))
    )
    entry = function(
        "main",
        ("x", "y", "z"),
        {"X": "x", "Y": "y", "Z": "z"},
        Launch("middle", (handle("y"), handle("x"), N)),
    )
    signature = signature_of(Module("flat", (entry, middle, copy), "main"))
    assert [(p.name, p.is_read, p.is_written) for p in signature.buffers] == [
        ("x", False, True),
        ("y", True, False),
        ("z", False, False),
    ]


def test_a_temporary_that_is_passed_on_is_no_parameter():
    inner = Function(
        "inner",
        (
            Param("begin", "int64"),
            Param("end", "int64"),
            Param("p", "handle"),
            Param("q", "handle"),
        ),
        (Store("P", (ZERO,), ONE), Store("Q", (ZERO,), ONE)),
        buffers=(
            Buffer("P", (index(4),), "float32", "p"),
            Buffer("Q", (index(4),), "float32", "q"),
        ),
    )
    entry = function(
        "main",
        ("x",),
        {"X": "x"},
        Allocate(Buffer("tmp", (index(4),), "float32")),
        ParallelFor("inner", "i", ZERO, N, (handle("tmp"), handle("x"))),
    )
    (only,) = signature_of(Module("flat", (entry, inner), "main")).buffers
    assert (only.name, only.is_read, only.is_written) == ("x", False, True)


def test_facts_of_two_names_of_one_pointer_come_together():
    facts = (Monotone("X"), InRange("Y", ZERO, N))
    entry = function("main", ("x",), {"X": "x"}, facts=facts)
    alias = Buffer("Y", (N,), "float32", "x")
    entry = Function("main", entry.params, (), buffers=(*entry.buffers, alias), facts=facts)
    (only,) = signature_of(Module("flat", (entry,), "main")).buffers
    assert only.buffer == "X"
    assert only.facts == facts


def test_a_signature_for_a_device_states_the_memory_and_goes_through_bytes():
    scratch = Binary("mul", index_var("n"), index(8))
    plain, device = signature_of(spmm()), signature_of(spmm(), space="global", scratch=scratch)
    assert {param.space for param in plain.buffers} == {"host"}
    assert {param.space for param in device.buffers} == {"global"}
    assert (plain.scratch, device.scratch) == (None, scratch)
    data = serialization.dumps_record(device)
    assert serialization.loads_record(data, Signature) == device
    # Fields with the values for the host are not stored: files of before have none of them.
    assert b"space" not in serialization.dumps_record(plain)
    with pytest.raises(ParseError):
        serialization.loads_record(data.replace(b'"global"', b'"shared"'), Signature)


def test_a_pointer_without_buffer_is_refused():
    with pytest.raises(VerifyError, match="'x'") as caught:
        signature_of(Module("flat", (function("main", ("x",), {}),), "main"))
    assert caught.value.code == "signature.unbound"


def test_only_a_flat_module_has_a_signature():
    with pytest.raises(VerifyError, match="'loop'") as caught:
        signature_of(Module("loop", (function("main", (), {}),), "main"))
    assert caught.value.code == "signature.stage"
