"""Objects loaded without LLVM give the results of LLVM's linker; unsupported objects return None."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys

import pytest

from gossamer_backend.elf_records import header_of, sections_of
from gossamer_host_runtime.detection.llvm_cpu import host_cpu
from gossamer_host_runtime.loading.elf import can_place_code, place_code
from gossamer_host_runtime.loading.linker import link_object
from gossamer_host_runtime.loading.loader import load_object
from gossamer_host_runtime.native_target import target_machine, triple
from gossamer_ir.errors import ArgumentError
from gossamer_llvm.optimization import parse

pytestmark = pytest.mark.skipif(not can_place_code(), reason="another system than x86-64 Linux")

BRANCHES = "\n".join(f"  i64 {at}, label %b{at}" for at in range(8))
BLOCKS = "\n".join(
    f"b{at}:\n  store i64 {at * at * 7919}, ptr %cell\n  br label %done" for at in range(8)
)
TABLE = ", ".join(f"i64 {at * 1000003}" for at in range(64))

PLAIN = {
    "constant": "define i64 @f(i64 %n) { %r = mul i64 %n, 77  ret i64 %r }",
    "floats": """
define i64 @f(i64 %n) {
  %x = sitofp i64 %n to double
  %y = fmul double %x, 0x400921FB54442D18
  %r = fptosi double %y to i64
  ret i64 %r
}""",
    "table": f"""
@t = internal constant [64 x i64] [{TABLE}]
define i64 @f(i64 %n) {{
  %at = and i64 %n, 63
  %p = getelementptr i64, ptr @t, i64 %at
  %r = load i64, ptr %p
  ret i64 %r
}}""",
    "addresses": """
@a = internal constant i64 11
@b = internal constant i64 22
@p = internal constant [2 x ptr] [ptr @a, ptr @b]
define i64 @f(i64 %n) {
  %at = and i64 %n, 1
  %q = getelementptr ptr, ptr @p, i64 %at
  %s = load volatile ptr, ptr %q
  %r = load i64, ptr %s
  ret i64 %r
}""",
    "branches": f"""
define i64 @f(i64 %n) {{
  %cell = alloca i64
  store i64 -1, ptr %cell
  %at = and i64 %n, 15
  switch i64 %at, label %done [
{BRANCHES} ]
{BLOCKS}
done:
  %r = load i64, ptr %cell
  ret i64 %r
}}""",
    "zeros": """
@z = internal global [4096 x i64] zeroinitializer, align 64
define i64 @f(i64 %n) {
  %p = getelementptr i64, ptr @z, i64 %n
  %r = load volatile i64, ptr %p
  ret i64 %r
}""",
    "calls": """
define internal i64 @g(i64 %n) noinline { %r = add i64 %n, 5  ret i64 %r }
define i64 @f(i64 %n) { %a = call i64 @g(i64 %n)  %r = call i64 @g(i64 %a)  ret i64 %r }""",
}

FOREIGN = {
    "function of a library": """
declare i64 @labs(i64)
define i64 @f(i64 %n) { %r = call i64 @labs(i64 %n)  ret i64 %r }""",
    "thread-local variable": """
