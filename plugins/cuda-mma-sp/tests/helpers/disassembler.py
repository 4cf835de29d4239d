"""The disassembler of machine code, if there is one."""

import re
import subprocess
from collections import Counter

import pytest
from assembler import assembled
from cuda_toolchain import toolchain_program

ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120")
_OPCODE = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE)


def assembled_without_spills(text, architecture, folder):
    """Assemble a text, and fail if a kernel keeps registers in local memory."""
    said = assembled(text, architecture, folder)
    stacks = re.findall(
        r"\d+ bytes stack frame, \d+ bytes spill stores, \d+ bytes spill loads", said
    )
    assert set(stacks) == {"0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"}


def opcodes(text, architecture, folder):
    """Count the instructions of the machine code of a text by name, without spills; the test is skipped
    without a disassembler."""
    assembled_without_spills(text, architecture, folder)
    program = toolchain_program("nvdisasm")
    if program is None:
        pytest.skip("there is no nvdisasm: install nvidia-cuda-nvdisasm")
    command = [program, "-c", str(folder / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts = Counter(_OPCODE.findall(done.stdout))
    assert counts["EXIT"], "no instruction was recognized"
    return counts


def count_of(counts, prefix):
    """Count the instructions whose name begins with a prefix, up to a dot."""
    return sum(n for name, n in counts.items() if f"{name}.".startswith(f"{prefix}."))
