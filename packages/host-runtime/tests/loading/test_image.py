"""Images equal what the linker of GNU binutils makes of an object, on any machine."""

from __future__ import annotations

import shutil
import struct
import subprocess

import pytest
from msgspec.structs import replace
from object_programs import (
    ARCHITECTURES,
    CALLING_LIBRARIES,
    EVERYTHING,
    FOREIGN,
    PLAIN,
    SLOTTED,
    names_of_sections,
    object_of,
)

from gossamer_host_runtime.detection.architecture import architecture
from gossamer_host_runtime.loading.elf import RELOCATION_RULES
from gossamer_host_runtime.loading.image import image_layout, relocated_image
from gossamer_host_runtime.loading.object_file import NO_BITS, read_object
from gossamer_host_runtime.loading.relocation_rules import Fixup, NeedsLinkerError

BASES = (0x10000, 0x7F12_3456_7000)
PROGRAMS = {**PLAIN, "everything": EVERYTHING}


def linker_of(name):
    """Return the command of the linker for an architecture; skip the test if there is none."""
    names = [f"{name}-linux-gnu-ld", *(["ld"] if name == architecture() else [])]
    compiler = next(filter(None, map(shutil.which, names)), None)
    if compiler is None:
        pytest.skip(f"no linker for {name} is installed: {' or '.join(names)}")
    return compiler


def image_of(code, rules, base):
    object_file = read_object(code)
    layout = image_layout(object_file, rules)
    return layout, relocated_image(object_file, rules, layout=layout, base=base)


def linked(folder, code, *, linker, starts):
    """Return the contents of sections as binutils link them, at an address for each name."""
    rules = [f"  {name} {start:#x} : {{ *({name}) }}" for name, start in starts.items()]
    script, program, output = (folder / name for name in ("script", "object", "output"))
    script.write_text("\n".join(["SECTIONS {", *rules, "}"]))
    program.write_bytes(code)
    command = [linker, "--no-relax", "-e", "f", "-T", script, program, "-o", output]
    subprocess.run(command, check=True, capture_output=True)
    made = output.read_bytes()
    sections = names_of_sections(made)
    return {name: made[sections[name].offset :][: sections[name].size] for name in starts}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_image_is_what_binutils_link(tmp_path, name, program, base):
    linker, code = linker_of(name), object_of(PROGRAMS[program], name)
    layout, image = image_of(code, RELOCATION_RULES[name], base)
    sections = names_of_sections(code)
    starts = {
        title: base + start
        for (title, section), start in zip(sections.items(), layout.sections, strict=True)
        if start is not None and section.size
    }
    made = linked(tmp_path, code, linker=linker, starts=starts)
    # Linkers edit unwind tables, and zeros are not in the file.
    compared = {title for title in starts if sections[title].kind != NO_BITS} - {".eh_frame"}
    assert ".text" in compared
    for title in compared:
        start = starts[title] - base
        assert image[start : start + len(made[title])].hex() == made[title].hex(), title


def signed(number, bits):
    return number - (1 << bits) if number >> bits - 1 else number


def target_of_page(image, at, base):
    """Return the address that `adrp` and the next instruction, with a place in the page, compute."""
    first, second = struct.unpack_from("<II", image, at)
    pages = signed((first >> 5 & 0x7FFFF) << 2 | first >> 29 & 3, 21)
    scale = 8 if second >> 30 == 3 else 1
    return (base + at >> 12) + pages << 12 | (second >> 10 & 0xFFF) * scale


def address_in(image, veneer, name):
    """Return the address to which a veneer jumps, which is after its instructions."""
    (address,) = struct.unpack_from(
        "<Q", image, veneer + {"x86_64": 6, "aarch64": 8, "riscv64": 16}[name]
    )
    return address


def test_a_slot_has_the_address_of_a_symbol():
    code = object_of(SLOTTED, "aarch64")
    object_file = read_object(code)
    layout, image = image_of(code, RELOCATION_RULES["aarch64"], BASES[1])
    (((symbol, _), slot),) = layout.slots.items()
    (address,) = struct.unpack_from("<Q", image, slot)
    row = object_file.symbols[symbol]
    assert address == BASES[1] + layout.sections[row.section] + row.value
    rows = next(
        rows for number, rows in object_file.relocations if layout.sections[number] is not None
    )
    at = layout.sections[object_file.find("f").section] + rows[0].offset
    assert target_of_page(image, at, BASES[1]) == BASES[1] + slot


def test_a_call_out_of_reach_goes_by_a_veneer():
    code = object_of(PLAIN["calls of a global function"], "aarch64")
    object_file, rules = read_object(code), RELOCATION_RULES["aarch64"]
    near, _ = image_of(code, rules, BASES[1])
    assert not near.veneers
    layout, image = image_of(
        code, replace(rules, veneers=replace(rules.veneers, reach=0)), BASES[1]
    )
    # Both calls of `f` share it.
    (veneer,) = layout.veneers.values()
    text = layout.sections[object_file.find("f").section]
    callee = BASES[1] + text + object_file.find("g").value
    assert address_in(image, veneer, "aarch64") == callee
    words = struct.unpack_from(f"<{layout.size // 4}I", image)
    calls = {row: word for row, word in enumerate(words) if word >> 26 in (0b000101, 0b100101)}
    assert {4 * row + 4 * signed(word & 0x3FFFFFF, 26) for row, word in calls.items()} == {veneer}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_function_of_a_library_is_called_by_a_veneer(name):
    """The function may be anywhere."""
    code, rules = object_of(CALLING_LIBRARIES["function"], name), RELOCATION_RULES[name]
    object_file, address, asked = read_object(code), BASES[1] ^ 1 << 46, []

    def find_address(function):
        asked.append(function)
        return address if function == "labs" else None

    layout = image_layout(object_file, rules)
    image = relocated_image(
        object_file, rules, layout=layout, base=BASES[1], find_address=find_address
    )
    (veneer,) = layout.veneers.values()
    assert "labs" in asked
    assert "f" not in asked
    assert address_in(image, veneer, name) == address