@t = internal thread_local global i64 3
define i64 @f(i64 %n) { %r = load i64, ptr @t  ret i64 %r }""",
}


def object_of(text):
    return target_machine(host_cpu()).emit_object(parse(f'target triple = "{triple()}"\n{text}'))


def call(address, value):
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(value)


@pytest.mark.parametrize("name", PLAIN)
def test_placed_object_runs_as_when_linked_by_llvm(name):
    code = object_of(PLAIN[name])
    placed, (linked, library) = place_code(code, "f"), link_object(code, "f")
    assert placed is not None
    assert library is not None
    for value in (0, 1, 2, 7, 8, 63):
        assert call(placed, value) == call(linked, value)


@pytest.mark.parametrize("name", FOREIGN)
def test_what_needs_a_linker_is_left_to_one(name):
    assert place_code(object_of(FOREIGN[name]), "f") is None


def test_unknown_symbol_and_other_files_are_not_placed():
    code = object_of(PLAIN["constant"])
    assert place_code(code, "g") is None
    for other in (b"", b"MZ" + code[2:], b"\0" * 999):
        assert place_code(other, "f") is None


def test_other_files_of_elf_are_refused():
    code = object_of(PLAIN["constant"])
    for other in (b"\x7fELF", code[:4] + b"\1" + code[5:], code[:16] + b"\3\0" + code[18:]):
        with pytest.raises(ArgumentError, match="cannot be loaded as object code") as caught:
            place_code(other, "f")
        assert caught.value.code == "host_runtime.object"


def test_no_part_of_an_object_is_placed():
    code = object_of(PLAIN["table"])
    for length in range(4, len(code), 7):
        with pytest.raises(ArgumentError, match="cannot be loaded as object code"):
            place_code(code[:length], "f")


EVERYTHING = f"""
@t = internal constant [64 x i64] [{TABLE}]
@a = internal constant i64 11
@b = internal constant i64 22
@p = internal constant [2 x ptr] [ptr @a, ptr @b]
@z = internal global [64 x i64] zeroinitializer, align 64
define internal i64 @g(i64 %n) noinline {{
  %at = and i64 %n, 1
  %q = getelementptr ptr, ptr @p, i64 %at
  %s = load volatile ptr, ptr %q
  %r = load i64, ptr %s
  ret i64 %r
}}
define i64 @f(i64 %n) {{
  %at = and i64 %n, 63
  %p = getelementptr i64, ptr @t, i64 %at
  %x = load i64, ptr %p
  %q = getelementptr i64, ptr @z, i64 %at
  store volatile i64 %x, ptr %q
  %y = call i64 @g(i64 %x)
  %r = add i64 %x, %y
  ret i64 %r
}}"""

RODATA, RELOCATIONS, ZEROS, SYMBOLS = 4, 3, 7, 11
"""The indices of sections of EVERYTHING: `.rodata`, what changes `.text`, `.bss`, and the symbol table."""

SIZE_OF_SECTION, ADDRESS, ALIGNMENT, LINK, TARGET = 32, 16, 48, 40, 44


def changed(code, at, layout, value):
    data = bytearray(code)
    struct.pack_into(layout, data, at, value)
    return bytes(data)


def in_section(row, field, layout, value):
    return lambda code, sections: changed(code, sections[row].at + field, layout, value)


def in_contents(row, field, layout, value):
    return lambda code, sections: changed(code, sections[row].offset + field, layout, value)


MALFORMED = {
    "a section lies outside the file": in_section(RODATA, SIZE_OF_SECTION, "<Q", 1 << 40),
    "a section has an address": in_section(RODATA, ADDRESS, "<Q", 1),
    "the alignment of a section is not a power of two": in_section(RODATA, ALIGNMENT, "<Q", 24),
    "a section is aligned to 1048576 bytes": in_section(RODATA, ALIGNMENT, "<Q", 1 << 20),
    "it takes more than 67108864 bytes of zeros": in_section(ZEROS, SIZE_OF_SECTION, "<Q", 1 << 62),
    # Inside the image, where the next section is.
    "a relocation lies outside its section": in_contents(RELOCATIONS, 0, "<Q", 0x4A - 3),
    "a relocation has no symbol": in_contents(RELOCATIONS, 12, "<I", 13),
    "relocations have no section to change": in_section(RELOCATIONS, TARGET, "<I", ZEROS),
    "a symbol lies outside its section": in_contents(SYMBOLS, 12 * 24 + 8, "<Q", 0x4A - 0x20),
    "a symbol has no section": in_contents(SYMBOLS, 12 * 24 + 6, "<H", 12),
    "a symbol has an unknown type": in_contents(SYMBOLS, 12 * 24 + 4, "<B", 0x15),
    "'f' is not in its instructions": in_contents(SYMBOLS, 12 * 24 + 6, "<H", RODATA),
    "a table of names is missing": in_section(SYMBOLS, LINK, "<I", RODATA),
}


@pytest.mark.parametrize("reason", MALFORMED)
def test_a_malformed_object_is_refused(reason):
    code = object_of(EVERYTHING)
    assert place_code(code, "f") is not None
    mutant = MALFORMED[reason](code, sections_of(code, header_of(code)))
    with pytest.raises(ArgumentError, match="cannot be loaded as object code") as caught:
        load_object(mutant, "f")
    assert f": {reason}." in str(caught.value)
    assert caught.value.code == "host_runtime.object"


def test_refused_relocations_keep_no_memory():
    code = object_of(FOREIGN["function of a library"])
    before = mappings()
    for _ in range(50):
        assert place_code(code, "f") is None
    assert mappings() < before + 10


def mappings():
    """The mapped memory of this process, in pages."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0])


MUTANTS = """
import collections, random, resource, struct, sys
from gossamer_host_runtime.loading.loader import load_object
from gossamer_ir.errors import ArgumentError

code, number = open(sys.argv[1], "rb").read(), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
randoms = random.Random(number)
table = struct.unpack_from("<Q", code, 40)[0]
ODD = [0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0x1000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF8, 0xFFFFFFFF]
ODD += [1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 8, (1 << 64) - 1, len(code), len(code) - 1]

def byte(data):
    for _ in range(randoms.randint(1, 3)):
        data[randoms.randrange(len(data))] = randoms.randrange(256)

def header(data):
    data[randoms.choice([randoms.randrange(64), randoms.randrange(table, len(data))])] ^= (
        1 << randoms.randrange(8)
    )

def field(data):
    size = randoms.choice([1, 2, 4, 8])
    at = randoms.choice([0, table, table, randoms.randrange(len(data) - 64)])
    at += randoms.randrange(64 if at in (0, table) else 8) // size * size
    at = at if at + size <= len(data) else 0
    data[at : at + size] = (randoms.choice(ODD) % (1 << 8 * size)).to_bytes(size, "little")

def section(data):
    row = table + 64 * randoms.randrange((len(data) - table) // 64)
    at, size = randoms.choice([(4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8)])
    value = randoms.choice([*ODD, *range(20)]) % (1 << 8 * size)
    data[row + at : row + at + size] = value.to_bytes(size, "little")

def cut(data):
    del data[randoms.randrange(len(data)) :]

results = collections.Counter()
for _ in range(1000):
    mutant = bytearray(code)
    randoms.choice([byte, header, field, section, section, cut])(mutant)
    try:
        load_object(bytes(mutant), "f")
        results["loaded"] += 1
    except ArgumentError as error:
        results[error.code] += 1
print(*sorted(results))
print(results, file=sys.stderr)
"""


@pytest.mark.parametrize(
    "text",
    [EVERYTHING, FOREIGN["function of a library"], PLAIN["table"]],
    ids=["everything", "library", "table"],
)
def test_no_mutant_of_an_object_crashes_the_process(tmp_path, text):
    """Nothing is run: what is loaded may hold any instructions."""
    (tmp_path / "object").write_bytes(object_of(text))
    command = [sys.executable, "-c", MUTANTS, str(tmp_path / "object"), "7"]
    found = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, errors="replace"
    )
    assert (found.returncode, found.stdout) == (0, "host_runtime.object loaded\n"), found.stderr
