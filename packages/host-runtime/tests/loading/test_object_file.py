"""Malformed objects are refused, whatever their architecture and this machine's."""

from __future__ import annotations

import struct
import subprocess
import sys

import pytest
from object_programs import (
    ARCHITECTURES,
    CALLING_LIBRARIES,
    EVERYTHING,
    PLAIN,
    names_of_sections,
    object_of,
)

from gossamer_host_runtime.detection.architecture import architecture
from gossamer_host_runtime.loading.elf import RELOCATION_RULES
from gossamer_host_runtime.loading.image import image_layout, relocated_image
from gossamer_host_runtime.loading.loader import load_object
from gossamer_host_runtime.loading.object_file import read_object
from gossamer_ir.errors import ArgumentError

SIZE_OF_SECTION, ADDRESS, ALIGNMENT, LINK, TARGET = 32, 16, 48, 40, 44
"""The offsets of fields in the header of a section."""


def changed(code, at, layout, value):
    data = bytearray(code)
    struct.pack_into(layout, data, at, value)
    return bytes(data)


def in_section(name, field, layout, value):
    return lambda code: changed(
        code, names_of_sections(code)[name].header_offset + field, layout, value
    )


def in_contents(name, field, layout, value):
    """Change a field in a section; `value` is a function of the sections by name."""

    def change(code):
        sections = names_of_sections(code)
        return changed(code, sections[name].offset + field, layout, value(sections))

    return change


def in_symbol(field, layout, value):
    """Change a field of the symbol `f`; `value` is a function of the sections by name."""

    def change(code):
        sections, object_file = names_of_sections(code), read_object(code)
        row = object_file.symbols.index(object_file.find("f"))
        return changed(code, sections[".symtab"].offset + 24 * row + field, layout, value(sections))

    return change


def index_of(name):
    return lambda sections: list(sections).index(name)


MALFORMED = {
    "a section lies outside the file": in_section(".rodata", SIZE_OF_SECTION, "<Q", 1 << 40),
    "a section has an address": in_section(".rodata", ADDRESS, "<Q", 1),
    "the alignment of a section is not a power of two": in_section(".rodata", ALIGNMENT, "<Q", 24),
    "a section is aligned to 1048576 bytes": in_section(".rodata", ALIGNMENT, "<Q", 1 << 20),
    "it takes more than 67108864 bytes of zeros": in_section(
        ".bss", SIZE_OF_SECTION, "<Q", 1 << 62
    ),
    # Inside the image, where the next section is.
    "a relocation lies outside its section": in_contents(
        ".rela.text", 0, "<Q", lambda sections: sections[".text"].size - 3
    ),
    "a relocation has no symbol": in_contents(
        ".rela.text", 12, "<I", lambda sections: sections[".symtab"].size // 24
    ),
    "relocations have no section to change": lambda code: in_section(
        ".rela.text", TARGET, "<I", index_of(".bss")(names_of_sections(code))
    )(code),
    "a symbol lies outside its section": in_symbol(
        8, "<Q", lambda sections: sections[".text"].size
    ),
    "a symbol has no section": in_symbol(6, "<H", len),
    "a symbol has an unknown type": in_symbol(4, "<B", lambda sections: 0x15),
    "'f' is not in its instructions": in_symbol(6, "<H", index_of(".rodata")),
    "a table of names is missing": lambda code: in_section(
        ".symtab", LINK, "<I", index_of(".rodata")(names_of_sections(code))
    )(code),
}


def image_of(code):
    """Relocate an object of any architecture for an address."""
    object_file = read_object(code)
    rules = next(
        rules for rules in RELOCATION_RULES.values() if rules.machine == object_file.header.machine
    )
    return relocated_image(
        object_file, rules, layout=image_layout(object_file, rules), base=1 << 20
    )


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("reason", MALFORMED)
def test_a_malformed_object_is_refused(reason, name):
    code = object_of(EVERYTHING, name)
    assert image_of(code)
    with pytest.raises(ArgumentError, match="cannot be loaded as object code") as caught:
        load_object(MALFORMED[reason](code), "f")
    assert f": {reason}." in str(caught.value)
    assert caught.value.code == "host_runtime.object"