def address_of_pair(image, at, base):
    """Return the address that `auipc` and the next instruction, an addition or a load, compute."""
    first, second = struct.unpack_from("<II", image, at)
    return base + at + signed(first & 0xFFFFF000, 32) + signed(second >> 20, 12)


def test_a_slot_of_riscv_has_the_address_of_a_symbol():
    code = object_of(SLOTTED, "riscv64")
    object_file = read_object(code)
    layout, image = image_of(code, RELOCATION_RULES["riscv64"], BASES[1])
    (((symbol, _), slot),) = layout.slots.items()
    row = object_file.symbols[symbol]
    (address,) = struct.unpack_from("<Q", image, slot)
    assert address == BASES[1] + layout.sections[row.section] + row.value
    ((number, rows), *_) = object_file.relocations
    at = layout.sections[number] + rows[0].offset
    assert address_of_pair(image, at, BASES[1]) == BASES[1] + slot


def test_a_second_instruction_without_a_first_is_left_to_a_linker():
    code = bytearray(object_of(PLAIN["table"], "riscv64"))
    place = names_of_sections(code)[".rela.text"].offset
    # The first relocation, which the second refers to, is moved by an instruction.
    struct.pack_into("<Q", code, place, struct.unpack_from("<Q", code, place)[0] + 4)
    with pytest.raises(NeedsLinkerError):
        image_of(bytes(code), RELOCATION_RULES["riscv64"], BASES[0])


@pytest.mark.parametrize("distance", [0, 1, 2047, 2048, -1, -2048, -2049, 0x7FFFF7FF, -(1 << 31)])
def test_a_pair_of_instructions_of_riscv_reaches_each_distance(distance):
    """Loads and stores have the lower bits in different places."""
    writers, fixup = RELOCATION_RULES["riscv64"].writers, Fixup(0, 0, distance)
    for second, parts in ((24, [(20, 12, 0)]), (25, [(7, 5, 0), (25, 7, 5)])):
        upper, lower = bytearray(4), bytearray(4)
        writers[23](upper, fixup)
        writers[second](lower, fixup)
        (word,) = struct.unpack("<I", lower)
        low = sum((word >> first & (1 << bits) - 1) << to for first, bits, to in parts)
        assert signed(struct.unpack("<I", upper)[0], 32) + signed(low, 12) == distance


@pytest.mark.parametrize("kind", [19, 20, 23])
@pytest.mark.parametrize("distance", [0x7FFFF800, -(1 << 31) - 2049])
def test_a_distance_beyond_a_pair_of_instructions_is_left_to_a_linker(kind, distance):
    with pytest.raises(NeedsLinkerError):
        RELOCATION_RULES["riscv64"].writers[kind](bytearray(8), Fixup(0, 0, distance))


FAR = {
    257: 1 << 64,
    260: 1 << 63,
    261: 1 << 31,
    275: 1 << 32,
    282: 1 << 27,
    283: 1 << 27,
}
"""The least distance that each kind of relocation cannot express; 275 is in pages."""


@pytest.mark.parametrize("kind", FAR)
def test_a_value_out_of_range_is_left_to_a_linker(kind):
    write, image = RELOCATION_RULES["aarch64"].writers[kind], bytearray(8)
    write(image, Fixup(0, 0, FAR[kind] - (4096 if kind == 275 else 4)))
    with pytest.raises((NeedsLinkerError, struct.error)):
        write(image, Fixup(0, 0, FAR[kind]))


@pytest.mark.parametrize(("kind", "size"), [(284, 2), (285, 4), (286, 8), (299, 16)])
def test_a_place_in_a_page_is_a_multiple_of_what_is_loaded(kind, size):
    write, image = RELOCATION_RULES["aarch64"].writers[kind], bytearray(4)
    write(image, Fixup(0, 0, 4096 - size))
    assert struct.unpack("<I", image)[0] == (4096 // size - 1) << 10
    with pytest.raises(NeedsLinkerError):
        write(image, Fixup(0, 0, size // 2))


def test_a_call_to_the_middle_of_an_instruction_is_left_to_a_linker():
    with pytest.raises(NeedsLinkerError):
        RELOCATION_RULES["aarch64"].writers[283](bytearray(4), Fixup(0, 0, 2))


@pytest.mark.parametrize("program", FOREIGN)
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_what_is_not_in_the_object_is_left_to_a_linker(name, program):
    with pytest.raises(NeedsLinkerError):
        image_of(object_of(FOREIGN[program], name), RELOCATION_RULES[name], BASES[0])
