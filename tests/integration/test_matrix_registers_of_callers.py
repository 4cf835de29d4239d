"""A kernel with outer products saves the matrix registers of its caller, if they are in use."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from gossamer_ir.interchange.records import Target
from gossamer_ir.script import parse_module
from gossamer_llvm_sve.backend import ScalableBackend
from gossamer_llvm_sve.sme_intrinsics import sme_block_product
from gossamer_llvm_sve.vector_extension import SVE
from gossamer_lower import lower_to_flat

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64-static"
CALLER = """
#include <stdint.h>
#include <string.h>
__asm__(".arch_extension sme");
int64_t gossamer_kernel(float *, float *, float *, int64_t, int64_t, int64_t, int64_t, void *);

static unsigned char before[256 * 256], saved[256 * 256];
static struct { void *memory; uint16_t rows; uint8_t reserved[6]; } block;
static float a[6] = {1, 2, 3, 4, 5, 6}, b[3] = {1, 10, 100}, c[2] = {1000, 1000};

int main(int count, char **values) {
    uint64_t size, pending;
    for (unsigned at = 0; at < sizeof before; at++) before[at] = at * 7 + at / 251;
    __asm__ volatile("smstart za\\n\\trdsvl %0, #1" : "=r"(size));
    for (uint64_t row = 0; row < size; row++)
        __asm__ volatile("mov w12, %w0\\n\\tldr za[w12, 0], [%1]"
                         : : "r"(row), "r"(before + row * size) : "x12", "memory");
    block.memory = saved;
    block.rows = size;
    /* TPIDR2_EL0: from here on, a function that needs the registers saves them first. */
    if (count > 1) __asm__ volatile("msr S3_3_C13_C0_5, %0" : : "r"(&block));
    else __asm__ volatile("smstop za");
    int64_t workspace[4] = {1, 0, -1, 0};
    if (gossamer_kernel(a, b, c, 1, 2, 3, 1, workspace)) return 1;
    __asm__ volatile("mrs %0, S3_3_C13_C0_5" : "=r"(pending));
    if (pending || c[0] != 1321 || c[1] != 1654) return 2;
    return count > 1 && memcmp(before, saved, size * size) ? 3 : 0;
}
"""


@pytest.mark.skipif(
    not (shutil.which(COMPILER) and shutil.which(EMULATOR)),
    reason=f"needs {COMPILER} and {EMULATOR}",
)
def test_registers_in_use_are_saved_where_the_caller_wants(tmp_path):
    flat = lower_to_flat(parse_module(sme_block_product("float32").implementation))
    artifact = ScalableBackend(SVE).compile(flat, Target.parse("llvm-sve:features=sme"))
    kernel, caller, executable = (tmp_path / name for name in ("kernel.o", "caller.c", "caller"))
    kernel.write_bytes(artifact.code)
    caller.write_text(CALLER)
    command = [COMPILER, "-O1", "-static", str(caller), str(kernel), "-o", str(executable)]
    # It would fail if the kernel needed functions of a support library.
    subprocess.run(command, check=True)
    for bits in SVE.vector_lengths:
        cpu = f"max,sme-default-vector-length={bits // 8}"
        for arguments in ([], ["in use"]):
            run = subprocess.run([EMULATOR, "-cpu", cpu, str(executable), *arguments], check=False)
            assert run.returncode == 0, (bits, arguments)
