"""The kernels of a text of PTX, parsed."""

from __future__ import annotations

import re
from functools import cache

import msgspec
from msgspec.structs import replace

from gossamer_ir.errors import InternalError

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LINES = re.compile(r"^\s*\.(?:loc|file)\b[^\n]*", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+(\w+)\s*\((.*?)\)(.*?)\{", re.DOTALL)
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(%\w+?)<(\d+)>")
_REGISTER = re.compile(r"\.reg\s+\.(\w+)\s+(%?\w+)")
_STORAGE = re.compile(r"\.(shared|local)\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[(\d+)\]")
_DYNAMIC = re.compile(r"\.extern\s+\.shared\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+_(\d+))\[\]")
"""An array whose size a launch says; the emitter writes it at the end of the name."""
_LABEL = re.compile(r"^([$\w]+):\s*(.*)$", re.DOTALL)
_GUARD = re.compile(r"^@(!?)(%\w+)\s+(.*)$", re.DOTALL)
_WIDTHS = {"pred": 1, "b8": 8, "b16": 16, "b32": 32, "b64": 64, "f32": 32, "f64": 64}


class Instruction(msgspec.Struct, frozen=True):
    """An instruction: the name with its suffixes, the operands as text, and the register that it depends on.

    `is_negated`: it runs where that register is false.
    """

    name: str
    suffixes: tuple[str, ...]
    operands: tuple[str, ...]
    predicate: str | None = None
    is_negated: bool = False


class KernelProgram(msgspec.Struct, frozen=True):
    """A kernel: its parameters, instructions, labels as numbers of instructions, the bits of its registers,
    and the offsets of its symbols in shared and local memory."""

    name: str
    params: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    registers: dict[str, int]
    symbols: dict[str, int]
    shared_bytes: int
    local_bytes: int
    dynamic_bytes: int = 0
    """The part of the shared memory whose size a launch says."""


@cache
def parse_ptx(text: str) -> dict[str, KernelProgram]:
    """Return the kernels of a text by name.

    >>> program = parse_ptx(".visible .entry f(.param .u64 f_param_0) { L: @%p1 bra L; ret; }")["f"]
    >>> program.params, [each.name for each in program.instructions], program.labels
    (('f_param_0',), ['bra', 'ret'], {'L': 0})
    """
    text = _LINES.sub("", _COMMENTS.sub("", text))
    kernels = {}
    for entry in _ENTRY.finditer(text):
        params = tuple(re.findall(r"(\w+)\s*(?:,|$)", entry[2].strip()))
        kernel = _kernel(entry[1], params, _block(text, entry.end()))
        kernels[entry[1]] = _with_dynamic_memory(kernel, text)
    return kernels


def _with_dynamic_memory(kernel: KernelProgram, text: str) -> KernelProgram:
    """Return a kernel with the array of dynamic shared memory that has its name."""
    for align, symbol, size in _DYNAMIC.findall(text):
        if symbol == f"{kernel.name}_shared_{size}":
            offset = -(-kernel.shared_bytes // int(align)) * int(align)
            return replace(
                kernel,
                symbols={**kernel.symbols, symbol: offset},
                shared_bytes=offset + int(size),
                dynamic_bytes=int(size),
            )
    return kernel


def _block(text: str, start: int) -> str:
    """Return the text up to the brace that closes the one before start."""
    depth = 1
    for match in re.finditer(r"[{}]", text[start:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return text[start : start + match.start()]
    raise InternalError("The PTX has an open brace.")


def _kernel(name: str, params: tuple[str, ...], body: str) -> KernelProgram:
    registers: dict[str, int] = {}
    symbols: dict[str, int] = {}
    sizes = {"shared": 0, "local": 0}
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for piece in body.split(";"):
        # Braces around an instruction with a register of its own.
        line = piece.strip().lstrip("{} \n\t")
        while match := _LABEL.match(line):
            labels[match[1]], line = len(instructions), match[2].strip()
        if not line:
            continue
        if line.startswith("."):
            _declare(line, registers, symbols, sizes)
        else:
            instructions.append(_instruction(line))
    return KernelProgram(
        name,
        params,
        tuple(instructions),
        labels,
        registers,
        symbols,
        sizes["shared"],
        sizes["local"],
    )


def _declare(
    line: str, registers: dict[str, int], symbols: dict[str, int], sizes: dict[str, int]
) -> None:
    if many := _REGISTERS.search(line):
        registers |= {f"{many[2]}{n}": _WIDTHS[many[1]] for n in range(int(many[3]))}
    elif one := _REGISTER.search(line):
        registers[one[2]] = _WIDTHS[one[1]]
    elif storage := _STORAGE.search(line):
        space, align = storage[1], int(storage[2])
        offset = -(-sizes[space] // align) * align
        symbols[storage[3]] = offset
        sizes[space] = offset + int(storage[4])
    elif not line.startswith(".pragma"):
        raise InternalError(f"The interpreter does not know the directive '{line}'.")


def _instruction(line: str) -> Instruction:
    predicate, is_negated = None, False
    if guard := _GUARD.match(line):
        predicate, is_negated, line = guard[2], guard[1] == "!", guard[3].strip()
    full, _, rest = line.partition("\t") if "\t" in line else line.partition(" ")
    name, *suffixes = full.strip().split(".")
    return Instruction(name, tuple(suffixes), tuple(_operands(rest)), predicate, is_negated)


def _operands(text: str) -> list[str]:
    """Return operands that are separated by commas outside of braces and brackets."""
    texts, depth, current = [], 0, ""
    for mark in text:
        depth += (mark in "{[") - (mark in "}]")
        if mark == "," and depth == 0:
            texts.append(current.strip())
            current = ""
        else:
            current += mark
    return [*texts, current.strip()] if current.strip() else texts
