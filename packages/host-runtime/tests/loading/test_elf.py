"""Objects loaded without LLVM give the results of LLVM's linker; unsupported objects return None."""

from __future__ import annotations

import ctypes

import pytest
from msgspec.structs import replace
from object_programs import ARCHITECTURES, CALLING_LIBRARIES, FOREIGN, PLAIN, SLOTTED, object_of

from gossamer_host_runtime.detection.architecture import architecture
from gossamer_host_runtime.loading import elf
from gossamer_host_runtime.loading.elf import can_place_code, place_code
from gossamer_host_runtime.loading.linker import link_object
from gossamer_host_runtime.loading.loader import load_object
from gossamer_ir.errors import ArgumentError

pytestmark = pytest.mark.skipif(
    not can_place_code(), reason="the loader does not support this system"
)
with_slots = pytest.mark.skipif(
    architecture() == "x86_64", reason="only AArch64 and RISC-V have slots and veneers"
)


def call(address, value):
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(value)


def agree(code):
    placed, (linked, library) = place_code(code, "f"), link_object(code, "f")
    assert placed is not None
    assert library is not None
    for value in (0, 1, 2, 7, 8, 63):
        assert call(placed, value) == call(linked, value)


@pytest.mark.parametrize("name", PLAIN)
def test_placed_object_runs_as_when_linked_by_llvm(name):
    agree(object_of(PLAIN[name]))


@pytest.mark.parametrize("name", CALLING_LIBRARIES)
def test_functions_of_libraries_are_called_as_when_linked_by_llvm(name):
    agree(object_of(CALLING_LIBRARIES[name]))


@with_slots
def test_an_address_in_a_slot_is_that_of_the_symbol():
    agree(object_of(SLOTTED))


@with_slots
def test_calls_by_veneers_reach_their_targets(monkeypatch):
    rules = elf.RELOCATION_RULES[architecture()]
    always = replace(rules, veneers=replace(rules.veneers, reach=0))
    monkeypatch.setitem(elf.RELOCATION_RULES, architecture(), always)
    agree(object_of(PLAIN["calls of a global function"]))


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


@pytest.mark.parametrize("name", sorted({*ARCHITECTURES} - {architecture()}))
def test_code_of_another_architecture_is_refused(name):
    with pytest.raises(ArgumentError, match=f"it is not code for {architecture()}") as caught:
        load_object(object_of(PLAIN["constant"], name), "f")
    assert caught.value.code == "host_runtime.object"


def test_refused_relocations_keep_no_memory():
    """An arena of an allocator, which other objects need, is larger than the 50 pages of 50 attempts."""
    code = object_of(FOREIGN["unknown function"])
    assert any(mapped_by_attempts(code) < 10 for _ in range(5))


def mapped_by_attempts(code):
    """The pages that 50 attempts to place `code` leave mapped."""
    before = mappings()
    for _ in range(50):
        assert place_code(code, "f") is None
    return mappings() - before


def mappings():
    """The mapped memory of this process, in pages."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0])
