"""Object files with all relocations that compilers make for kernels, and with others."""

import re
import subprocess

import numpy as np
import pytest

from gossamer_ir.errors import InternalError

PARAMETERS = "const int64_t *x, int64_t *y, int64_t n, void *workspace"
WIDTHS = ("int8_t", "int16_t", "int32_t", "int64_t")
TABLES = "".join(
    f"static const volatile {width} of_{width}[] = {{5, 6, 7, 8}};" for width in WIDTHS
)
HIDDEN = '__attribute__((visibility("hidden")))'
NUMBERS = "".join(f"{HIDDEN} {width} a_{width} = 9;" for width in WIDTHS)
SUMS_OF_TABLES = f"""
{TABLES}
{NUMBERS}
typedef double pair __attribute__((vector_size(16)));
static const pair halves = {{0.5, 1.5}};
static volatile int64_t written;
int64_t shared_number = 1000, *shared_place = &shared_number;
int64_t gossamer_kernel({PARAMETERS}) {{
    if (n < 0) written = n;
    for (int64_t i = 0; i < n; i++) {{
        int64_t at = x[i] & 3;
        pair scaled = halves * (double)x[i];
        y[i] = {" + ".join(f"of_{width}[at] + a_{width}" for width in WIDTHS)}
            + (int64_t)(scaled[0] + scaled[1]) + *shared_place;
    }}
    return 0;
}}"""
"""Constants of all widths, in tables and alone, an address in the data, global names, and a
store that is not executed: the memory of kernels is read-only."""


def sums_of_tables(x):
    return 4 * (5 + (x & 3) + 9) + 2 * x + 1000


JUMPS = f"""
__attribute__((noinline)) int64_t next_of(int64_t value) {{ return value < 0 ? -value : 3 * value + 1; }}
__attribute__((noinline)) static int64_t chosen(int64_t value) {{
    switch (value) {{
    {"".join(f"case {at}: return next_of({at * at} - value) + {7 * at};" for at in range(12))}
    }}
    return next_of(value) - 1;
}}
int64_t gossamer_kernel({PARAMETERS}) {{
    for (int64_t i = 0; i < n; i++) {{
        __asm__ volatile(".balign 16");
        if (x[i] > 100) goto large;
        y[i] = chosen(x[i]);
        continue;
    large:
        y[i] = next_of(x[i] - 100);
    }}
    return 0;
}}"""
"""Calls, branches, aligned code, and a table of the cases of a switch."""


def next_of(value):
    return -value if value < 0 else 3 * value + 1


def jumps(x):
    types = [
        next_of(value - 100)
        if value > 100
        else next_of(value * value - value) + 7 * value
        if 0 <= value < 12
        else next_of(value) - 1
        for value in x.tolist()
    ]
    return np.array(types)


LIBRARY_CALLS = f"""
int64_t gossamer_kernel({PARAMETERS}) {{
    int64_t *copy = calloc(n + 1, sizeof *copy);
    memcpy(copy, x, n * sizeof *copy);
    memmove(copy + 1, copy, n * sizeof *copy);
    memset(y, 0, n * sizeof *y);
    for (int64_t i = 0; i < n; i++) y[i] += copy[i] + copy[n];
    free(copy);
    return 0;
}}"""


def library_calls(x):
    return np.concatenate([x[:1], x[:-1]]) + x[-1]


PROGRAMS = {
    "tables": (SUMS_OF_TABLES, sums_of_tables),
    "jumps": (JUMPS, jumps),
    "library": (LIBRARY_CALLS, library_calls),
}
X = np.array([0, 1, 2, 3, 5, 11, 12, -4, 99, 101, 4096])


LEVELS = ("-O0", "-O2", "-Os")


def flags_of(level, machine):
    """The flags of a level of optimization. Small code has no common base of the constants on AArch64, and on
    RISC-V no instructions of 16 bits."""
    more = {"aarch64": "-fno-section-anchors", "riscv64": "-march=rv64g"}
    return (level, more[machine.architecture.name]) if level == "-Os" else (level,)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_what_numpy_computes(name, level, machine, load):
    source, expected = PROGRAMS[name]
    y = np.full_like(X, -1)
    load(source, *flags_of(level, machine), dtype="int64")(X, y)
    np.testing.assert_array_equal(y, expected(X))


EXPECTED = {
    "aarch64": """ABS64 ADD_ABS_LO12_NC ADR_GOT_PAGE ADR_PREL_PG_HI21 CALL26 JUMP26 LD64_GOT_LO12_NC
        LDST128_ABS_LO12_NC LDST16_ABS_LO12_NC LDST32_ABS_LO12_NC LDST64_ABS_LO12_NC LDST8_ABS_LO12_NC
        PREL32""",
    "riscv64": """64 ADD32 ALIGN BRANCH CALL_PLT GOT_HI20 JAL PCREL_HI20 PCREL_LO12_I PCREL_LO12_S RELAX
        RVC_BRANCH RVC_JUMP SUB32""",
}


def test_the_programs_have_the_relocations_of_kernels(machine, compiled):
    """The compiler has computed relocations that are missing here, so that the test above tests less."""
    types = set()
    for source, _ in PROGRAMS.values():
        for level in LEVELS:
            path = compiled(source, *flags_of(level, machine))
            command = [machine.architecture.compiler.replace("gcc", "readelf"), "-rW", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            types |= set(re.findall(r" R_(?:AARCH64|RISCV)_(\w+)", done.stdout))
    assert set(EXPECTED[machine.architecture.name].split()) <= types


def test_an_unknown_relocation_is_refused(load):
    source = f"""
    static __thread int64_t last;
    int64_t gossamer_kernel({PARAMETERS}) {{ y[0] = last; last = x[0]; return 0; }}"""
    with pytest.raises(InternalError, match=r"a relocation of type \d+, which the emulated"):
        load(source, "-ftls-model=initial-exec", dtype="int64")(X, X.copy())


def test_a_function_that_the_process_lacks_is_refused_by_its_name(load):
    source = f"""
    double cosine(double);
    int64_t gossamer_kernel({PARAMETERS}) {{ y[0] = cosine(x[0]); return 0; }}"""
    with pytest.raises(InternalError, match="it needs the function 'cosine'"):
        load(source, dtype="int64")(X, X.copy())


def test_an_object_file_without_a_kernel_is_refused(load):
    with pytest.raises(InternalError, match="it has no function gossamer_kernel"):
        load("int64_t kernel(void) { return 0; }", dtype="int64")(X, X.copy())