def test_a_relocation_of_an_instruction_is_aligned():
    code = object_of(EVERYTHING, "aarch64")
    with pytest.raises(ArgumentError, match="a relocation of an instruction is not aligned"):
        read_object(in_contents(".rela.text", 0, "<Q", lambda _: 2)(code))


@pytest.mark.parametrize("program", ["calls of a global function", "table", "addresses"])
def test_a_relocation_changes_an_instruction_of_its_kind(program):
    """LLVM's linker would end the process otherwise."""
    code = object_of(PLAIN[program], "aarch64")
    place = names_of_sections(code)[".rela.text"].offset
    (offset,) = struct.unpack_from("<Q", code, place)
    ret, kind = 0xD65F03C0, struct.pack("<I", 263)
    mutants = [
        in_contents(".text", offset, "<I", lambda _: ret)(code),
        code[: place + 8] + kind + code[place + 12 :],  # of a movz
    ]
    for mutant in mutants:
        with pytest.raises(ArgumentError, match="changes an instruction of another kind"):
            load_object(mutant, "f")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_no_part_of_an_object_is_read(name):
    code = object_of(PLAIN["table"], name)
    for length in range(4, len(code), 7):
        with pytest.raises(ArgumentError, match="cannot be loaded as object code"):
            load_object(code[:length], "f")


MUTANTS = """
import collections, random, resource, struct, sys
from gossamer_host_runtime.loading.elf import RELOCATION_RULES
from gossamer_host_runtime.loading.image import image_layout, relocated_image
from gossamer_host_runtime.loading.loader import load_object
from gossamer_host_runtime.loading.object_file import read_object
from gossamer_host_runtime.loading.relocation_rules import NeedsLinkerError
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

def relocate(code):
    object_file = read_object(code)
    machine = object_file and object_file.header.machine
    rules = [rules for rules in RELOCATION_RULES.values() if rules.machine == machine]
    if not rules:
        raise NeedsLinkerError
    relocated_image(object_file, rules[0], layout=image_layout(object_file, rules[0]), base=1 << 30)

load = {"load": lambda code: load_object(code, "f"), "relocate": relocate}[sys.argv[3]]
results = collections.Counter()
for _ in range(1000):
    mutant = bytearray(code)
    randoms.choice([byte, header, field, section, section, cut])(mutant)
    try:
        load(bytes(mutant))
        results["loaded"] += 1
    except ArgumentError as error:
        results[error.code] += 1
    except (NeedsLinkerError, struct.error):
        results["left to a linker"] += 1
print(*sorted(results))
print(results, file=sys.stderr)
"""


PROGRAMS = {
    "everything": EVERYTHING,
    "library": CALLING_LIBRARIES["function"],
    "table": PLAIN["table"],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_mutant_of_an_object_crashes_the_process(tmp_path, program):
    """Nothing is run: what is loaded may hold any instructions."""
    outcomes = run_mutants(tmp_path, object_of(PROGRAMS[program]), "load")
    assert (outcomes.returncode, outcomes.stdout) == (0, "host_runtime.object loaded\n"), (
        outcomes.stderr
    )


@pytest.mark.parametrize("name", sorted({*ARCHITECTURES} - {architecture()}))
def test_no_mutant_for_another_architecture_is_relocated_outside_of_the_image(tmp_path, name):
    outcomes = run_mutants(tmp_path, object_of(EVERYTHING, name), "relocate")
    expected = "host_runtime.object left to a linker loaded\n"
    assert (outcomes.returncode, outcomes.stdout) == (0, expected), outcomes.stderr


def run_mutants(folder, code, how):
    (folder / "object").write_bytes(code)
    command = [sys.executable, "-c", MUTANTS, str(folder / "object"), "7", how]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, errors="replace"
    )
