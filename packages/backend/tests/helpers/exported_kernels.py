"""An object file with a symbol of a kernel, and the artifact that is exported."""

import shutil
import struct

import pytest

from gossamer_backend import Artifact
from gossamer_ir.core.build import add, index, index_var
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature
from gossamer_ir.nodes import (
    Distinct,
    InRange,
    Load,
    Monotone,
    PaddedSlots,
    Relation,
    SortedSegments,
)

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
N = index_var("n")
FACTS = (
    InRange("P", index(0), add(N, index(1))),
    Monotone("P"),
    SortedSegments("P", "P", unique=True),
    SortedSegments("Q", None, unique=False),
    Distinct("Q"),
    PaddedSlots("P", N),
    Relation("subset", "P", "Q"),
)
SIGNATURE = Signature(
    "scale",
    (
        BufferParam("p", "P", "int32", (add(N, index(1)),), True, False, FACTS),
        BufferParam("x", "X", "float64", (N, Load("P", (N,), "int32")), True, True),
        BufferParam("flags", "F", "bool", (), False, False),
    ),
    (ScalarParam("n", "int64"), ScalarParam("k", "int8"), ScalarParam("factor", "float32")),
    ("p", "n", "x", "flags", "k", "factor"),
)


def elf(*symbols):
    """A relocatable object that contains only symbols: (name, whether it is defined)."""
    names = b"\0"
    table = bytes(24)
    for name, is_defined in symbols:
        table += struct.pack("<IBBHQQ", len(names), 0x12, 0, 1 if is_defined else 0, 0, 0)
        names += name.encode() + b"\0"
    sections_at = 64 + len(table) + len(names)
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, 64, len(table), 2, 1, 8, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64 + len(table), len(names), 0, 0, 1, 0)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 1, 62, 1, 0, 0, sections_at, 0, 64, 0, 0, 64, 3, 2
    )  # fmt: skip
    return header + table + names + sections


OBJECT = elf(("local", True), ("gossamer_kernel", True), ("free", False), ("calloc", False))


def artifact(code=OBJECT, *, bounds_checked_buffers=(), target="toy:cpu=a"):
    return Artifact("toy", "1.0", target, SIGNATURE, code, bounds_checked_buffers, (("cpu", "a"),))
